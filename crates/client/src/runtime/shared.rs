//! What the threads of the program and the loop of the member share.

use super::counters::Counters;
use super::early_places::EarlyPlaces;
use super::homes::Homes;
use super::naming::Naming;
use super::prefetch::Prefetcher;
use super::pulls::Pulls;
use super::request_sender::RequestSender;
use super::requests::Requests;
use super::session_state::SessionState;
use crate::allocator::Allocators;
use crate::trace::Recorder;
use crate::{Error, LockNumber, Result};
use std::sync::Arc;
use std::time::Instant;
use thorp_cache::Cache;
use thorp_model::limits::PAGE_BYTES;
use thorp_model::{CommitId, HomeId, Refusal, Stamp};
use thorp_session::OwnCommits;
use tokio::sync::watch;

/// What the threads of the program and the loop of the member share. It wires its parts; each of them has its own lock.
pub(crate) struct Shared {
    pub(crate) cache: Arc<Cache>,
    pub(crate) homes: Arc<Homes>,
    pub(crate) requests: Arc<Requests>,
    pub(crate) prefetcher: Prefetcher,
    pub(crate) counters: Counters,
    pub(crate) allocators: Allocators,
    pub(crate) early_places: EarlyPlaces,
    pub(crate) session: SessionState,
    pub(crate) pulls: Pulls,
    /// The locks under which everything is written (rule C5).
    pub(super) under: Vec<LockNumber>,
    pub(crate) recorder: Option<Recorder>,
    /// Counts publications that changed something.
    pub(crate) changes: watch::Sender<u64>,
}

impl Shared {
    pub(super) fn new(
        cache_bytes: usize,
        prefetched_max: usize,
        sender: RequestSender,
        recorder: Option<Recorder>,
        under: Vec<LockNumber>,
    ) -> Self {
        let cache = Arc::new(Cache::new(cache_bytes));
        let homes = Arc::new(Homes::new());
        let requests = Arc::new(Requests::new(sender));
        // Prefetched pages must not push out what is read.
        let prefetched_max = prefetched_max.min(cache_bytes / PAGE_BYTES / 8);
        Shared {
            prefetcher: Prefetcher::new(
                prefetched_max,
                Arc::clone(&cache),
                Arc::clone(&homes),
                Arc::clone(&requests.sender),
            ),
            cache,
            homes,
            requests,
            counters: Counters::default(),
            allocators: Allocators::default(),
            early_places: EarlyPlaces::default(),
            session: SessionState::default(),
            pulls: Pulls::default(),
            under,
            recorder,
            changes: watch::Sender::new(0),
        }
    }

    /// A home has gone back in time: what this program has of it is void (rule R9).
    pub(super) fn went_back(&self, home: HomeId) {
        self.allocators.home_went_back(home);
        self.session.home_went_back(home);
        self.changes.send_modify(|count| *count += 1);
    }

    /// The locks under which everything is written.
    pub(crate) fn under(&self) -> &[LockNumber] {
        &self.under
    }

    /// What people call what has numbers.
    pub(crate) fn naming(&self) -> Naming<'_> {
        Naming::new(&self.homes, &self.allocators)
    }

    /// Why a commit was refused, for the program. By one home, if it touched several.
    pub(crate) fn refused(&self, by: Option<HomeId>, refusal: Refusal) -> Error {
        Error::refused(refusal, |object| match by {
            Some(home) => self.naming().slot(home, object, None),
            None => format!("#{}.{}", object.page.page, object.slot),
        })
    }

    /// Waits until a home's stream is live.
    pub(crate) async fn reach(&self, home: HomeId, due: Instant) -> Result<()> {
        self.homes.reach(home, &self.requests, due).await
    }
}

impl OwnCommits for Shared {
    fn is_open(&self, id: CommitId) -> bool {
        self.requests.pending.is_open(id)
    }

    fn stamp(&self, _: CommitId) -> Stamp {
        self.session.floor()
    }
}
