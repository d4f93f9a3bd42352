//! A connection, and what is on its way.

use std::collections::VecDeque;
use thorp_model::Message;

/// A connection.
pub(super) struct Edge {
    pub(super) child: usize,
    pub(super) parent: usize,
    /// What is on its way down, and when each arrives.
    pub(super) down: Lane,
    pub(super) up: Lane,
    /// Nothing of what is sent arrives.
    pub(super) is_silent: bool,
}

/// One direction of a connection.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) items: VecDeque<(u64, Item)>,
    /// When the last of them arrives.
    pub(super) last: u64,
    pub(super) is_closed: bool,
}

/// What travels.
pub(super) enum Item {
    Open,
    Message(Box<Message>),
    End,
}

impl Edge {
    /// What is on its way down, or up.
    pub(super) fn lane(&mut self, down: bool) -> &mut Lane {
        if down { &mut self.down } else { &mut self.up }
    }
}
