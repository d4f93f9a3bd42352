//! Updates that a member's log keeps until their home has them (rules C6 and C7).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::{
    CommitId, LogHead, LogId, LogState, Millis, Refusal, SegmentId, Update, UpdateId,
};

/// An update that the log keeps.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) update: Update,
    /// The commit as which it is on its way.
    sent: Option<CommitId>,
    /// Whether the member shows it.
    pub(super) is_shown: bool,
    /// When the program wrote it. None: an earlier start of the member has.
    pub(super) since: Option<Millis>,
    /// Its home has refused it. It is neither shown nor sent.
    rejected: Option<Refusal>,
}

/// The durable updates of a member in one segment.
///
/// Invariant: of each log, what is on its way begins with its first number that is not settled, and has no gap.
#[derive(Debug, Default)]
pub(super) struct Custody {
    own: BTreeMap<(LogId, u64), Own>,
    /// The last number of each log.
    last: BTreeMap<LogId, u64>,
}

impl Custody {
    /// The number of the next update of a log.
    pub(super) fn next_number(&self, log: LogId) -> u64 {
        self.last
            .get(&log)
            .copied()
            .unwrap_or_default()
            .saturating_add(1)
    }

    /// An update is durable. One of an earlier start is not shown yet.
    pub(super) fn insert(
        &mut self,
        update: Update,
        rejected: Option<Refusal>,
        since: Option<Millis>,
    ) {
        let (log, number) = (update.id.log, update.id.number);
        let last = self.last.entry(log).or_default();
        *last = number.max(*last);
        let own = Own {
            update,
            sent: None,
            is_shown: since.is_some(),
            since,
            rejected,
        };
        self.own.insert((log, number), own);
    }

    /// Updates that are not settled.
    pub(super) fn open(&self) -> impl Iterator<Item = &Own> {
        self.own.values().filter(|own| own.rejected.is_none())
    }

    /// Whether all are settled.
    pub(super) fn is_settled(&self) -> bool {
        self.open().next().is_none()
    }

    /// Updates that were refused, and why.
    pub(super) fn rejected(&self) -> impl Iterator<Item = (&Update, &Refusal)> {
        let own = self.own.values();
        own.filter_map(|own| Some((&own.update, own.rejected.as_ref()?)))
    }

    /// The logs that have updates which are not settled.
    pub(super) fn logs(&self) -> Vec<LogId> {
        let mut logs: Vec<LogId> = self.open().map(|own| own.update.id.log).collect();
        logs.dedup();
        logs
    }

    /// How far the logs are whose home may not have all of them.
    pub(super) fn heads(&self, segment: SegmentId) -> impl Iterator<Item = LogHead> + '_ {
        self.logs().into_iter().map(move |log| LogHead {
            log,
            segment,
            number: self.last.get(&log).copied().unwrap_or_default(),
        })
    }

    /// Up to here it is known what became of the updates of a log.
    pub(super) fn confirmed(&self, log: LogId) -> u64 {
        let mut open = self.open().filter(|own| own.update.id.log == log);
        let first = open.next().map(|own| own.update.id.number);
        let next = first.unwrap_or_else(|| self.next_number(log));
        next.saturating_sub(1)
    }

    /// The updates that may go up next, the first of each log first, and when each was written.
    pub(super) fn to_send(&self) -> impl Iterator<Item = (Option<Millis>, UpdateId)> {
        let waits = self.open().filter(|own| own.sent.is_none());
        waits.map(|own| (own.since, own.update.id))
    }

    /// How long the oldest update of this start waits for its home.
    pub(super) fn age(&self, now: Millis) -> u64 {
        let oldest = self.open().find_map(|own| own.since);
        oldest.map_or(0, |since| now.since(since))
    }

    /// An update goes up as this commit. Of a rejected one only its number does, which is void.
    pub(super) fn sent(&mut self, id: UpdateId, commit: CommitId) {
        let own = self.own.get_mut(&(id.log, id.number));
        if let Some(own) = own.filter(|own| own.rejected.is_none()) {
            own.sent = Some(commit);
        }
    }

    /// What is on its way of a log comes to nothing: it goes again, in order. Returns the commits.
    pub(super) fn unsend(&mut self, log: Option<LogId>) -> Vec<CommitId> {
        let own = self.own.values_mut();
        let of_log = own.filter(|own| log.is_none_or(|log| own.update.id.log == log));
        of_log.filter_map(|own| own.sent.take()).collect()
    }

    /// An update that the log keeps.
    pub(super) fn get(&self, id: UpdateId) -> Option<&Own> {
        self.own.get(&(id.log, id.number))
    }

    /// It is shown, or no more.
    pub(super) fn show(&mut self, id: UpdateId, is_shown: bool) -> Option<&Update> {
        let own = self.own.get_mut(&(id.log, id.number))?;
        own.is_shown = is_shown;
        Some(&own.update)
    }

    /// The home has executed a log's updates up to a number, but for what it says to have refused. They leave.
    pub(super) fn settle(&mut self, state: &LogState) -> (Vec<Update>, Vec<CommitId>) {
        let (mut left, mut commits) = (Vec::new(), Vec::new());
        let of_log = (state.log, 0)..=(state.log, state.saved);
        let is_saved =
            |number: u64, own: &Own| own.rejected.is_none() && !state.refused.contains(&number);
        let saved = self
            .own
            .extract_if(of_log, |(_, number), own| is_saved(*number, own));
        for (_, own) in saved {
            commits.extend(own.sent);
            left.push(own.update);
        }
        (left, commits)
    }

    /// The home has executed an update, which leaves; and the commit as which it was on its way.
    pub(super) fn take(&mut self, id: UpdateId) -> Option<(Update, Option<CommitId>)> {
        let is_open = self.get(id).is_some_and(|own| own.rejected.is_none());
        let own = is_open.then(|| self.own.remove(&(id.log, id.number)))??;
        Some((own.update, own.sent))
    }

    /// Whether an update is on the list of rejected ones.
    pub(super) fn is_rejected(&self, id: UpdateId) -> bool {
        self.get(id).is_some_and(|own| own.rejected.is_some())
    }

    /// An update leaves the list of rejected ones.
    pub(super) fn take_rejected(&mut self, id: UpdateId) -> Option<Update> {
        let is_there = self.is_rejected(id);
        let own = is_there.then(|| self.own.remove(&(id.log, id.number)))?;
        own.map(|own| own.update)
    }

    /// The home has refused an update for good.
    pub(super) fn reject(&mut self, id: UpdateId, refusal: Refusal) -> Option<Update> {
        let own = self.own.get_mut(&(id.log, id.number))?;
        own.rejected = Some(refusal);
        own.sent = None;
        own.is_shown = false;
        Some(own.update.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{HomeId, MemberId};

    const LOG: LogId = LogId(MemberId(1));
    const SEGMENT: SegmentId = SegmentId(1);

    fn id(number: u64) -> UpdateId {
        UpdateId {
            log: LOG,
            segment: SEGMENT,
            number,
        }
    }

    fn update(number: u64) -> Update {
        Update {
            home: HomeId(1),
            id: id(number),
            writes: vec![],
        }
    }

    fn commit(sequence: u64) -> CommitId {
        CommitId {
            member: MemberId(1),
            sequence,
        }
    }

    fn custody(numbers: u64) -> Custody {
        let mut custody = Custody::default();
        (1..=numbers).for_each(|number| custody.insert(update(number), None, Some(Millis(0))));
        custody
    }

    fn to_send(custody: &Custody) -> Vec<UpdateId> {
        custody.to_send().map(|(_, id)| id).collect()
    }

    #[test]
    fn the_oldest_update_of_this_start_counts() {
        let mut custody = Custody::default();
        assert_eq!(custody.age(Millis(9)), 0);
        custody.insert(update(1), None, None);
        custody.insert(update(2), None, Some(Millis(3)));
        custody.insert(update(3), None, Some(Millis(5)));
        assert_eq!(custody.age(Millis(9)), 6);
    }

    #[test]
    fn updates_leave_when_their_home_has_them_and_refused_ones_stay() {
        let mut custody = custody(3);
        assert_eq!((custody.confirmed(LOG), custody.next_number(LOG)), (0, 4));
        custody.sent(id(1), commit(7));
        let state = LogState {
            log: LOG,
            saved: 2,
            refused: vec![2],
        };
        let (left, commits) = custody.settle(&state);
        assert_eq!((left.len(), commits), (1, vec![commit(7)]));
        assert_eq!(custody.confirmed(LOG), 1);
        assert!(custody.reject(id(2), Refusal::Unknown).is_some());
        assert_eq!((custody.confirmed(LOG), custody.rejected().count()), (2, 1));
        assert_eq!(to_send(&custody), [id(3)]);
        // A rejected one never leaves by itself.
        custody.settle(&LogState {
            log: LOG,
            saved: 3,
            refused: vec![],
        });
        assert!(custody.is_settled());
        assert_eq!((custody.rejected().count(), custody.confirmed(LOG)), (1, 3));
        // But when somebody says so.
        assert!(custody.take_rejected(id(3)).is_none(), "it was saved");
        assert!(custody.is_rejected(id(2)) && custody.take_rejected(id(2)).is_some());
        assert_eq!(
            (custody.rejected().count(), custody.next_number(LOG)),
            (0, 4)
        );
    }

    #[test]
    fn what_was_sent_in_vain_goes_again_in_order() {
        let mut custody = custody(3);
        custody.sent(id(1), commit(1));
        custody.sent(id(2), commit(2));
        assert_eq!(to_send(&custody), [id(3)]);
        assert_eq!(custody.unsend(Some(LOG)).len(), 2);
        assert_eq!(to_send(&custody), [id(1), id(2), id(3)]);
        assert_eq!(
            custody
                .heads(SEGMENT)
                .map(|head| head.number)
                .collect::<Vec<_>>(),
            [3]
        );
    }
}
