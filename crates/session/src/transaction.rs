//! What a transaction reads and writes, and what it may conclude from that.

use crate::homes::Homes;
use crate::own_commits::OwnCommits;
use crate::serialization_point::{self, Placement};
use crate::stop::Stop;
use crate::writes::{Act, ObjectAt, OwnWrite, Writes};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use thorp_cache::{Cache, ReadSet, SlotRead};
use thorp_model::planted::{self, Bug};
use thorp_model::snapshot::ReadPoint;
use thorp_model::{
    CommitId, Content, Fence, HomeId, Millis, NotRun, ObjectId, Overflow, PageId, PageWrites, Part,
    Place, Position, Procedure, Reference, Slot, Stamp, WriteOp,
};

/// What a program asked for when its session began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Its homes validate each transaction, also one that only read.
    pub strict: bool,
    /// It reads on while a home is silent, however old what it reads may be (foundation 9).
    pub optimistic: bool,
    /// How old a read may be that no home validates, in milliseconds.
    pub staleness_ms_max: u64,
}

/// Where an object's bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// This transaction wrote them.
    Own,
    /// In the object's page.
    Inline,
    /// The home moved the object to this page, to make space (foundation 1).
    Spilled(Place),
    /// A large object, over these pages.
    Large(Overflow),
}

/// A transaction: all of it happens, at one moment, or nothing. It sees one state
/// of each home, with its own writes over it. `R` is a reservation of its
/// program's allocator.
pub struct Transaction<R> {
    terms: Terms,
    /// Where its program had been when it began: its serialization point is no lower (rule 5).
    floor: Stamp,
    reads: ReadSet,
    /// It writes, or an earlier try did: what changes beneath it dooms it.
    is_writer: bool,
    writes: Writes<R>,
    homes: Homes,
    /// The locks under which it runs (rule C5).
    under: BTreeMap<HomeId, Fence>,
}

impl<R> Transaction<R> {
    /// A transaction that has done nothing yet.
    pub fn begin(terms: Terms, reads: ReadSet, floor: Stamp) -> Self {
        let mut transaction = Transaction {
            terms,
            floor,
            reads,
            is_writer: false,
            writes: Writes::default(),
            homes: Homes::default(),
            under: BTreeMap::new(),
        };
        transaction.begin_reading();
        transaction
    }

    /// What its session asks for from now on: a program may decide as late as before it commits.
    pub fn change_terms(&mut self, terms: Terms) {
        self.terms = terms;
    }

    /// Begins again after [`Transaction::end`], no lower than `floor`.
    pub fn restart(&mut self, floor: Stamp) {
        self.floor = floor;
        self.begin_reading();
    }

    /// Until it writes it reads on as of before what changes beneath it (rule 5). If an earlier try wrote, this one will, and
    /// is doomed at once by what makes it hopeless; so is one that its homes validate.
    fn begin_reading(&mut self) {
        if !self.is_writer && !self.terms.strict {
            self.only_reads();
        }
    }

    /// It only reads from now on, as far as its program knows: it reads on as of before what changes beneath it.
    pub fn only_reads(&mut self) {
        self.reads.only_reads();
    }

    /// It writes from now on; too late if it has read on behind a change.
    pub fn begin_writing(&mut self) -> Result<(), Stop> {
        self.is_writer = true;
        Ok(self.reads.writes()?)
    }

    /// Ends it: what it read counts for the cache's policy. Its slots are given back or cleared before ([`Writes`]).
    pub fn end(&mut self, cache: &Cache) {
        self.homes.clear();
        self.reads.finish(cache);
    }

    /// What it read, to be used for another transaction. It is about to be dropped.
    pub fn take_reads(&mut self) -> ReadSet {
        std::mem::take(&mut self.reads)
    }

    // --- Reading and writing ---

    /// Something of a home is read or written.
    #[inline]
    pub fn enter(&mut self, home: HomeId) -> Result<(), Stop> {
        match self.homes.enter(home) {
            true => Ok(()),
            false => Err(Stop::TooManyHomes),
        }
    }

    /// It only reads, and all of these homes as of now (rule C12). Before it reads anything. False: of one of them nothing is
    /// cached, so it does not stand there.
    #[must_use]
    pub fn stand_at(&mut self, cache: &Cache, homes: impl IntoIterator<Item = HomeId>) -> bool {
        let mut homes = homes.into_iter();
        homes.all(|home| self.reads.stand_at(cache, home))
    }

    /// Reads a slot, and records that; also that there is no object (rule 4). After a miss nothing is recorded.
    #[inline]
    pub fn read_slot(
        &mut self,
        cache: &Cache,
        place: Place,
        slot: Slot,
    ) -> Result<SlotRead<'_>, Stop> {
        self.enter(place.home)?;
        Ok(self.reads.read(cache, place, slot)?)
    }

    /// Looks for an object, and records that it was read. The hot path: no lock, no message.
    #[inline]
    pub fn find(&mut self, cache: &Cache, reference: &Reference) -> Result<Found, Stop> {
        self.enter(reference.home)?;
        if !self.writes.is_empty()
            && let Some(own) = self.writes.get(reference.into())
        {
            return match own.applied() {
                Some(_) => self.find_applied(cache, reference),
                None => find_own(own, reference),
            };
        }
        self.find_read(cache, reference)
    }

    /// An object on which procedures are to run: it is read, so from now on it is written as what they make of it.
    fn find_applied(&mut self, cache: &Cache, reference: &Reference) -> Result<Found, Stop> {
        let found = self.find_read(cache, reference)?;
        let not_run = |why| Stop::NotRun(*reference, why);
        let before = self.bytes(reference, found);
        let mut value = before.ok_or(not_run(NotRun::TooLarge))?.to_vec();
        let own = self.writes.get(reference.into());
        for procedure in own.and_then(OwnWrite::applied).unwrap_or_default() {
            value = procedure.run(&value).map_err(not_run)?;
        }
        self.set(reference, Act::Written(value));
        Ok(Found::Own)
    }

    fn find_read(&mut self, cache: &Cache, reference: &Reference) -> Result<Found, Stop> {
        let object = reference.object;
        let place = place_of(reference.home, object.page);
        let slot = self.reads.read(cache, place, object.slot)?;
        if slot.generation != reference.generation {
            return Err(Stop::Gone(*reference));
        }
        match slot.content {
            Content::Value(_) => Ok(Found::Inline),
            Content::Overflow(overflow) => self.find_overflow(cache, reference, overflow),
            Content::Free => Err(Stop::Gone(*reference)),
            Content::Hole => Err(Stop::Miss(place)),
        }
    }

    fn find_overflow(
        &mut self,
        cache: &Cache,
        reference: &Reference,
        overflow: Overflow,
    ) -> Result<Found, Stop> {
        if overflow.pages != 1 {
            return Ok(Found::Large(overflow));
        }
        let object = reference.object;
        let page = PageId {
            segment: object.page.segment,
            page: overflow.first,
        };
        let place = place_of(reference.home, page);
        match self.reads.read(cache, place, Slot(0))?.content {
            Content::Value(_) => Ok(Found::Spilled(place)),
            _ => Err(Stop::Torn(*reference)),
        }
    }

    /// The bytes that were found a moment ago; none of a large object.
    pub fn bytes(&self, reference: &Reference, found: Found) -> Option<&[u8]> {
        let object = reference.object;
        match found {
            Found::Own => self.writes.get(reference.into())?.bytes(),
            Found::Inline => self.held(place_of(reference.home, object.page), object.slot),
            Found::Spilled(place) => self.held(place, Slot(0)),
            Found::Large(_) => None,
        }
    }

    fn held(&self, place: Place, slot: Slot) -> Option<&[u8]> {
        match self.reads.image(place)?.content(slot) {
            Content::Value(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// What this transaction did to an object that is to be replaced or deleted as a whole.
    fn own(&mut self, reference: &Reference) -> Result<Option<&mut OwnWrite>, Stop> {
        self.enter(reference.home)?;
        self.begin_writing()?;
        let generation = reference.generation;
        match self.writes.get_mut(reference.into()) {
            Some(own)
                if own.generation != generation
                    || (own.bytes().is_none() && own.applied().is_none()) =>
            {
                Err(Stop::Gone(*reference))
            }
            own => Ok(own),
        }
    }

    fn set(&mut self, reference: &Reference, act: Act) {
        self.writes.set(reference.into(), reference.generation, act);
    }

    /// Replaces an object's bytes; it need not be read before.
    pub fn write(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<(), Stop> {
        match self.own(reference)?.map(|own| &mut own.act) {
            Some(Act::Created(value)) => *value = bytes,
            _ => self.set(reference, Act::Written(bytes)),
        }
        Ok(())
    }

    /// Has the home run a procedure on an object, which is not read by that (rule C8). On what this transaction wrote itself
    /// it runs here.
    pub fn apply(&mut self, reference: &Reference, procedure: Procedure) -> Result<(), Stop> {
        let not_run = |why| Stop::NotRun(*reference, why);
        let generation = reference.generation;
        let act = match self.own(reference)?.map(|own| &mut own.act) {
            None => Act::Prepared(WriteOp::Apply {
                generation,
                procedures: vec![procedure],
            }),
            Some(Act::Created(bytes) | Act::Written(bytes)) => {
                *bytes = procedure.run(bytes).map_err(not_run)?;
                return Ok(());
            }
            Some(Act::Patched(bytes, _)) => Act::Written(procedure.run(bytes).map_err(not_run)?),
            Some(Act::Prepared(WriteOp::Apply { procedures, .. })) => {
                procedures.push(procedure);
                return Ok(());
            }
            Some(Act::Deleted | Act::Prepared(_)) => return Err(Stop::Gone(*reference)),
        };
        self.set(reference, act);
        Ok(())
    }

    /// Replaces a part of an object, whose bytes were found a moment ago: `base`. Only that part travels, if the object
    /// is not a large one.
    pub fn patch(
        &mut self,
        reference: &Reference,
        found: Found,
        base: Vec<u8>,
        part: Range<usize>,
        bytes: &[u8],
    ) -> Result<(), Stop> {
        self.begin_writing()?;
        if found == Found::Own {
            return self.patch_own(reference, part, bytes);
        }
        let mut value = base;
        value[part.clone()].copy_from_slice(bytes);
        let act = match found {
            // The home patches what lies in one page.
            Found::Large(_) => Act::Written(value),
            _ => Act::Patched(value, part),
        };
        self.set(reference, act);
        Ok(())
    }

    fn patch_own(
        &mut self,
        reference: &Reference,
        part: Range<usize>,
        bytes: &[u8],
    ) -> Result<(), Stop> {
        let own = self.writes.get_mut(reference.into());
        match own.map(|own| &mut own.act) {
            Some(Act::Created(value) | Act::Written(value)) => {
                value[part].copy_from_slice(bytes);
            }
            Some(Act::Patched(value, changed)) => {
                value[part.clone()].copy_from_slice(bytes);
                // One patch for each object: what lies between two was read, so it is right.
                *changed = changed.start.min(part.start)..changed.end.max(part.end);
            }
            Some(Act::Deleted | Act::Prepared(_)) | None => {
                return Err(Stop::Gone(*reference));
            }
        }
        Ok(())
    }

    /// The transaction is about to make an object at a home. Nothing is reserved for it where that is too late.
    pub fn begin_creating(&mut self, home: HomeId) -> Result<(), Stop> {
        self.enter(home)?;
        self.begin_writing()
    }

    /// Makes an object in a slot that was reserved for it, after [`Transaction::begin_creating`].
    pub fn create(&mut self, reference: &Reference, bytes: Vec<u8>, reservation: R) {
        debug_assert!(self.homes.all().contains(&reference.home), "it has begun");
        let (at, generation) = (reference.into(), reference.generation);
        self.writes.create(at, generation, bytes, reservation);
    }

    /// Deletes an object; it need not be read before. Gives the reservation of one that it created itself.
    pub fn delete(&mut self, reference: &Reference) -> Result<Option<R>, Stop> {
        match self.own(reference)?.map(|own| &own.act) {
            Some(Act::Created(_)) => Ok(self.writes.undo(reference.into())),
            _ => {
                self.set(reference, Act::Deleted);
                Ok(None)
            }
        }
    }

    /// Does an operation that the program made itself: with a value that it staged, or without having read the object.
    pub fn prepare(&mut self, object: ObjectAt, op: WriteOp) -> Result<(), Stop> {
        self.enter(object.home)?;
        self.begin_writing()?;
        self.writes.set(object, op.generation(), Act::Prepared(op));
        Ok(())
    }

    // --- What it has done so far ---

    /// What it read.
    pub fn reads(&self) -> &ReadSet {
        &self.reads
    }

    /// What it wrote.
    pub fn writes(&self) -> &Writes<R> {
        &self.writes
    }

    /// What it wrote, to be changed.
    pub fn writes_mut(&mut self) -> &mut Writes<R> {
        &mut self.writes
    }

    /// The homes that it entered, ascending.
    pub fn homes(&self) -> &[HomeId] {
        self.homes.all()
    }

    /// What its session asked for.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// Its serialization point is no lower than this.
    pub fn floor(&self) -> Stamp {
        self.floor
    }

    /// Raises that.
    pub fn raise_floor(&mut self, stamp: Stamp) {
        self.floor = self.floor.max(stamp);
    }

    /// Whether what it read is no longer so. What a program concluded from it need not be true either.
    pub fn is_doomed(&mut self, cache: &Cache) -> bool {
        let mut homes = self.homes.all().iter();
        let is_doomed = homes.any(|home| self.reads.evidence(cache, *home).is_err());
        is_doomed || self.reads.behind().is_some()
    }

    /// The homes where anything was read or written.
    pub fn participants(&self) -> Vec<HomeId> {
        let read: Vec<HomeId> = self.reads.homes().collect();
        let takes_part = |home: &HomeId| read.contains(home) || self.writes.are_at(*home);
        let homes = self.homes.all().iter().copied();
        homes.filter(takes_part).collect()
    }

    /// The position at which everything that it read at a home is current (rule 4).
    pub fn evidence(&mut self, cache: &Cache, home: HomeId) -> Result<Position, Stop> {
        if planted::is(Bug::SessionEvidenceAssumed) {
            return Ok(cache.position(home));
        }
        Ok(self.reads.evidence(cache, home)?)
    }

    /// The same with what rule 5 looks at.
    pub fn read_point(&mut self, cache: &Cache, home: HomeId) -> Result<ReadPoint, Stop> {
        Ok(self.reads.read_point(cache, home)?)
    }

    /// In which history of a home it has read (rule R9).
    pub fn history(&self, cache: &Cache, home: HomeId) -> u64 {
        self.reads.history(cache, home)
    }

    /// It runs under a lock of its session at this home.
    pub fn run_under(&mut self, home: HomeId, fence: Fence) {
        self.under.insert(home, fence);
    }

    /// What its request carries to a home, with these writes.
    pub fn part(
        &mut self,
        cache: &Cache,
        home: HomeId,
        writes: Vec<PageWrites>,
    ) -> Result<Part, Stop> {
        let reads = self.reads.reads(home);
        let reads = reads.filter(|_| !planted::is(Bug::SessionReadsOmitted));
        let reads = reads.collect();
        Ok(Part {
            home,
            evidence: self.evidence(cache, home)?,
            reads,
            writes,
            under: self.under.get(&home).copied(),
        })
    }

    /// What it writes at a home, with large values as they were staged.
    pub fn page_writes(
        &self,
        home: HomeId,
        staged: &HashMap<ObjectId, Overflow>,
    ) -> Vec<PageWrites> {
        self.writes.page_writes(home, staged)
    }

    /// Own commits that its request lists: it read their values before they were delivered (rule 4).
    pub fn depends_on(&self) -> &[(HomeId, CommitId)] {
        match planted::is(Bug::SessionDependenciesOmitted) {
            true => &[],
            false => self.reads.built_on(),
        }
    }

    /// The highest stamp that it saw, or that its program did before (rule 5).
    pub fn after(&self) -> Stamp {
        let stamps = self.reads.homes().map(|home| self.reads.stamp(home));
        match planted::is(Bug::SessionStampOmitted) {
            true => Stamp::default(),
            false => stamps.fold(self.floor, Stamp::max),
        }
    }

    // --- The serialization point (rule 5) ---

    /// Whether it may commit without its homes' word on each read.
    pub fn can_commit_locally(&self) -> bool {
        self.writes.is_empty() && (!self.terms.strict || self.homes.all().is_empty())
    }

    /// Whether it has read what this program wrote, and what is not answered (rule 14).
    pub fn rests_on_open(&self, own: &dyn OwnCommits) -> bool {
        let mut depends_on = self.reads.built_on().iter();
        depends_on.any(|(_, id)| own.is_open(*id)) && !planted::is(Bug::SessionOwnNotAwaited)
    }

    /// Its serialization point is above what it has read of this program's own.
    pub fn place_above_own(&mut self, own: &dyn OwnCommits) {
        let stamps = self.reads.built_on().iter().map(|(_, id)| own.stamp(*id));
        self.floor = stamps.fold(self.floor, Stamp::max);
    }

    /// Where it may commit without a message, as far as that is known here; and the position of its evidence, if it is of one home.
    pub fn place(&mut self, cache: &Cache) -> Result<(Option<Position>, Placement), Stop> {
        let (reads, homes) = (&mut self.reads, self.homes.all());
        Ok(serialization_point::place(reads, cache, homes, self.floor)?)
    }

    /// Whether what was read without its homes' word is fresh enough (foundation 9).
    pub fn check_staleness(&self, cache: &Cache, now: Millis) -> Result<(), Stop> {
        if self.terms.optimistic {
            return Ok(());
        }
        let mut homes = self.homes.all().iter();
        homes.try_for_each(|home| self.check_staleness_at(cache, now, *home))
    }

    fn check_staleness_at(&self, cache: &Cache, now: Millis, home: HomeId) -> Result<(), Stop> {
        let silent = |heard: Option<Millis>| now.since(heard.unwrap_or_default());
        let silent_ms = silent(self.reads.heard(cache, home));
        if silent_ms <= self.terms.staleness_ms_max {
            return Ok(());
        }
        let home_silent_ms = silent(cache.heard(home));
        if home_silent_ms <= self.terms.staleness_ms_max {
            // The home is there: what was read is old because the cache could not keep it (rule 2).
            return Err(Stop::ReadsTooOld { home, silent_ms });
        }
        Err(Stop::HomeSilent {
            home,
            silent_ms: home_silent_ms,
        })
    }
}

fn place_of(home: HomeId, page: PageId) -> Place {
    Place { home, page }
}

fn find_own(own: &OwnWrite, reference: &Reference) -> Result<Found, Stop> {
    match own.generation == reference.generation && own.bytes().is_some() {
        true => Ok(Found::Own),
        false => Err(Stop::Gone(*reference)),
    }
}

#[cfg(test)]
mod tests;
