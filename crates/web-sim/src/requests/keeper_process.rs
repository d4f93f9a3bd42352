//! One process of the keeper.

use crate::cells::{Memory, Passes, Seen, Who};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use thorp_versions::{Denied, Evidence, Ledger, Passed, Place, Reader, Versions, Writer};
use thorp_web::Lives;

/// Nothing happens between two loads.
struct Still;

impl Passes for Still {
    fn pass(self: Rc<Self>, _: Who) {}
}

/// A table as a process sees it.
fn seen(memory: &Rc<Memory>) -> Seen {
    Seen::new(
        memory,
        &Rc::new(Still),
        Who::Nobody,
        &Rc::new(Cell::new(true)),
    )
}

pub(super) struct KeeperProcess {
    pub(super) life: u64,
    pub(super) ledger: Ledger<Seen>,
    pub(super) lives: Lives,
    /// Proxies can connect.
    pub(super) listens: bool,
}

/// The table of a keeper that begins.
pub(super) fn ledger(memory: &Rc<Memory>) -> Ledger<Seen> {
    Ledger::new(Writer::new(seen(memory)))
}

/// A table, and its reader.
type Current = (Rc<Memory>, Reader<Seen>);

/// The reader of whichever table the file names.
#[derive(Clone, Default)]
pub(super) struct Follows(Rc<RefCell<Option<Current>>>);

impl Follows {
    /// Reads this table from now on.
    pub(super) fn read(&self, memory: &Rc<Memory>) {
        let mut current = self.0.borrow_mut();
        if !current
            .as_ref()
            .is_some_and(|(now, _)| Rc::ptr_eq(now, memory))
        {
            *current = Some((Rc::clone(memory), Reader::new(seen(memory))));
        }
    }
}

impl Versions for Follows {
    type Evidence = Evidence;

    fn evidence(&self) -> Evidence {
        let none = Evidence {
            generation: 0,
            sequence: 0,
        };
        self.0
            .borrow()
            .as_ref()
            .map_or(none, |(_, reader)| reader.evidence())
    }

    fn check(
        &self,
        evidence: &Evidence,
        dependencies: &[Place],
        now_ms: u64,
    ) -> Result<Passed, Denied> {
        let current = self.0.borrow();
        let (_, reader) = current.as_ref().ok_or(Denied::NoBeat)?;
        reader.check(*evidence, dependencies, now_ms)
    }

    fn still(&self, passed: Passed, evidence: &Evidence, now_ms: u64) -> bool {
        let current = self.0.borrow();
        let reader = current.as_ref();
        reader.is_some_and(|(_, reader)| reader.still(passed, *evidence, now_ms))
    }

    fn number(&self, place: Place) -> u64 {
        let current = self.0.borrow();
        current
            .as_ref()
            .map_or(0, |(_, reader)| reader.number(place))
    }

    fn generation(&self, evidence: &Evidence, _place: Place) -> u64 {
        evidence.generation
    }
}
