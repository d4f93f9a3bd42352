//! What the workers say, as it comes.

use crate::record::Event;
use crate::saying::{CARRIES, TURNED};
use crate::snapshots::{SNAPSHOT, Snapshot};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of all workers.
#[derive(Default)]
pub(crate) struct Told {
    events: Mutex<Vec<Event>>,
    snapshots: Mutex<Vec<Snapshot>>,
    committed: AtomicU64,
    turned: AtomicU64,
    carried: AtomicU64,
}

/// What became of it all.
pub(crate) struct Ended {
    pub(crate) events: Vec<Event>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) turns: Turns,
}

/// How members moved between redirectors.
#[derive(Clone, Copy)]
pub(crate) struct Turns {
    /// How often a member turned to another one.
    pub(crate) turned: u64,
    /// How often a member began to carry one for others.
    pub(crate) carried: u64,
}

impl Told {
    pub(crate) fn take(&self, line: &str) {
        // A process that is killed may die within a line.
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            return;
        };
        match line["type"].as_str() {
            Some(TURNED) => count(&self.turned),
            Some(CARRIES) => count(&self.carried),
            Some(SNAPSHOT) => hold(&self.snapshots).extend(Snapshot::parse(&line)),
            _ => self.take_event(&line),
        }
    }

    fn take_event(&self, line: &Value) {
        let Ok(event) = Event::parse(line) else {
            return;
        };
        if event.is_committed() {
            count(&self.committed);
        }
        hold(&self.events).push(event);
    }

    /// Transactions, so far.
    pub(crate) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Relaxed)
    }

    pub(crate) fn all(&self) -> Ended {
        Ended {
            events: std::mem::take(&mut hold(&self.events)),
            snapshots: std::mem::take(&mut hold(&self.snapshots)),
            turns: Turns {
                turned: self.turned.load(Ordering::Relaxed),
                carried: self.carried.load(Ordering::Relaxed),
            },
        }
    }
}

fn hold<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count(what: &AtomicU64) {
    what.fetch_add(1, Ordering::Relaxed);
}
