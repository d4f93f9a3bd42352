//! A running transaction: what it read, what it is about to write.

use super::action::{ACCOUNTS, BALANCE_FIRST, Operation, account};
use super::session::Known;
use super::value::{HEAD_BYTES, Maker, balance};
use crate::failure::{Checked, Failure, demand};
use crate::freshness::Freshness;
use crate::history::{Seen, Written};
use crate::oracle::{Object, Oracle};
use crate::prng::Prng;
use crate::time::At;
use crate::village::Habits;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use thorp_cache::{Cache, ReadError, ReadSet};
use thorp_model::limits::INLINE_VALUE_BYTES_MAX;
use thorp_model::{
    Blob, Content, HomeId, NewValue, ObjectId, Overflow, PageId, PageNo, PageWrites, Part, Place,
    Position, SegmentId, Slot, WriteOp,
};

/// A transaction of one home.
pub struct Transaction {
    /// The home.
    pub home: HomeId,
    /// What it is still going to do.
    pub actions: VecDeque<Operation>,
    /// What the cache knows it read.
    pub reads: ReadSet,
    /// What it saw, at the first reading.
    pub seen: Seen,
    /// Whether it dawdles.
    pub slow: bool,
    /// Whether it is given up in the end.
    pub given_up: bool,
    /// Whether a home was asked to promise more, so that it may stand (rule 5).
    pub promised: bool,
    /// Pages fetched for it.
    pub fetches: u32,
    /// Reads and writes so far.
    pub operations: u64,
    /// When it began.
    pub began: At,
    /// What its member had heard of the home then.
    pub news: Freshness,
    /// What had been acknowledged to anybody when it began.
    pub acknowledged: BTreeMap<HomeId, Position>,
    writes: BTreeMap<ObjectId, Tentative>,
}

/// A write that nobody else sees yet.
#[derive(Clone, Debug)]
struct Tentative {
    op: WriteOp,
    /// What the slot holds then; none if that depends on what it held.
    after: Option<Object>,
}

/// Why an action did not happen.
pub enum Stop {
    /// The cache says why.
    Read(ReadError),
    /// A part of a large object is gone: the object was changed.
    Gone,
    /// A checker says why.
    Wrong(Failure),
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        Stop::Read(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Wrong(failure)
    }
}

/// What actions need besides.
pub struct Tools<'a> {
    /// The page cache.
    pub cache: &'a Cache,
    /// The session's chance.
    pub prng: &'a mut Prng,
    /// The session's values.
    pub maker: &'a mut Maker,
    /// What the session knows from earlier transactions.
    pub known: &'a BTreeMap<ObjectId, Known>,
    /// What programs do here.
    pub habits: &'a Habits,
    /// The truth, for checks.
    pub oracle: &'a Oracle,
    /// The values of staged overflows.
    pub staged: &'a BTreeMap<(SegmentId, PageNo), Arc<[u8]>>,
}

impl Transaction {
    /// A transaction that is going to do this.
    pub fn new(home: HomeId, actions: VecDeque<Operation>, began: At) -> Self {
        Transaction {
            home,
            actions,
            reads: ReadSet::new(),
            seen: Seen::new(),
            slow: false,
            given_up: false,
            promised: false,
            fetches: 0,
            operations: 0,
            began,
            news: Freshness::default(),
            acknowledged: BTreeMap::new(),
            writes: BTreeMap::new(),
        }
    }

    /// Whether it writes anything.
    pub fn is_read_only(&self) -> bool {
        self.writes.is_empty()
    }

    /// Does an action, or stops in the middle of it with nothing written.
    pub fn act(&mut self, action: &Operation, tools: &mut Tools<'_>) -> Result<(), Stop> {
        match *action {
            Operation::Read(object) => self.read(object, tools).map(|_| ()),
            Operation::Upsert(object) => self.upsert(object, tools),
            Operation::Patch(object) => self.patch(object, tools),
            Operation::Delete(object) => self.delete(object, tools),
            Operation::Scan(segment) => self.scan(segment, tools),
            Operation::Transfer(bank, from, to) => self.transfer(bank, from, to, tools),
            Operation::Audit(bank) => self.audit(bank, tools),
            Operation::Large(object, overflow) => self.large(object, overflow, tools),
            Operation::BlindWrite(object)
            | Operation::BlindPatch(object)
            | Operation::BlindDelete(object)
            | Operation::BlindCreate(object) => self.blind(action, object, tools),
        }
    }

    fn read(&mut self, object: ObjectId, tools: &mut Tools<'_>) -> Result<Object, Stop> {
        self.operations += 1;
        if let Some(tentative) = self.writes.get(&object)
            && let Some(after) = &tentative.after
        {
            return Ok(after.clone());
        }
        let place = Place {
            home: self.home,
            page: object.page,
        };
        let read = self.reads.read(tools.cache, place, object.slot)?;
        let generation = read.generation;
        let value = match read.content {
            Content::Free => None,
            Content::Value(bytes) => Some(Arc::from(bytes)),
            Content::Overflow(overflow) => {
                let bytes = self.assemble(object, overflow, tools)?;
                Some(bytes.into())
            }
            Content::Hole => {
                let detail = format!("a program was given the hole {object}");
                return Err(Failure::new("reads", detail).into());
            }
        };
        let object_read = Object { generation, value };
        let first = self.seen.entry((self.home, object));
        let first = first.or_insert_with(|| object_read.clone());
        demand_stop(*first == object_read, || {
            format!("{object} was read as {first:?} and then as {object_read:?}")
        })?;
        Ok(object_read)
    }

    fn assemble(
        &mut self,
        object: ObjectId,
        overflow: Overflow,
        tools: &mut Tools<'_>,
    ) -> Result<Vec<u8>, Stop> {
        let mut bytes = Vec::new();
        for page in overflow.page_numbers() {
            let place = Place {
                home: self.home,
                page: PageId {
                    segment: object.page.segment,
                    page,
                },
            };
            let read = self.reads.read(tools.cache, place, Slot(0))?;
            if read.content == Content::Free && !is_there(tools.oracle, object, overflow) {
                // The object went on since, and its old pages are gone (trap 12).
                return Err(Stop::Gone);
            }
            let Content::Value(chunk) = read.content else {
                let detail = format!("{object} is torn: page {page} holds {:?}", read.content);
                return Err(Failure::new("reads", detail).into());
            };
            bytes.extend_from_slice(chunk);
        }
        demand_stop(bytes.len() as u64 == overflow.bytes, || {
            format!(
                "{object} is torn: {} of {} bytes",
                bytes.len(),
                overflow.bytes
            )
        })?;
        Ok(bytes)
    }

    fn upsert(&mut self, object: ObjectId, tools: &mut Tools<'_>) -> Result<(), Stop> {
        let found = self.read(object, tools)?;
        let value = tools.maker.value(tools.habits, object.slot, tools.prng);
        self.put(object, &found, value)
    }

    /// Creates or writes an object that was read.
    fn put(&mut self, object: ObjectId, found: &Object, value: Vec<u8>) -> Result<(), Stop> {
        let new = NewValue::Inline(value.as_slice().into());
        self.put_new(object, found, new, value.into())
    }

    fn put_new(
        &mut self,
        object: ObjectId,
        found: &Object,
        new: NewValue,
        value: Arc<[u8]>,
    ) -> Result<(), Stop> {
        let create = self.created(object) || found.value.is_none();
        let generation = match (self.created(object), &found.value) {
            (false, None) => found.generation.next(),
            _ => found.generation,
        };
        let op = if create {
            WriteOp::Create {
                generation,
                value: new,
            }
        } else {
            WriteOp::Write {
                generation,
                value: new,
            }
        };
        self.write(object, op, Some(value))
    }

    fn created(&self, object: ObjectId) -> bool {
        let tentative = self.writes.get(&object);
        tentative.is_some_and(|tentative| matches!(tentative.op, WriteOp::Create { .. }))
    }

    fn deleted(&self, object: ObjectId) -> bool {
        let tentative = self.writes.get(&object);
        tentative.is_some_and(|tentative| matches!(tentative.op, WriteOp::Delete { .. }))
    }

    /// Who has read on as of before a change cannot write any more (rule 5).
    fn write(
        &mut self,
        object: ObjectId,
        op: WriteOp,
        value: Option<Arc<[u8]>>,
    ) -> Result<(), Stop> {
        // A slot deleted here is not used again in the same transaction.
        if self.deleted(object) {
            return Ok(());
        }
        self.reads.writes().map_err(ReadError::from)?;
        self.operations += 1;
        let after = Some(Object {
            generation: op.generation(),
            value,
        });
        self.writes.insert(object, Tentative { op, after });
        Ok(())
    }

    fn patch(&mut self, object: ObjectId, tools: &mut Tools<'_>) -> Result<(), Stop> {
        let found = self.read(object, tools)?;
        let Some(value) = found.value.clone() else {
            return Ok(());
        };
        let Some((offset, bytes)) = draw_patch(value.len(), tools) else {
            return Ok(());
        };
        let mut after = value.to_vec();
        after[offset..offset + bytes.len()].copy_from_slice(&bytes);
        if self.writes.contains_key(&object) {
            return self.put(object, &found, after);
        }
        let op = WriteOp::Patch {
            generation: found.generation,
            offset: offset as u32,
            bytes: Blob::from(bytes),
        };
        self.write(object, op, Some(after.into()))
    }

    fn delete(&mut self, object: ObjectId, tools: &mut Tools<'_>) -> Result<(), Stop> {
        let found = self.read(object, tools)?;
        if found.value.is_none() {
            return Ok(());
        }
        if self.created(object) {
            self.writes.remove(&object);
            return Ok(());
        }
        let generation = found.generation;
        self.write(object, WriteOp::Delete { generation }, None)
    }

    fn scan(&mut self, segment: SegmentId, tools: &mut Tools<'_>) -> Result<(), Stop> {
        let extent = self.read(
            ObjectId {
                page: PageId {
                    segment,
                    page: PageNo(0),
                },
                slot: Slot(0),
            },
            tools,
        )?;
        let bytes = extent
            .value
            .and_then(|value| value.as_ref().try_into().ok());
        let extent = bytes.map_or(0, u32::from_le_bytes);
        for page in 1..extent.min(tools.habits.pages + 1) {
            for slot in 0..tools.habits.slots {
                let object = ObjectId {
                    page: PageId {
                        segment,
                        page: PageNo(page),
                    },
                    slot: Slot(slot),
                };
                self.read(object, tools)?;
            }
        }
        Ok(())
    }

    fn accounts(&mut self, bank: SegmentId, tools: &mut Tools<'_>) -> Result<Vec<Object>, Stop> {
        let accounts = (0..ACCOUNTS).map(|number| self.read(account(bank, number), tools));
        accounts.collect()
    }

    /// Sees all of the money, or a bank that was not opened yet.
    fn audit(&mut self, bank: SegmentId, tools: &mut Tools<'_>) -> Result<(), Stop> {
        let accounts = self.accounts(bank, tools)?;
        let values: Vec<&Arc<[u8]>> = accounts.iter().filter_map(|a| a.value.as_ref()).collect();
        let sum: u64 = values.iter().map(|value| balance(value)).sum();
        let all = values.len() == usize::from(ACCOUNTS);
        let right = if all {
            sum == BALANCE_FIRST * u64::from(ACCOUNTS)
        } else {
            values.is_empty()
        };
        demand_stop(right, || {
            format!("the accounts sum up to {sum}: {accounts:?}")
        })
    }

    fn transfer(
        &mut self,
        bank: SegmentId,
        from: u16,
        to: u16,
        tools: &mut Tools<'_>,
    ) -> Result<(), Stop> {
        let source = self.read(account(bank, from), tools)?;
        let target = self.read(account(bank, to), tools)?;
        let (Some(source_value), Some(target_value)) = (&source.value, &target.value) else {
            return self.open_bank(bank, tools);
        };
        let amount = tools.prng.below(balance(source_value) + 1);
        let less = balance(source_value) - amount;
        let more = balance(target_value) + amount;
        for (number, object, sum) in [(from, &source, less), (to, &target, more)] {
            let value = tools.maker.value_of(sum, HEAD_BYTES);
            if tools.prng.percent(50) {
                self.put(account(bank, number), object, value)?;
                continue;
            }
            let op = WriteOp::Patch {
                generation: object.generation,
                offset: 0,
                bytes: Blob::from(value.as_slice()),
            };
            self.write(account(bank, number), op, Some(value.into()))?;
        }
        Ok(())
    }

    fn open_bank(&mut self, bank: SegmentId, tools: &mut Tools<'_>) -> Result<(), Stop> {
        let accounts = self.accounts(bank, tools)?;
        for (number, found) in (0..ACCOUNTS).zip(&accounts) {
            let value = tools.maker.value_of(BALANCE_FIRST, HEAD_BYTES);
            self.put(account(bank, number), found, value)?;
        }
        Ok(())
    }

    fn large(
        &mut self,
        object: ObjectId,
        overflow: Overflow,
        tools: &mut Tools<'_>,
    ) -> Result<(), Stop> {
        let found = self.read(object, tools)?;
        let key = (object.page.segment, overflow.first);
        match tools.staged.get(&key) {
            Some(value) => self.put_new(object, &found, NewValue::Staged(overflow), value.clone()),
            None => Ok(()),
        }
    }

    /// Writes what an earlier transaction saw, without looking again.
    fn blind(
        &mut self,
        action: &Operation,
        object: ObjectId,
        tools: &mut Tools<'_>,
    ) -> Result<(), Stop> {
        let Some(known) = tools.known.get(&object) else {
            return Ok(());
        };
        if self.writes.contains_key(&object) {
            return Ok(());
        }
        self.reads.writes().map_err(ReadError::from)?;
        let generation = known.generation;
        let mut value = || {
            let bytes = tools.maker.value(tools.habits, object.slot, tools.prng);
            NewValue::Inline(bytes.into())
        };
        let op = match (action, known.length) {
            (Operation::BlindCreate(_), None) => WriteOp::Create {
                generation: generation.next(),
                value: value(),
            },
            (Operation::BlindWrite(_), Some(_)) => WriteOp::Write {
                generation,
                value: value(),
            },
            (Operation::BlindDelete(_), Some(_)) => WriteOp::Delete { generation },
            (Operation::BlindPatch(_), Some(length)) => match draw_patch(length, tools) {
                Some((offset, bytes)) => WriteOp::Patch {
                    generation,
                    offset: offset as u32,
                    bytes: bytes.into(),
                },
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.operations += 1;
        // Of a write it knows what it will hold; of a patch not.
        let after = match &op {
            WriteOp::Patch { .. } => None,
            WriteOp::Delete { .. } => Some(Object {
                generation,
                value: None,
            }),
            WriteOp::Create { generation, value } | WriteOp::Write { generation, value } => {
                let NewValue::Inline(blob) = value else {
                    return Ok(());
                };
                Some(Object {
                    generation: *generation,
                    value: Some(blob.bytes().into()),
                })
            }
        };
        self.writes.insert(object, Tentative { op, after });
        Ok(())
    }

    /// The request to commit, with the evidence of its reads.
    pub fn part(&self, evidence: Position) -> Part {
        let mut writes: Vec<PageWrites> = Vec::new();
        for (object, tentative) in &self.writes {
            let slot = (object.slot, tentative.op.clone());
            match writes.last_mut() {
                Some(page) if page.page == object.page => page.slots.push(slot),
                _ => writes.push(PageWrites {
                    page: object.page,
                    slots: vec![slot],
                }),
            }
        }
        Part {
            home: self.home,
            evidence,
            reads: self.reads.reads(self.home).collect(),
            writes,
        }
    }

    /// What it makes of objects, as far as that is known.
    pub fn written(&self) -> Written {
        let writes = self.writes.iter();
        let written = writes.map(|(id, tentative)| ((self.home, *id), tentative.after.clone()));
        written.collect()
    }

    /// What a session remembers of it once it has committed.
    pub fn learned(&self) -> Vec<(ObjectId, Known)> {
        let seen = self
            .seen
            .iter()
            .map(|((_, id), object)| (*id, Known::of(object)));
        let written = self.writes.iter().filter_map(|(id, tentative)| {
            let after = tentative.after.as_ref()?;
            Some((*id, Known::of(after)))
        });
        seen.chain(written).collect()
    }

    /// Everything that it saw must have stood together at one position (rule 4):
    /// also if it was doomed since.
    pub fn check_opacity(&self, oracle: &Oracle, upto: Position) -> Checked {
        let mut position = upto;
        // Walk down to the newest position at which the latest change seen stands.
        'down: loop {
            for ((_, object), seen) in &self.seen {
                let (since, is) = oracle.object_at(*object, position);
                if is == *seen {
                    continue;
                }
                demand!(
                    since > Position(0),
                    "opacity",
                    "a transaction saw {object} as {seen:?}; at no position up to {upto} does all it saw \
                     stand together: {:?}",
                    self.seen
                );
                position = Position(since.0 - 1);
                continue 'down;
            }
            return Ok(());
        }
    }
}

/// Whether an object still lies where it was seen to lie.
fn is_there(oracle: &Oracle, object: ObjectId, overflow: Overflow) -> bool {
    let image = oracle.image(object.page, oracle.end);
    image.content(object.slot) == Content::Overflow(overflow)
}

fn demand_stop(right: bool, detail: impl FnOnce() -> String) -> Result<(), Stop> {
    if right {
        return Ok(());
    }
    Err(Stop::Wrong(Failure::new("reads", detail())))
}

/// Unique bytes within a value of this length.
fn draw_patch(length: usize, tools: &mut Tools<'_>) -> Option<(usize, Vec<u8>)> {
    if !(HEAD_BYTES..=INLINE_VALUE_BYTES_MAX).contains(&length) {
        return None;
    }
    let tag = tools.maker.tag();
    let offset = tools.prng.range(8, (length - tag.len()) as u64);
    Some((offset as usize, tag.to_vec()))
}
