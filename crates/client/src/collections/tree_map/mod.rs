//! An ordered map: a B-tree, each of whose nodes is one object.

mod changes;
mod leaf_path;
mod traits;
mod walk;
mod whole;

use super::Access;
use super::node::Node;
use crate::runtime::block_on;
use crate::{Error, ErrorKind, Ref, Reference, Result, Segment, Transaction};
use leaf_path::LeafPath;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::ops::{ControlFlow, RangeBounds};
use walk::{AHEAD, Direction, walk};
use whole::{Clearing, Insertion, Removal};

/// Bytes of an encoded key, at most.
pub const KEY_BYTES_MAX: usize = 1024;
/// Bytes of an encoded value, at most. What is larger is better an object of its own, with a [`Ref`] to it as the
/// value.
pub const VALUE_BYTES_MAX: usize = 4096;

/// An ordered map, kept in objects of a segment: an index, say, from dates to references.
///
/// It is a B-tree (Bayer and McCreight 1972; as in Comer's B+-tree all entries are in the leaves), and each node is one
/// object. An insertion or a removal reads the nodes on the way down and writes one leaf. So **transactions that change
/// different leaves do not conflict**, except for the few that split a node or join two. A lookup reads one node on
/// each level. A scan reads exactly the leaves that it covers. It conflicts with changes of these leaves, also of keys
/// that were not there. The map keeps no count of its entries, because all insertions would conflict over it.
///
/// In a [`Visit`](crate::Visit) it works, too. What a visit changes there is made anew in the commit that publishes it.
///
/// The root of the map stays the same object for ever. Keep it as a named root of the segment, or in other objects: a
/// `TreeMap` is as small as a reference, and can be stored. Keys are ordered as `K` is. A value above
/// [`VALUE_BYTES_MAX`] should be an object of its own.
///
/// ```
/// use thorp_client::collections::TreeMap;
/// # use thorp_client::{JoinConfig, Member};
/// # let village = thorp_testing::Village::new();
/// # let home = village.home("alps");
/// # let joining = JoinConfig::new(home.address()).identity(village.member("me"));
/// # let member = Member::join(joining)?;
/// let shop = member.open_or_create("thorp://alps/shop")?;
/// let by_price = member.transact(|tx| {
///     let map: TreeMap<u64, String> = TreeMap::create(tx, &shop)?;
///     tx.set_root(&shop, "by price", Some(map.reference()))?;
///     Ok(map)
/// })?;
/// member.transact(|tx| by_price.insert(tx, 12, "a cheese".to_owned()))?;
/// let cheap = member.transact(|tx| by_price.range(tx, ..100))?;
/// assert_eq!(cheap, [(12, "a cheese".to_owned())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// All methods fail as the transaction does, with [`TooLarge`](ErrorKind::TooLarge) for a key or a value that is, and
/// with [`DataDamaged`](ErrorKind::DataDamaged) if the objects are not nodes of such a map.
pub struct TreeMap<K, V> {
    root: Ref<Node<K, V>>,
}

impl<K, V> TreeMap<K, V> {
    /// The map whose root is this object. Nothing is checked before it is read.
    pub const fn at(root: Reference) -> Self {
        TreeMap {
            root: Ref::new(root),
        }
    }

    /// Its root.
    pub const fn reference(self) -> Reference {
        self.root.reference()
    }
}

impl<K, V> TreeMap<K, V>
where
    K: Ord + Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    V: Serialize + DeserializeOwned + Send + Sync + 'static,
{
    /// The bytes of an empty map's root: an object that holds them is one.
    pub fn empty() -> Result<Vec<u8>> {
        Node::<K, V>::Leaf(Vec::new()).bytes()
    }

    /// Makes an empty one.
    pub fn create(tx: &mut Transaction, segment: &Segment) -> Result<Self> {
        block_on(Self::create_async(tx, segment))
    }

    /// As [`TreeMap::create`].
    pub async fn create_async(tx: &mut Transaction, segment: &Segment) -> Result<Self> {
        let root = tx.create_async(segment, Self::empty()?).await?;
        Ok(Self::at(root))
    }

    /// The value of a key.
    pub fn get<A: Access>(self, tx: &mut A, key: &K) -> Result<Option<V>> {
        block_on(self.get_async(tx, key))
    }

    /// As [`TreeMap::get`].
    pub async fn get_async<A: Access>(self, tx: &mut A, key: &K) -> Result<Option<V>> {
        tx.begin_reading().await?;
        let path = LeafPath::read(tx, self.reference(), key).await?;
        let mut entries = path.entries;
        let found = entries.binary_search_by(|(own, _)| own.cmp(key));
        Ok(found.ok().map(|place| entries.swap_remove(place).1))
    }

    /// Whether there is such a key.
    pub fn contains<A: Access>(self, tx: &mut A, key: &K) -> Result<bool> {
        block_on(self.contains_async(tx, key))
    }

    /// As [`TreeMap::contains`].
    pub async fn contains_async<A: Access>(self, tx: &mut A, key: &K) -> Result<bool> {
        Ok(self.get_async(tx, key).await?.is_some())
    }

    /// Sets the value of a key, and gives the one that it had.
    pub fn insert<A: Access>(self, tx: &mut A, key: K, value: V) -> Result<Option<V>> {
        block_on(self.insert_async(tx, key, value))
    }

    /// As [`TreeMap::insert`].
    pub async fn insert_async<A: Access>(self, tx: &mut A, key: K, value: V) -> Result<Option<V>> {
        check_size("key", &key, KEY_BYTES_MAX)?;
        let value = check_size("value", &value, VALUE_BYTES_MAX)?;
        let insertion = Insertion::<K, V> {
            root: self.reference(),
            key,
            value,
            of: PhantomData,
        };
        tx.change(insertion).await
    }

    /// Removes a key, and gives the value that it had.
    pub fn remove<A: Access>(self, tx: &mut A, key: &K) -> Result<Option<V>> {
        block_on(self.remove_async(tx, key))
    }

    /// As [`TreeMap::remove`].
    pub async fn remove_async<A: Access>(self, tx: &mut A, key: &K) -> Result<Option<V>> {
        let removal = Removal::<K, V> {
            root: self.reference(),
            key: key.clone(),
            of: PhantomData,
        };
        tx.change(removal).await
    }

    /// The entry with the smallest key.
    pub fn first<A: Access>(self, tx: &mut A) -> Result<Option<(K, V)>> {
        block_on(self.first_async(tx))
    }

    /// As [`TreeMap::first`].
    pub async fn first_async<A: Access>(self, tx: &mut A) -> Result<Option<(K, V)>> {
        walk::end(tx, self.reference(), Direction::Ascending).await
    }

    /// The entry with the greatest key.
    pub fn last<A: Access>(self, tx: &mut A) -> Result<Option<(K, V)>> {
        block_on(self.last_async(tx))
    }

    /// As [`TreeMap::last`].
    pub async fn last_async<A: Access>(self, tx: &mut A) -> Result<Option<(K, V)>> {
        walk::end(tx, self.reference(), Direction::Descending).await
    }

    /// All entries in a range of keys, in their order.
    pub fn range<A: Access>(self, tx: &mut A, range: impl RangeBounds<K>) -> Result<Vec<(K, V)>> {
        block_on(self.range_async(tx, range))
    }

    /// As [`TreeMap::range`].
    pub async fn range_async<A: Access>(
        self,
        tx: &mut A,
        range: impl RangeBounds<K>,
    ) -> Result<Vec<(K, V)>> {
        let mut entries = Vec::new();
        let add = |key, value| {
            entries.push((key, value));
            Ok(ControlFlow::Continue(()))
        };
        self.scan_async(tx, range, add).await?;
        Ok(entries)
    }

    /// Shows every entry in a range of keys to `visit`, in their order, until that breaks or fails. Leaves are fetched
    /// a few ahead of the one that is shown.
    pub fn scan<A: Access>(
        self,
        tx: &mut A,
        range: impl RangeBounds<K>,
        visit: impl FnMut(K, V) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        block_on(self.scan_async(tx, range, visit))
    }

    /// As [`TreeMap::scan`].
    pub async fn scan_async<A: Access>(
        self,
        tx: &mut A,
        range: impl RangeBounds<K>,
        visit: impl FnMut(K, V) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        walk(
            tx,
            self.reference(),
            range,
            Direction::Ascending,
            AHEAD,
            visit,
        )
        .await
    }

    /// As [`TreeMap::scan`], from the greatest key down.
    pub fn scan_down<A: Access>(
        self,
        tx: &mut A,
        range: impl RangeBounds<K>,
        visit: impl FnMut(K, V) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        block_on(self.scan_down_async(tx, range, visit))
    }

    /// As [`TreeMap::scan_down`].
    pub async fn scan_down_async<A: Access>(
        self,
        tx: &mut A,
        range: impl RangeBounds<K>,
        visit: impl FnMut(K, V) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        walk(
            tx,
            self.reference(),
            range,
            Direction::Descending,
            AHEAD,
            visit,
        )
        .await
    }

    /// How many entries there are; they are counted, so this reads every leaf.
    pub fn len<A: Access>(self, tx: &mut A) -> Result<u64> {
        block_on(self.len_async(tx))
    }

    /// As [`TreeMap::len`].
    pub async fn len_async<A: Access>(self, tx: &mut A) -> Result<u64> {
        let mut count = 0;
        let visit = |_, _| {
            count += 1;
            Ok(ControlFlow::Continue(()))
        };
        self.scan_async(tx, .., visit).await?;
        Ok(count)
    }

    /// Whether there is no entry.
    pub fn is_empty<A: Access>(self, tx: &mut A) -> Result<bool> {
        block_on(self.is_empty_async(tx))
    }

    /// As [`TreeMap::is_empty`].
    pub async fn is_empty_async<A: Access>(self, tx: &mut A) -> Result<bool> {
        Ok(self.first_async(tx).await?.is_none())
    }

    /// Takes everything away. The map itself stays, with its root.
    pub fn clear<A: Access>(self, tx: &mut A) -> Result<()> {
        block_on(self.clear_async(tx))
    }

    /// As [`TreeMap::clear`].
    pub async fn clear_async<A: Access>(self, tx: &mut A) -> Result<()> {
        let clearing = Clearing::<K, V> {
            root: self.reference(),
            of: PhantomData,
        };
        tx.change(clearing).await
    }
}

/// A key or value as bytes, if these are not too many.
fn check_size<T: Serialize>(what: &str, value: &T, most: usize) -> Result<Vec<u8>> {
    let bytes = crate::transaction::encode(value)?;
    match bytes.len() <= most {
        true => Ok(bytes),
        false => Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "a {what} of a tree map has at most {most} bytes, and this one has {}",
                bytes.len()
            ),
        )),
    }
}
