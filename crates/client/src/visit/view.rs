//! What a visit reads from: a view that stands where it is, until it moves (rules C2, C3, C6 and C12).

use super::Visit;
use super::own::Own;
use crate::runtime::Pull;
use crate::{Error, ErrorKind, Reference, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use thorp_cache::Overlay;
use thorp_model::planted::Bug;
use thorp_model::{Consistency, Failures, HomeId, Place, planted};
use thorp_net::driver::uptime;

impl Visit {
    /// Moves the view to what is there now, after asking the homes if the bounds want it.
    pub(super) async fn look_again(&mut self) -> Result<()> {
        let homes = self.homes();
        loop {
            let streams = self.streams(&homes);
            self.left_out.clear();
            for home in &homes {
                self.pull(*home).await?;
            }
            self.stand(&homes).await?;
            // Another stream may be behind the answer.
            if self.streams(&homes) == streams {
                return Ok(());
            }
        }
    }

    /// The view and the updates over it are of one moment: no update is in both, and none is missed.
    async fn stand(&mut self, homes: &BTreeSet<HomeId>) -> Result<()> {
        let cache = Arc::clone(&self.member.shared().cache);
        loop {
            let version = cache.tentative_version();
            let mut view = self.member.begin(self.session);
            if !view.stand_at(homes) {
                return Err(Error::unreachable(
                    "a home of the visit was not heard of yet",
                ));
            }
            let overlay = match self.is_tentative() {
                true => cache.updates_of(&self.places()),
                false => Overlay::default(),
            };
            let is_one_moment = version.is_some() && cache.tentative_version() == version;
            if is_one_moment || !self.is_tentative() {
                self.view = Some(view);
                self.has_read = false;
                self.overlay = overlay;
                // The member shows what it has kept, and what the home has answered.
                self.published = Own::default();
                self.scratch.is_old();
                return Ok(());
            }
            std::thread::yield_now();
        }
    }

    /// An object with the updates that the visit shows. The view may move before it has read something, and whenever its reader
    /// lets it.
    pub(super) async fn read_whole(
        &mut self,
        whole: &Reference,
        may_move: bool,
    ) -> Result<Vec<u8>> {
        let is_made_here = self.own.creates(whole) || self.published.creates(whole);
        let read = match is_made_here {
            true => Err(Error::new(ErrorKind::Gone, "the visit makes the object")),
            false => self.read_committed(whole, may_move).await,
        };
        let read = self.with_updates(whole, read);
        let read = self.published.over(whole, read);
        let bytes = self.own.over(whole, read)?;
        // What was read is of a moment at which nobody else could write.
        self.check_locks()?;
        Ok(bytes)
    }

    /// An object as its home has it, as of this visit's view. A view in which nothing was read yet may move on, if the object
    /// is not kept as of it.
    async fn read_committed(&mut self, whole: &Reference, may_move: bool) -> Result<Vec<u8>> {
        for attempt in 0.. {
            let view = self.view.as_mut().ok_or_else(Error::closed)?;
            let read = view.read_async(whole).await.map(<[u8]>::to_vec);
            let may_move = !self.has_read || may_move;
            match read {
                Err(error) if error.kind() != ErrorKind::Conflict => {
                    self.has_read |= error.kind() == ErrorKind::Gone;
                    return Err(error);
                }
                Err(_) if may_move && attempt < MOVES_MAX => self.look_again().await?,
                Err(_) => break,
                Ok(bytes) => {
                    self.has_read = true;
                    return Ok(bytes);
                }
            }
        }
        Err(Error::new(ErrorKind::Conflict, NOT_KEPT))
    }

    /// An object with the updates over it.
    fn with_updates(&self, whole: &Reference, committed: Result<Vec<u8>>) -> Result<Vec<u8>> {
        if !self.is_tentative() {
            return committed;
        }
        let place = Place {
            home: whole.home,
            page: whole.object.page,
        };
        let (committed, gone) = match committed {
            Ok(bytes) => (Some((whole.generation, bytes)), None),
            Err(error) if error.kind() == ErrorKind::Gone => (None, Some(error)),
            Err(error) => return Err(error),
        };
        let cache = &self.member.shared().cache;
        let of_now = planted::is(Bug::OverlayOfNow).then(|| cache.updates_of(&self.places()));
        let overlay = of_now.as_ref().unwrap_or(&self.overlay);
        let seen = overlay.over(place, whole.object.slot, committed);
        match seen.filter(|(generation, _)| *generation == whole.generation) {
            Some((_, bytes)) => Ok(bytes),
            None => Err(gone.unwrap_or_else(|| {
                Error::new(
                    ErrorKind::Gone,
                    "an update that its home has not executed yet has deleted the object",
                )
            })),
        }
    }

    /// Asks a home for all that was answered before, unless that was done within the bound, or the member holds a read lease (rules C2
    /// and C3).
    async fn pull(&mut self, home: HomeId) -> Result<()> {
        let Some(within) = bound(&self.consistency) else {
            return Ok(());
        };
        let shared = self.member.shared();
        let stream = shared.pulls.stream(home);
        if self.locks.iter().any(|lock| lock.is_of(home, stream)) {
            // With the lock came all that was answered before.
            return shared.requests.shown(home, self.due()).await;
        }
        let since_sync = self.consistency.counts_since_sync();
        let segments = self.segments_of(home);
        if shared.pulls.is_fresh((home, &segments), within, since_sync) {
            return Ok(());
        }
        let sent = uptime();
        let due = self.due();
        let mods = may_miss(&self.consistency);
        let wanted = (segments.clone(), mods);
        let answer = shared.requests.pull(home, wanted, due).await;
        let answer = match answer {
            Ok(()) => shared.requests.shown(home, due).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(()) => {
                let answered = uptime();
                let pull = Pull {
                    sent,
                    answered,
                    stream,
                };
                // What a read lease lets the member miss may be older than the pull.
                if mods == 0 {
                    shared.pulls.note(home, &segments, pull);
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Closed => Err(error),
            Err(_) if self.consistency.failures() != Failures::Pessimistic => {
                self.left_out.insert(home);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn streams(&self, homes: &BTreeSet<HomeId>) -> Vec<u64> {
        let pulls = &self.member.shared().pulls;
        homes.iter().map(|home| pulls.stream(*home)).collect()
    }
}

/// How many answered changes a view may miss when it moves. Beside a bound in time none: a change that was missed could be older.
fn may_miss(consistency: &Consistency) -> u32 {
    match consistency.time() {
        Some(_) => 0,
        None => consistency.mods().unwrap_or_default(),
    }
}

/// How old a view may be when it moves, if its home is to be asked. With a bound in changes the home is always asked: it counts them.
fn bound(consistency: &Consistency) -> Option<Duration> {
    if !consistency.is_hard() {
        return None;
    }
    match consistency.mods() {
        Some(_) => Some(Duration::ZERO),
        None => consistency.time(),
    }
}

/// How often a view moves on for one read.
const MOVES_MAX: u32 = 16;

const NOT_KEPT: &str = "an object has changed, and what it was as of this visit's view is not kept here any more: refresh, or open another visit";
