//! What an insertion or a removal changes.

use super::super::node::{Inner, Node, damaged, is_one};
use super::super::{Access, NODE_BYTES_MAX};
use super::{Step, TreeMap, Way};
use crate::{Reference, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

impl<K, V> TreeMap<K, V>
where
    K: Ord + Clone + Serialize + DeserializeOwned,
    V: Serialize + DeserializeOwned,
{
    /// Writes a leaf that has more than before, and what follows from that above.
    pub(super) async fn grown<A: Access>(
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
    pub(super) async fn shrunk<A: Access>(
        self,
        tx: &mut A,
        way: Way<K, V>,
        mut before: usize,
    ) -> Result<()> {
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
