//! Simulated time and what is going to happen in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use thorp_model::{EdgeId, Mark, PageId, Place, RequestId};

/// Milliseconds since 1970 when every village begins.
pub const WALL_MS_FIRST: u64 = 1_000_000_000;

/// A simulated time in microseconds since the village began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct At(pub u64);

impl At {
    /// This time and so many microseconds.
    #[must_use]
    pub fn plus_us(self, us: u64) -> At {
        At(self.0 + us)
    }

    /// This time and so many milliseconds.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> At {
        At(self.0 + ms * 1000)
    }

    /// Whole milliseconds from `earlier` to this time.
    pub fn ms_since(self, earlier: At) -> u64 {
        self.0.saturating_sub(earlier.0) / 1000
    }
}

impl fmt::Debug for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}ms", self.0 / 1000, self.0 % 1000)
    }
}

/// A node of the village, by its place in the list of nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeNo(pub usize);

/// One end of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The child's.
    Child,
    /// The parent's.
    Parent,
}

impl End {
    /// The end on the other side.
    pub fn other(self) -> End {
        match self {
            End::Child => End::Parent,
            End::Parent => End::Child,
        }
    }
}

/// What happens at one node in one of its lives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Local {
    /// The core's deadline may have come.
    Tick,
    /// The node tries to connect to its parent.
    Dial {
        /// Which.
        parent: NodeNo,
    },
    /// A member that has turned to another parent tries the ones that it prefers.
    Heal,
    /// The disk finishes a sync of so many batches.
    Sync {
        /// How many.
        batches: usize,
    },
    /// The home hears of a finished sync.
    SyncTold(Mark),
    /// The disk answers a read.
    Read(PageId),
    /// A session of a member goes on.
    Step {
        /// Which.
        session: usize,
        /// What it waited for; a session that went on otherwise has another one.
        wait: u64,
    },
    /// A program hears of a page that it is likely to read next.
    Hinted {
        /// Where it is.
        place: Place,
    },
    /// A member's answer reaches the program.
    Answered {
        /// The answer's ticket.
        ticket: RequestId,
    },
    /// A member gives up some pages of its cache.
    Squeeze,
}

/// What is going to happen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Planned {
    /// Something may have arrived at an end of an edge.
    Arrive {
        /// The edge.
        edge: EdgeId,
        /// The end it arrives at.
        end: End,
    },
    /// The same beside the stream.
    ArriveBeside {
        /// The edge; the child's end.
        edge: EdgeId,
        /// Which of the messages on their way.
        number: u64,
    },
    /// Something at a node, unless it has died since.
    At {
        /// The node.
        node: NodeNo,
        /// In which life.
        life: u32,
        /// What.
        local: Local,
    },
    /// A node comes back.
    Restart(NodeNo),
    /// A fault strikes.
    Strike,
    /// A fault that lasts is over.
    Relieve(usize),
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    at: At,
    number: u64,
}

/// The events to come, in the order of time, and of scheduling at one time.
#[derive(Default)]
pub struct Agenda {
    heap: BinaryHeap<Reverse<(Key, usize)>>,
    events: Vec<Option<Planned>>,
    free: Vec<usize>,
    number: u64,
}

impl Agenda {
    /// Plans an event.
    pub fn plan(&mut self, at: At, event: Planned) {
        self.number += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.events[slot] = Some(event);
                slot
            }
            None => {
                self.events.push(Some(event));
                self.events.len() - 1
            }
        };
        let number = self.number;
        self.heap.push(Reverse((Key { at, number }, slot)));
    }

    /// The next event.
    pub fn pop(&mut self) -> Option<(At, Planned)> {
        let Reverse((key, slot)) = self.heap.pop()?;
        self.free.push(slot);
        let event = self.events[slot].take();
        event.map(|event| (key.at, event))
    }
}
