//! Room to create objects in: extents of fresh pages, granted by the home, and where in them the next object goes
//! (foundation 2). Creators never compete for a slot, and references are final before the commit.

mod pages;

use crate::limits::WATCHED_MAX;
use crate::link::{Link, Wait, called, lock};
use crate::{Error, ErrorKind, Result};
use pages::Pages;
pub(crate) use pages::Taken;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;
use thorp_model::{CallRequest, CallResponse, HomeId, PageId, PageNo, Place, SegmentId};

/// The segments that this member has to do with.
#[derive(Default)]
pub(crate) struct Grounds {
    known: Mutex<HashMap<(HomeId, SegmentId), Arc<Ground>>>,
    /// Segments that are watched.
    watched: AtomicUsize,
}

/// A segment, as this member knows it, and its room there.
pub(crate) struct Ground {
    pub(crate) home: HomeId,
    pub(crate) segment: SegmentId,
    /// Not known of a segment that only references told of.
    path: OnceLock<String>,
    pages: Mutex<Pages>,
    /// The next extents, asked for ahead. Whoever needs one holds this lock, the others queue for it.
    next: tokio::sync::Mutex<VecDeque<Wait>>,
    pub(crate) watches: Mutex<Watches>,
}

/// The watches on a segment.
#[derive(Default)]
pub(crate) struct Watches {
    pub(crate) count: usize,
    /// A limit was reached at the site or the home: nobody tells what changes, until all of them have ended and others begin.
    pub(crate) refused: bool,
}

impl Grounds {
    /// A segment; made known if it was not.
    pub(crate) fn get(&self, home: HomeId, segment: SegmentId) -> Arc<Ground> {
        let mut grounds = lock(&self.known);
        let ground = grounds
            .entry((home, segment))
            .or_insert_with(|| Arc::new(Ground::new(home, segment)));
        Arc::clone(ground)
    }

    /// A segment whose path is known.
    pub(crate) fn named(&self, home: HomeId, segment: SegmentId, path: &str) -> Arc<Ground> {
        let ground = self.get(home, segment);
        // A segment keeps its path.
        let _ = ground.path.set(path.to_owned());
        ground
    }

    /// The segment of a path, if this member knows it already.
    pub(crate) fn by_path(&self, home: HomeId, path: &str) -> Option<Arc<Ground>> {
        let grounds = lock(&self.known);
        let of_path = |g: &&Arc<Ground>| g.home == home && g.path() == Some(path);
        // Somebody else may have removed a segment and made another one of that name since: ids rise.
        let newest = grounds.values().filter(of_path).max_by_key(|g| g.segment);
        newest.cloned()
    }

    /// A segment was removed: its path may name another one from now on.
    pub(crate) fn forget_path(&self, home: HomeId, path: &str) {
        lock(&self.known).retain(|_, g| g.home != home || g.path() != Some(path));
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

    /// Changes in a segment are not told.
    pub(crate) fn unwatched(&self, home: HomeId, segment: SegmentId) {
        let ground = self.get(home, segment);
        let mut watches = lock(&ground.watches);
        watches.refused = watches.count > 0;
    }
}

impl Ground {
    fn new(home: HomeId, segment: SegmentId) -> Self {
        Ground {
            home,
            segment,
            path: OnceLock::new(),
            pages: Mutex::default(),
            next: tokio::sync::Mutex::default(),
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

    /// A slot for an object of so many bytes in its page, near another one if that is given; `None` if the home has to
    /// grant room first.
    pub(crate) fn take(
        self: &Arc<Self>,
        link: &Arc<Link>,
        near: Option<PageNo>,
        bytes: usize,
        due: Instant,
    ) -> Option<Taken> {
        let (taken, short) = {
            let mut pages = lock(&self.pages);
            (pages.take(near, bytes), pages.short())
        };
        if short > 0 {
            self.ask_ahead(link, short, due);
        }
        let taken = taken?;
        if taken.begins_page {
            // A copy of a page that is being filled is kept up to date, so what was made there is read without asking.
            link.prefetch(self.place(taken.page));
        }
        Some(taken)
    }

    /// Waits until the home has granted room.
    pub(crate) async fn refill(self: &Arc<Self>, link: &Arc<Link>, due: Instant) -> Result<()> {
        let mut next = self.next.lock().await;
        if lock(&self.pages).has_fresh() {
            return Ok(());
        }
        // Somebody has to wait: more is asked ahead from now on.
        lock(&self.pages).hurry();
        loop {
            let ahead = !next.is_empty();
            if !ahead {
                next.push_back(self.ask(link, due)?);
            }
            let Some(wait) = next.front_mut() else {
                continue;
            };
            let told = called(wait.await);
            next.pop_front();
            match told {
                Ok(Some(CallResponse::Extent { first, pages })) => {
                    lock(&self.pages).grant(first, pages);
                    return Ok(());
                }
                Ok(Some(_)) => return Err(Error::invalid("the home granted something else")),
                Ok(None) => link.pause(crate::link::PAUSE, due).await?,
                // It was asked for ahead, with less patience than this caller has.
                Err(error) if ahead && error.kind() == ErrorKind::HomeUnreachable => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives back a slot in which nothing was made.
    pub(crate) fn give_back(&self, taken: Taken) {
        lock(&self.pages).give_back(taken);
    }

    fn ask(&self, link: &Arc<Link>, due: Instant) -> Result<Wait> {
        let segment = self.segment;
        link.ask_call(self.home, CallRequest::Reserve { segment }, due)
    }

    fn ask_ahead(&self, link: &Arc<Link>, extents: usize, due: Instant) {
        let Ok(mut next) = self.next.try_lock() else {
            return;
        };
        while next.len() < extents {
            match self.ask(link, due) {
                Ok(wait) => next.push_back(wait),
                // If it cannot be asked now, whoever needs it asks.
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
        let grounds = Grounds::default();
        // In the order of a hash map some of these would be found first.
        for id in [5, 9, 2, 7, 1] {
            grounds.named(HomeId(7), SegmentId(id), "notes");
        }
        grounds.named(HomeId(8), SegmentId(10), "notes");
        let found = grounds.by_path(HomeId(7), "notes");
        assert_eq!(found.map(|ground| ground.segment), Some(SegmentId(9)));
    }
}
