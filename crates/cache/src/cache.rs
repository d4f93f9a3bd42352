//! The cache as its one writer and the program see it.

use crate::change::{Change, Known, What};
use crate::home::{Cached, Home, OwnSlots};
use crate::limits::{
    CHANGES_REMEMBERED, HELD_BYTES_MIN, HELD_PART, HOLDERS_IDLE, OLD_PART, PAGE_OVERHEAD_BYTES,
};
use crate::mark::Mark;
use crate::old::OldQueue;
use crate::table::Table;
use crate::tentative::{self, Overlay, Tentative};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thorp_model::planted::Bug;
use thorp_model::{
    HomeId, Image, Millis, PageId, Place, Position, Publish, SegmentId, SlotSet, Stamp,
    TentativeChange, planted,
};
use thorp_policy::{Candidate, Clock};

/// A member's page cache. Share it by an `Arc`.
pub struct Cache {
    homes: Table<HomeId, Arc<Home>>,
    bytes_max: usize,
    changes_remembered: usize,
    bytes: AtomicUsize,
    pages: AtomicUsize,
    /// Of the bytes, those of old images.
    old_bytes: AtomicUsize,
    totals: TotalsCells,
    tentative: Tentative,
    /// Never taken by a reader.
    writer: Mutex<Writer>,
}

/// What only the writer needs.
#[derive(Default)]
struct Writer {
    clock: Clock<Place>,
    homes: BTreeMap<HomeId, Written>,
}

/// What was published of a home.
struct Written {
    /// The newest mark.
    mark: Mark,
    old: OldQueue,
}

/// Where the cache stands with a home: one consistent reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// How far down the home's stream the cache is.
    pub position: Position,
    /// What the home has promised there.
    pub watermark: Stamp,
    /// When the stream was last heard of, on the monotone clock.
    pub heard: Millis,
}

/// What finished transactions counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Slots read from the cache.
    pub reads: u64,
    /// Reads that found no page, or a hole.
    pub misses: u64,
    /// Transactions found doomed.
    pub doomed: u64,
    /// Old images shown to transactions that only read.
    pub old_images: u64,
    /// Transactions that read on as of before a change to what they had read: without old
    /// images each of them would have been doomed.
    pub behind: u64,
}

/// Which pages are to go.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Chosen {
    /// These.
    pub pages: Vec<Place>,
    /// Bytes of pages that came before them and were spared, because running
    /// transactions have read them, or they show own values that are not delivered.
    pub spared: usize,
}

/// On cache lines of their own: they are written once per transaction, by all threads.
#[derive(Default)]
#[repr(align(128))]
struct TotalsCells {
    reads: AtomicU64,
    misses: AtomicU64,
    doomed: AtomicU64,
    old_images: AtomicU64,
    behind: AtomicU64,
}

impl Cache {
    /// An empty cache that should keep within so many bytes: see [`Cache::excess`].
    pub fn new(bytes_max: usize) -> Self {
        Self::remembering(bytes_max, CHANGES_REMEMBERED)
    }

    /// As [`Cache::new`], with another number of changes remembered for each home.
    pub fn remembering(bytes_max: usize, changes: usize) -> Self {
        Cache {
            homes: Table::new(),
            bytes_max,
            changes_remembered: changes,
            bytes: AtomicUsize::new(0),
            pages: AtomicUsize::new(0),
            old_bytes: AtomicUsize::new(0),
            totals: TotalsCells::default(),
            tentative: Tentative::default(),
            writer: Mutex::default(),
        }
    }

    /// Takes a publication of the member's state machine. One thread calls
    /// this; readers go on meanwhile, and see all of it or nothing.
    pub fn publish(&self, publish: &Publish) {
        let laid = planted::is(Bug::UpdateInImage).then(|| self.laid_into_images(publish));
        let publish = laid.as_ref().unwrap_or(publish);
        let mut writer = self.writer();
        let Writer { clock, homes } = &mut *writer;
        // Nobody reads an update twice, or misses it: it leaves the view together with what the images show of it.
        let changes = publish.tentative != TentativeChange::default();
        let changing = changes.then(|| self.tentative.begin());
        if let Some(changing) = &changing {
            changing.take(publish.home, &publish.tentative);
        }
        match (self.home(publish.home), homes.get_mut(&publish.home)) {
            (Some(home), Some(Written { mark, old })) if publish.history != home.history => {
                let gaps = mark.gaps + 1;
                self.end(&home, publish, *mark, old, clock);
                *mark = self.begin(publish, gaps, clock);
            }
            (Some(home), Some(Written { mark, old })) => {
                debug_assert!(mark.position <= publish.position, "a position goes back");
                push_changes(&home, publish);
                self.keep_old(&home, publish, *mark, old);
                *mark = self.take_in(&home, mark.gaps, publish, clock);
            }
            _ => {
                let mark = self.begin(publish, 0, clock);
                let old = OldQueue::default();
                homes.insert(publish.home, Written { mark, old });
            }
        }
    }

    /// A planted bug: the images show the updates, too.
    fn laid_into_images(&self, publish: &Publish) -> Publish {
        let mut laid = publish.clone();
        let updates = publish.tentative.shown.iter();
        for writes in updates.flat_map(|update| &update.writes) {
            let (home, page) = (publish.home, writes.page);
            if let Some(image) = self.image(Place { home, page }) {
                laid.images
                    .push((page, Some(tentative::image_with(&image, writes))));
            }
        }
        laid
    }

    /// The version of the tentative view, unless it changes just now: the caller looks again then. Whoever finds the same one
    /// before and after reading an image has read one moment (rule C6).
    pub fn tentative_version(&self) -> Option<u64> {
        self.tentative.version()
    }

    /// The updates in some segments that their homes have not executed, as of now (rule C6).
    pub fn updates_of(&self, segments: &[(HomeId, SegmentId)]) -> Overlay {
        self.tentative.of(segments)
    }

    /// How many updates are shown that their homes have not executed.
    pub fn tentative(&self) -> usize {
        self.tentative.len()
    }

    /// Pages whose eviction would free so many bytes: the clock's hand gives a page that was read a second chance. Pages
    /// that a running transaction has read are spared (rule 2), unless `force`.
    ///
    /// The caller asks when it has carried out and dropped the state machine's last outbox. The pages leave the cache
    /// when the state machine publishes their eviction.
    pub fn victims(&self, bytes: usize, force: bool) -> Vec<Place> {
        self.choose(bytes, force).pages
    }

    /// As [`Cache::victims`], and how much was spared on the way.
    pub fn choose(&self, bytes: usize, force: bool) -> Chosen {
        if bytes == 0 {
            return Chosen::default();
        }
        let mut writer = self.writer();
        let chosen = writer.clock.choose(bytes, |place| {
            let inspect = |cached: &Cached| inspect(cached, force);
            let found = self.with_cached(place, inspect);
            found.unwrap_or(Candidate::Absent)
        });
        Chosen {
            pages: chosen.pages,
            spared: chosen.spared_bytes,
        }
    }

    /// Bytes of all cached pages and old images, with what they cost besides.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Of those, the bytes of old images (rule 5).
    pub fn old_bytes(&self) -> usize {
        self.old_bytes.load(Ordering::Relaxed)
    }

    /// The limit that the cache was made with.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes of images that one transaction may hold at a home.
    pub(crate) fn held_max(&self) -> usize {
        HELD_BYTES_MIN.max(self.bytes_max / HELD_PART)
    }

    /// Bytes over the limit: what to ask [`Cache::victims`] for.
    pub fn excess(&self) -> usize {
        self.bytes().saturating_sub(self.bytes_max)
    }

    /// Cached pages of all homes.
    pub fn pages(&self) -> usize {
        self.pages.load(Ordering::Relaxed)
    }

    /// Whether anything was ever published of a home.
    pub fn home_known(&self, home: HomeId) -> bool {
        self.homes.with(&home, |_| ()).is_some()
    }

    /// Where the cache stands with a home.
    pub fn standing(&self, home: HomeId) -> Option<Standing> {
        self.homes.with(&home, |home| {
            let mark = home.marks.newest(None);
            Standing {
                position: mark.position,
                watermark: mark.watermark,
                heard: mark.heard,
            }
        })
    }

    /// How often a home has gone back and its cache has begun anew (rule R9).
    pub fn history(&self, home: HomeId) -> u64 {
        self.homes.with(&home, |home| home.history).unwrap_or(0)
    }

    /// The cache's position for a home; zero if it is not known.
    pub fn position(&self, home: HomeId) -> Position {
        self.standing(home).map(|s| s.position).unwrap_or_default()
    }

    /// A home's watermark; the lowest if it is not known.
    pub fn watermark(&self, home: HomeId) -> Stamp {
        self.standing(home).map(|s| s.watermark).unwrap_or_default()
    }

    /// When a home's stream was last heard of, on the monotone clock.
    pub fn heard(&self, home: HomeId) -> Option<Millis> {
        self.standing(home).map(|s| s.heard)
    }

    /// A cached page's current image, outside of any transaction.
    pub fn image(&self, place: Place) -> Option<Image> {
        self.with_cached(place, |cached| cached.image.clone())
    }

    /// What the transactions finished so far have counted.
    pub fn totals(&self) -> Totals {
        Totals {
            reads: self.totals.reads.load(Ordering::Relaxed),
            misses: self.totals.misses.load(Ordering::Relaxed),
            doomed: self.totals.doomed.load(Ordering::Relaxed),
            old_images: self.totals.old_images.load(Ordering::Relaxed),
            behind: self.totals.behind.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn count(&self, counted: Totals) {
        for (total, more) in [
            (&self.totals.reads, counted.reads),
            (&self.totals.misses, counted.misses),
            (&self.totals.doomed, counted.doomed),
            (&self.totals.old_images, counted.old_images),
            (&self.totals.behind, counted.behind),
        ] {
            if more > 0 {
                total.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn home(&self, home: HomeId) -> Option<Arc<Home>> {
        self.homes.with(&home, Arc::clone)
    }

    fn with_cached<R>(&self, place: Place, look: impl FnOnce(&Cached) -> R) -> Option<R> {
        let home = self.home(place.home)?;
        home.pages.with(&place.page.key(), look)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a home's cache: nobody sees it before it is whole. The stream was broken so often before.
    fn begin(&self, publish: &Publish, gaps: u64, clock: &mut Clock<Place>) -> Mark {
        let home = Home::new(
            self.changes_remembered,
            mark_of(publish, 0, gaps),
            publish.history,
        );
        push_changes(&home, publish);
        let mark = self.take_in(&home, gaps, publish, clock);
        self.homes.insert(publish.home, Arc::new(home), |_| ());
        mark
    }

    /// Ends what is cached of a home: the publication that begins it anew names all pages of it. Whoever has read there
    /// finds the last mark, and is doomed.
    fn end(
        &self,
        home: &Home,
        publish: &Publish,
        last: Mark,
        old: &mut OldQueue,
        clock: &mut Clock<Place>,
    ) {
        for (page, _) in &publish.images {
            self.remove(home, *page, clock);
        }
        let bytes = old.bytes();
        while old.give_up_oldest(home) {}
        let freed = bytes - old.bytes();
        for all in [&self.old_bytes, &self.bytes] {
            all.fetch_sub(freed, Ordering::Relaxed);
        }
        home.marks.push(last.ended());
    }

    /// After the changes the pages, then the mark: see the crate's page.
    fn take_in(&self, home: &Home, gaps: u64, publish: &Publish, clock: &mut Clock<Place>) -> Mark {
        debug_assert!(
            images_of(publish).all(|image| image.version() <= publish.position),
            "an image is newer than its publication (rule 4)"
        );
        let cut = home.pushed();
        for page in &publish.evicted {
            self.remove(home, *page, clock);
        }
        for (page, image) in &publish.images {
            let place = Place {
                home: publish.home,
                page: *page,
            };
            match image {
                Some(image) => {
                    let own = own_values(publish, *page);
                    self.install(home, place, (image, own), cut, clock);
                }
                None => self.remove(home, *page, clock),
            }
        }
        for (page, _) in &publish.touched {
            self.remove_overtaken(home, *page, publish.position, clock);
        }
        self.pages.store(clock.seated(), Ordering::Relaxed);
        // Not asked of the marks: the model checker forgets what else a reader may see of a cell that the writer loads.
        let gaps = gaps + u64::from(publish.missed.is_some());
        let mark = mark_of(publish, cut, gaps);
        home.marks.push(mark);
        mark
    }

    /// Keeps the pages that are about to change, as they were at the last mark.
    fn keep_old(&self, home: &Home, publish: &Publish, last: Mark, old: &mut OldQueue) {
        let before = old.bytes();
        old.let_go(home);
        // What a parent tells once more is no change of where this cache stood.
        if publish.position > last.position {
            let touched = publish.touched.iter().map(|(page, _)| page);
            let missed = publish.missed.iter().flatten();
            for page in touched.chain(missed) {
                old.keep(home, page.key(), right_up_to(publish, last));
            }
        }
        let others = self.old_bytes() - before;
        while others + old.bytes() > self.bytes_max / OLD_PART && old.give_up_oldest(home) {}
        let (more, less) = (old.bytes(), before);
        for all in [&self.old_bytes, &self.bytes] {
            all.fetch_add(more, Ordering::Relaxed);
            all.fetch_sub(less, Ordering::Relaxed);
        }
    }

    fn install(
        &self,
        home: &Home,
        place: Place,
        (image, own): (&Image, Option<OwnSlots>),
        cut: u64,
        clock: &mut Clock<Place>,
    ) {
        let key = place.page.key();
        let old = home.pages.with(&key, |old| (old.seat, old.is_used()));
        // A new page counts as used: whoever asked for it is about to read it.
        let (seat, used) = old.unwrap_or_else(|| (clock.sit(place), true));
        let cached = Cached::new((image.clone(), own), cut, seat, used);
        let freed = home.pages.insert(key, cached, |old| charge(&old.image));
        self.bytes.fetch_add(charge(image), Ordering::Relaxed);
        self.bytes.fetch_sub(freed.unwrap_or(0), Ordering::Relaxed);
    }

    fn remove(&self, home: &Home, page: PageId, clock: &mut Clock<Place>) {
        let removed = |old: &Cached| (charge(&old.image), old.seat);
        if let Some((freed, seat)) = home.pages.remove(&page.key(), removed) {
            self.bytes.fetch_sub(freed, Ordering::Relaxed);
            clock.leave(seat);
        }
    }

    /// A page that was changed and whose image was not is wrong (rule 3).
    /// No right member publishes that; readers must not pay for a wrong one.
    fn remove_overtaken(&self, home: &Home, page: PageId, at: Position, clock: &mut Clock<Place>) {
        let overtaken = |cached: &Cached| cached.image.version() < at;
        if home.pages.with(&page.key(), overtaken) == Some(true) {
            debug_assert!(false, "page {page} was touched at {at} and not replaced");
            self.remove(home, page, clock);
        }
    }
}

/// What the clock's hand finds: only a page that may go loses its mark.
fn inspect(cached: &Cached, force: bool) -> Candidate {
    let bytes = charge(&cached.image);
    // On what is not answered yet (rule 14) others are about to build.
    let is_wanted = cached.image.holders() > HOLDERS_IDLE || cached.own.is_some();
    if is_wanted && !force {
        Candidate::Pinned { bytes }
    } else if cached.unuse() {
        Candidate::Used
    } else {
        Candidate::Idle { bytes }
    }
}

/// Up to where what this publication changes was right: the last mark, whatever the position of
/// the change. When what was missed has changed, nobody knows (rule 13).
fn right_up_to(publish: &Publish, last: Mark) -> Position {
    match publish.missed.is_some() && planted::is(Bug::OldImageKeptOverGap) {
        true => Position(publish.position.0.saturating_sub(1)),
        false => last.position,
    }
}

fn push_changes(home: &Home, publish: &Publish) {
    let own = &publish.overlay;
    let touched = publish.touched.iter().flat_map(|(page, slots)| {
        let delivered = own.delivered.iter().find(|(of, _)| of == page);
        let Some((_, delivered)) = delivered.filter(|_| *slots != SlotSet::ALL) else {
            return [Some((*page, What::Touched(*slots))), None];
        };
        let rest = slots.without(delivered.iter());
        let rest = (!rest.is_empty()).then_some((*page, What::Shown(rest)));
        [Some((*page, What::Delivered(*slots))), rest]
    });
    let shown = own.shown.iter();
    let shown = shown.map(|(page, slots)| (*page, What::Shown(*slots)));
    let touched = touched.flatten().chain(shown);
    let known = Known {
        heard: publish.heard,
        watermark: publish.watermark,
    };
    let evicted = publish.evicted.iter();
    let evicted = evicted.map(|page| (*page, What::Evicted(known)));
    let missed = publish.missed.iter().flatten();
    let missed = missed.map(|page| (*page, What::Missed));
    for (page, what) in touched.chain(evicted).chain(missed) {
        home.push(Change {
            position: publish.position,
            page,
            what,
        });
    }
}

/// The slots of a new image that show own values before they are delivered.
fn own_values(publish: &Publish, page: PageId) -> Option<OwnSlots> {
    let values = publish.overlay.values.iter();
    let of_page = values.filter(|(of, ..)| *of == page);
    let slots: Vec<_> = of_page
        .map(|(_, slots, commit)| (*slots, *commit))
        .collect();
    (!slots.is_empty()).then(|| slots.into())
}

fn images_of(publish: &Publish) -> impl Iterator<Item = &Image> {
    publish
        .images
        .iter()
        .filter_map(|(_, image)| image.as_ref())
}

fn mark_of(publish: &Publish, settled: u64, gaps: u64) -> Mark {
    Mark {
        turn: 0,
        settled,
        position: publish.position,
        watermark: publish.watermark,
        heard: publish.heard,
        gaps,
    }
}

fn charge(image: &Image) -> usize {
    image.bytes().len() + PAGE_OVERHEAD_BYTES
}
