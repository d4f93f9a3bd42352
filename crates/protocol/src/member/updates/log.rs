//! The log of a member: it makes updates durable before anybody is told of them (rule C6).

use crate::member::{MemberAction, Outbox};
use alloc::vec::Vec;
use thorp_model::limits::{LOG_BYTES_MAX, LOG_UPDATES_MAX};
use thorp_model::records::{self, UpdateRecord};
use thorp_model::{
    Batch, HomeId, LeftRecord, LogId, Mark, Millis, Op, PageWrites, Purpose, Refusal, RequestId,
    SegmentId, Table, Update, UpdateId, WhyLeft,
};

/// An update of the program that has no number yet.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) request_id: RequestId,
    pub(super) home: HomeId,
    pub(super) segment: SegmentId,
    pub(super) writes: Vec<PageWrites>,
    /// The program is answered then, also without a lease.
    pub(super) until: Millis,
}

/// Updates that are on their way to the disk, each with its request and the time of its answer.
pub(super) type Writing = Vec<(Update, RequestId, Millis)>;

/// The log.
///
/// Invariant: at most one batch of new updates is on its way to the disk. So a batch that the disk refuses leaves no gap in the
/// numbers.
#[derive(Debug)]
pub(super) struct Log {
    id: LogId,
    is_there: bool,
    mark: Mark,
    gathered: Vec<Gathered>,
    writing: Option<(Mark, Writing)>,
    count: usize,
    bytes: usize,
    /// What has left it although no step of its own said so, for people.
    left: LeftRecord,
}

impl Log {
    /// A member's log, if it has one.
    pub(super) fn new(id: LogId, is_there: bool, left: LeftRecord) -> Self {
        Log {
            id,
            is_there,
            mark: Mark(0),
            gathered: Vec::new(),
            writing: None,
            count: 0,
            bytes: 0,
            left,
        }
    }

    /// The name under which this start of the member keeps updates.
    pub(super) fn id(&self) -> LogId {
        self.id
    }

    /// Whether there is one.
    pub(super) fn is_there(&self) -> bool {
        self.is_there
    }

    /// Whether nothing is on its way into it.
    pub(super) fn is_at_rest(&self) -> bool {
        self.gathered.is_empty() && self.writing.is_none()
    }

    /// Updates in it, and on their way into it.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes an update of the program. False: the log is full.
    pub(super) fn gather(&mut self, gathered: Gathered, bytes: usize) -> bool {
        if self.count >= LOG_UPDATES_MAX || self.bytes + bytes > LOG_BYTES_MAX {
            return false;
        }
        self.count += 1;
        self.bytes += bytes;
        self.gathered.push(gathered);
        true
    }

    /// An update was in the log when the member started.
    pub(super) fn recovered(&mut self, update: &Update) {
        self.count += 1;
        self.bytes += update.bytes();
    }

    /// Writes what was gathered, unless a batch is on its way. The numbers are given now.
    pub(super) fn write(
        &mut self,
        mut next_number: impl FnMut(HomeId, SegmentId) -> u64,
        outbox: &mut Outbox,
    ) {
        if self.writing.is_some() || self.gathered.is_empty() {
            return;
        }
        let (mut writing, mut ops) = (Writing::new(), Vec::new());
        for gathered in core::mem::take(&mut self.gathered) {
            let (home, segment) = (gathered.home, gathered.segment);
            let id = UpdateId {
                log: self.id,
                segment,
                number: next_number(home, segment),
            };
            let update = Update {
                home,
                id,
                writes: gathered.writes,
            };
            ops.push(put(&update, None));
            writing.push((update, gathered.request_id, gathered.until));
        }
        let mark = self.append(Purpose::NewData, ops, outbox);
        self.writing = Some((mark, writing));
    }

    fn append(&mut self, purpose: Purpose, ops: Vec<Op>, outbox: &mut Outbox) -> Mark {
        self.mark = self.mark.next();
        let batch = Batch {
            mark: self.mark,
            purpose,
            ops,
        };
        outbox.act(MemberAction::Keep(batch));
        self.mark
    }

    /// All batches up to this one are durable: the updates among them.
    pub(super) fn kept(&mut self, mark: Mark) -> Writing {
        let is_kept = |(of, _): &mut (Mark, Writing)| *of <= mark;
        let kept = self.writing.take_if(is_kept);
        kept.map(|(_, writing)| writing).unwrap_or_default()
    }

    /// The disk has refused a batch: none of its updates exists.
    pub(super) fn not_kept(&mut self, mark: Mark) -> Writing {
        let is_refused = |(of, _): &mut (Mark, Writing)| *of == mark;
        let refused = self.writing.take_if(is_refused);
        let refused = refused.map(|(_, writing)| writing).unwrap_or_default();
        for (update, ..) in &refused {
            self.has_left(update);
        }
        refused
    }

    /// Updates are saved: they leave the log.
    pub(super) fn forget(&mut self, saved: &[Update], outbox: &mut Outbox) {
        let key = |update: &Update| records::update_key(update.home, update.id);
        let ops = saved.iter();
        let ops: Vec<Op> = ops
            .map(|update| records::delete(Table::Meta, key(update)))
            .collect();
        if ops.is_empty() {
            return;
        }
        saved.iter().for_each(|update| self.has_left(update));
        self.append(Purpose::Removal, ops, outbox);
    }

    /// Notes numbers that the log has no more, for people.
    pub(super) fn note_left(
        &mut self,
        home: HomeId,
        ids: impl Iterator<Item = UpdateId>,
        why: WhyLeft,
        outbox: &mut Outbox,
    ) {
        let left = &mut self.left;
        let noted = ids.filter(|id| left.add(home, *id, why)).count();
        if noted > 0 {
            let op = records::put(Table::Meta, records::LEFT_KEY.to_vec(), &self.left);
            self.append(Purpose::Housekeeping, Vec::from([op]), outbox);
        }
    }

    /// A home has refused an update: it goes to the list of rejected ones.
    pub(super) fn reject(&mut self, update: &Update, refusal: Refusal, outbox: &mut Outbox) {
        let op = put(update, Some(refusal));
        self.append(Purpose::Housekeeping, Vec::from([op]), outbox);
    }

    fn has_left(&mut self, update: &Update) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(update.bytes());
    }
}

fn put(update: &Update, rejected: Option<Refusal>) -> Op {
    let record = UpdateRecord {
        update: update.clone(),
        rejected,
    };
    let key = records::update_key(update.home, update.id);
    records::put(Table::Meta, key, &record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Action, MemberId};

    fn gathered(request: u64) -> Gathered {
        Gathered {
            request_id: RequestId(request),
            home: HomeId(1),
            segment: SegmentId(1),
            writes: Vec::new(),
            until: Millis(0),
        }
    }

    fn marks(outbox: &Outbox) -> Vec<u64> {
        let marks = outbox.actions.iter().filter_map(|action| match action {
            Action::Role(MemberAction::Keep(batch)) => Some(batch.mark.0),
            _ => None,
        });
        marks.collect()
    }

    #[test]
    fn what_the_disk_refuses_leaves_no_gap() {
        let mut log = Log::new(LogId(MemberId(1)), true, LeftRecord::default());
        let mut outbox = Outbox::new();
        assert!(log.gather(gathered(1), 64));
        log.write(|_, _| 1, &mut outbox);
        assert!(log.gather(gathered(2), 64) && log.gather(gathered(3), 64));
        log.write(|_, _| unreachable!("a batch is on its way"), &mut outbox);
        assert_eq!(log.not_kept(Mark(1)).len(), 1);
        assert_eq!(log.len(), 2);
        let mut number = 0;
        let next = |_, _| {
            number += 1;
            number
        };
        log.write(next, &mut outbox);
        let kept = log.kept(Mark(2));
        assert_eq!(
            kept.iter()
                .map(|(update, ..)| update.id.number)
                .collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!(marks(&outbox), [1, 2]);
    }

    #[test]
    fn what_left_is_noted_once() {
        let mut log = Log::new(LogId(MemberId(2)), true, LeftRecord::default());
        let mut outbox = Outbox::new();
        let id = |number| UpdateId {
            log: LogId(MemberId(1)),
            segment: SegmentId(1),
            number,
        };
        let why = WhyLeft::Void;
        log.note_left(HomeId(1), [id(1), id(2)].into_iter(), why, &mut outbox);
        log.note_left(HomeId(1), [id(2)].into_iter(), why, &mut outbox);
        assert_eq!(marks(&outbox), [1]);
    }

    #[test]
    fn a_full_log_takes_nothing() {
        let mut log = Log::new(LogId(MemberId(1)), true, LeftRecord::default());
        assert!(log.gather(gathered(1), LOG_BYTES_MAX));
        assert!(!log.gather(gathered(2), 1));
    }
}
