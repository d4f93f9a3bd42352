//! Hearing of changes.

use crate::limits::WATCHED_MAX;
use crate::link::{Link, block_on, lock};
use crate::{Error, ErrorKind, Result, Segment};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thorp_cache::Cursor;
use thorp_core::door::Ask;
use thorp_core::ids::{ObjectId, Position};
use thorp_core::message::Request;
use tokio::sync::watch;

/// Tells what changes in a segment: see [`Segment::watch`](crate::Segment::watch). Also what this member itself commits.
pub struct Watch {
    segment: Segment,
    cursor: Cursor,
    changes: watch::Receiver<u64>,
    session: crate::Session,
}

/// Some commits' changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changed {
    /// The changes, in the order of commits; whole commits only.
    pub changes: Vec<Change>,
    /// More happened than is told (too much at once, or the connection was lost meanwhile): look at everything anew.
    pub lost: bool,
}

/// One changed object: written, created or deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Which object. Slot 0 of page 0 is the segment's extent, slot 1 its roots.
    pub object: ObjectId,
    /// By the commit at this place in the home's order.
    pub position: Position,
}

impl Watch {
    pub(crate) async fn begin(segment: Segment) -> Result<Self> {
        let link = Arc::clone(segment.member().link());
        begin_watching(&link, &segment)?;
        let mut watch = Watch {
            session: segment.member().session(),
            cursor: Cursor::default(),
            changes: link.changes.subscribe(),
            segment,
        };
        watch.fence(&link).await?;
        Ok(watch)
    }

    /// The segment that is watched.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// The next changes; `None` if there are none within the time. While the home is unreachable there are none; what was
    /// missed meanwhile is told as [`lost`](Changed::lost).
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Changed>> {
        block_on(self.next_until(Instant::now() + timeout))
    }

    /// The next changes, as soon as there are any.
    pub async fn next_async(&mut self) -> Result<Changed> {
        loop {
            let due = Instant::now() + LOOK_AGAIN;
            if let Some(changed) = self.next_until(due).await? {
                return Ok(changed);
            }
        }
    }

    async fn next_until(&mut self, due: Instant) -> Result<Option<Changed>> {
        let link = Arc::clone(self.segment.member().link());
        loop {
            self.changes.mark_unchanged();
            self.check()?;
            let changed = self.take(&link);
            if changed.lost {
                // The parent was told anew to tell changes, but what was committed before it heard that is not told: only
                // now is it certain that nothing is missing after what the program looks at next.
                self.fence(&link).await?;
                return Ok(Some(changed));
            }
            if !changed.changes.is_empty() {
                return Ok(Some(changed));
            }
            if link.is_closed() {
                return Err(Error::closed());
            }
            if !link.changed(&mut self.changes, due).await? {
                return Ok(None);
            }
        }
    }

    /// Fails if nobody tells what changes.
    fn check(&self) -> Result<()> {
        if !lock(&self.segment.ground().watches).refused {
            return Ok(());
        }
        Err(too_many(format!(
            "the site or the home tells the changes of no more segments: {} is not watched, drop this watch and watch less",
            self.segment.name()
        )))
    }

    /// The changes that are there.
    fn take(&mut self, link: &Link) -> Changed {
        let told = link.cache.changes_since(self.segment.home(), self.cursor);
        self.cursor = told.cursor;
        let mut changes = Vec::new();
        for (position, page, slots) in told.touched {
            if page.segment != self.segment.id() || page.page.is_overflow() {
                continue;
            }
            changes.extend(slots.iter().map(|slot| Change {
                object: ObjectId { page, slot },
                position,
            }));
        }
        Changed {
            changes,
            lost: told.lost,
        }
    }

    /// Waits until the parent has heard what is watched: a call's answer comes down the same stream, after that. What is
    /// committed from then on is told.
    async fn fence(&mut self, link: &Arc<Link>) -> Result<()> {
        let request = Request::Open {
            path: self.segment.ground().path().unwrap_or_default().to_owned(),
            create: false,
        };
        let due = Instant::now() + self.session.fetch_timeout;
        match link.call(self.segment.home(), request, due).await {
            // That it is gone is told by reading.
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound) => return Err(error),
            _ => {}
        }
        self.cursor = link.cache.now(self.segment.home());
        self.check()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let ground = self.segment.ground();
        let mut watches = lock(&ground.watches);
        watches.count = watches.count.saturating_sub(1);
        if watches.count == 0 {
            watches.refused = false;
            self.segment.member().link().tell(ask(&self.segment, false));
        }
    }
}

fn begin_watching(link: &Link, segment: &Segment) -> Result<()> {
    if link.grounds.watched() >= WATCHED_MAX && lock(&segment.ground().watches).count == 0 {
        return Err(too_many(format!(
            "a member watches at most {WATCHED_MAX} segments"
        )));
    }
    let mut watches = lock(&segment.ground().watches);
    // Told under the lock, so that beginnings and ends are told in their order.
    if watches.count == 0 {
        link.order(ask(segment, true))?;
    }
    watches.count += 1;
    Ok(())
}

fn ask(segment: &Segment, on: bool) -> Ask {
    Ask::Watch {
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

/// How long one wait for changes lasts before the next: only so that no wait is for ever.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
