//! Whole changes of a tree map: they can be made again (record 0026).

use super::super::node::Node;
use super::super::{Access, Change};
use super::leaf_path::LeafPath;
use crate::transaction::{decode, encode};
use crate::{Error, Reference, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// Sets the value of a key. The value is kept as bytes: it is put in as often as the change is made.
pub(super) struct Insertion<K, V> {
    pub(super) root: Reference,
    pub(super) key: K,
    pub(super) value: Vec<u8>,
    pub(super) of: PhantomData<fn() -> V>,
}

impl<K, V> Change for Insertion<K, V>
where
    K: Ord + Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    V: Serialize + DeserializeOwned + Send + Sync + 'static,
{
    type Found = Option<V>;

    fn root(&self) -> Reference {
        self.root
    }

    async fn make<A: Access>(&self, objects: &mut A) -> Result<Option<V>> {
        let value: V = decode(&self.value)
            .map_err(|_| Error::invalid("the value is not what it was encoded from"))?;
        let mut path = LeafPath::read(objects, self.root, &self.key).await?;
        let old = match path.entries.binary_search_by(|(own, _)| own.cmp(&self.key)) {
            Ok(place) => Some(std::mem::replace(&mut path.entries[place].1, value)),
            Err(place) => {
                path.entries.insert(place, (self.key.clone(), value));
                let is_last = place + 1 == path.entries.len();
                return path.write_grown(objects, is_last).await.map(|()| None);
            }
        };
        path.write_grown(objects, false).await?;
        Ok(old)
    }
}

/// Removes a key.
pub(super) struct Removal<K, V> {
    pub(super) root: Reference,
    pub(super) key: K,
    pub(super) of: PhantomData<fn() -> V>,
}

impl<K, V> Change for Removal<K, V>
where
    K: Ord + Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    V: Serialize + DeserializeOwned + Send + Sync + 'static,
{
    type Found = Option<V>;

    fn root(&self) -> Reference {
        self.root
    }

    async fn make<A: Access>(&self, objects: &mut A) -> Result<Option<V>> {
        let mut path = LeafPath::<K, V>::read(objects, self.root, &self.key).await?;
        let found = path.entries.binary_search_by(|(own, _)| own.cmp(&self.key));
        let Ok(place) = found else {
            return Ok(None);
        };
        // A leaf is its entries and a byte.
        let before = 1 + encode(&path.entries)?.len();
        let (_, value) = path.entries.remove(place);
        path.write_shrunk(objects, before).await?;
        Ok(Some(value))
    }
}

/// Takes everything away.
pub(super) struct Clearing<K, V> {
    pub(super) root: Reference,
    pub(super) of: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Change for Clearing<K, V>
where
    K: Ord + Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    V: Serialize + DeserializeOwned + Send + Sync + 'static,
{
    type Found = ();

    fn root(&self) -> Reference {
        self.root
    }

    async fn make<A: Access>(&self, objects: &mut A) -> Result<()> {
        let (mut waiting, mut below_root) = (vec![(self.root, 0)], Vec::new());
        while let Some((at, depth)) = waiting.pop() {
            if let Node::<K, V>::Inner(inner) = Node::read(objects, &at, depth).await? {
                below_root.extend(inner.below.iter().copied());
                waiting.extend(inner.below.into_iter().map(|below| (below, depth + 1)));
            }
        }
        below_root.iter().try_for_each(|at| objects.delete(at))?;
        objects.write(&self.root, Node::<K, V>::Leaf(Vec::new()).bytes()?)
    }
}
