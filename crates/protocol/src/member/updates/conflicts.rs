//! What a log notes of refused updates for the conflict routine of its program (rule C6).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::CONFLICT_ATTEMPTS_MAX;
use thorp_model::records::{self, ConflictRecord};
use thorp_model::{HomeId, Op, Table, UpdateId};

/// An update that was refused, or that replaces a refused one.
///
/// Invariant: what is open here is open in the record on the disk, so the routine runs again after a crash. What was decided is
/// open no more, so a second decision does nothing.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    has_routine: bool,
    of: BTreeMap<(HomeId, UpdateId), Noted>,
}

#[derive(Clone, Copy, Debug)]
struct Noted {
    attempts: u32,
    is_open: bool,
}

impl Conflicts {
    /// What the log has noted. Without a routine nothing more is noted.
    pub(super) fn new(has_routine: bool, records: &[ConflictRecord]) -> Self {
        let noted = |record: &ConflictRecord| {
            let (attempts, is_open) = (record.attempts, record.is_open);
            ((record.home, record.id), Noted { attempts, is_open })
        };
        Conflicts {
            has_routine,
            of: records.iter().map(noted).collect(),
        }
    }

    /// An update was refused: the routine is to decide. None: there is no routine.
    pub(super) fn refused(&mut self, home: HomeId, id: UpdateId) -> Option<Op> {
        if !self.has_routine {
            return None;
        }
        let attempts = self.of.get(&(home, id)).map_or(0, |noted| noted.attempts);
        Some(self.note((home, id), attempts, true))
    }

    /// The routine has decided. False: it had done so before, or was not asked.
    pub(super) fn decide(&mut self, home: HomeId, id: UpdateId) -> bool {
        let noted = self.of.get_mut(&(home, id));
        noted.is_some_and(|noted| core::mem::take(&mut noted.is_open))
    }

    /// The disk did not take the decision: the routine is asked again at the next start.
    pub(super) fn undecide(&mut self, home: HomeId, id: UpdateId) {
        if let Some(noted) = self.of.get_mut(&(home, id)) {
            noted.is_open = true;
        }
    }

    /// Whether what an update writes may be sent once more.
    pub(super) fn may_go_again(&self, home: HomeId, id: UpdateId) -> bool {
        let noted = self.of.get(&(home, id));
        noted.is_some_and(|noted| noted.attempts < CONFLICT_ATTEMPTS_MAX)
    }

    /// An update takes the place of a refused one.
    pub(super) fn replace(&mut self, home: HomeId, old: UpdateId, new: UpdateId) -> Op {
        let noted = self.of.get(&(home, old));
        let attempts = noted.map_or(0, |noted| noted.attempts).saturating_add(1);
        self.note((home, new), attempts, false)
    }

    /// Nothing is to be noted of an update any more.
    pub(super) fn forget(&mut self, home: HomeId, id: UpdateId) -> Option<Op> {
        let noted = self.of.remove(&(home, id));
        noted.map(|_| records::delete(Table::Meta, records::conflict_key(home, id)))
    }

    fn note(&mut self, (home, id): (HomeId, UpdateId), attempts: u32, is_open: bool) -> Op {
        self.of.insert((home, id), Noted { attempts, is_open });
        let record = ConflictRecord {
            home,
            id,
            attempts,
            is_open,
        };
        let key: Vec<u8> = records::conflict_key(home, id);
        records::put(Table::Meta, key, &record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{LogId, MemberId, SegmentId};

    const HOME: HomeId = HomeId(1);

    fn id(number: u64) -> UpdateId {
        UpdateId {
            log: LogId(MemberId(1)),
            segment: SegmentId(1),
            number,
        }
    }

    #[test]
    fn an_update_is_decided_once_and_sent_again_so_often() {
        let mut conflicts = Conflicts::new(true, &[]);
        assert!(!conflicts.decide(HOME, id(1)), "nobody has asked");
        for number in 1..=u64::from(CONFLICT_ATTEMPTS_MAX) {
            assert!(conflicts.refused(HOME, id(number)).is_some());
            assert!(conflicts.may_go_again(HOME, id(number)));
            assert!(conflicts.decide(HOME, id(number)));
            assert!(!conflicts.decide(HOME, id(number)), "it is decided");
            let _ = conflicts.replace(HOME, id(number), id(number + 1));
            assert!(conflicts.forget(HOME, id(number)).is_some());
        }
        let last = id(u64::from(CONFLICT_ATTEMPTS_MAX) + 1);
        assert!(conflicts.refused(HOME, last).is_some());
        assert!(!conflicts.may_go_again(HOME, last));
    }

    #[test]
    fn what_was_open_is_open_after_a_restart_and_what_the_disk_refused_is_again() {
        let record = ConflictRecord {
            home: HOME,
            id: id(4),
            attempts: 2,
            is_open: true,
        };
        let mut conflicts = Conflicts::new(true, &[record]);
        assert!(conflicts.may_go_again(HOME, id(4)));
        assert!(conflicts.decide(HOME, id(4)));
        conflicts.undecide(HOME, id(4));
        assert!(conflicts.decide(HOME, id(4)));
        let without = Conflicts::new(false, &[]).refused(HOME, id(5));
        assert!(without.is_none(), "for a person");
    }
}
