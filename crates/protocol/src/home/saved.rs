//! How far the home has executed the updates of each log: once each, and in order (rule C7).

use crate::edge::shares::Shares;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::{LOGS_MAX, LOGS_OF_NAME_MAX, REFUSED_UPDATES_MAX};
use thorp_model::planted::Bug;
use thorp_model::records::{self, SavedRecord};
use thorp_model::{
    LogHead, LogId, LogState, NameId, Op, Refusal, SegmentId, Share, Table, UpdateId, planted,
};

/// An update on its way through the home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::home) struct Saving {
    pub(in crate::home) update: UpdateId,
    /// Its log knows what has become of its updates up to here.
    pub(in crate::home) confirmed: u64,
    /// Its author has signed it, or it comes from the log's own member.
    pub(in crate::home) is_proven: bool,
}

/// What the home does with an update that comes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::home) enum Turn {
    /// It is the next one of its log.
    Next,
    /// It was executed before.
    Saved,
    /// It was refused before, or it cannot be taken now.
    Refused(Refusal),
}

/// The last number of each log in each segment, as of the accepted tip.
///
/// Invariant: a number was executed or refused in the very batch that stored it here. `of_names` counts the entries of each name.
#[derive(Debug, Default)]
pub(in crate::home) struct Saved {
    of: BTreeMap<(LogId, SegmentId), SavedRecord>,
    of_names: Shares<NameId>,
}

impl Saved {
    /// Takes an entry from the store.
    pub(in crate::home) fn recover(&mut self, of: (LogId, SegmentId), record: SavedRecord) {
        self.of_names.take(Some(of.0.name()), 1);
        self.of.insert(of, record);
    }

    /// A planted bug: the home forgets how far each log is.
    pub(in crate::home) fn forget_all(&mut self) {
        *self = Saved::default();
    }

    /// How many entries there are.
    pub(in crate::home) fn len(&self) -> usize {
        self.of.len()
    }

    /// Judges an update that a member of this name brings. Only the next number is new.
    pub(in crate::home) fn judge(&self, name: NameId, saving: Saving) -> Turn {
        let UpdateId {
            log,
            segment,
            number,
        } = saving.update;
        if log.name() != name && !planted::is(Bug::OtherLogTaken) {
            return Turn::Refused(Refusal::OtherLog);
        }
        let Some(record) = self.of.get(&(log, segment)) else {
            let limits = (LOGS_MAX as u64, LOGS_OF_NAME_MAX as u64);
            return match number {
                1 if self.of_names.allows(name, 1, limits) => Turn::Next,
                1 => Turn::Refused(Refusal::Share(Share::Logs)),
                _ if planted::is(Bug::UpdateNumbersSkipped) => Turn::Next,
                _ => Turn::Refused(Refusal::NotYet { number: 1 }),
            };
        };
        let next = record.last.saturating_add(1);
        let known = record.refused.iter().find(|(of, _)| *of == number);
        let unknown = record
            .refused
            .iter()
            .filter(|(of, _)| *of > saving.confirmed);
        match known {
            Some((_, refusal)) => Turn::Refused(refusal.clone()),
            None if number < next && planted::is(Bug::UpdateTakenTwice) => Turn::Next,
            None if number > next && planted::is(Bug::UpdateNumbersSkipped) => Turn::Next,
            None if number < next => Turn::Saved,
            None if number > next => Turn::Refused(Refusal::NotYet { number: next }),
            // Its log has to hear first what was refused.
            None if unknown.count() >= REFUSED_UPDATES_MAX => Turn::Refused(Refusal::busy()),
            None => Turn::Next,
        }
    }

    /// The next update of a log is executed, or refused for ever. The operation belongs into that very batch.
    pub(in crate::home) fn take(&mut self, saving: Saving, refused: Option<Refusal>) -> Op {
        let UpdateId {
            log,
            segment,
            number,
        } = saving.update;
        let of_names = &mut self.of_names;
        let record = self.of.entry((log, segment)).or_insert_with(|| {
            of_names.take(Some(log.name()), 1);
            SavedRecord::default()
        });
        record.last = number.max(record.last);
        let refused = refused.filter(|_| !planted::is(Bug::UpdateRefusalForgotten));
        record.refused.retain(|(of, _)| *of > saving.confirmed);
        record
            .refused
            .extend(refused.map(|refusal| (number, refusal)));
        records::put(Table::Meta, records::saved_key(log, segment), record)
    }

    /// What a follower of a segment is told of a log.
    pub(in crate::home) fn state(&self, log: LogId, segment: SegmentId) -> LogState {
        let record = self.of.get(&(log, segment));
        let refused = |record: &SavedRecord| record.refused.iter().map(|(of, _)| *of).collect();
        LogState {
            log,
            saved: record.map_or(0, |record| record.last),
            refused: record.map_or_else(Vec::new, refused),
        }
    }

    /// Whether a log has come so far.
    pub(in crate::home) fn has(&self, head: &LogHead) -> bool {
        let record = self.of.get(&(head.log, head.segment));
        record.map_or(0, |record| record.last) >= head.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::MemberId;

    const NAME: NameId = NameId(3);
    const SEGMENT: SegmentId = SegmentId(1);

    fn saving(number: u64, confirmed: u64) -> Saving {
        let log = LogId(MemberId::new(NAME, 1));
        let update = UpdateId {
            log,
            segment: SEGMENT,
            number,
        };
        Saving {
            update,
            confirmed,
            is_proven: true,
        }
    }

    fn not_yet(number: u64) -> Turn {
        Turn::Refused(Refusal::NotYet { number })
    }

    #[test]
    fn only_the_next_number_is_new_and_each_counts_once() {
        let mut saved = Saved::default();
        assert_eq!(saved.judge(NAME, saving(2, 0)), not_yet(1));
        assert_eq!(saved.judge(NAME, saving(1, 0)), Turn::Next);
        saved.take(saving(1, 0), None);
        assert_eq!(saved.judge(NAME, saving(1, 0)), Turn::Saved);
        assert_eq!(saved.judge(NAME, saving(3, 0)), not_yet(2));
        assert_eq!(
            saved.judge(NAME, saving(0, 0)),
            Turn::Saved,
            "there is none"
        );
        let other = Turn::Refused(Refusal::OtherLog);
        assert_eq!(saved.judge(NameId(4), saving(2, 0)), other);
    }

    #[test]
    fn a_refusal_takes_its_number_and_stays_until_the_log_knows() {
        let mut saved = Saved::default();
        let refused = || Refusal::Unknown;
        saved.take(saving(1, 0), Some(refused()));
        assert_eq!(saved.judge(NAME, saving(1, 0)), Turn::Refused(refused()));
        assert_eq!(saved.judge(NAME, saving(2, 0)), Turn::Next);
        saved.take(saving(2, 0), None);
        let log = saving(1, 0).update.log;
        assert_eq!(saved.state(log, SEGMENT).refused, vec![1]);
        saved.take(saving(3, 2), None);
        assert_eq!(saved.state(log, SEGMENT).refused, vec![]);
        assert_eq!(saved.state(log, SEGMENT).saved, 3);
    }

    #[test]
    fn a_log_that_never_hears_of_its_refusals_is_stopped() {
        let mut saved = Saved::default();
        for number in 1..=REFUSED_UPDATES_MAX as u64 {
            assert_eq!(saved.judge(NAME, saving(number, 0)), Turn::Next);
            saved.take(saving(number, 0), Some(Refusal::Unknown));
        }
        let next = REFUSED_UPDATES_MAX as u64 + 1;
        let busy = Turn::Refused(Refusal::busy());
        assert_eq!(saved.judge(NAME, saving(next, 0)), busy);
        assert_eq!(saved.judge(NAME, saving(next, 1)), Turn::Next);
    }
}
