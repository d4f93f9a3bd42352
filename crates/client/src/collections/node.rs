//! A node of a tree map: one object.

use super::Access;
use crate::transaction::{decode, encode};
use crate::{Error, Reference, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ops::{Bound, Range, RangeBounds};

/// Bytes of a node: when there are more it is split. A fetch brings a page, which holds several; a commit that inserts
/// sends one.
pub const NODE_BYTES_MAX: usize = 1024;

/// What a node holds.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(super) enum Node<K, V> {
    /// Entries, in the order of their keys.
    Leaf(Vec<(K, V)>),
    /// Nodes below, and between each two of them the smallest key that may be in the second.
    Inner(Inner<K>),
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(super) struct Inner<K> {
    pub(super) keys: Vec<K>,
    pub(super) below: Vec<Reference>,
}

/// A node that has become too large, as two.
pub(super) struct Halves<K, V> {
    pub(super) left: Node<K, V>,
    /// The smallest key that may be in the right one.
    pub(super) from: K,
    pub(super) right: Node<K, V>,
}

impl<K, V> Node<K, V>
where
    K: Ord + Clone + Serialize + DeserializeOwned,
    V: Serialize + DeserializeOwned,
{
    /// Reads a node that is this many levels below the root of its tree.
    pub(super) async fn read<A: Access>(
        objects: &mut A,
        at: &Reference,
        depth: usize,
    ) -> Result<Self> {
        if depth >= DEPTH_MAX {
            return Err(damaged(objects, at));
        }
        let node = decode(objects.read(at).await?);
        let node: Self = node.map_err(|other| other.of(objects.name_of(at)))?;
        match &node {
            Node::Inner(inner) if inner.below.len() != inner.keys.len() + 1 => {
                Err(damaged(objects, at))
            }
            Node::Inner(inner) if inner.below.iter().any(|below| is_elsewhere(at, below)) => {
                Err(damaged(objects, at))
            }
            _ => Ok(node),
        }
    }

    pub(super) fn bytes(&self) -> Result<Vec<u8>> {
        encode(self)
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Node::Leaf(entries) => entries.is_empty(),
            Node::Inner(inner) => inner.below.is_empty(),
        }
    }

    /// Whether both halves would be nodes.
    pub(super) fn may_split(&self) -> bool {
        match self {
            Node::Leaf(entries) => entries.len() >= 2,
            Node::Inner(inner) => inner.below.len() >= 4,
        }
    }

    /// Two halves of about as many bytes. If the last insertion added at the end, the left node gets nine tenths. So
    /// nodes that are filled in the order of their keys are nearly full at the end, with space for a few later keys.
    pub(super) fn split(self, added_last: bool) -> Result<Halves<K, V>> {
        match self {
            Node::Leaf(mut entries) => {
                let sizes: Result<Vec<usize>> = entries.iter().map(size).collect();
                let at = part(&sizes?, added_last).clamp(1, entries.len() - 1);
                let right = entries.split_off(at);
                Ok(Halves {
                    from: right[0].0.clone(),
                    left: Node::Leaf(entries),
                    right: Node::Leaf(right),
                })
            }
            Node::Inner(Inner {
                mut keys,
                mut below,
            }) => {
                let sizes: Result<Vec<usize>> = keys.iter().map(size).collect();
                let at = part(&sizes?, added_last).clamp(2, below.len() - 2);
                let right = Inner {
                    below: below.split_off(at),
                    keys: keys.split_off(at),
                };
                // As many keys as nodes are left: the last one is between the halves.
                let from = keys
                    .pop()
                    .ok_or_else(|| Error::invalid("a node without keys"))?;
                Ok(Halves {
                    left: Node::Inner(Inner { keys, below }),
                    from,
                    right: Node::Inner(right),
                })
            }
        }
    }

    /// Two neighbours as one; none if they are not of one kind.
    pub(super) fn merge(left: Self, from: K, right: Self) -> Option<Self> {
        match (left, right) {
            (Node::Leaf(mut left), Node::Leaf(right)) => {
                left.extend(right);
                Some(Node::Leaf(left))
            }
            (Node::Inner(mut left), Node::Inner(right)) => {
                left.keys.push(from);
                left.keys.extend(right.keys);
                left.below.extend(right.below);
                Some(Node::Inner(left))
            }
            _ => None,
        }
    }
}

impl<K: Ord> Inner<K> {
    /// Takes away a node below, and the key before it; of the first one that after it.
    pub(super) fn remove(&mut self, place: usize) {
        self.below.remove(place);
        if !self.keys.is_empty() {
            self.keys.remove(place.saturating_sub(1));
        }
    }

    /// Which node below may hold a key.
    pub(super) fn place_of(&self, key: &K) -> usize {
        self.keys.partition_point(|from| from <= key)
    }

    /// Which nodes below may hold keys in a range.
    pub(super) fn places_in(&self, range: &impl RangeBounds<K>) -> Range<usize> {
        let first = match range.start_bound() {
            Bound::Included(key) | Bound::Excluded(key) => self.place_of(key),
            Bound::Unbounded => 0,
        };
        let last = match range.end_bound() {
            Bound::Included(key) => self.place_of(key),
            Bound::Excluded(key) => self.keys.partition_point(|from| from < key),
            Bound::Unbounded => self.keys.len(),
        };
        first..last + 1
    }
}

/// Whether an object is of another segment than a node is. Who may write in a segment may write into its nodes, and then
/// whoever changes the map would write where they may not.
fn is_elsewhere(node: &Reference, other: &Reference) -> bool {
    let segment = |of: &Reference| (of.home, of.object.page.segment);
    segment(node) != segment(other) || other.offset != 0
}

/// A tree is never so high: there is a circle in it.
const DEPTH_MAX: usize = 64;

pub(super) fn damaged<A: Access>(objects: &A, at: &Reference) -> Error {
    let name = objects.name_of(at);
    Error::damaged(format!("object {name} is no node of a tree map"))
}

/// Whether two nodes of this size together become one. It leaves space, or the next insertion would split the node
/// again.
pub(super) fn is_one(bytes: usize) -> bool {
    bytes <= NODE_BYTES_MAX / 4 * 3
}

fn size<T: Serialize>(value: &T) -> Result<usize> {
    encode(value).map(|bytes| bytes.len())
}

/// How many make up the first half, or the first nine tenths.
fn part(sizes: &[usize], is_most: bool) -> usize {
    let all: usize = sizes.iter().sum();
    let most = if is_most { all / 10 * 9 } else { all / 2 };
    let mut sum = 0;
    let before = sizes.iter().take_while(|size| {
        sum += **size;
        sum <= most
    });
    before.count()
}
