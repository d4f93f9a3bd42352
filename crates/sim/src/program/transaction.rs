//! A running transaction: what it read, what it is about to write.

use super::action::{ACCOUNTS, BALANCE_FIRST, Operation, account};
use super::tools::{Stop, Tools, demand_stop, draw_patch, is_there};
use super::value::{HEAD_BYTES, Known, balance};
use crate::failure::{Checked, Failure, demand};
use crate::freshness::FreshnessByHome;
use crate::history::{Seen, Written};
use crate::oracle::{Object, Oracle};
use crate::time::At;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use thorp_cache::{Cache, ReadSet};
use thorp_model::limits::INLINE_VALUE_BYTES_MAX;
use thorp_model::{
    Blob, Content, Generation, HomeId, NewValue, ObjectId, Overflow, PageId, PageNo, Place,
    Position, Procedure, RIGHTS_SLOT, Reference, RightsList, SegmentId, Slot, Stamp, WriteOp,
    rights_page,
};
use thorp_session::{Act, Commit, Found, ObjectAt, Terms};

/// A position of each of several homes.
pub type Positions = BTreeMap<HomeId, Position>;

/// A transaction of a session, with what other sessions of its program do in it at their homes.
pub struct Transaction {
    /// The homes whose sessions take part.
    pub homes: Vec<HomeId>,
    /// The home of the action that it does now.
    home: HomeId,
    /// What it is still going to do, and at which home.
    pub actions: VecDeque<(HomeId, Operation)>,
    /// What the shipped client knows of it.
    pub core: thorp_session::Transaction<()>,
    /// How it commits.
    pub commit: Commit,
    /// What it saw, at the first reading.
    pub seen: Seen,
    /// Whether it dawdles.
    pub slow: bool,
    /// Whether it is given up in the end.
    pub given_up: bool,
    /// How often it was sent again.
    pub resends: u32,
    /// Where it stands if its homes validate it (rule 5).
    pub placed: Stamp,
    /// The positions at which homes have validated it.
    pub validated: Positions,
    /// Pages fetched for it.
    pub fetches: u32,
    /// Reads and writes so far.
    pub operations: u64,
    /// When it began.
    pub began: At,
    /// What its member had heard of each home then.
    pub news: FreshnessByHome,
    /// Where its program stood when it began: it stands no earlier (rule 5).
    pub floor: Stamp,
    /// The same as positions of its homes.
    pub floors: Positions,
    /// What had been acknowledged to anybody when it began.
    pub acknowledged: BTreeMap<HomeId, Position>,
    /// What each object that it wrote holds then; none if that depends on what it held.
    pub after: Written,
    /// Where the large values that it wrote were staged.
    staged: HashMap<(HomeId, ObjectId), Overflow>,
}

impl Transaction {
    /// A transaction that is going to do this.
    pub fn new(
        home: HomeId,
        (terms, floor): (Terms, Stamp),
        actions: VecDeque<(HomeId, Operation)>,
        began: At,
    ) -> Self {
        Transaction {
            homes: vec![home],
            home,
            actions,
            core: thorp_session::Transaction::begin(terms, ReadSet::new(), floor),
            commit: Commit::new(),
            seen: Seen::new(),
            slow: false,
            given_up: false,
            resends: 0,
            placed: Stamp::default(),
            validated: Positions::new(),
            fetches: 0,
            operations: 0,
            began,
            news: FreshnessByHome::default(),
            floor,
            floors: Positions::new(),
            acknowledged: BTreeMap::new(),
            after: Written::new(),
            staged: HashMap::new(),
        }
    }

    /// Whether all that it is going to do is reading.
    pub fn will_only_read(&self) -> bool {
        self.actions.iter().all(|(_, action)| action.only_reads())
    }

    /// Does an action at a home, or stops in the middle of it with nothing written.
    pub fn act(
        &mut self,
        home: HomeId,
        action: &Operation,
        tools: &mut Tools<'_>,
    ) -> Result<(), Stop> {
        self.home = home;
        match *action {
            Operation::Restrict(segment, ref list) => self.restrict(segment, list),
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
        if let Some(Some(after)) = self.after.get(&(self.home, object)) {
            return Ok(after.clone());
        }
        let place = Place {
            home: self.home,
            page: object.page,
        };
        let read = self.core.read_slot(tools.cache, place, object.slot)?;
        let generation = read.generation;
        let value = match read.content {
            Content::Free => None,
            Content::Value(bytes) => Some(Arc::from(bytes)),
            Content::Overflow(overflow) => {
                let bytes = self.assemble((object, generation), overflow, tools)?;
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
        (object, generation): (ObjectId, Generation),
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
            let read = self.core.read_slot(tools.cache, place, Slot(0))?;
            if read.content == Content::Free && !is_there(tools.oracle, object, overflow) {
                // The object went on since, and its old pages are gone (trap 12).
                let reference = Reference {
                    home: self.home,
                    object,
                    generation,
                    offset: 0,
                };
                return Err(thorp_session::Stop::Torn(reference).into());
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
        if self.is_deleted(object) {
            return Ok(());
        }
        let (generation, creates) = self.generation_for(object, found);
        let reference = self.reference(object, generation);
        match self.own(object) {
            Some(Act::Prepared(_)) => return self.put_whole(object, generation, value),
            None if creates => {
                self.core.begin_creating(reference.home)?;
                self.core.create(&reference, value.clone(), ());
            }
            _ => self.core.write(&reference, value.clone())?,
        }
        self.wrote(object, generation, Some(value.into()));
        Ok(())
    }

    /// The generation of an object that is written, and whether it is created by that.
    fn generation_for(&self, object: ObjectId, found: &Object) -> (Generation, bool) {
        let is_created = self.is_created(object);
        match is_created || found.value.is_some() {
            true => (found.generation, is_created),
            false => (found.generation.next(), true),
        }
    }

    fn reference(&self, object: ObjectId, generation: Generation) -> Reference {
        Reference {
            home: self.home,
            object,
            generation,
            offset: 0,
        }
    }

    fn own(&self, object: ObjectId) -> Option<&Act> {
        let home = self.home;
        let own = self.core.writes().get(ObjectAt { home, object })?;
        Some(&own.act)
    }

    fn is_created(&self, object: ObjectId) -> bool {
        matches!(
            self.own(object),
            Some(Act::Created(_) | Act::Prepared(WriteOp::Create { .. }))
        )
    }

    /// A slot deleted here is not used again in the same transaction.
    fn is_deleted(&self, object: ObjectId) -> bool {
        matches!(
            self.own(object),
            Some(Act::Deleted | Act::Prepared(WriteOp::Delete { .. }))
        )
    }

    fn wrote(&mut self, object: ObjectId, generation: Generation, value: Option<Arc<[u8]>>) {
        self.operations += 1;
        let after = Some(Object { generation, value });
        self.after.insert((self.home, object), after);
    }

    /// Does an operation that no client makes for a program.
    fn prepare(
        &mut self,
        object: ObjectId,
        op: WriteOp,
        after: Option<Object>,
    ) -> Result<(), Stop> {
        if self.is_deleted(object) {
            return Ok(());
        }
        let home = self.home;
        self.core.prepare(ObjectAt { home, object }, op)?;
        self.operations += 1;
        self.after.insert((home, object), after);
        Ok(())
    }

    /// Sets a rights list, whatever it is now.
    fn restrict(&mut self, segment: SegmentId, list: &RightsList) -> Result<(), Stop> {
        let object = ObjectId {
            page: rights_page(segment),
            slot: RIGHTS_SLOT,
        };
        if self.own(object).is_some() {
            return Ok(());
        }
        self.core.begin_writing()?;
        let generation = Generation(1);
        let bytes = list.to_bytes();
        let after = Object {
            generation,
            value: Some(bytes.clone().into()),
        };
        let value = NewValue::Inline(bytes.into());
        self.prepare(object, WriteOp::Write { generation, value }, Some(after))
    }

    fn patch(&mut self, object: ObjectId, tools: &mut Tools<'_>) -> Result<(), Stop> {
        let found = self.read(object, tools)?;
        let Some(value) = found.value.clone() else {
            return Ok(());
        };
        let Some((offset, bytes)) = draw_patch(value.len(), tools) else {
            return Ok(());
        };
        self.patch_with(object, found.generation, &value, (offset, &bytes))
    }

    fn patch_with(
        &mut self,
        object: ObjectId,
        generation: Generation,
        value: &[u8],
        (offset, bytes): (usize, &[u8]),
    ) -> Result<(), Stop> {
        if self.is_deleted(object) {
            return Ok(());
        }
        let part = offset..offset + bytes.len();
        let mut after = value.to_vec();
        after[part.clone()].copy_from_slice(bytes);
        let reference = self.reference(object, generation);
        let found = match self.own(object) {
            // The client patches what it holds; what a program prepared it does not hold.
            Some(Act::Prepared(_)) => return self.put_whole(object, generation, after),
            Some(_) => Found::Own,
            None => Found::Inline,
        };
        self.core
            .patch(&reference, found, value.to_vec(), part, bytes)?;
        self.wrote(object, generation, Some(after.into()));
        Ok(())
    }

    /// Writes over an operation that was prepared.
    fn put_whole(
        &mut self,
        object: ObjectId,
        generation: Generation,
        value: Vec<u8>,
    ) -> Result<(), Stop> {
        let new = NewValue::Inline(value.as_slice().into());
        let op = match self.is_created(object) {
            true => WriteOp::Create {
                generation,
                value: new,
            },
            false => WriteOp::Write {
                generation,
                value: new,
            },
        };
        let value = Some(value.into());
        self.prepare(object, op, Some(Object { generation, value }))
    }

    fn delete(&mut self, object: ObjectId, tools: &mut Tools<'_>) -> Result<(), Stop> {
        let found = self.read(object, tools)?;
        if found.value.is_none() {
            return Ok(());
        }
        let generation = found.generation;
        if self.is_created(object) {
            let home = self.home;
            let _ = self.core.writes_mut().undo(ObjectAt { home, object });
            self.after.remove(&(home, object));
            return Ok(());
        }
        if let Some(Act::Prepared(_)) = self.own(object) {
            let value = None;
            let op = WriteOp::Delete { generation };
            return self.prepare(object, op, Some(Object { generation, value }));
        }
        let _ = self.core.delete(&self.reference(object, generation))?;
        self.wrote(object, generation, None);
        Ok(())
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
            let before = object.value.clone().unwrap_or_default();
            let patch = (0, value.as_slice());
            self.patch_with(account(bank, number), object.generation, &before, patch)?;
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
        let Some(staged) = tools.staged.get(&key) else {
            return Ok(());
        };
        let is_prepared = matches!(self.own(object), Some(Act::Prepared(_)));
        if staged.len() > INLINE_VALUE_BYTES_MAX && !is_prepared {
            let at = (self.home, object);
            self.put(object, &found, staged.to_vec())?;
            self.staged.insert(at, overflow);
            return Ok(());
        }
        // What need not be staged, no client stages.
        let (generation, creates) = self.generation_for(object, &found);
        let value = NewValue::Staged(overflow);
        let op = match creates {
            true => WriteOp::Create { generation, value },
            false => WriteOp::Write { generation, value },
        };
        let value = Some(staged.clone());
        self.prepare(object, op, Some(Object { generation, value }))
    }

    /// Where the large values that it wrote at a home were staged.
    pub fn staged_at(&self, home: HomeId) -> HashMap<ObjectId, Overflow> {
        let staged = self.staged.iter().filter(|((of, _), _)| *of == home);
        staged
            .map(|((_, object), overflow)| (*object, *overflow))
            .collect()
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
        if self.own(object).is_some() {
            return Ok(());
        }
        self.core.begin_writing()?;
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
            (Operation::BlindWrite(_), Some(_)) => blind_write(generation, value()),
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
        // Of a write it knows what it will hold; of a patch and a procedure not.
        let after = match &op {
            WriteOp::Patch { .. } | WriteOp::Apply { .. } => None,
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
        self.prepare(object, op, after)
    }

    /// The position at which all that it read at each home is current.
    ///
    /// # Errors
    ///
    /// [`thorp_session::Stop`] if what it read is no longer so.
    pub fn evidence(&mut self, cache: &Cache) -> Result<Positions, thorp_session::Stop> {
        let homes = self.core.homes().to_vec();
        let mut evidence = Positions::new();
        for home in homes {
            let read_point = self.core.read_point(cache, home)?;
            evidence.insert(home, read_point.position);
        }
        Ok(evidence)
    }

    /// What the session of a home remembers of it once it has committed.
    pub fn learned(&self, home: HomeId) -> Vec<(ObjectId, Known)> {
        let seen = self.seen.iter().map(|(key, object)| (key, Some(object)));
        let written = self.after.iter().map(|(key, after)| (key, after.as_ref()));
        let here = seen.chain(written).filter(|((of, _), _)| *of == home);
        here.filter_map(|((_, id), object)| Some((*id, Known::of(object?))))
            .collect()
    }

    /// Everything that it saw of a home must have stood together at one position (rule 4):
    /// also if it was doomed since.
    pub fn check_opacity(&self, home: HomeId, oracle: &Oracle, upto: Position) -> Checked {
        let mut position = upto;
        // Walk down to the newest position at which the latest change seen stands.
        'down: loop {
            for ((_, object), seen) in self.seen.iter().filter(|((of, _), _)| *of == home) {
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

/// What a program does that does not look: most of the time it writes a value, and else it has procedures run. What it
/// draws is the same for both.
fn blind_write(generation: Generation, value: NewValue) -> WriteOp {
    let NewValue::Inline(bytes) = &value else {
        return WriteOp::Write { generation, value };
    };
    let drawn = bytes.bytes();
    let few = Blob::from(&drawn[..drawn.len().min(8)]);
    let procedures = match drawn.last() {
        Some(last) if last % 8 == 3 => vec![Procedure::Append(few)],
        Some(last) if last % 32 == 5 => {
            vec![Procedure::Append(few.clone()), Procedure::Insert(few)]
        }
        _ => return WriteOp::Write { generation, value },
    };
    WriteOp::Apply {
        generation,
        procedures,
    }
}
