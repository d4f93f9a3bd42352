//! The table that a home writes for web caches on its machine: which objects, pages and segments have changed (rules W1, W2, W7 and W8).
//!
//! A batch is in the table when the home appends it. Only when it is durable do step and answer leave the outbox. So no child sees a
//! position, and no other home a vote, that the table does not have.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use thorp_model::records::{LogRecord, SegmentRecord, VoteRecord, segment_range, vote_range};
use thorp_model::{
    Batch, ObjectId, Op, PageChange, PageId, PageNo, PageSlots, Part, Position, ReadKey, Reader,
    Scan, Slot, StorageError, Table, WriteOp, records,
};
use thorp_store::Store;
use thorp_versions::{BEAT_MS_MAX, HomeLedger, Kept, Place, Terms, Writer, now_ms};
use tracing::warn;

use crate::config::HomeConfigFile;
use crate::error::ServerError;
use crate::node::random;

/// How often the home says that it is there, in milliseconds. Its loop turns at least twice a second.
const BEAT_EVERY_MS: u64 = 200;

/// The table of a process. None: nobody has asked for one.
pub(super) type ProcessTable = Option<Arc<Kept>>;

/// Makes the table of this process, if the operator wants one. Whoever calls it has the store, so a home of before has ended. If that one
/// left without a word, its readers may serve hits until its last beat is old: this waits as long.
pub(super) async fn make(config: &HomeConfigFile) -> Result<ProcessTable, ServerError> {
    let path = config.web_table_file()?;
    if fs::metadata(&path).is_ok_and(|file| file.len() > 0) {
        tokio::time::sleep(Duration::from_millis(BEAT_MS_MAX + BEAT_EVERY_MS)).await;
    }
    if !config.web_table {
        // What is left there would hold up the next start, too.
        let _ = fs::remove_file(&path);
        return Ok(None);
    }
    let terms = Terms::of_home(config.name()?);
    let table = Kept::make(&path, terms, random_number()?);
    Ok(Some(Arc::new(table.map_err(ServerError::WebTable)?)))
}

/// The table while one life of the home runs.
///
/// Invariant: whatever the life has appended is in it. A closed home has no beat: its history may be lost (rule R9).
pub(super) struct WebTable {
    /// A vote is named by the key of its record.
    ledger: HomeLedger<Arc<Kept>, Vec<u8>>,
    /// The last beat; none if there is to be none any more.
    beat_ms: Option<u64>,
}

impl WebTable {
    /// A life begins at this position.
    pub(super) fn begin(
        table: &Arc<Kept>,
        (store, dir): (&Store, &Path),
        position: Position,
    ) -> Result<Self, ServerError> {
        let mut ledger = HomeLedger::new(Writer::new(Arc::clone(table)));
        let votes = open_votes(store).map_err(|error| ServerError::Records {
            dir: dir.to_owned(),
            error,
        })?;
        ledger.begin(random_number()?, position.0, votes);
        let is_open = store.history().closed().is_none();
        Ok(WebTable {
            ledger,
            beat_ms: is_open.then_some(0),
        })
    }

    /// The home appends a batch. Changes come first, and ends last: the word of a vote that has become a change is odd until it has the number
    /// of the change.
    pub(super) fn append(&mut self, batch: &Batch) {
        if batch.ops.iter().any(removes_segment) {
            self.renew();
        }
        let mut ended = Vec::new();
        for op in &batch.ops {
            match Written::of(op) {
                Some(Written::Change(position, keys)) => self.ledger.change(position.0, keys),
                Some(Written::Vote(vote, keys)) => self.ledger.vote(vote, keys),
                Some(Written::End(vote)) => ended.push(vote),
                Some(Written::Unreadable(error)) => {
                    warn!("the table for web caches ends all answers: {error}");
                    self.renew();
                }
                None => {}
            }
        }
        ended.iter().for_each(|vote| self.ledger.end(vote));
    }

    /// Something has changed that has no key, or no position: no older entry is valid any more (rules W8 and W9).
    fn renew(&mut self) {
        match random_number() {
            Ok(generation) => self.ledger.renew(generation),
            Err(error) => {
                warn!("there are no more hits in web caches: {error}");
                return self.end();
            }
        }
        // The next turn of the loop beats.
        self.beat_ms = self.beat_ms.map(|_| 0);
    }

    /// The loop of the home has turned.
    pub(super) fn turned(&mut self) {
        let now_ms = now_ms();
        if let Some(beat_ms) = &mut self.beat_ms
            && now_ms.saturating_sub(*beat_ms) >= BEAT_EVERY_MS
        {
            *beat_ms = now_ms;
            self.ledger.beat(now_ms);
        }
    }

    /// There are no hits from here on.
    pub(super) fn end(&mut self) {
        self.beat_ms = None;
        self.ledger.beat(0);
    }
}

impl Drop for WebTable {
    fn drop(&mut self) {
        self.end();
    }
}

/// What an operation of a batch is, for the table.
#[derive(PartialEq, Debug)]
enum Written {
    /// None: nobody can say what has changed.
    Change(Position, Option<Vec<Place>>),
    /// None: nobody can say what it would change.
    Vote(Vec<u8>, Option<Vec<Place>>),
    End(Vec<u8>),
    /// Nobody can say what it changes.
    Unreadable(StorageError),
}

impl Written {
    fn of(op: &Op) -> Option<Self> {
        match op {
            Op::Put {
                table: Table::Log,
                key,
                value,
            } => Some(Self::of_log(key, value)),
            Op::Put {
                table: Table::Meta,
                key,
                value,
            } if is_in(key, vote_range()) => Some(Self::of_vote(key, value)),
            // It is forgotten: it has ended before, or with the same batch.
            Op::Delete {
                table: Table::Meta,
                key,
            } if is_in(key, vote_range()) => Some(Written::End(key.clone())),
            _ => None,
        }
    }

    fn of_log(key: &[u8], value: &[u8]) -> Self {
        let record: Result<LogRecord, StorageError> = records::decode_log(key, value);
        match record {
            Ok(record) => Written::Change(record.position, changed(&record.changes)),
            Err(error) => Written::Unreadable(error),
        }
    }

    fn of_vote(key: &[u8], value: &[u8]) -> Self {
        let record: Result<VoteRecord, StorageError> = records::decode(Table::Meta, key, value);
        match record {
            Ok(vote) if vote.ended.is_some() => Written::End(key.to_vec()),
            Ok(vote) => Written::Vote(key.to_vec(), Some(voted(&vote.request.part))),
            Err(error) => {
                warn!("a vote that cannot be read may change anything: {error}");
                Written::Vote(key.to_vec(), None)
            }
        }
    }
}

/// A vote with what it will change; none if nobody can say.
type OpenVote = (Vec<u8>, Option<Vec<Place>>);

/// The votes in a store that may still become commits.
fn open_votes(store: &Store) -> Result<Vec<OpenVote>, StorageError> {
    let (from, to) = vote_range();
    let mut votes = Vec::new();
    store.scan(Table::Meta, &from, &to, &mut |key, value| {
        match Written::of_vote(key, value) {
            Written::Vote(vote, keys) => votes.push((vote, keys)),
            Written::Change(..) | Written::End(_) | Written::Unreadable(_) => {}
        }
        Scan::Go
    })?;
    Ok(votes)
}

/// Whether an operation begins the removal of a segment: nobody lists what was in it (rule W9).
fn removes_segment(op: &Op) -> bool {
    let Op::Put {
        table: Table::Meta,
        key,
        value,
    } = op
    else {
        return false;
    };
    let segment = || records::decode::<SegmentRecord>(Table::Meta, key, value);
    is_in(key, segment_range()) && segment().map_or(true, |segment| segment.removing)
}

fn is_in(key: &[u8], (from, to): (Vec<u8>, Vec<u8>)) -> bool {
    key >= from.as_slice() && key < to.as_slice()
}

/// The places of what a commit has changed. None: nobody can say.
fn changed(changes: &[PageChange]) -> Option<Vec<Place>> {
    let mut places = Places::default();
    for change in changes {
        match &change.slots {
            PageSlots::Some(slots) => {
                for (slot, _) in slots {
                    places.object(change.page, *slot);
                }
            }
            // A page of a large object, whose head is in the same commit.
            PageSlots::Whole if change.page.page.is_overflow() => {
                places.object(change.page, Slot(0));
            }
            PageSlots::Whole => return None,
        }
    }
    Some(places.into())
}

/// The places of what a part will change. With a new object the extent of its segment may rise.
fn voted(part: &Part) -> Vec<Place> {
    let mut places = Places::default();
    for writes in &part.writes {
        for (slot, op) in &writes.slots {
            places.object(writes.page, *slot);
            if matches!(op, WriteOp::Create { .. }) {
                let first = PageId {
                    segment: writes.page.segment,
                    page: PageNo(0),
                };
                places.object(first, Slot(0));
            }
        }
    }
    places.into()
}

/// Places of objects, and of the pages and segments around them.
#[derive(Default)]
struct Places(Vec<Place>);

impl Places {
    fn object(&mut self, page: PageId, slot: Slot) {
        self.add(ReadKey::Object(ObjectId { page, slot }));
        self.add(ReadKey::Page(page));
        self.add(ReadKey::Segment(page.segment));
    }

    fn add(&mut self, key: ReadKey) {
        self.0.push(Place::of(&key.to_string()));
    }
}

impl From<Places> for Vec<Place> {
    fn from(Places(mut places): Places) -> Self {
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// A random number. Never 0: that is the generation of no table.
fn random_number() -> Result<u64, ServerError> {
    let mut bytes = [0; 8];
    random(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{
        Blob, CommitId, CommitRequest, Generation, HomeId, Mark, MemberId, NewValue, Outcome,
        PageWrites, Purpose, Refusal, Registration, SlotChange, Stamp,
    };
    use thorp_versions::{Denied, Evidence, Followed};

    const PAGE: PageId = PageId::new(3, 4);
    const SLOT: Slot = Slot(5);

    fn place(key: &str) -> Place {
        Place::of(key)
    }

    fn sorted(keys: &[&str]) -> Vec<Place> {
        let mut places: Vec<Place> = keys.iter().map(|key| place(key)).collect();
        places.sort_unstable();
        places
    }

    fn log(position: u64, page: PageId, slots: PageSlots) -> Op {
        let position = Position(position);
        let record = LogRecord {
            position,
            stamp: Stamp::default(),
            commit: None,
            changes: vec![PageChange { page, slots }],
        };
        records::put(Table::Log, records::log_key(position), &record)
    }

    fn change(position: u64) -> Op {
        let slots = PageSlots::Some(vec![(SLOT, SlotChange::Invalid)]);
        log(position, PAGE, slots)
    }

    const REGISTRATION: Registration = Registration(1);

    fn vote(op: WriteOp, ended: Option<Outcome>) -> Op {
        let id = CommitId {
            member: MemberId(7),
            sequence: 9,
        };
        let writes = vec![PageWrites {
            page: PAGE,
            slots: vec![(SLOT, op)],
        }];
        let part = Part {
            home: HomeId(1),
            evidence: Position(0),
            reads: Vec::new(),
            writes,
            under: None,
        };
        let request = CommitRequest {
            id,
            registration: REGISTRATION,
            part,
            with: Vec::new(),
            depends_on: Vec::new(),
            after: Stamp::default(),
        };
        let record = VoteRecord {
            request,
            stamp: Stamp::default(),
            ended,
        };
        records::put(Table::Meta, vote_key(), &record)
    }

    fn vote_key() -> Vec<u8> {
        records::vote_key(REGISTRATION, 9)
    }

    fn write() -> WriteOp {
        WriteOp::Write {
            generation: Generation(1),
            value: NewValue::Inline(Blob::from(b"new".as_slice())),
        }
    }

    fn create() -> WriteOp {
        WriteOp::Create {
            generation: Generation(1),
            value: NewValue::Inline(Blob::from(b"new".as_slice())),
        }
    }

    #[test]
    fn a_commit_changes_objects_pages_and_segments() {
        let keys = sorted(&["3/4.5", "3/4", "3"]);
        let changed = Written::Change(Position(8), Some(keys.clone()));
        assert_eq!(Written::of(&change(8)), Some(changed));
        let voted = Written::Vote(vote_key(), Some(keys));
        assert_eq!(Written::of(&vote(write(), None)), Some(voted));
        // What creates may raise the extent, which scans read.
        let keys = sorted(&["3/4.5", "3/4", "3/0.0", "3/0", "3"]);
        let voted = Written::Vote(vote_key(), Some(keys));
        assert_eq!(Written::of(&vote(create(), None)), Some(voted));
    }

    #[test]
    fn a_vote_ends_with_its_outcome_or_with_its_record() {
        let outcome = Some(Outcome::Refused(Refusal::Elsewhere));
        let ended = || Some(Written::End(vote_key()));
        assert_eq!(Written::of(&vote(write(), outcome)), ended());
        let forgotten = records::delete(Table::Meta, vote_key());
        assert_eq!(Written::of(&forgotten), ended());
        let other = records::delete(Table::Meta, records::segment_key(PAGE.segment));
        assert_eq!(Written::of(&other), None);
    }

    #[test]
    fn what_nobody_can_name_is_unknown() {
        let whole = |page| Written::of(&log(8, page, PageSlots::Whole));
        let large = PageId {
            page: PageNo::OVERFLOW_FIRST,
            ..PAGE
        };
        assert!(matches!(whole(large), Some(Written::Change(_, Some(_)))));
        assert!(matches!(whole(PAGE), Some(Written::Change(_, None))));
        let garbage = |table| Op::Put {
            table,
            key: vote_key(),
            value: vec![0xff; 3],
        };
        let found = Written::of(&garbage(Table::Log));
        assert!(matches!(found, Some(Written::Unreadable(_))), "{found:?}");
        let voted = Written::Vote(vote_key(), None);
        assert_eq!(Written::of(&garbage(Table::Meta)), Some(voted));
        assert!(!removes_segment(&change(8)));
    }

    /// A table, and who reads it.
    fn table(place: &Path) -> (WebTable, Followed) {
        let path = place.join("web.table");
        let kept = Kept::make(&path, Terms::of_home("alps"), 1).unwrap();
        let mut ledger = HomeLedger::new(Writer::new(Arc::new(kept)));
        ledger.begin(77, 5, []);
        let mut table = WebTable {
            ledger,
            beat_ms: Some(0),
        };
        table.turned();
        let reader = Followed::new(path, Terms::of_home("alps"));
        reader.look().unwrap();
        (table, reader)
    }

    fn batch(ops: Vec<Op>) -> Batch {
        Batch {
            mark: Mark(1),
            purpose: Purpose::NewData,
            ops,
        }
    }

    fn checked(reader: &Followed, generation: u64, sequence: u64) -> Result<(), Denied> {
        let evidence = Evidence {
            generation,
            sequence,
        };
        let checked = reader.check_these(evidence, [place("3/4")].into_iter(), now_ms());
        checked.map(drop)
    }

    #[test]
    fn a_batch_is_in_the_table_when_it_is_appended() {
        let dir = tempfile::tempdir().unwrap();
        let (mut table, reader) = table(dir.path());
        assert_eq!(checked(&reader, 77, 5), Ok(()));
        table.append(&batch(vec![vote(write(), None)]));
        assert_eq!(checked(&reader, 77, 5), Err(Denied::Open(place("3/4"))));
        // The vote is forgotten with the batch that carries it out.
        let forgotten = records::delete(Table::Meta, vote_key());
        table.append(&batch(vec![forgotten, change(6)]));
        assert_eq!(checked(&reader, 77, 5), Err(Denied::Changed(place("3/4"))));
        assert_eq!(checked(&reader, 77, 6), Ok(()));
    }

    #[test]
    fn what_cannot_be_read_ends_all_and_an_end_ends_hits() {
        let dir = tempfile::tempdir().unwrap();
        let (mut table, reader) = table(dir.path());
        let garbage = Op::Put {
            table: Table::Log,
            key: vec![1],
            value: vec![0xff],
        };
        table.append(&batch(vec![garbage]));
        assert_eq!(checked(&reader, 77, 5), Err(Denied::OtherGeneration));
        let generation = thorp_versions::Versions::evidence(&reader).generation;
        assert_eq!(checked(&reader, generation, 5), Err(Denied::NoBeat));
        table.turned();
        assert_eq!(checked(&reader, generation, 5), Ok(()));
        table.end();
        table.turned();
        assert_eq!(checked(&reader, generation, 5), Err(Denied::NoBeat));
    }
}
