//! Watching the changes of a segment.

use super::Segment;
use crate::due::due_after;
use crate::head_page::{EXTENT_SLOT, HEAD_PAGE, ROOTS_SLOT};
use crate::limits::{RETRY_PAUSE, WATCHED_MAX};
use crate::lock::lock;
use crate::runtime::{RequestFuture, Shared, block_on};
use crate::{Error, ErrorKind, Result};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thorp_cache::Cursor;
use thorp_model::{CallRequest, ObjectId, PageId, Position, RIGHTS_SLOT, Slot, SlotSet};
use thorp_protocol::Request;
use tokio::sync::watch;

/// Delivers the changes of a segment: see [`Segment::watch`](crate::Segment::watch). It also delivers the commits of
/// this member.
pub struct Watch {
    segment: Segment,
    cursor: Cursor,
    changes: watch::Receiver<u64>,
    session: crate::Session,
    /// More happened than the program received, and it does not know that yet. It is still set after a dropped future
    /// or an error, and then given with the next changes.
    lost: Option<Lost>,
    /// Outlives the future that began it, so that a program with short timeouts passes it, too.
    fence: Option<Fence>,
}

/// A call whose response shows that the parent has received the watch: the response comes down the same stream after
/// that.
struct Fence {
    /// The position of the cache when the fence began. The parent may not have received the watch in a later life of
    /// the stream.
    begun_at: Cursor,
    wait: RequestFuture,
}

/// Some commits' changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changed {
    /// The changes, in the order of commits; whole commits only.
    pub changes: Vec<Change>,
    /// More happened than the changes show. Look at everything anew.
    pub lost: Option<Lost>,
}

/// Why changes were lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Lost {
    /// Too much happened at once, a connection was lost, or pages went, perhaps with the whole segment.
    Missed,
    /// The home has gone back in time: it goes on from an older state of its store. What was seen before may never have
    /// happened there, and references to lost objects are [`Gone`](crate::ErrorKind::Gone).
    HomeWentBack,
}

/// One changed object: written, created or deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Which object: the program's, or one that the segment itself keeps.
    pub object: ObjectId,
    /// By the commit at this place in the home's order.
    pub position: Position,
}

impl Change {
    /// Whether the segment has got more pages.
    pub fn is_extent(&self) -> bool {
        self.is_at(EXTENT_SLOT)
    }

    /// Whether it is the segment's [named roots](crate::Transaction::root) that have changed.
    pub fn is_roots(&self) -> bool {
        self.is_at(ROOTS_SLOT)
    }

    /// Whether it is the segment's [rights list](crate::Transaction::rights) that has changed.
    pub fn is_rights(&self) -> bool {
        self.is_at(RIGHTS_SLOT)
    }

    fn is_at(&self, slot: Slot) -> bool {
        self.object.page.page == HEAD_PAGE && self.object.slot == slot
    }
}

impl Watch {
    pub(crate) async fn begin(segment: Segment) -> Result<Self> {
        let shared = Arc::clone(segment.member().shared());
        begin_watching(&shared, &segment)?;
        let session = segment.member().session();
        let mut watch = Watch {
            session,
            cursor: Cursor::default(),
            changes: shared.changes.subscribe(),
            segment,
            lost: None,
            fence: None,
        };
        let due = session.fetch_due();
        loop {
            watch.cursor = shared.cache.now(watch.segment.home());
            if watch.pass_fence(&shared, due).await? {
                return Ok(watch);
            }
        }
    }

    /// The segment that is watched.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// The next changes; `None` if there are none within the time. While the home is unreachable there are none. What
    /// was missed meanwhile shows as [`lost`](Changed::lost).
    ///
    /// # Errors
    ///
    /// [`HomeUnreachable`](crate::ErrorKind::HomeUnreachable) if the home is back and does not answer within the
    /// session's fetch timeout: call it again. [`TooLarge`](crate::ErrorKind::TooLarge) if a site or the home watches no
    /// more segments,
    /// [`NotFound`](crate::ErrorKind::NotFound) if the segment was removed or this member may not read it any more, and
    /// [`Closed`](crate::ErrorKind::Closed).
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Changed>> {
        block_on(self.next_until(due_after(timeout)))
    }

    /// The next changes, as soon as there are any.
    ///
    /// # Errors
    ///
    /// As [`Watch::next`].
    pub async fn next_async(&mut self) -> Result<Changed> {
        loop {
            let due = due_after(LOOK_AGAIN);
            if let Some(changed) = self.next_until(due).await? {
                return Ok(changed);
            }
        }
    }

    async fn next_until(&mut self, due: Instant) -> Result<Option<Changed>> {
        let shared = Arc::clone(self.segment.member().shared());
        loop {
            self.changes.mark_unchanged();
            if self.is_refused() {
                return Err(self.refusal(&shared).await);
            }
            let changes = self.take(&shared);
            if let Some(lost) = self.lost {
                // The parent sends changes again, but not those that were committed before it received the watch.
                // After the fence nothing is missing beyond what the program sees when it looks at everything anew.
                let passed = tokio::select! {
                    passed = self.is_passed(&shared) => passed?,
                    slept = shared.requests.sleep_until(due) => return slept.map(|()| None),
                };
                if passed {
                    self.lost = None;
                    let lost = Some(lost);
                    return Ok(Some(Changed { changes, lost }));
                }
                continue;
            }
            if !changes.is_empty() {
                let lost = None;
                return Ok(Some(Changed { changes, lost }));
            }
            if shared.requests.is_closed() {
                return Err(Error::closed());
            }
            if !shared.requests.changed(&mut self.changes, due).await? {
                return Ok(None);
            }
        }
    }

    /// Whether the site or the home sends no changes of this segment.
    fn is_refused(&self) -> bool {
        lock(&self.segment.allocator().watches).refused
    }

    /// Why it sends none: the member may not read the segment (any more), or a limit is reached. The home knows.
    async fn refusal(&self, shared: &Arc<Shared>) -> Error {
        let due = self.session.fetch_due();
        let opened = match begin_fence(shared, &self.segment, due) {
            Ok(fence) => fence.wait.await.called(),
            Err(error) => Err(error),
        };
        let name = self.segment.name();
        match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let words = format!("{name} is not watched any more: {error}");
                Error::new(ErrorKind::NotFound, words)
            }
            _ => too_many(format!(
                "the site or the home sends the changes of no more segments: {name} is not watched, drop this watch and watch less"
            )),
        }
    }

    /// The changes that are there.
    fn take(&mut self, shared: &Shared) -> Vec<Change> {
        let since = shared.cache.changes_since(self.segment.home(), self.cursor);
        self.cursor = since.cursor;
        let lost = match since.went_back {
            true => Some(Lost::HomeWentBack),
            false => since.lost.then_some(Lost::Missed),
        };
        self.lost = self.lost.max(lost);
        let mut changes = Vec::new();
        let mut roots_changed_at = None;
        for (position, page, slots) in since.touched {
            if page.segment != self.segment.id() || page.page.is_overflow() {
                continue;
            }
            if slots == SlotSet::ALL {
                // The page went, perhaps with the segment: no change shows what was in it.
                self.lost = self.lost.max(Some(Lost::Missed));
                continue;
            }
            let slots = slots.iter().map(|slot| ObjectId { page, slot });
            for object in slots.map(seen_as) {
                let change = Change { object, position };
                // A commit that sets a root changes several nodes of the roots, and it is one change of them.
                if change.is_roots() && roots_changed_at.replace(position) == Some(position) {
                    continue;
                }
                changes.push(change);
            }
        }
        changes
    }

    async fn is_passed(&mut self, shared: &Arc<Shared>) -> Result<bool> {
        let due = self.session.fetch_due();
        self.pass_fence(shared, due).await
    }

    /// Waits until the parent has received the watch: it sends everything that is committed from then on. False:
    /// another life of the stream has begun meanwhile, and a new fence is needed.
    async fn pass_fence(&mut self, shared: &Arc<Shared>, due: Instant) -> Result<bool> {
        let home = self.segment.home();
        loop {
            let was_begun = self.fence.is_some();
            let fence = match &mut self.fence {
                Some(fence) => fence,
                none => none.insert(begin_fence(shared, &self.segment, due)?),
            };
            let completion = (&mut fence.wait).await;
            let begun_at = fence.begun_at;
            self.fence = None;
            match completion.called() {
                Ok(None) => shared.requests.pause(RETRY_PAUSE, due).await?,
                // It began before, with a patience that ended before this caller came.
                Err(error) if was_begun && error.kind() == ErrorKind::HomeUnreachable => {}
                // A read shows that the segment is gone.
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ if self.is_refused() => return Err(self.refusal(shared).await),
                _ => {
                    return Ok(begun_at.is_same_stream(shared.cache.now(home)));
                }
            }
        }
    }
}

fn begin_fence(shared: &Arc<Shared>, segment: &Segment, due: Instant) -> Result<Fence> {
    // First the position of the cache: when this thread runs after the response, another life may have begun.
    let begun_at = shared.cache.now(segment.home());
    let request = CallRequest::Open {
        path: segment.allocator().path().unwrap_or_default().to_owned(),
        create: false,
    };
    let wait = shared.requests.begin_call(segment.home(), request, due)?;
    Ok(Fence { begun_at, wait })
}

impl Drop for Watch {
    fn drop(&mut self) {
        let shared = self.segment.member().shared();
        let mut watches = lock(&self.segment.allocator().watches);
        watches.count = watches.count.saturating_sub(1);
        if watches.count == 0 {
            watches.refused = false;
            shared.allocators.end_watching();
            shared
                .requests
                .sender
                .try_send(watching(&self.segment, false));
        }
    }
}

fn begin_watching(shared: &Shared, segment: &Segment) -> Result<()> {
    let mut watches = lock(&segment.allocator().watches);
    if watches.count == 0 {
        if !shared.allocators.begin_watching() {
            return Err(too_many(format!(
                "a member watches at most {WATCHED_MAX} segments"
            )));
        }
        // Sent under the lock, so that beginnings and ends arrive in their order.
        if let Err(error) = shared.requests.sender.send(watching(segment, true)) {
            shared.allocators.end_watching();
            return Err(error);
        }
    }
    watches.count += 1;
    Ok(())
}

fn watching(segment: &Segment, on: bool) -> Request {
    Request::Watch {
        home: segment.home(),
        segment: segment.id(),
        on,
    }
}

fn too_many(words: String) -> Error {
    Error::new(ErrorKind::TooLarge, words)
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("segment", &self.segment)
            .finish_non_exhaustive()
    }
}

/// What programs see of a changed object: what lies in system pages is the segment's named roots.
fn seen_as(object: ObjectId) -> ObjectId {
    match object.page.page.is_system() {
        true => ObjectId {
            page: PageId {
                page: HEAD_PAGE,
                ..object.page
            },
            slot: ROOTS_SLOT,
        },
        false => object,
    }
}

/// How long one wait for changes lasts before the next: only so that no wait is for ever.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::PageNo;

    #[test]
    fn what_a_segment_keeps_of_itself_is_known() {
        let at = |page, slot| {
            let page = PageId::new(3, page);
            let slot = Slot(slot);
            let change = Change {
                object: ObjectId { page, slot },
                position: Position(9),
            };
            (change.is_extent(), change.is_roots())
        };
        assert_eq!(at(0, 0), (true, false));
        assert_eq!(at(0, 1), (false, true));
        assert_eq!(at(0, 2), (false, false));
        assert_eq!(at(1, 0), (false, false));
    }

    #[test]
    fn nodes_of_the_roots_are_the_roots() {
        let at = |page: PageNo| ObjectId {
            page: PageId::new(3, page.0),
            slot: Slot(5),
        };
        assert_eq!(seen_as(at(PageNo(7))), at(PageNo(7)));
        let change = Change {
            object: seen_as(at(PageNo(7).system())),
            position: Position(9),
        };
        assert!(change.is_roots());
    }
}
