//! What a transaction has read: its own, in its own thread.

use crate::cache::{Cache, Totals};
use crate::error::{Doomed, ReadError};
use crate::home::OwnSlots;
use crate::home_reads::{Absent, HomeReads, Manner, PageReads};
use crate::sync::Pause;
use thorp_model::snapshot::ReadPoint;
use thorp_model::{
    CommitId, Content, Generation, HomeId, Image, Millis, PageId, Place, Position, Slot, SlotSet,
    Stamp,
};

/// The reads of one transaction, with the images they came from. All reads of
/// one home are of one state of that home. Use one set for one cache only;
/// [`ReadSet::finish`] makes it ready for the next transaction.
#[derive(Default)]
pub struct ReadSet {
    homes: Vec<HomeReads>,
    /// The page read last: objects that are used together lie together.
    last: Option<Last>,
    doomed: Option<Doomed>,
    /// It only reads, as it says.
    only_reads: bool,
    /// Own commits whose values were read before they were delivered, and at which home.
    built_on: Vec<(HomeId, CommitId)>,
    counted: Totals,
    #[cfg(feature = "loom")]
    pub(crate) late_mark: bool,
}

/// Where a page lies in the set.
#[derive(Clone, Copy)]
struct Last {
    place: Place,
    home: usize,
    page: usize,
}

/// What a slot holds. A slot that holds no object has [`Content::Free`]; it is
/// never [`Content::Hole`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotRead<'a> {
    /// Which object of the slot.
    pub generation: Generation,
    /// The object.
    pub content: Content<'a>,
}

impl ReadSet {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// It only reads from now on, as far as it knows: when what it has read is changed it is not
    /// doomed, but reads on as of before, from old images, and its evidence stands there (rule 5).
    pub fn only_reads(&mut self) {
        self.only_reads = true;
    }

    /// It only reads, and all of a home as of now: changes after this are not shown (rule C12). Before it reads anything there.
    /// False: nothing is cached of the home, so it stands nowhere yet.
    pub fn stand_at(&mut self, cache: &Cache, home: HomeId) -> bool {
        self.only_reads = true;
        let at = self.enter(cache, home);
        if let Some(at) = at {
            self.homes[at].stand_now();
        }
        at.is_some()
    }

    /// It may write from now on: a change of what it has read dooms it. Doomed if it has read on
    /// behind such a change already: then it is to begin anew, and say this first.
    pub fn writes(&mut self) -> Result<(), Doomed> {
        if !std::mem::take(&mut self.only_reads) {
            return Ok(());
        }
        self.homes.iter().for_each(HomeReads::stay_behind_no_more);
        if let Some(doomed) = self.doomed {
            return Err(doomed);
        }
        match self.behind() {
            Some(place) => Err(self.doom(Doomed::Behind(place))),
            None => Ok(()),
        }
    }

    /// A page whose change it does not look at, or that it was shown as it had been before.
    pub fn behind(&self) -> Option<Place> {
        self.homes.iter().find_map(HomeReads::is_behind)
    }

    /// Whether what was read at a home stands still: nothing that is promised there reaches it.
    pub fn is_frozen(&self, home: HomeId) -> bool {
        let reads = self.homes.iter().find(|reads| reads.id == home);
        reads.is_some_and(|reads| reads.frozen_heard().is_some())
    }

    /// Reads a slot, and records that; also that there is no object (rule 4).
    /// After a miss nothing is recorded: fetch and read again.
    pub fn read(
        &mut self,
        cache: &Cache,
        place: Place,
        slot: Slot,
    ) -> Result<SlotRead<'_>, ReadError> {
        let at = match self.held(place) {
            Some(at) if self.page(at).serves(slot) => at,
            _ => self.load(cache, place, slot)?,
        };
        self.last = Some(at);
        self.counted.reads += 1;
        let page = &mut self.homes[at.home].pages[at.page];
        page.read.insert(slot);
        if let Some(own) = &page.own {
            note_own(&mut self.built_on, place.home, own, slot);
        }
        let Some(image) = &page.image else {
            // Not so: an image that is not held serves nothing.
            return Err(ReadError::Miss(place));
        };
        let (generation, content) = image.slot(slot);
        Ok(SlotRead {
            generation,
            content,
        })
    }

    /// The image that a page's reads came from, if any were and it is still held:
    /// that of the last read is. A clone of it outlives the set: for handing out
    /// bytes without copying them.
    pub fn image(&self, place: Place) -> Option<&Image> {
        self.held(place).and_then(|at| self.page(at).image.as_ref())
    }

    /// When a home was last heard of, as far as that tells how old what was read
    /// may be: frozen evidence grows older, whatever is heard.
    pub fn heard(&self, cache: &Cache, home: HomeId) -> Option<Millis> {
        let reads = self.homes.iter().find(|reads| reads.id == home);
        let frozen = reads.and_then(HomeReads::frozen_heard);
        frozen.or_else(|| cache.heard(home))
    }

    /// Brings all that was read at a home up to date. The position at which all
    /// of it is current: a commit's evidence (rule 4). Of a home where nothing
    /// was read, the cache's position.
    pub fn evidence(&mut self, cache: &Cache, home: HomeId) -> Result<Position, Doomed> {
        self.read_point(cache, home)
            .map(|read_point| read_point.position)
    }

    /// In which history of a home it has read; of a home where nothing was read, the cache's (rule R9).
    pub fn history(&self, cache: &Cache, home: HomeId) -> u64 {
        let read = |reads: &&HomeReads| reads.id == home && !reads.pages.is_empty();
        let reads = self.homes.iter().find(read);
        reads.map_or_else(|| cache.history(home), HomeReads::history)
    }

    /// The same with what rule 5 looks at. [`thorp_model::snapshot::place`] takes the read points of all homes, and gives
    /// the serialization point of a transaction that only read.
    pub fn read_point(&mut self, cache: &Cache, home: HomeId) -> Result<ReadPoint, Doomed> {
        if let Some(doomed) = self.doomed {
            return Err(doomed);
        }
        let stamp = self.stamp(home);
        let manner = self.manner(cache);
        let read_point = |(position, watermark)| ReadPoint {
            home,
            position,
            stamp,
            watermark,
        };
        let read = |reads: &&mut HomeReads| reads.id == home && !reads.pages.is_empty();
        let Some(reads) = self.homes.iter_mut().find(read) else {
            let at = cache.standing(home);
            return Ok(read_point(
                at.map_or_else(Default::default, |at| (at.position, at.watermark)),
            ));
        };
        let evidence = reads.evidence(manner);
        evidence.map(read_point).map_err(|doomed| self.doom(doomed))
    }

    /// The homes where something was read.
    pub fn homes(&self) -> impl Iterator<Item = HomeId> + '_ {
        let read = |home: &&HomeReads| home.pages.iter().any(|page| !page.read.is_empty());
        self.homes.iter().filter(read).map(|home| home.id)
    }

    /// The pages read at a home, in the order in which they were first read.
    pub fn pages_read(&self, home: HomeId) -> impl Iterator<Item = PageId> + '_ {
        let read = self.pages(home).filter(|page| !page.read.is_empty());
        read.map(|page| page.page())
    }

    /// The slots read at a home, page by page, ascending: what a commit's request carries (rule 6).
    pub fn reads(&self, home: HomeId) -> impl Iterator<Item = (PageId, SlotSet)> + '_ {
        let pages = self.pages(home);
        let mut reads: Vec<_> = pages.map(|page| (page.page(), page.read)).collect();
        reads.sort_unstable_by_key(|(page, _)| *page);
        reads.into_iter()
    }

    /// The highest stamp contained in the pages read at a home (rule 5).
    pub fn stamp(&self, home: HomeId) -> Stamp {
        let stamps = self.pages(home).map(|page| page.stamp);
        stamps.max().unwrap_or_default()
    }

    /// Own commits whose values it read before they were delivered, each with the home where it
    /// did: its request names them (rule 4).
    pub fn built_on(&self) -> &[(HomeId, CommitId)] {
        &self.built_on
    }

    /// Why this transaction cannot commit, if that is known already.
    pub fn doomed(&self) -> Option<Doomed> {
        self.doomed
    }

    /// What this transaction counted so far.
    pub fn counted(&self) -> Totals {
        let old_images = self.homes.iter().map(|reads| reads.old_images);
        Totals {
            old_images: old_images.sum(),
            behind: u64::from(self.behind().is_some()),
            ..self.counted
        }
    }

    /// Ends the transaction: adds its counts to the cache's, lets go of its
    /// images, and is ready for the next one.
    pub fn finish(&mut self, cache: &Cache) {
        cache.count(self.counted());
        self.counted = Totals::default();
        self.only_reads = false;
        self.homes.iter_mut().for_each(HomeReads::clear);
        self.last = None;
        self.doomed = None;
        self.built_on.clear();
    }

    fn pages(&self, home: HomeId) -> impl Iterator<Item = &PageReads> {
        let pages = self.of(home).map(|at| &self.homes[at].pages);
        let pages = pages.into_iter().flatten();
        pages.filter(|page| !page.read.is_empty())
    }

    fn page(&self, at: Last) -> &PageReads {
        &self.homes[at.home].pages[at.page]
    }

    fn of(&self, home: HomeId) -> Option<usize> {
        self.homes.iter().position(|reads| reads.id == home)
    }

    fn held(&self, place: Place) -> Option<Last> {
        if let Some(last) = self.last.filter(|last| last.place == place) {
            return Some(last);
        }
        // Once doomed, nothing is served: what is served must be worth its while.
        if self.doomed.is_some() {
            return None;
        }
        let home = self.of(place.home)?;
        let page = self.homes[home].find(place.page)?;
        Some(Last { place, home, page })
    }

    /// The first read of a page, or of a slot that its held image cannot serve.
    #[inline(never)]
    fn load(&mut self, cache: &Cache, place: Place, slot: Slot) -> Result<Last, ReadError> {
        if let Some(doomed) = self.doomed {
            return Err(doomed.into());
        }
        let manner = self.manner(cache);
        let mut pause = Pause::new();
        loop {
            let Some(home) = self.enter(cache, place.home) else {
                return Err(self.miss(place));
            };
            let page = match self.homes[home].load((place.page, slot), manner) {
                Ok(page) => page,
                Err(Absent::Miss) => return Err(self.miss(place)),
                Err(Absent::Ended) => {
                    self.homes.swap_remove(home);
                    self.last = None;
                    continue;
                }
                Err(Absent::Doomed(doomed)) => return Err(self.doom(doomed).into()),
            };
            let at = Last { place, home, page };
            if self.page(at).serves(slot) {
                return Ok(at);
            }
            if !self.page(at).is_stale(slot) {
                return Err(self.miss(place)); // A hole.
            }
            // The writer is about to replace this image: see `HomeReads::load`.
            pause.wait();
        }
    }

    /// Where a home's reads lie.
    fn enter(&mut self, cache: &Cache, home: HomeId) -> Option<usize> {
        if let Some(at) = self.of(home) {
            return Some(at);
        }
        let reads = self.begin(home, cache)?;
        self.homes.push(reads);
        Some(self.homes.len() - 1)
    }

    fn begin(&self, home: HomeId, cache: &Cache) -> Option<HomeReads> {
        #[allow(unused_mut, reason = "only the planted bug changes it")]
        let mut reads = HomeReads::new(home, cache.home(home)?);
        #[cfg(feature = "loom")]
        {
            reads.late_mark = self.late_mark;
        }
        Some(reads)
    }

    fn manner(&self, cache: &Cache) -> Manner {
        let rests_on_own = !self.built_on.is_empty();
        Manner {
            held_max: cache.held_max(),
            stays_behind: self.only_reads && !rests_on_own,
            rests_on_own,
        }
    }

    fn miss(&mut self, place: Place) -> ReadError {
        self.counted.misses += 1;
        ReadError::Miss(place)
    }

    fn doom(&mut self, doomed: Doomed) -> Doomed {
        self.counted.doomed += 1;
        self.doomed = Some(doomed);
        self.last = None;
        doomed
    }
}

/// A slot was read that may show an own value before it is delivered.
#[cold]
fn note_own(built_on: &mut Vec<(HomeId, CommitId)>, home: HomeId, own: &OwnSlots, slot: Slot) {
    let read = own.iter().filter(|(slots, _)| slots.contains(slot));
    for commit in read.map(|(_, commit)| (home, *commit)) {
        if !built_on.contains(&commit) {
            built_on.push(commit);
        }
    }
}
