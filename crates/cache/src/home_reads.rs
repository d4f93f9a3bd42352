//! What a transaction has read at one home, and the protocol that keeps it
//! together: see the crate's page.

use crate::change::{Change, Known, What};
use crate::error::Doomed;
use crate::home::{Cached, Home, OwnSlots};
use crate::limits::PAGES_KEPT_ROOM;
use crate::mark::Mark;
use crate::old::Standpoint;
use crate::sync::Pause;
use crate::table::PageHash;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use thorp_model::planted::Bug;
use thorp_model::{
    Content, HomeId, Image, Millis, PageId, Place, Position, Slot, SlotSet, Stamp, planted,
};

/// A page that the transaction holds.
pub(crate) struct PageReads {
    key: u64,
    /// Held, so that the transaction keeps its bytes. None: it held too many, and
    /// loads this one again if it is read again.
    pub(crate) image: Option<Image>,
    /// The highest stamp that it contains.
    pub(crate) stamp: Stamp,
    /// From the image; here because it is asked for on the hot path.
    complete: bool,
    /// The image tells of all changes before this cut.
    installed: u64,
    /// Its slots with own values that are not delivered.
    pub(crate) own: Option<OwnSlots>,
    version: Position,
    /// Slots read: a change of one dooms.
    pub(crate) read: SlotSet,
    /// Slots changed since the image, none of them read: never served from it.
    stale: SlotSet,
}

/// What a transaction has read at one home.
pub(crate) struct HomeReads {
    pub(crate) id: HomeId,
    home: Arc<Home>,
    /// The newest mark seen.
    mark: Mark,
    /// All that was read is right at this cut (or at `frozen`, if that is set).
    cut: u64,
    /// The evidence stands still: a page that was read was evicted here, or changed after this.
    frozen: Option<Frozen>,
    /// A page whose change is not looked at, or that was shown as it was before (rule 5).
    behind: Option<PageId>,
    /// Old images shown.
    pub(crate) old_images: u64,
    standpoint: Arc<Standpoint>,
    pub(crate) pages: Vec<PageReads>,
    /// The pages whose images are held, the longest held first, and the images' bytes.
    holding: VecDeque<u32>,
    held_bytes: usize,
    index: HashMap<u64, u32, PageHash>,
    /// Planted bug: the mark is loaded after the image (trap 20).
    #[cfg(feature = "loom")]
    pub(crate) late_mark: bool,
}

/// Where evidence stands still, and what was known of the home then: what was read
/// does not grow younger, and what is promised later says nothing of it.
#[derive(Clone, Copy)]
struct Frozen {
    position: Position,
    known: Known,
}

/// How a transaction reads.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    /// Bytes that it may hold at a home.
    pub(crate) held_max: usize,
    /// It only reads: what it has read may change, and it goes on as of before.
    pub(crate) stays_behind: bool,
    /// It has read own values that are not delivered: it stands at no position but the newest.
    pub(crate) rests_on_own: bool,
}

/// What was found for a page.
struct Loaded {
    image: Image,
    own: Option<OwnSlots>,
    installed: u64,
}

/// Why a page is not there.
pub(crate) enum Absent {
    /// Not cached.
    Miss,
    /// Never will be, for this transaction.
    Doomed(Doomed),
    /// The home's cache has begun anew, and nothing was read of the one before.
    Ended,
}

impl From<Doomed> for Absent {
    fn from(doomed: Doomed) -> Self {
        Absent::Doomed(doomed)
    }
}

impl PageReads {
    fn of(key: u64, loaded: Loaded, read: SlotSet) -> Self {
        let Loaded {
            image,
            own,
            installed,
        } = loaded;
        PageReads {
            key,
            installed,
            own,
            complete: image.is_complete(),
            version: image.version(),
            stamp: image.stamp(),
            image: Some(image),
            read,
            stale: SlotSet::default(),
        }
    }

    /// Whether the held image has this slot's value at the transaction's cut.
    pub(crate) fn serves(&self, slot: Slot) -> bool {
        let has = |image: &Image| image.content(slot) != Content::Hole;
        !self.stale.contains(slot) && (self.complete || self.image.as_ref().is_some_and(has))
    }

    /// Gives up the image, not what is known of it. The bytes that it had.
    fn let_go(&mut self) -> usize {
        // Loaded again, it is as of then.
        (self.complete, self.stale) = (false, SlotSet::ALL);
        self.image.take().map_or(0, |image| image.bytes().len())
    }

    pub(crate) fn is_stale(&self, slot: Slot) -> bool {
        self.stale.contains(slot)
    }

    pub(crate) fn page(&self) -> PageId {
        PageId::from_key(self.key)
    }

    /// Takes in that another commit changed these slots. False: one was read.
    fn touch(&mut self, slots: SlotSet) -> bool {
        if self.read.touches(&slots) {
            return false;
        }
        self.stale.extend(slots);
        true
    }
}

impl HomeReads {
    pub(crate) fn new(id: HomeId, home: Arc<Home>) -> Self {
        let mark = home.marks.newest(None);
        HomeReads {
            id,
            standpoint: home.old.enter(),
            home,
            mark,
            cut: mark.settled,
            frozen: None,
            behind: None,
            old_images: 0,
            pages: Vec::new(),
            holding: VecDeque::new(),
            held_bytes: 0,
            index: HashMap::with_hasher(PageHash),
            #[cfg(feature = "loom")]
            late_mark: false,
        }
    }

    /// It stands still where the home stands now, whatever it reads later (rule C12). Nothing was read yet.
    pub(crate) fn stand_now(&mut self) {
        debug_assert!(self.pages.is_empty(), "it stands before it reads");
        let mark = self.home.marks.newest(Some(self.mark));
        (self.mark, self.cut) = (mark, mark.settled);
        self.frozen = Some(Frozen {
            position: mark.position,
            known: Known {
                heard: mark.heard,
                watermark: mark.watermark,
            },
        });
        self.standpoint.stay(mark.position);
    }

    /// In which history of the home it reads.
    pub(crate) fn history(&self) -> u64 {
        self.home.history
    }

    /// Forgets the transaction; keeps the room for the next.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        self.index.clear();
        self.pages.shrink_to(PAGES_KEPT_ROOM);
        self.index.shrink_to(PAGES_KEPT_ROOM);
        self.holding.clear();
        self.holding.shrink_to(PAGES_KEPT_ROOM);
        self.held_bytes = 0;
        self.frozen = None;
        self.behind = None;
        self.old_images = 0;
        self.standpoint.leave();
    }

    pub(crate) fn find(&self, page: PageId) -> Option<usize> {
        self.find_key(page.key())
    }

    fn find_key(&self, key: u64) -> Option<usize> {
        self.index.get(&key).map(|at| *at as usize)
    }

    /// Holds the current image of a page, instead of the one held before if
    /// there is one, and brings all that was read to one cut with it. Or one
    /// as of where the evidence stands still, to read this slot.
    pub(crate) fn load(
        &mut self,
        (page, slot): (PageId, Slot),
        manner: Manner,
    ) -> Result<usize, Absent> {
        let key = page.key();
        // Rule 4, trap 20: first the mark, then the image.
        let mut mark = self.home.marks.newest(Some(self.mark));
        if mark.has_ended() {
            return Err(self.ended());
        }
        if manner.stays_behind && self.pages.is_empty() {
            self.standpoint.go_on(mark.position);
        }
        let found = self.home.pages.with(&key, |cached: &Cached| {
            cached.use_it();
            Loaded {
                image: cached.image.clone(),
                own: cached.own.clone(),
                installed: cached.installed,
            }
        });
        if self.is_mark_late() {
            mark = self.home.marks.newest(None);
        }
        let Some(loaded) = found else {
            return self.load_missing((page, slot), mark, manner);
        };
        let installed = loaded.installed;
        let target = self.bring_to(mark, installed, manner)?;
        // Own values that are shown before their place may have come after the freeze, and the commit that they name
        // would excuse at the home what it changed of the pages that are gone.
        let is_newer = |at: Frozen| loaded.image.version() > at.position || loaded.own.is_some();
        if self.frozen.is_some_and(is_newer) && !planted::is(Bug::NewerThanStanding) {
            let old = self.load_old((page, slot), manner);
            return old.ok_or(Doomed::Newer(self.place(page)).into());
        }
        let at = self.hold(key, loaded);
        self.let_go_of_oldest(manner.held_max);
        // The image is right from the later of mark and `installed` on. The cut
        // can be later only if another page showed a publication that is still
        // going on; if that changes this page too, the image here is too old.
        let right_from = installed.max(mark.settled);
        if right_from < target {
            self.scan(right_from, target, manner)?;
        }
        Ok(at)
    }

    /// What the home's cache was is void (rule R9).
    fn ended(&self) -> Absent {
        match self.pages.is_empty() {
            true => Absent::Ended,
            false => Doomed::WentBack(self.id).into(),
        }
    }

    /// A page is not cached. Whoever stands behind may find it as it was; what it would be
    /// fetched as may be too new.
    fn load_missing(
        &mut self,
        read: (PageId, Slot),
        mark: Mark,
        manner: Manner,
    ) -> Result<usize, Absent> {
        if manner.stays_behind && !self.pages.is_empty() {
            self.bring_to(mark, mark.settled, manner)?;
        }
        self.load_old(read, manner).ok_or(Absent::Miss)
    }

    /// Holds an old image of a page, right where the evidence stands still, if there is one with
    /// this slot.
    fn load_old(&mut self, (page, slot): (PageId, Slot), manner: Manner) -> Option<usize> {
        let frozen = self.frozen.filter(|_| manner.stays_behind)?;
        let image = self.home.old.find(page.key(), frozen.position)?;
        if image.content(slot) == Content::Hole {
            return None;
        }
        self.behind.get_or_insert(page);
        self.old_images += 1;
        // Nothing up to where it stands is told of the page that the image does not tell of.
        let loaded = Loaded {
            image,
            own: None,
            installed: self.cut,
        };
        let at = self.hold(page.key(), loaded);
        self.let_go_of_oldest(manner.held_max);
        Some(at)
    }

    /// Brings all that was read up to date. The position at which all of it is
    /// current: what to give a commit as its evidence (rule 4); and what is promised there.
    pub(crate) fn evidence(&mut self, manner: Manner) -> Result<(Position, Stamp), Doomed> {
        let mut pause = Pause::new();
        loop {
            let mark = self.home.marks.newest(Some(self.mark));
            if mark.has_ended() {
                return Err(Doomed::WentBack(self.id));
            }
            if mark.settled >= self.cut {
                self.bring_to(mark, mark.settled, manner)?;
                let is_taken = self.behind.is_some() && planted::is(Bug::BehindTakenForCurrent);
                let frozen = self.frozen.filter(|_| !is_taken);
                let at = frozen.map(|at| (at.position, at.known.watermark));
                return Ok(at.unwrap_or((mark.position, mark.watermark)));
            }
            // An image of a publication that is still going on was read: a
            // transaction commits only between positions.
            pause.wait();
        }
    }

    /// Moves the cut to the latest of mark, image and where it is, and checks
    /// everything read on the way. A frozen transaction stays where it is.
    fn bring_to(&mut self, mark: Mark, installed: u64, manner: Manner) -> Result<u64, Doomed> {
        let latest = mark.settled.max(installed);
        if self.frozen.is_none() && latest > self.cut {
            if !self.pages.is_empty() {
                self.scan(self.cut, latest, manner)?;
            }
            self.cut = latest;
            if self.frozen.is_none() && manner.stays_behind {
                self.standpoint.go_on(mark.position);
            }
        }
        self.mark = mark;
        Ok(self.cut)
    }

    /// Goes through the changes between two cuts. All images held are of cuts
    /// no later than `from`, or of the publication that is still going on.
    fn scan(&mut self, from: u64, to: u64, manner: Manner) -> Result<(), Doomed> {
        for index in from..to {
            let Some(change) = self.home.change(index) else {
                return self.outrun(index, manner);
            };
            if self.frozen.is_some_and(|at| change.position > at.position) {
                return Ok(());
            }
            let Some(at) = self.find(change.page) else {
                continue;
            };
            let page = &mut self.pages[at];
            match change.what {
                // Nothing read there: let it be loaded anew when it is.
                What::Evicted(_) if page.read.is_empty() => page.stale = SlotSet::ALL,
                // Whether these values come true, is told later.
                What::Evicted(_) if manner.rests_on_own && !planted::is(Bug::OwnReadFrozen) => {
                    return Err(Doomed::Changed(self.place(change.page)));
                }
                // Positions rise: if it is frozen already, this changes nothing.
                What::Evicted(known) => {
                    let position = change.position;
                    self.frozen.get_or_insert(Frozen { position, known });
                    self.serve_no_own();
                    if manner.stays_behind {
                        self.standpoint.stay(position);
                    }
                }
                // The image tells of it already: it is of that very publication, or came ahead.
                What::Touched(_) if change.position <= page.version => {}
                // Of what the image tells, nothing was missed. What came after it is not known.
                What::Missed if index < page.installed => {}
                What::Missed => {
                    if !page.touch(SlotSet::ALL) {
                        return self.changed(index, change, manner);
                    }
                }
                // The image shows it already.
                What::Shown(_) if index < page.installed => {}
                What::Delivered(_) => {}
                What::Touched(slots) | What::Shown(slots) => {
                    if !page.touch(slots) {
                        return self.changed(index, change, manner);
                    }
                }
            }
        }
        Ok(())
    }

    /// It stands still from now on, and hears no more how own values end that it holds and has not read: these belong to no
    /// position (rule 3).
    fn serve_no_own(&mut self) {
        if !planted::is(Bug::OwnServedFrozen) {
            let own = self.pages.iter_mut().filter(|page| page.own.is_some());
            own.for_each(|page| page.stale = SlotSet::ALL);
        }
    }

    /// What was read has changed. Whoever only reads stands still as of before; a change that came
    /// at no later position than where the home stood before it is none that positions tell apart.
    fn changed(&mut self, index: u64, change: Change, manner: Manner) -> Result<(), Doomed> {
        let before = self.mark_before(index, manner);
        let Some(mut before) = before.filter(|mark| mark.position < change.position) else {
            return Err(Doomed::Changed(self.place(change.page)));
        };
        if change.what == What::Missed && planted::is(Bug::OldImageKeptOverGap) {
            before.position = Position(change.position.0 - 1);
        }
        self.stand_behind(before, change.page);
        Ok(())
    }

    /// What has happened is remembered no more: all may have changed (foundation 7).
    fn outrun(&mut self, index: u64, manner: Manner) -> Result<(), Doomed> {
        let first = self.pages.first().map(PageReads::page);
        let before = self.mark_before(index, manner);
        let (Some(before), Some(page)) = (before, first) else {
            return Err(Doomed::Outrun(self.id));
        };
        self.stand_behind(before, page);
        Ok(())
    }

    /// Where the home stood before a change, if it may stand still there: what was read is right at
    /// the cut, and all changes between that and this one were looked at.
    fn mark_before(&self, index: u64, manner: Manner) -> Option<Mark> {
        if !manner.stays_behind || self.frozen.is_some() || index < self.cut {
            return None;
        }
        let before = self.home.marks.before(index);
        let own = Some(self.mark);
        before.or(own).filter(|mark| mark.settled >= self.cut)
    }

    fn stand_behind(&mut self, before: Mark, changed: PageId) {
        self.frozen = Some(Frozen {
            position: before.position,
            known: Known {
                heard: before.heard,
                watermark: before.watermark,
            },
        });
        self.behind = Some(changed);
        self.standpoint.stay(before.position);
        self.serve_no_own();
    }

    /// Where it has read on as of before a change: it cannot write any more.
    pub(crate) fn is_behind(&self) -> Option<Place> {
        self.behind.map(|page| self.place(page))
    }

    /// It asks for no old images from now on.
    pub(crate) fn stay_behind_no_more(&self) {
        self.standpoint.leave();
    }

    /// When the home was last heard of as of the frozen evidence.
    pub(crate) fn frozen_heard(&self) -> Option<Millis> {
        self.frozen.map(|at| at.known.heard)
    }

    /// Puts an image into the set. What was read on the page before is the same
    /// in it, since all changes up to the cut were checked.
    fn hold(&mut self, key: u64, loaded: Loaded) -> usize {
        self.held_bytes += loaded.image.bytes().len();
        if let Some(at) = self.find_key(key) {
            let read = self.pages[at].read;
            let is_held = self.pages[at].image.is_some();
            self.held_bytes -= self.pages[at].let_go();
            self.pages[at] = PageReads::of(key, loaded, read);
            if !is_held {
                self.holding.push_back(at as u32);
            }
            return at;
        }
        let at = self.pages.len();
        let none = SlotSet::default();
        self.pages.push(PageReads::of(key, loaded, none));
        self.index.insert(key, at as u32);
        self.holding.push_back(at as u32);
        at
    }

    /// What was read is evidence without its image, too (rule 15). The page that
    /// was loaded last stays: it is about to be read.
    fn let_go_of_oldest(&mut self, held_max: usize) {
        while self.held_bytes > held_max && self.holding.len() > 1 {
            if let Some(oldest) = self.holding.pop_front() {
                self.held_bytes -= self.pages[oldest as usize].let_go();
            }
        }
    }

    fn place(&self, page: PageId) -> Place {
        Place {
            home: self.id,
            page,
        }
    }

    #[cfg(not(feature = "loom"))]
    fn is_mark_late(&self) -> bool {
        false
    }

    #[cfg(feature = "loom")]
    fn is_mark_late(&self) -> bool {
        self.late_mark
    }
}
