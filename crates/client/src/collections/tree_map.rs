//! An ordered map: a B-tree, each of whose nodes is one object.

use super::Access;
use super::node::{DEPTH_MAX, Inner, Node, damaged, is_one};
use crate::link::block_on;
use crate::{Error, ErrorKind, Ref, Reference, Result, Segment, Transaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::{ControlFlow, RangeBounds};

/// Bytes of a node: when there are more it is split. A fetch brings a page, which holds several; a commit that inserts sends
/// one.
pub const NODE_BYTES_MAX: usize = 1024;
/// Bytes of an encoded key, at most.
pub const KEY_BYTES_MAX: usize = 1024;
/// Bytes of an encoded value, at most. What is larger is better an object of its own, with a [`Ref`] to it as the value.
pub const VALUE_BYTES_MAX: usize = 4096;

/// An ordered map, kept in objects of a segment: an index, say, from dates to references.
///
/// It is a B-tree (Bayer and McCreight 1972; as in Comer's B+-tree all entries are in the leaves), and each node is one
/// object. Whoever inserts or removes reads the nodes on the way down and writes one leaf: so **transactions that change
/// different leaves do not conflict**, but for the few that split a node or join two. A lookup reads one node on each level;
/// a scan reads exactly the leaves that it covers, and conflicts with changes of these, also of keys that were not there.
/// How many entries there are is not kept anywhere: everybody who inserts would conflict over it.
///
/// The map is known by its root, which stays the same object for ever: keep it as a named root of the segment, or in other
/// objects (a `TreeMap` is as small as a reference, and can be stored). Keys are ordered as `K` is. What is larger than
/// [`VALUE_BYTES_MAX`] should be an object of its own.
///
/// ```no_run
/// use thorp_client::collections::TreeMap;
/// # use thorp_client::{Member, Result};
/// # fn example(member: &Member) -> Result<()> {
/// let shop = member.open_or_create("thorp://alps/shop")?;
/// let by_price = member.transact(|tx| {
///     let map: TreeMap<u64, String> = TreeMap::create(tx, &shop)?;
///     tx.set_root(&shop, "by price", Some(map.reference()))?;
///     Ok(map)
/// })?;
/// member.transact(|tx| by_price.insert(tx, 12, "a cheese".to_owned()))?;
/// let cheap = member.transact(|tx| by_price.range(tx, ..100))?;
/// assert_eq!(cheap, [(12, "a cheese".to_owned())]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// All methods fail as the transaction does, with [`TooLarge`](ErrorKind::TooLarge) for a key or a value that is, and with
/// [`DataDamaged`](ErrorKind::DataDamaged) if the objects are not nodes of such a map.
pub struct TreeMap<K, V> {
    root: Ref<Node<K, V>>,
}

/// A node on the way down, and which one below it was taken.
struct Step<K> {
    at: Reference,
    inner: Inner<K>,
    taken: usize,
}

/// A leaf, and the nodes above it, the root first.
struct Way<K, V> {
    steps: Vec<Step<K>>,
    at: Reference,
    entries: Vec<(K, V)>,
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
    K: Ord + Clone + Serialize + DeserializeOwned,
    V: Serialize + DeserializeOwned,
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
        let mut entries = self.way_to(tx, key).await?.entries;
        let found = entries.binary_search_by(|(own, _)| own.cmp(key));
        Ok(found.ok().map(|place| entries.swap_remove(place).1))
    }

    /// Whether there is such a key.
    pub fn contains<A: Access>(self, tx: &mut A, key: &K) -> Result<bool> {
        Ok(self.get(tx, key)?.is_some())
    }

    /// Sets the value of a key; tells the one that it had.
    pub fn insert<A: Access>(self, tx: &mut A, key: K, value: V) -> Result<Option<V>> {
        block_on(self.insert_async(tx, key, value))
    }

    /// As [`TreeMap::insert`].
    pub async fn insert_async<A: Access>(self, tx: &mut A, key: K, value: V) -> Result<Option<V>> {
        check_size("key", &key, KEY_BYTES_MAX)?;
        check_size("value", &value, VALUE_BYTES_MAX)?;
        let mut way = self.way_to(tx, &key).await?;
        let old = match way.entries.binary_search_by(|(own, _)| own.cmp(&key)) {
            Ok(place) => Some(std::mem::replace(&mut way.entries[place].1, value)),
            Err(place) => {
                way.entries.insert(place, (key, value));
                let is_last = place + 1 == way.entries.len();
                return self.grown(tx, way, is_last).await.map(|()| None);
            }
        };
        self.grown(tx, way, false).await?;
        Ok(old)
    }

    /// Takes a key away; tells the value that it had.
    pub fn remove<A: Access>(self, tx: &mut A, key: &K) -> Result<Option<V>> {
        block_on(self.remove_async(tx, key))
    }

    /// As [`TreeMap::remove`].
    pub async fn remove_async<A: Access>(self, tx: &mut A, key: &K) -> Result<Option<V>> {
        let mut way = self.way_to(tx, key).await?;
        let Ok(place) = way.entries.binary_search_by(|(own, _)| own.cmp(key)) else {
            return Ok(None);
        };
        // A leaf is its entries and a byte.
        let before = 1 + crate::transaction::encode(&way.entries)?.len();
        let (_, value) = way.entries.remove(place);
        self.shrunk(tx, way, before).await?;
        Ok(Some(value))
    }

    /// The entry with the smallest key.
    pub fn first<A: Access>(self, tx: &mut A) -> Result<Option<(K, V)>> {
        block_on(self.end(tx, Direction::Ascending))
    }

    /// The entry with the greatest key.
    pub fn last<A: Access>(self, tx: &mut A) -> Result<Option<(K, V)>> {
        block_on(self.end(tx, Direction::Descending))
    }

    async fn end<A: Access>(self, tx: &mut A, direction: Direction) -> Result<Option<(K, V)>> {
        let mut found = None;
        let take = |key, value| {
            found = Some((key, value));
            Ok(ControlFlow::Break(()))
        };
        self.walk(tx, .., direction, 0, take).await?;
        Ok(found)
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

    /// Shows every entry in a range of keys to `visit`, in their order, until that breaks or fails. Leaves are fetched a few
    /// ahead of the one that is shown.
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
        self.walk(tx, range, Direction::Ascending, AHEAD, visit)
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
        self.walk(tx, range, Direction::Descending, AHEAD, visit)
            .await
    }

    /// How many entries there are; they are counted, so this reads every leaf.
    pub fn len<A: Access>(self, tx: &mut A) -> Result<u64> {
        let mut count = 0;
        self.scan(tx, .., |_, _| {
            count += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    /// Whether there is no entry.
    pub fn is_empty<A: Access>(self, tx: &mut A) -> Result<bool> {
        Ok(self.first(tx)?.is_none())
    }

    /// Takes everything away. The map itself stays, with its root.
    pub fn clear<A: Access>(self, tx: &mut A) -> Result<()> {
        block_on(self.clear_async(tx))
    }

    /// As [`TreeMap::clear`].
    pub async fn clear_async<A: Access>(self, tx: &mut A) -> Result<()> {
        let root = self.reference();
        let mut waiting = vec![(root, 0)];
        while let Some((at, depth)) = waiting.pop() {
            if let Node::Inner(inner) = self.node(tx, &at, depth).await? {
                waiting.extend(inner.below.into_iter().map(|below| (below, depth + 1)));
            }
            if at != root {
                tx.delete(&at)?;
            }
        }
        tx.write(&root, Self::empty()?)
    }

    // --- Nodes ---

    async fn node<A: Access>(self, tx: &mut A, at: &Reference, depth: usize) -> Result<Node<K, V>> {
        match depth < DEPTH_MAX {
            true => Node::read(tx, at).await,
            false => Err(damaged(at)),
        }
    }

    async fn way_to<A: Access>(self, tx: &mut A, key: &K) -> Result<Way<K, V>> {
        let mut steps = Vec::new();
        let mut at = self.reference();
        loop {
            match self.node(tx, &at, steps.len()).await? {
                Node::Leaf(entries) => return Ok(Way { steps, at, entries }),
                Node::Inner(inner) => {
                    let taken = inner.place_of(key);
                    let below = inner.below[taken];
                    steps.push(Step { at, inner, taken });
                    at = below;
                }
            }
        }
    }

    /// Writes a leaf that has more than before, and what follows from that above.
    async fn grown<A: Access>(
        self,
        tx: &mut A,
        way: Way<K, V>,
        mut added_last: bool,
    ) -> Result<()> {
        let Way {
            mut steps,
            mut at,
            entries,
        } = way;
        let mut node = Node::Leaf(entries);
        let mut changes = Changes::default();
        loop {
            let bytes = node.bytes()?;
            if bytes.len() <= NODE_BYTES_MAX || !node.may_split() {
                changes.write(at, bytes);
                return changes.make(tx);
            }
            let halves = node.split(added_last)?;
            let right = tx.create_near(&at, halves.right.bytes()?).await?;
            let Some(Step {
                at: above,
                mut inner,
                taken,
            }) = steps.pop()
            else {
                // The root stays where it is: both halves go below it.
                let left = tx.create_near(&at, halves.left.bytes()?).await?;
                let root = Node::<K, V>::Inner(Inner {
                    keys: vec![halves.from],
                    below: vec![left, right],
                });
                changes.write(at, root.bytes()?);
                return changes.make(tx);
            };
            changes.write(at, halves.left.bytes()?);
            added_last = taken == inner.keys.len();
            inner.keys.insert(taken, halves.from);
            inner.below.insert(taken + 1, right);
            (at, node) = (above, Node::Inner(inner));
        }
    }

    /// Writes a leaf that has less than before, and what follows from that above.
    async fn shrunk<A: Access>(self, tx: &mut A, way: Way<K, V>, mut before: usize) -> Result<()> {
        let Way {
            mut steps,
            mut at,
            entries,
        } = way;
        let mut node = Node::Leaf(entries);
        let mut changes = Changes::default();
        while let Some(mut step) = steps.pop() {
            if node.is_empty() {
                changes.delete(at);
                step.inner.remove(step.taken);
                (at, node, before) = (step.at, Node::Inner(step.inner), NODE_BYTES_MAX);
                continue;
            }
            let bytes = node.bytes()?;
            // Looked at when it becomes small and when it has halved since: each look reads a neighbour, which others change.
            let marks = [4, 8, 16, 32].map(|part| NODE_BYTES_MAX / part);
            let becomes_small = marks
                .iter()
                .any(|mark| bytes.len() < *mark && before >= *mark);
            if !becomes_small || step.inner.keys.is_empty() {
                changes.write(at, bytes);
                return changes.make(tx);
            }
            // With the neighbour before it, or if there is none the one after it.
            let place = step.taken.saturating_sub(1);
            let (left_at, right_at) = (step.inner.below[place], step.inner.below[place + 1]);
            let from = step.inner.keys[place].clone();
            let is_left = step.taken == 0;
            let other_at = if is_left { right_at } else { left_at };
            let other = self.node(tx, &other_at, steps.len() + 1).await?;
            let (left, right) = match is_left {
                true => (node, other),
                false => (other, node),
            };
            let one = Node::merge(left, from, right).ok_or_else(|| damaged(&other_at))?;
            let one = one.bytes()?;
            if !is_one(one.len()) {
                changes.write(at, bytes);
                return changes.make(tx);
            }
            changes.write(left_at, one);
            changes.delete(right_at);
            step.inner.remove(place + 1);
            (at, node, before) = (step.at, Node::Inner(step.inner), NODE_BYTES_MAX);
        }
        // A root with one node below it takes that one's place; with none it is a leaf again.
        let mut depth = 1;
        while let Node::Inner(Inner { below, .. }) = &node
            && let [only] = below[..]
        {
            node = match changes.written(&only) {
                Some(bytes) => crate::transaction::decode(&only, bytes)?,
                None => self.node(tx, &only, depth).await?,
            };
            changes.delete(only);
            depth += 1;
        }
        let bytes = match node.is_empty() {
            true => Self::empty()?,
            false => node.bytes()?,
        };
        changes.write(self.reference(), bytes);
        changes.make(tx)
    }

    async fn walk<A: Access>(
        self,
        tx: &mut A,
        range: impl RangeBounds<K>,
        direction: Direction,
        ahead: usize,
        mut visit: impl FnMut(K, V) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        // The next one last.
        let mut waiting = vec![(self.reference(), 0)];
        while let Some((at, depth)) = waiting.pop() {
            match self.node(tx, &at, depth).await? {
                Node::Inner(inner) => {
                    let below = inner.below.get(inner.places_in(&range));
                    let mut below = below.map(<[_]>::to_vec).unwrap_or_default();
                    if direction == Direction::Ascending {
                        below.reverse();
                    }
                    let next = below.len().saturating_sub(ahead);
                    if below.len() > 1 && ahead > 0 {
                        tx.prefetch(&below[next..]);
                    }
                    waiting.extend(below.into_iter().map(|below| (below, depth + 1)));
                }
                Node::Leaf(mut entries) => {
                    if let Some(place) = waiting.len().checked_sub(ahead)
                        && let Some((next, _)) = waiting.get(place)
                    {
                        tx.prefetch(&[*next]);
                    }
                    if direction == Direction::Descending {
                        entries.reverse();
                    }
                    let within = entries.into_iter().filter(|(key, _)| range.contains(key));
                    for (key, value) in within {
                        if visit(key, value)?.is_break() {
                            return Ok(());
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// What follows from one insertion or removal: made at the end and at once, so that whoever gives up on the way, because a
/// page does not come, has a whole tree.
#[derive(Default)]
struct Changes(Vec<(Reference, Option<Vec<u8>>)>);

impl Changes {
    fn write(&mut self, at: Reference, bytes: Vec<u8>) {
        self.set(at, Some(bytes));
    }

    fn delete(&mut self, at: Reference) {
        self.set(at, None);
    }

    fn set(&mut self, at: Reference, bytes: Option<Vec<u8>>) {
        self.0.retain(|(other, _)| *other != at);
        self.0.push((at, bytes));
    }

    fn written(&self, at: &Reference) -> Option<&[u8]> {
        let change = self.0.iter().find(|(other, _)| other == at);
        change.and_then(|(_, bytes)| bytes.as_deref())
    }

    fn make<A: Access>(self, tx: &mut A) -> Result<()> {
        for (at, bytes) in self.0 {
            match bytes {
                Some(bytes) => tx.write(&at, bytes)?,
                None => tx.delete(&at)?,
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Ascending,
    Descending,
}

fn check_size<T: Serialize>(what: &str, value: &T, most: usize) -> Result<()> {
    let bytes = crate::transaction::encode(value)?.len();
    match bytes <= most {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::TooLarge,
            format!("a {what} of a tree map has at most {most} bytes, and this one has {bytes}"),
        )),
    }
}

/// Nodes that a scan has on their way ahead of the one that it shows.
const AHEAD: usize = 16;

// By hand: derived ones would ask the same of K and V.
impl<K, V> Clone for TreeMap<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for TreeMap<K, V> {}

impl<K, V> PartialEq for TreeMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl<K, V> Eq for TreeMap<K, V> {}

impl<K, V> fmt::Debug for TreeMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TreeMap").field(&self.root).finish()
    }
}

impl<K, V> Serialize for TreeMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.root.serialize(serializer)
    }
}

impl<'de, K, V> Deserialize<'de> for TreeMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Ref::deserialize(deserializer).map(|root| TreeMap { root })
    }
}
