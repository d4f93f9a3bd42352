//! The path from a tree map's root down to a leaf, and how a change of that leaf goes back up.

use super::super::Access;
use super::super::node::{Inner, NODE_BYTES_MAX, Node, damaged, is_one};
use super::changes::Changes;
use crate::{Reference, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A leaf, and the nodes above it, the root first. Each step leads to the next one, and the last to the leaf.
pub(super) struct LeafPath<K, V> {
    steps: Vec<Step<K>>,
    at: Reference,
    pub(super) entries: Vec<(K, V)>,
}

/// A node on the path, and which of the nodes below it the path takes.
struct Step<K> {
    at: Reference,
    inner: Inner<K>,
    taken: usize,
}

impl<K, V> LeafPath<K, V>
where
    K: Ord + Clone + Serialize + DeserializeOwned,
    V: Serialize + DeserializeOwned,
{
    /// Reads the path to the leaf that may hold a key.
    pub(super) async fn read<A: Access>(tx: &mut A, root: Reference, key: &K) -> Result<Self> {
        let mut steps = Vec::new();
        let mut at = root;
        loop {
            match Node::read(tx, &at, steps.len()).await? {
                Node::Leaf(entries) => return Ok(LeafPath { steps, at, entries }),
                Node::Inner(inner) => {
                    let taken = inner.place_of(key);
                    let below = inner.below[taken];
                    steps.push(Step { at, inner, taken });
                    at = below;
                }
            }
        }
    }

    /// Writes the leaf after an insertion, and what follows from that in the nodes above.
    pub(super) async fn write_grown<A: Access>(
        self,
        tx: &mut A,
        mut added_last: bool,
    ) -> Result<()> {
        let LeafPath {
            mut steps,
            mut at,
            entries,
        } = self;
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

    /// Writes the leaf after a removal, and what follows from that in the nodes above. `before` is how many bytes the
    /// leaf had.
    pub(super) async fn write_shrunk<A: Access>(self, tx: &mut A, mut before: usize) -> Result<()> {
        let LeafPath {
            mut steps,
            mut at,
            entries,
        } = self;
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
            // Looked at when it becomes small and when it has halved since: each look reads a neighbour, which others
            // change.
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
            let other = Node::read(tx, &other_at, steps.len() + 1).await?;
            let (left, right) = match is_left {
                true => (node, other),
                false => (other, node),
            };
            let one = Node::merge(left, from, right).ok_or_else(|| damaged(tx, &other_at))?;
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
                Some(bytes) => crate::transaction::decode(bytes)
                    .map_err(|other| other.of(tx.name_of(&only)))?,
                None => Node::read(tx, &only, depth).await?,
            };
            changes.delete(only);
            depth += 1;
        }
        let bytes = match node.is_empty() {
            true => Node::<K, V>::Leaf(Vec::new()).bytes()?,
            false => node.bytes()?,
        };
        // No node is above it: it is the root.
        changes.write(at, bytes);
        changes.make(tx)
    }
}
