//! The log of a member: it makes updates durable before anybody is told of them (rule C6).

use super::asker::Asker;
use super::authored::Authored;
use super::conflicts::Conflicts;
use crate::member::{MemberAction, Outbox};
use alloc::vec::Vec;
use thorp_model::limits::{COMMIT_BYTES_MAX, LOG_BYTES_MAX, LOG_UPDATES_MAX};
use thorp_model::records::{self, UpdateRecord};
use thorp_model::{
    Authorship, Batch, HomeId, LeftRecord, LogId, Mark, Millis, Op, PageWrites, Purpose, Refusal,
    SegmentId, Table, Update, UpdateId, WhyLeft,
};

/// An update that has no number yet.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) origin: Origin,
    /// Who has written it, if that is not this member.
    pub(super) author: Option<Authorship>,
    pub(super) home: HomeId,
    pub(super) segment: SegmentId,
    pub(super) writes: Vec<PageWrites>,
}

/// Who has made an update.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    /// The program, or a neighbour.
    Asked {
        asker: Asker,
        /// It is answered then, also without a lease.
        until: Millis,
    },
    /// The routine of the program, in the place of a refused update of the same segment. Nobody is answered.
    Routine { replaces: UpdateId },
}

/// Updates that are on their way to the disk.
pub(super) type Writing = Vec<(Update, Origin)>;

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
    conflicts: Conflicts,
    authored: Authored,
}

impl Log {
    /// A member's log, if it has one, and what it has noted.
    pub(super) fn new(
        id: LogId,
        is_there: bool,
        (left, conflicts): (LeftRecord, Conflicts),
    ) -> Self {
        Log {
            id,
            is_there,
            mark: Mark(0),
            gathered: Vec::new(),
            writing: None,
            count: 0,
            bytes: 0,
            left,
            conflicts,
            authored: Authored::default(),
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

    /// Takes an update. False: the log is full. One that replaces another is always taken: the other one leaves.
    pub(super) fn gather(&mut self, gathered: Gathered, bytes: usize) -> bool {
        let is_full = self.count >= LOG_UPDATES_MAX || self.bytes + bytes > LOG_BYTES_MAX;
        if is_full && matches!(gathered.origin, Origin::Asked { .. }) {
            return false;
        }
        if let Some(author) = &gathered.author
            && !self.authored.gather(author, bytes)
        {
            return false;
        }
        self.count += 1;
        self.bytes += bytes;
        self.gathered.push(gathered);
        true
    }

    /// An update was in the log when the member started.
    pub(super) fn recovered(&mut self, update: &Update, author: Option<&Authorship>) {
        let bytes = update.bytes();
        self.count += 1;
        self.bytes += bytes;
        if let Some(author) = author {
            let of = (update.home, update.id);
            self.authored.recovered(of, author.clone(), bytes);
        }
    }

    /// Who has written an update, if that is not this member.
    pub(super) fn author(&self, home: HomeId, id: UpdateId) -> Option<&Authorship> {
        self.authored.of(home, id)
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
            ops.push(put(&update, None, gathered.author.clone()));
            if let Some(author) = gathered.author {
                let bytes = update.bytes();
                self.authored.name((home, id), author, bytes);
            }
            if let Origin::Routine { replaces } = gathered.origin {
                ops.push(self.conflicts.replace(home, replaces, id));
                ops.push(delete(home, replaces));
                ops.push(records::delete(
                    Table::Meta,
                    records::conflict_key(home, replaces),
                ));
            }
            writing.push((update, gathered.origin));
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
        for (update, origin) in &refused {
            self.has_left(update);
            if let Origin::Routine { replaces } = origin {
                self.conflicts.undecide(update.home, *replaces);
                let _ = self.conflicts.forget(update.home, update.id);
            }
        }
        refused
    }

    /// A refused update has left the log in the batch of the one that replaces it.
    pub(super) fn replaced(&mut self, old: &Update) {
        self.has_left(old);
        // The batch has deleted what was noted.
        let _ = self.conflicts.forget(old.home, old.id);
    }

    /// Updates are saved: they leave the log.
    pub(super) fn forget(&mut self, saved: &[Update], outbox: &mut Outbox) {
        let mut ops = Vec::new();
        for update in saved {
            ops.push(delete(update.home, update.id));
            ops.extend(self.conflicts.forget(update.home, update.id));
            self.has_left(update);
        }
        if !ops.is_empty() {
            self.append(Purpose::Removal, ops, outbox);
        }
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
        let author = self.author(update.home, update.id).cloned();
        let mut ops = Vec::from([put(update, Some(refusal), author)]);
        ops.extend(self.conflicts.refused(update.home, update.id));
        self.append(Purpose::Housekeeping, ops, outbox);
    }

    /// The routine has decided what becomes of a refused update. False: it had done so before, or was not asked.
    pub(super) fn decide(&mut self, home: HomeId, id: UpdateId) -> bool {
        self.conflicts.decide(home, id)
    }

    /// Whether something may take the place of a refused update.
    pub(super) fn may_go_again(&self, instead: &Update) -> bool {
        let is_right = instead.is_whole() && instead.bytes() <= COMMIT_BYTES_MAX;
        is_right && self.conflicts.may_go_again(instead.home, instead.id)
    }

    /// A refused update stays on the list, for a person.
    pub(super) fn list(&mut self, home: HomeId, id: UpdateId, outbox: &mut Outbox) {
        let noted = self.conflicts.forget(home, id);
        let ops: Vec<Op> = noted.into_iter().collect();
        if !ops.is_empty() {
            self.append(Purpose::Removal, ops, outbox);
        }
    }

    /// A refused update leaves for what others wrote. Its number is noted for people.
    pub(super) fn give_up(&mut self, update: &Update, outbox: &mut Outbox) {
        let (home, id) = (update.home, update.id);
        self.left.add(home, id, WhyLeft::Dropped);
        let left = records::put(Table::Meta, records::LEFT_KEY.to_vec(), &self.left);
        let mut ops = Vec::from([delete(home, id), left]);
        ops.extend(self.conflicts.forget(home, id));
        self.has_left(update);
        self.append(Purpose::Removal, ops, outbox);
    }

    fn has_left(&mut self, update: &Update) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(update.bytes());
        self.authored.forget(update.home, update.id);
    }
}

fn delete(home: HomeId, id: UpdateId) -> Op {
    records::delete(Table::Meta, records::update_key(home, id))
}

fn put(update: &Update, rejected: Option<Refusal>, author: Option<Authorship>) -> Op {
    let record = UpdateRecord {
        update: update.clone(),
        rejected,
        author,
    };
    let key = records::update_key(update.home, update.id);
    records::put(Table::Meta, key, &record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use thorp_model::{Action, MemberId, RequestId};

    fn gathered(request: u64) -> Gathered {
        let origin = Origin::Asked {
            asker: Asker::Program(RequestId(request)),
            until: Millis(0),
        };
        of(origin)
    }

    fn of(origin: Origin) -> Gathered {
        Gathered {
            origin,
            author: None,
            home: HomeId(1),
            segment: SegmentId(1),
            writes: Vec::new(),
        }
    }

    fn log(own: u128) -> Log {
        let noted = (LeftRecord::default(), Conflicts::new(true, &[]));
        Log::new(LogId(MemberId(own)), true, noted)
    }

    fn update(number: u64) -> Update {
        let id = UpdateId {
            log: LogId(MemberId(1)),
            segment: SegmentId(1),
            number,
        };
        Update {
            home: HomeId(1),
            id,
            writes: Vec::new(),
        }
    }

    /// What the last batch puts and deletes, by the beginnings of the keys.
    fn last_batch(outbox: &Outbox) -> Vec<(bool, String)> {
        let mut batches = outbox.actions.iter().filter_map(|action| match action {
            Action::Role(MemberAction::Keep(batch)) => Some(batch),
            _ => None,
        });
        let ops = batches.next_back().map(|batch| batch.ops.clone());
        let name = |key: &[u8]| {
            let end = key.iter().position(|byte| *byte == b'/');
            String::from_utf8_lossy(&key[..end.unwrap_or(key.len())]).into_owned()
        };
        let op = |op: &Op| match op {
            Op::Put { key, .. } => (true, name(key)),
            Op::Delete { key, .. } => (false, name(key)),
        };
        ops.unwrap_or_default().iter().map(op).collect()
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
        let mut log = log(1);
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
    fn what_replaces_a_refused_update_comes_in_the_batch_in_which_that_leaves() {
        let (mut log, mut outbox, old) = (log(2), Outbox::new(), update(1));
        log.recovered(&old, None);
        log.reject(&old, Refusal::Unknown, &mut outbox);
        assert_eq!(names(&last_batch(&outbox)), ["+update", "+conflict"]);
        assert!(log.decide(old.home, old.id) && !log.decide(old.home, old.id));
        let again = Origin::Routine { replaces: old.id };
        assert!(log.gather(of(again), LOG_BYTES_MAX), "one leaves for it");
        log.write(|_, _| 1, &mut outbox);
        let ops = ["+update", "+conflict", "-update", "-conflict"];
        assert_eq!(names(&last_batch(&outbox)), ops);
        // The disk refuses: the old one is there, and its routine is to decide again.
        assert_eq!(log.not_kept(log.mark).len(), 1);
        assert!(log.decide(old.home, old.id));
        log.gather(of(again), 64);
        log.write(|_, _| 1, &mut outbox);
        assert_eq!(log.kept(log.mark).len(), 1);
        log.replaced(&old);
        assert_eq!(log.len(), 1);
        assert!(!log.decide(old.home, old.id), "it has left");
    }

    #[test]
    fn what_is_given_up_is_noted_in_the_same_batch() {
        let (mut log, mut outbox, old) = (log(2), Outbox::new(), update(1));
        log.recovered(&old, None);
        log.reject(&old, Refusal::Unknown, &mut outbox);
        log.give_up(&old, &mut outbox);
        let ops = ["-update", "+left", "-conflict"];
        assert_eq!(names(&last_batch(&outbox)), ops);
        assert_eq!((log.len(), log.left.numbers.len()), (0, 1));
    }

    fn names(ops: &[(bool, String)]) -> Vec<String> {
        let sign = |is_put: bool| if is_put { '+' } else { '-' };
        let names = ops.iter();
        names
            .map(|(is_put, name)| alloc::format!("{}{name}", sign(*is_put)))
            .collect()
    }

    #[test]
    fn what_left_is_noted_once() {
        let mut log = log(2);
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
        let mut log = log(1);
        assert!(log.gather(gathered(1), LOG_BYTES_MAX));
        assert!(!log.gather(gathered(2), 1));
    }
}
