//! Connections: FIFO in each direction, cut at any moment, bounded.

use crate::freshness::Sent;
use crate::time::{At, End, NodeNo};
use std::collections::{BTreeMap, VecDeque};
use thorp_model::Message;

/// What travels in one direction of a connection.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all of them are messages")]
pub enum Item {
    /// The connection is there.
    Open,
    /// A message, and what it says of a home being there.
    Message(Message, Option<Sent>),
    /// The connection is gone.
    End,
}

/// One direction: what is on its way to one end.
#[derive(Debug, Default)]
pub struct Lane {
    queue: VecDeque<(At, Item)>,
    last: At,
    /// Whether the receiver has heard of the connection.
    pub opened: bool,
    /// Whether the receiver has heard of its end, or died.
    pub closed: bool,
    /// Whether nothing more can be sent: the end is in the queue.
    sealed: bool,
    /// The arrival that is planned for when the receiver reads again.
    pub waiting_until: At,
}

impl Lane {
    /// Sends; it arrives after everything sent before. Tells when.
    pub fn send(&mut self, arrives: At, item: Item) -> Option<At> {
        if self.sealed || self.closed {
            return None;
        }
        self.sealed = matches!(item, Item::End);
        self.last = self.last.max(arrives);
        self.queue.push_back((self.last, item));
        Some(self.last)
    }

    /// What has arrived.
    pub fn receive(&mut self, now: At) -> Option<Item> {
        let (at, _) = self.queue.front()?;
        if *at > now || self.closed {
            return None;
        }
        let (_, item) = self.queue.pop_front()?;
        match item {
            Item::Open => self.opened = true,
            Item::End => self.closed = true,
            Item::Message(..) => {}
        }
        Some(item)
    }

    /// Whether something has arrived and was not received.
    pub fn is_due(&self, now: At) -> bool {
        !self.closed && self.queue.front().is_some_and(|(at, _)| *at <= now)
    }

    /// What is sent from now on arrives then at the earliest.
    pub fn hold(&mut self, until: At) {
        self.last = self.last.max(until);
    }

    /// Loses what is on its way from the `keep`-th item on.
    pub fn lose_from(&mut self, keep: usize) {
        self.queue.truncate(keep);
        self.sealed = false;
    }

    /// Hears nothing more.
    pub fn close(&mut self) {
        self.closed = true;
        self.queue.clear();
    }

    /// Items on their way.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// A connection of a child with its parent.
#[derive(Debug)]
pub struct Edge {
    /// The child.
    pub child: NodeNo,
    /// The parent.
    pub parent: NodeNo,
    /// On its way to the child.
    pub down: Lane,
    /// On its way to the parent.
    pub up: Lane,
    /// Images on their way to the child beside the stream, by number, each with when it arrives.
    pub beside: BTreeMap<u64, (At, Message)>,
    /// How many went beside the stream.
    pub beside_sent: u64,
    /// Delay in one direction, in microseconds.
    pub delay_us: u64,
    /// Random addition to the delay, in microseconds.
    pub jitter_us: u64,
}

impl Edge {
    /// The lane towards an end.
    pub fn lane(&mut self, end: End) -> &mut Lane {
        match end {
            End::Child => &mut self.down,
            End::Parent => &mut self.up,
        }
    }

    /// The node at an end.
    pub fn node(&self, end: End) -> NodeNo {
        match end {
            End::Child => self.child,
            End::Parent => self.parent,
        }
    }

    /// The end of a node.
    pub fn end_of(&self, node: NodeNo) -> End {
        if node == self.child {
            End::Child
        } else {
            End::Parent
        }
    }

    /// Whether both ends know of the edge and nothing is on its way.
    pub fn is_idle(&self) -> bool {
        let quiet = |lane: &Lane| lane.opened && !lane.closed && lane.is_empty();
        quiet(&self.down) && quiet(&self.up) && self.beside.is_empty()
    }

    /// Whether neither end knows of the edge any more.
    pub fn is_dead(&self) -> bool {
        self.down.closed && self.up.closed
    }
}
