//! From entry to entry.

use super::super::Access;
use super::super::node::{Node, damaged};
use crate::{Reference, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::future::poll_fn;
use std::ops::{ControlFlow, RangeBounds};
use std::task::Poll;

/// Nodes that a scan has on their way ahead of the one that it shows.
pub(super) const AHEAD: usize = 16;

/// Nodes that a walk reads before whoever waits for it may do something else, such as give it up.
const NODES_AT_ONCE: usize = 64;

/// Lets the executor of the program go on with something else.
async fn pause() {
    let mut was_here = false;
    poll_fn(|context| {
        if was_here {
            return Poll::Ready(());
        }
        was_here = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Ascending,
    Descending,
}

/// The first entry in this direction.
pub(super) async fn end<K, V, A>(
    tx: &mut A,
    root: Reference,
    direction: Direction,
) -> Result<Option<(K, V)>>
where
    K: Ord + Clone + Serialize + DeserializeOwned,
    V: Serialize + DeserializeOwned,
    A: Access,
{
    let mut found = None;
    let take = |key, value| {
        found = Some((key, value));
        Ok(ControlFlow::Break(()))
    };
    walk(tx, root, .., direction, 0, take).await?;
    Ok(found)
}

/// Shows what is in a range, until `visit` breaks; `ahead` nodes are fetched before they are needed.
pub(super) async fn walk<K, V, A>(
    tx: &mut A,
    root: Reference,
    range: impl RangeBounds<K>,
    direction: Direction,
    ahead: usize,
    mut visit: impl FnMut(K, V) -> Result<ControlFlow<()>>,
) -> Result<()>
where
    K: Ord + Clone + Serialize + DeserializeOwned,
    V: Serialize + DeserializeOwned,
    A: Access,
{
    tx.begin_reading().await?;
    // The next one last.
    let mut waiting = vec![(root, 0)];
    let mut seen = HashSet::new();
    while let Some((at, depth)) = waiting.pop() {
        // Few nodes that lead to each other again and again would never end.
        if !seen.insert(at) {
            return Err(damaged(tx, &at));
        }
        if seen.len() % NODES_AT_ONCE == 0 {
            pause().await;
        }
        match Node::read(tx, &at, depth).await? {
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
