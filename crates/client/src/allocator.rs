//! Pages to create objects in: extents that the home grants, shared by the threads of this program (foundation 2).
//! Creators never compete for a slot, and references are final before the commit.

use crate::limits::{RETRY_PAUSE, WATCHED_MAX};
use crate::lock::lock;
use crate::runtime::{RequestFuture, Requests};
use crate::{Error, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;
use thorp_model::{CallRequest, CallResponse, HomeId, PageId, PageNo, Place, SegmentId};
use thorp_session::{Reservation, SlotAllocator};

/// The segments that this member has to do with.
#[derive(Default)]
pub(crate) struct Allocators {
    segments: Mutex<Segments>,
    /// Segments that are watched.
    watched: AtomicUsize,
}

/// A segment is in at most one of the two maps.
#[derive(Default)]
struct Segments {
    /// Their homes have answered for them: there are no more of them than segments.
    known: HashMap<(HomeId, SegmentId), Arc<Allocator>>,
    /// Met in references, which may name anything. Each lasts while a creator waits for its home.
    met: HashMap<(HomeId, SegmentId), Weak<Allocator>>,
}

/// A segment, as this member knows it, and its pages there.
pub(crate) struct Allocator {
    pub(crate) home: HomeId,
    pub(crate) segment: SegmentId,
    /// Not known if the member has met only references into the segment.
    path: OnceLock<String>,
    pages: Mutex<Pages>,
    /// The next extents, requested ahead. A creator that needs one holds this lock, and the others queue for it.
    next: tokio::sync::Mutex<VecDeque<Ahead>>,
    /// How often its home has gone back.
    history: AtomicUsize,
    pub(crate) watches: Mutex<Watches>,
}

/// Where an object goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Area {
    /// Pages of programs' objects.
    Objects,
    /// System pages.
    System,
}

/// The pages that were granted. Each grant is of pages of objects and of as many system pages.
#[derive(Default)]
struct Pages {
    objects: SlotAllocator,
    system: SlotAllocator,
}

impl Area {
    fn of(page: PageNo) -> Self {
        match page.is_system() {
            true => Area::System,
            false => Area::Objects,
        }
    }
}

impl Pages {
    fn of(&mut self, area: Area) -> &mut SlotAllocator {
        match area {
            Area::Objects => &mut self.objects,
            Area::System => &mut self.system,
        }
    }

    fn grant(&mut self, first: PageNo, pages: u32) {
        self.objects.grant(first, pages);
        self.system.grant(first.system(), pages);
    }
}

/// An extent that was requested ahead, and in which history of its home.
struct Ahead {
    history: usize,
    wait: RequestFuture,
}

/// The watches on a segment.
#[derive(Default)]
pub(crate) struct Watches {
    pub(crate) count: usize,
    /// A limit was reached at the site or the home. No changes arrive until all these watches have ended and new ones
    /// begin.
    pub(crate) refused: bool,
}

impl Allocators {
    /// A segment for which its home has answered.
    pub(crate) fn find(&self, home: HomeId, segment: SegmentId) -> Option<Arc<Allocator>> {
        lock(&self.segments).known.get(&(home, segment)).cloned()
    }

    /// A segment that a reference names. It is not remembered before its home has answered for it ([`Self::keep`]), but
    /// creators that wait for that at one time share it.
    pub(crate) fn get(&self, home: HomeId, segment: SegmentId) -> Arc<Allocator> {
        let key = (home, segment);
        let Segments { known, met } = &mut *lock(&self.segments);
        let there = known.get(&key).cloned();
        if let Some(allocator) = there.or_else(|| met.get(&key)?.upgrade()) {
            return allocator;
        }
        met.retain(|_, allocator| allocator.strong_count() > 0);
        let allocator = Arc::new(Allocator::new(home, segment));
        met.insert(key, Arc::downgrade(&allocator));
        allocator
    }

    /// The home has answered for a segment: it is remembered from now on.
    pub(crate) fn keep(&self, allocator: &Arc<Allocator>) {
        let key = (allocator.home, allocator.segment);
        let Segments { known, met } = &mut *lock(&self.segments);
        met.remove(&key);
        known.entry(key).or_insert_with(|| Arc::clone(allocator));
    }

    /// A segment whose path the home has named.
    pub(crate) fn named(&self, home: HomeId, segment: SegmentId, path: &str) -> Arc<Allocator> {
        let allocator = self.get(home, segment);
        // A segment keeps its path.
        let _ = allocator.path.set(path.to_owned());
        self.keep(&allocator);
        allocator
    }

    /// The segment of a path, if this member knows it already.
    pub(crate) fn by_path(&self, home: HomeId, path: &str) -> Option<Arc<Allocator>> {
        let segments = lock(&self.segments);
        let of_path = |g: &&Arc<Allocator>| g.home == home && g.path() == Some(path);
        // Another member may have removed a segment and made a new one of that name since: ids rise.
        let newest = segments
            .known
            .values()
            .filter(of_path)
            .max_by_key(|g| g.segment);
        newest.cloned()
    }

    /// A home has gone back: pages that it has granted may be granted to others, and its paths may name other segments.
    pub(crate) fn home_went_back(&self, home: HomeId) {
        let Segments { known, met } = &mut *lock(&self.segments);
        let met = met.values().filter_map(Weak::upgrade);
        let all = known.values().cloned().chain(met);
        for allocator in all.filter(|allocator| allocator.home == home) {
            allocator.forget_pages();
        }
        known.retain(|(of, _), _| *of != home);
    }

    /// A segment was removed: its path may name another one from now on.
    pub(crate) fn forget_path(&self, home: HomeId, path: &str) {
        let known = &mut lock(&self.segments).known;
        known.retain(|_, g| g.home != home || g.path() != Some(path));
    }

    /// Another segment is watched. False at the limit.
    pub(crate) fn begin_watching(&self) -> bool {
        let one_more = |watched| (watched < WATCHED_MAX).then_some(watched + 1);
        let order = Ordering::Relaxed;
        self.watched.fetch_update(order, order, one_more).is_ok()
    }

    /// A segment is no longer watched.
    pub(crate) fn end_watching(&self) {
        self.watched.fetch_sub(1, Ordering::Relaxed);
    }

    /// The site or the home sends no changes of this segment.
    pub(crate) fn unwatched(&self, home: HomeId, segment: SegmentId) {
        if let Some(allocator) = self.find(home, segment) {
            let mut watches = lock(&allocator.watches);
            watches.refused = watches.count > 0;
        }
    }
}

impl Allocator {
    fn new(home: HomeId, segment: SegmentId) -> Self {
        Allocator {
            home,
            segment,
            path: OnceLock::new(),
            pages: Mutex::default(),
            next: tokio::sync::Mutex::default(),
            history: AtomicUsize::new(0),
            watches: Mutex::default(),
        }
    }

    pub(crate) fn path(&self) -> Option<&str> {
        self.path.get().map(String::as_str)
    }

    /// A page of the segment.
    pub(crate) fn place(&self, page: PageNo) -> Place {
        Place {
            home: self.home,
            page: PageId {
                segment: self.segment,
                page,
            },
        }
    }

    /// A slot for an object of this size in its page, near another object if that is given; `None` if the home has to
    /// grant pages first.
    pub(crate) fn take(
        self: &Arc<Self>,
        requests: &Arc<Requests>,
        (area, near): (Area, Option<PageNo>),
        bytes: usize,
        due: Instant,
    ) -> Option<Reservation> {
        let (taken, short) = {
            let mut pages = lock(&self.pages);
            let pages = pages.of(area);
            (pages.take(near, bytes), pages.short())
        };
        if short > 0 {
            self.reserve_ahead(requests, short, due);
        }
        taken
    }

    /// Waits until the home has granted pages.
    pub(crate) async fn refill(
        self: &Arc<Self>,
        requests: &Arc<Requests>,
        area: Area,
        due: Instant,
    ) -> Result<()> {
        let mut next = self.next.lock().await;
        if lock(&self.pages).of(area).has_fresh() {
            return Ok(());
        }
        // A creator has to wait: from now on more is requested ahead.
        lock(&self.pages).of(area).hurry();
        loop {
            let ahead = !next.is_empty();
            if !ahead {
                next.push_back(self.reserve(requests, due)?);
            }
            let Some(Ahead { wait, history }) = next.front_mut() else {
                continue;
            };
            let history = *history;
            let response = wait.await.called();
            next.pop_front();
            if history != self.history() {
                continue;
            }
            match response {
                Ok(Some(CallResponse::Extent { first, pages })) => {
                    lock(&self.pages).grant(first, pages);
                    return Ok(());
                }
                Ok(Some(_)) => return Err(Error::invalid("the home granted something else")),
                Ok(None) => requests.pause(RETRY_PAUSE, due).await?,
                // It was requested ahead, perhaps long ago: what was refused then may be granted now.
                Err(_) if ahead => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives back a slot in which nothing was made.
    pub(crate) fn give_back(&self, taken: Reservation) {
        let area = Area::of(taken.page);
        lock(&self.pages).of(area).give_back(taken);
    }

    fn reserve(&self, requests: &Arc<Requests>, due: Instant) -> Result<Ahead> {
        let (segment, history) = (self.segment, self.history());
        let pages = lock(&self.pages).objects.wanted();
        let reserve = CallRequest::Reserve { segment, pages };
        let wait = requests.begin_call(self.home, reserve, due)?;
        Ok(Ahead { history, wait })
    }

    fn history(&self) -> usize {
        self.history.load(Ordering::Relaxed)
    }

    /// The home has gone back: its grants are void.
    fn forget_pages(&self) {
        self.history.fetch_add(1, Ordering::Relaxed);
        *lock(&self.pages) = Pages::default();
    }

    fn reserve_ahead(&self, requests: &Arc<Requests>, extents: usize, due: Instant) {
        let Ok(mut next) = self.next.try_lock() else {
            return;
        };
        while next.len() < extents {
            match self.reserve(requests, due) {
                Ok(wait) => next.push_back(wait),
                // If it cannot be sent now, the creator that needs an extent sends it.
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_the_segment_that_was_made_last() {
        let allocators = Allocators::default();
        // In the order of a hash map some of these would be found first.
        for id in [5, 9, 2, 7, 1] {
            allocators.named(HomeId(7), SegmentId(id), "notes");
        }
        allocators.named(HomeId(8), SegmentId(10), "notes");
        let found = allocators.by_path(HomeId(7), "notes");
        assert_eq!(found.map(|allocator| allocator.segment), Some(SegmentId(9)));
    }

    #[test]
    fn a_reference_alone_makes_no_segment_known() {
        let (allocators, home) = (Allocators::default(), HomeId(7));
        for id in 0..100 {
            allocators.unwatched(home, SegmentId(id));
            let met = allocators.get(home, SegmentId(id));
            assert!(Arc::ptr_eq(&met, &allocators.get(home, SegmentId(id))));
        }
        let remembered = || {
            let segments = lock(&allocators.segments);
            (segments.known.len(), segments.met.len())
        };
        assert_eq!(remembered(), (0, 1), "the last one, until another is met");
        let met = allocators.get(home, SegmentId(3));
        allocators.keep(&met);
        assert_eq!(remembered(), (1, 0));
        let found = allocators.find(home, SegmentId(3)).unwrap();
        assert!(Arc::ptr_eq(&met, &found));
    }

    #[test]
    fn a_path_is_given_to_what_a_creator_waits_with() {
        let allocators = Allocators::default();
        let met = allocators.get(HomeId(7), SegmentId(3));
        let named = allocators.named(HomeId(7), SegmentId(3), "notes");
        assert!(Arc::ptr_eq(&met, &named) && met.path() == Some("notes"));
    }
}
