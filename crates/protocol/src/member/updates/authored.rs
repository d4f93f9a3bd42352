//! Who has written what a log keeps, where that is not the log's own member (rules C6 and C7).

use crate::edge::shares::Shares;
use alloc::collections::BTreeMap;
use thorp_model::limits::{LOG_BYTES_MAX, LOG_UPDATES_MAX};
use thorp_model::{Authorship, HomeId, NameId, UpdateId};

/// What an update takes of the log at least: so nobody fills the log by many small ones.
const CHARGE_MIN: usize = LOG_BYTES_MAX / LOG_UPDATES_MAX;

/// The authors of updates of others in a log.
///
/// Invariant: `shares` has the charge of each update in `of`, and of each that is on its way there, for the name of its author.
#[derive(Debug, Default)]
pub(super) struct Authored {
    of: BTreeMap<(HomeId, UpdateId), (Authorship, usize)>,
    shares: Shares<NameId>,
}

impl Authored {
    /// Takes an update of so many bytes towards the share of its author. False: the author has its share (rule R7).
    pub(super) fn gather(&mut self, author: &Authorship, bytes: usize) -> bool {
        let (name, charge) = (author.by.member.name(), charge(bytes));
        let size = LOG_BYTES_MAX as u64;
        let is_allowed = self.shares.allows(name, charge, (size, size));
        if is_allowed {
            self.shares.take(Some(name), charge);
        }
        is_allowed
    }

    /// An update that was gathered has its name now.
    pub(super) fn name(&mut self, of: (HomeId, UpdateId), author: Authorship, bytes: usize) {
        self.of.insert(of, (author, bytes));
    }

    /// An update was in the log when the member started.
    pub(super) fn recovered(&mut self, of: (HomeId, UpdateId), author: Authorship, bytes: usize) {
        self.shares
            .take(Some(author.by.member.name()), charge(bytes));
        self.name(of, author, bytes);
    }

    /// Who has written an update.
    pub(super) fn of(&self, home: HomeId, id: UpdateId) -> Option<&Authorship> {
        self.of.get(&(home, id)).map(|(author, _)| author)
    }

    /// An update has left the log.
    pub(super) fn forget(&mut self, home: HomeId, id: UpdateId) {
        if let Some((author, bytes)) = self.of.remove(&(home, id)) {
            self.shares
                .give_back(Some(author.by.member.name()), charge(bytes));
        }
    }
}

fn charge(bytes: usize) -> u64 {
    bytes.max(CHARGE_MIN) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Author, LogId, MemberId, Proof, SegmentId};

    const HOME: HomeId = HomeId(1);

    fn author(name: u64) -> Authorship {
        let by = Author {
            member: MemberId::new(NameId(name), 1),
            sequence: 1,
        };
        let proof = Proof::none();
        Authorship { by, proof }
    }

    fn id(number: u64) -> UpdateId {
        UpdateId {
            log: LogId(MemberId(7)),
            segment: SegmentId(1),
            number,
        }
    }

    /// How many updates of these bytes a name gets into the log.
    fn fill(authored: &mut Authored, name: u64, bytes: usize) -> usize {
        let mut number = 0;
        while authored.gather(&author(name), bytes) {
            number += 1;
            authored.name((HOME, id(number)), author(name), bytes);
        }
        usize::try_from(number).unwrap()
    }

    #[test]
    fn one_name_leaves_as_much_of_the_log_as_it_takes_also_with_small_updates() {
        let mut authored = Authored::default();
        assert_eq!(fill(&mut authored, 3, 1), LOG_UPDATES_MAX / 2);
        assert!(authored.gather(&author(4), 1), "another one has space");
        authored.forget(HOME, id(1));
        assert!(authored.of(HOME, id(1)).is_none());
        assert!(authored.of(HOME, id(2)).is_some());
    }

    #[test]
    fn what_leaves_gives_its_share_back() {
        let mut authored = Authored::default();
        let bytes = LOG_BYTES_MAX / 4;
        assert_eq!(fill(&mut authored, 3, bytes), 2);
        authored.forget(HOME, id(2));
        authored.forget(HOME, id(2));
        assert!(authored.gather(&author(3), bytes));
        assert!(!authored.gather(&author(3), bytes));
    }
}
