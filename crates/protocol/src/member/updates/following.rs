//! Updates of others that a member shows before their home has them (rules C6 and C7).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::FOLLOWED_LOGS_MAX;
use thorp_model::planted::Bug;
use thorp_model::{LogId, LogState, Position, UpdateId, planted};

/// Whether the member hears of each update that is saved in a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Status {
    /// It does not.
    #[default]
    No,
    /// It has asked to.
    Asked,
    /// It does, from this position on.
    Since(Position),
}

/// How a member follows one segment.
///
/// Invariant: an update of another log is shown only if its home had not executed it at `since`, and its number is above all
/// that are known to be settled. So the step that saves it will name it.
#[derive(Debug, Default)]
pub(super) struct Following {
    status: Status,
    /// The highest number that is settled, of each log.
    settled: BTreeMap<LogId, u64>,
    /// Updates of others that are shown, and their bytes.
    others: BTreeMap<UpdateId, usize>,
}

impl Following {
    /// The member has asked to follow.
    pub(super) fn ask(&mut self) {
        self.status = Status::Asked;
    }

    /// Whether it waits for the answer.
    pub(super) fn is_asked(&self) -> bool {
        self.status == Status::Asked
    }

    /// From where on it follows.
    pub(super) fn since(&self) -> Option<Position> {
        match self.status {
            Status::Since(position) => Some(position),
            _ => None,
        }
    }

    /// The answer does not come. What is shown stays, as of the old stream.
    pub(super) fn stream_ended(&mut self) {
        if self.status == Status::Asked {
            self.status = Status::No;
        }
    }

    /// Another stream begins: only what it says counts.
    pub(super) fn stream_began(&mut self) {
        self.status = Status::No;
    }

    /// The home has answered: it has told all that it had settled at this position of these logs.
    pub(super) fn begin(&mut self, position: Position, logs: &[LogState]) {
        self.status = Status::Since(position);
        self.settled.clear();
        let known = logs.iter().map(|state| (state.log, state.saved));
        self.settled.extend(known);
    }

    /// The logs of others whose updates are shown.
    pub(super) fn logs(&self) -> Vec<LogId> {
        let mut logs: Vec<LogId> = self.others.keys().map(|id| id.log).collect();
        logs.dedup();
        logs
    }

    /// Bytes of what is shown of others.
    pub(super) fn bytes(&self) -> usize {
        self.others.values().sum()
    }

    /// Shows an update of another log, which its home had not executed at a position. False: it may have been settled, or
    /// it is shown.
    pub(super) fn show(&mut self, id: UpdateId, bytes: usize, unsaved_at: Position) -> bool {
        let is_late = |since| unsaved_at < since && !planted::is(Bug::LateUpdateShown);
        let is_open = self.since().is_some_and(|since| !is_late(since));
        let settled = self.settled.get(&id.log).copied().unwrap_or_default();
        let has_space =
            self.settled.contains_key(&id.log) || self.settled.len() < FOLLOWED_LOGS_MAX;
        if !is_open || id.number <= settled || !has_space || self.others.contains_key(&id) {
            return false;
        }
        self.settled.entry(id.log).or_default();
        self.others.insert(id, bytes);
        true
    }

    /// Shows an update of this member in the log of another while the member does not follow, because its home is away or has not
    /// answered. The home has not executed it as of where the member stands. The member goes on only when it knows how far that log is.
    pub(super) fn show_own(&mut self, id: UpdateId, bytes: usize) -> bool {
        let settled = self.settled.get(&id.log).copied().unwrap_or_default();
        let is_new = id.number > settled && !self.others.contains_key(&id);
        if is_new {
            self.others.insert(id, bytes);
        }
        is_new
    }

    /// All updates of a log up to a number are settled. Returns those that were shown.
    pub(super) fn settle(&mut self, log: LogId, number: u64) -> Vec<UpdateId> {
        if self.settled.len() < FOLLOWED_LOGS_MAX || self.settled.contains_key(&log) {
            let settled = self.settled.entry(log).or_default();
            *settled = number.max(*settled);
        }
        let is_settled = |id: &UpdateId| id.log == log && id.number <= number;
        let gone = self.others.extract_if(.., |id, _| is_settled(id));
        gone.map(|(id, _)| id).collect()
    }

    /// Nothing of others is shown any more.
    pub(super) fn clear(&mut self) -> Vec<UpdateId> {
        self.status = Status::No;
        core::mem::take(&mut self.others).into_keys().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{MemberId, SegmentId};

    const LOG: LogId = LogId(MemberId(1));

    fn id(number: u64) -> UpdateId {
        UpdateId {
            log: LOG,
            segment: SegmentId(1),
            number,
        }
    }

    #[test]
    fn an_update_is_shown_once_and_only_if_its_step_will_come() {
        let mut following = Following::default();
        assert!(
            !following.show(id(1), 10, Position(9)),
            "it does not follow"
        );
        following.ask();
        let state = LogState {
            log: LOG,
            saved: 1,
            refused: vec![],
        };
        following.begin(Position(5), &[state]);
        assert!(!following.show(id(1), 10, Position(9)), "it was saved");
        assert!(!following.show(id(2), 10, Position(4)), "it may have been");
        assert!(following.show(id(2), 10, Position(5)));
        assert!(!following.show(id(2), 10, Position(5)));
        assert_eq!(following.settle(LOG, 2), [id(2)]);
        assert!(!following.show(id(2), 10, Position(9)), "it comes late");
        assert_eq!(following.bytes(), 0);
    }

    #[test]
    fn the_members_of_a_site_that_is_cut_off_go_on_sharing() {
        let mut following = Following::default();
        following.begin(Position(5), &[]);
        following.stream_ended();
        assert!(following.show(id(1), 10, Position(5)));
        following.stream_began();
        assert!(!following.show(id(2), 10, Position(5)));
        assert_eq!(
            (following.logs(), following.clear()),
            (vec![LOG], vec![id(1)])
        );
    }
}
