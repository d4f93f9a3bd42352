//! A tree map is as small as its root, whatever is in it.

use super::TreeMap;
use crate::Ref;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

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
