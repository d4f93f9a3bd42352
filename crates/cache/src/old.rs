//! Old images: pages as they were before their last few changes, for transactions that only
//! read (rule 5). They are kept while a running one may ask for them, up to a limit; whoever
//! finds none is doomed, so nothing depends on their being kept.

use crate::home::Home;
use crate::limits::{
    LOST_ENTRIES_MIN, OLD_PER_PAGE_MAX, OLD_SWEEP_BYTES_MIN, PAGE_OVERHEAD_BYTES, READERS_SWEEP_MIN,
};
use crate::table::Table;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use thorp_model::planted::Bug;
use thorp_model::{Image, Position, planted};

/// A page as it was: right from the image's version on.
#[derive(Clone)]
struct Old {
    image: Image,
    /// The last position at which the cache stood before the page was changed.
    last: Position,
}

/// The old images of a home, as readers see them.
pub(crate) struct OldImages {
    /// By page key; of each page the oldest first.
    pages: Table<u64, Arc<[Old]>>,
    readers: Mutex<Readers>,
}

/// Those who said that they are going to say where they stand.
#[derive(Default)]
struct Readers {
    known: Vec<Weak<Standpoint>>,
    /// How many there are when it is looked for those that have gone.
    sweep_at: usize,
}

impl Readers {
    fn enter(&mut self, reader: Weak<Standpoint>) {
        if self.known.len() >= self.sweep_at {
            self.known.retain(|known| known.strong_count() > 0);
            self.sweep_at = READERS_SWEEP_MIN.max(2 * self.known.len());
        }
        self.known.push(reader);
    }
}

impl OldImages {
    pub(crate) fn new() -> Self {
        OldImages {
            pages: Table::new(),
            readers: Mutex::default(),
        }
    }

    /// A page as of a position at which the cache once stood, if that is kept.
    pub(crate) fn find(&self, page: u64, at: Position) -> Option<Image> {
        let is_right = |old: &&Old| {
            let ended = old.last < at && !planted::is(Bug::OldImageAfterItsEnd);
            old.image.version() <= at && !ended
        };
        let find = |olds: &Arc<[Old]>| olds.iter().find(is_right).map(|old| old.image.clone());
        self.pages.with(&page, find).flatten()
    }

    /// Where a reader is going to say where it stands.
    pub(crate) fn enter(&self) -> Arc<Standpoint> {
        let standpoint = Arc::new(Standpoint(AtomicU64::new(NOWHERE)));
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.enter(Arc::downgrade(&standpoint));
        standpoint
    }

    fn look_for_readers(&self) -> Needs {
        let mut needs = Needs::default();
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.known.retain(|reader| {
            let Some(reader) = reader.upgrade() else {
                return false;
            };
            needs.add(reader.0.load(Ordering::Relaxed));
            true
        });
        needs
    }

    /// Adds an old image. The bytes of the one that had to go for it, if one had to: the oldest, and rather
    /// one that nobody needs.
    fn keep(&self, page: u64, old: Old, needs: &Needs) -> Option<usize> {
        let known = self.pages.with(&page, Arc::clone);
        let known = known.as_deref().unwrap_or_default();
        let spare = || {
            known
                .iter()
                .position(|old| !needs.include(old.image.version(), old.last))
        };
        let gone = (known.len() >= OLD_PER_PAGE_MAX).then(|| spare().unwrap_or(0));
        let left = known
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != gone);
        let olds = left.map(|(_, old)| old.clone()).chain([old]).collect();
        self.pages.insert(page, olds, |_| ());
        gone.map(|gone| charge(&known[gone].image))
    }

    fn has(&self, page: u64, version: Position) -> bool {
        let is_it = |olds: &Arc<[Old]>| olds.iter().any(|old| old.image.version() == version);
        self.pages.with(&page, is_it).unwrap_or(false)
    }

    /// Lets an old image go, if it is there; its bytes.
    fn let_go(&self, page: u64, version: Position) -> usize {
        let Some(known) = self.pages.with(&page, Arc::clone) else {
            return 0;
        };
        let (gone, left): (Vec<Old>, Vec<Old>) = known
            .iter()
            .cloned()
            .partition(|old| old.image.version() == version);
        match left.is_empty() {
            true => self.pages.remove(&page, |_| ()),
            false => self.pages.insert(page, left.into(), |_| ()),
        };
        gone.iter().map(|old| charge(&old.image)).sum()
    }
}

/// Where a running transaction stands at a home. It is there for the writer, who lets go of what
/// nobody can ask for: it may see it late.
#[repr(align(64))]
pub(crate) struct Standpoint(AtomicU64);

const NOWHERE: u64 = u64::MAX;

impl Standpoint {
    /// It goes on with the stream: what it reads is as of here, or later.
    pub(crate) fn go_on(&self, at: Position) {
        self.0.store(at.0 << 1, Ordering::Relaxed);
    }

    /// It stays here.
    pub(crate) fn stay(&self, at: Position) {
        self.0.store(at.0 << 1 | 1, Ordering::Relaxed);
    }

    /// It asks for no old image.
    pub(crate) fn leave(&self) {
        self.0.store(NOWHERE, Ordering::Relaxed);
    }
}

/// As of which positions pages may be asked for.
#[derive(Default)]
struct Needs {
    /// From here on.
    from: Option<Position>,
    /// And these.
    at: Vec<Position>,
}

impl Needs {
    fn add(&mut self, standpoint: u64) {
        let at = Position(standpoint >> 1);
        if standpoint == NOWHERE {
            return;
        }
        match standpoint & 1 {
            0 => self.from = Some(self.from.map_or(at, |from| from.min(at))),
            _ => self.at.push(at),
        }
    }

    /// Whether somebody may ask for what was so from `version` to `last`.
    fn include(&self, version: Position, last: Position) -> bool {
        let asked = |at: &Position| version <= *at && *at <= last;
        self.from.is_some_and(|from| from <= last) || self.at.iter().any(asked)
    }
}

/// What the writer knows of an old image.
struct Entry {
    page: u64,
    version: Position,
    last: Position,
}

/// The old images of a home in the order in which they were kept, for the writer.
#[derive(Default)]
pub(crate) struct OldQueue {
    entries: VecDeque<Entry>,
    /// Entries whose image had to go because there were too many of one page.
    lost: usize,
    /// What was needed when it was looked last.
    needs: Needs,
    bytes: usize,
    sweep_above: usize,
}

impl OldQueue {
    /// Bytes of all old images of this home.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A page is about to be changed: keeps it as it was up to `last`. It stays at least until
    /// [`OldQueue::let_go`] is called next: who begins meanwhile is seen by then.
    pub(crate) fn keep(&mut self, home: &Home, page: u64, last: Position) {
        // Own values that are not delivered belong to no position.
        let image = home.pages.with(&page, |cached| {
            let image = cached.own.is_none().then_some(&cached.image);
            image.filter(|image| image.version() <= last).cloned()
        });
        let Some(image) = image.flatten() else {
            return;
        };
        let version = image.version();
        self.bytes += charge(&image);
        if let Some(freed) = home.old.keep(page, Old { image, last }, &self.needs) {
            self.bytes -= freed;
            self.lost += 1;
        }
        self.entries.push_back(Entry {
            page,
            version,
            last,
        });
        if self.lost > LOST_ENTRIES_MIN.max(self.entries.len() / 2) {
            self.entries
                .retain(|old| home.old.has(old.page, old.version));
            self.lost = 0;
        }
    }

    /// Lets go of what nobody can ask for: at the front each time, everywhere when there is much.
    pub(crate) fn let_go(&mut self, home: &Home) {
        if self.entries.is_empty() {
            return;
        }
        let needs = home.old.look_for_readers();
        let is_needed = |old: &Entry| needs.include(old.version, old.last);
        while self.entries.front().is_some_and(|old| !is_needed(old)) {
            self.give_up_oldest(home);
        }
        if self.bytes > self.sweep_above {
            let bytes = &mut self.bytes;
            self.entries.retain(|old| {
                if !is_needed(old) {
                    *bytes -= home.old.let_go(old.page, old.version);
                }
                is_needed(old)
            });
            self.sweep_above = OLD_SWEEP_BYTES_MIN.max(self.bytes.saturating_mul(2));
        }
        self.needs = needs;
    }

    /// Gives up the oldest, though somebody may ask for it. False: there is none.
    pub(crate) fn give_up_oldest(&mut self, home: &Home) -> bool {
        let Some(old) = self.entries.pop_front() else {
            return false;
        };
        let freed = home.old.let_go(old.page, old.version);
        if freed == 0 {
            self.lost = self.lost.saturating_sub(1);
        }
        self.bytes -= freed;
        true
    }
}

fn charge(image: &Image) -> usize {
    image.bytes().len() + PAGE_OVERHEAD_BYTES
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use crate::home::Cached;
    use crate::mark::Mark;
    use thorp_model::{HomeId, ImageEdit, Millis, PageId, Place, Stamp};
    use thorp_policy::Clock;

    fn home_with(page: u64, version: u64) -> Home {
        let first = Mark {
            turn: 1,
            settled: 0,
            position: Position(version),
            watermark: Stamp::default(),
            heard: Millis(0),
            gaps: 0,
        };
        let home = Home::new(8, first, 0);
        change(&home, page, version);
        home
    }

    fn change(home: &Home, page: u64, version: u64) {
        let place = Place {
            home: HomeId(1),
            page: PageId::new(1, 1),
        };
        let image = ImageEdit::default().finish(Position(version), Stamp::default());
        let cached = Cached::new((image, None), 0, Clock::default().sit(place), true);
        home.pages.insert(page, cached, |_| ());
    }

    #[test]
    fn however_often_a_page_changes_the_queue_is_short() {
        let home = home_with(1, 10);
        let reader = home.old.enter();
        reader.go_on(Position(10));
        let mut queue = OldQueue::default();
        for version in 11..20_000 {
            queue.let_go(&home);
            queue.keep(&home, 1, Position(version - 1));
            change(&home, 1, version);
            let most = OLD_PER_PAGE_MAX + LOST_ENTRIES_MIN + 1;
            assert!(queue.entries.len() <= most, "{}", queue.entries.len());
        }
        drop(reader);
        queue.let_go(&home);
        assert_eq!((queue.entries.len(), queue.bytes()), (0, 0));
    }

    #[test]
    fn of_those_who_have_gone_few_are_known() {
        let home = home_with(1, 10);
        let here = home.old.enter();
        for _ in 0..10 * READERS_SWEEP_MIN {
            drop(home.old.enter());
        }
        let readers = home.old.readers.lock().unwrap();
        assert!(readers.known.len() <= READERS_SWEEP_MIN);
        drop(here);
    }
}
