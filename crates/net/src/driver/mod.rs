//! The one loop that drives any machine: home, redirector or member.
//!
//! ```text
//!  listeners ─┐                       ┌─> try_send ─> writer task of each edge
//!  parents   ─┼─> arrivals ─┐         │
//!  readers   ─┴─> events ───┼─> loop ─┼─> World: disk, page cache, program
//!  Handle    ─────> inputs ─┘    │    │
//!  deadline  ────────────────────┘    └─> counts of notes
//! ```
//!
//! [`Driver::run`] is one task on a current-thread runtime ([`runtime`]); a process may run several drivers beside each
//! other, a member and a redirector for one. Everything that a machine wants done is done in the order of its outbox. What is
//! neither a message nor the closing of an edge goes to the [`World`]; what comes back from there, and what the program
//! asks, goes through the [`Handle`].
//!
//! Nothing waits for a slow peer: a message is queued or, if the queue is full, the edge is cut off (rule 15). Frames
//! wait in one channel, bounded in number and in bytes; a peer whose frames wait is not read from.

mod arrivals;
mod config;
mod counts;
mod edges;
mod follow;
mod gate;
mod greeting;
mod handle;
mod home_ids;
mod lapses;
mod lines;
mod parent_choice;
mod reader;
mod routes;
mod run;
mod time;
mod turn;
mod turns;

pub use config::{
    ASKS_WAITING_MAX, CALLED_WITHIN, DriverConfig, DriverLimits, EDGES_MAX, FLUSH_TIME_MAX,
    INBOX_BYTES_MAX, INBOX_FRAMES_MAX, PARENTS_MAX, ParentConfig, net_config,
};
pub use counts::NoteCounts;
pub use edges::{EdgeStatus, ParentState, ParentStatus, Totals};
pub use gate::Gate;
pub use handle::{Handle, Inspection, NotTaken};
pub(crate) use lines::Lines;
pub use run::{Driver, Ended};
pub use time::{now, runtime, runtime_of, uptime};

use std::convert::Infallible;
use thorp_model::{Note, Now, TurnedAway};

/// What a node has beside its edges: a disk, a page cache, a program. Called by the loop alone, so nothing here may wait.
pub trait World<A> {
    /// Does what only this role wants, in the order of the outbox. What comes of it comes back through the [`Handle`].
    fn act(&mut self, action: A);

    /// Hears of a note, after it was counted.
    fn note(&mut self, _note: Note) {}

    /// Hears of a caller that did not get in: at most a few of one address in a minute.
    fn turned_away(&mut self, _away: TurnedAway) {}

    /// Everything that was ready is handled, and the loop is about to wait: what was gathered can go out together.
    fn flush(&mut self) {}

    /// Whether something is under way that will still come back, as a batch on its way to the disk. A clean shutdown
    /// waits for it, for a bounded time.
    fn is_busy(&self) -> bool {
        false
    }

    /// The time. Of one process start: the monotone part is the same for all that ask [`now`].
    fn now(&self) -> Now {
        now()
    }
}

/// The world of a machine that has nothing beside its edges.
#[derive(Clone, Copy, Debug)]
pub struct NoWorld;

impl World<Infallible> for NoWorld {
    fn act(&mut self, action: Infallible) {
        match action {}
    }
}
