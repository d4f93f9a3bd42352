//! Between the program's threads and the member's loop: what both share, and the asking.

mod block_on;
mod counters;
mod early_commit;
mod event_loop;
mod homes;
mod join_settings;
mod member_runtime;
mod node_id;
mod pending_requests;
mod prefetch;
mod staged_tokens;
mod worker;

pub(crate) use block_on::block_on;
pub(crate) use counters::{Counters, Ending};
pub(crate) use early_commit::EarlyCommit;
pub(crate) use homes::Known as KnownHome;
pub(crate) use member_runtime::MemberRuntime;
pub(crate) use node_id::random_id;
pub(crate) use pending_requests::{Completion, LateOutcome, RequestKind};
pub(crate) use staged_tokens::StagedTokens;
pub(crate) use worker::Worker;

use crate::allocator::Allocators;
use crate::head_page::{EXTENT_SLOT, HEAD_PAGE};
use crate::limits::IDLE_READ_SETS_MAX;
use crate::lock::lock;
use crate::trace::Recorder;
use crate::{Error, Result};
use homes::Homes;
use pending_requests::PendingRequests;
use prefetch::PrefetchPolicy;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use thorp_cache::{Cache, ReadSet};
use thorp_model::limits::PAGE_BYTES;
use thorp_model::{
    CallError, CallRequest, CallResponse, CommitId, Content, FetchRefusal, HomeId, Outcome, PageId,
    PageNo, Part, Place, Reference, RequestId, Stamp,
};
use thorp_net::driver::{Handle, NotTaken};
use thorp_protocol::{Member, MemberCommand, Request, Response, Source};
use thorp_session::CommitCall;
use tokio::sync::{oneshot, watch};

/// What the threads of the program and the loop of the member share.
pub(crate) struct Shared {
    pub(crate) cache: Cache,
    pub(crate) homes: Homes,
    pub(crate) waits: PendingRequests,
    pub(crate) counters: Counters,
    pub(crate) allocators: Allocators,
    pub(crate) ahead: PrefetchPolicy,
    pub(crate) recorder: Option<Recorder>,
    /// Of commits that are shown before they are answered.
    places: early_commit::Places,
    /// Counts publications that changed something.
    pub(crate) changes: watch::Sender<u64>,
    /// Pages were chosen to go and have not gone: what is over the limit is not counted again.
    is_evicting: AtomicBool,
    handle: OnceLock<Handle<Member>>,
    begins: Mutex<Begins>,
}

/// What a transaction begins with, under one lock.
#[derive(Default)]
struct Begins {
    idle: Vec<ReadSet>,
    /// The highest stamp at which a transaction of this program is known to stand (rule 5).
    floor: Stamp,
}

/// An ask under way. Dropped, it is given up; a commit goes on.
pub(crate) struct RequestFuture {
    shared: Arc<Shared>,
    ticket: RequestId,
    told: oneshot::Receiver<Completion>,
    ended: bool,
}

impl Shared {
    fn new(cache_bytes: usize, ahead_pages_max: usize) -> Self {
        Shared {
            cache: Cache::new(cache_bytes),
            homes: Homes::new(),
            waits: PendingRequests::new(),
            counters: Counters::default(),
            allocators: Allocators::default(),
            // What is fetched ahead must not push out what is read.
            ahead: PrefetchPolicy::new(ahead_pages_max.min(cache_bytes / PAGE_BYTES / 8)),
            recorder: None,
            places: early_commit::Places::default(),
            changes: watch::Sender::new(0),
            is_evicting: AtomicBool::new(false),
            handle: OnceLock::new(),
            begins: Mutex::default(),
        }
    }

    pub(crate) fn handle(&self) -> Option<&Handle<Member>> {
        self.handle.get()
    }

    // --- Asking ---

    /// Asks the member. The answer is waited for until `due`.
    pub(crate) fn ask(
        self: &Arc<Self>,
        kind: RequestKind,
        due: Instant,
        ask: Request,
    ) -> Result<RequestFuture> {
        self.put(self.wait(kind, due), ask)
    }

    fn put(&self, mut wait: RequestFuture, ask: Request) -> Result<RequestFuture> {
        self.input(wait.ticket, ask).map_err(|not_taken| {
            // The core never heard of it: there is nothing to give up there.
            wait.ended = true;
            self.waits.cancel(wait.ticket);
            not_taken_error(not_taken)
        })?;
        Ok(wait)
    }

    fn wait(self: &Arc<Self>, kind: RequestKind, due: Instant) -> RequestFuture {
        let (ticket, told) = self.waits.begin(kind, due);
        RequestFuture {
            shared: Arc::clone(self),
            ticket,
            told,
            ended: false,
        }
    }

    fn input(&self, ticket: RequestId, ask: Request) -> Result<(), NotTaken> {
        let handle = self.handle.get().ok_or(NotTaken::Gone)?;
        handle.command(MemberCommand::Request {
            id: ticket,
            request: ask,
        })
    }

    /// Asks something that is not answered, and must not be left out.
    pub(crate) fn order(&self, ask: Request) -> Result<()> {
        let told = self.input(self.waits.ticket(), ask);
        told.map_err(not_taken_error)
    }

    /// Asks something to which there is no answer, or none is wanted.
    pub(crate) fn tell(&self, ask: Request) {
        // If too much is asked, this is what to leave out; what may not be left out is always taken.
        let _ = self.order(ask);
    }

    /// Asks for a page that nobody waits for, unless it is there.
    pub(crate) fn prefetch(&self, place: Place) {
        if !self.is_here(place) {
            self.tell(Request::Prefetch(place));
        }
    }

    /// Requests the pages of objects that the program will read.
    pub(crate) fn prefetch_named(&self, references: &[Reference]) {
        let mut last = None;
        for reference in references {
            let place = Place {
                home: reference.home,
                page: reference.object.page,
            };
            // References that are neighbours are often of one page.
            if last != Some(place) {
                self.prefetch_named_page(place);
                last = Some(place);
            }
        }
    }

    /// As [`prefetch`](Self::prefetch), and counts what becomes of the page.
    fn prefetch_named_page(&self, place: Place) {
        if self.ahead.is_on() && !self.is_here(place) && self.homes.name(place.home).is_some() {
            self.ahead.named(place);
            self.tell(Request::Prefetch(place));
        }
    }

    /// What was read refers to these.
    pub(crate) fn referred(&self, references: &[Reference]) {
        let places = references.iter().map(|reference| Place {
            home: reference.home,
            page: reference.object.page,
        });
        let known = |place: &Place| self.homes.name(place.home).is_some();
        let here = |place| self.is_here(place);
        for place in self.ahead.referred(places, here).into_iter().filter(known) {
            self.tell(Request::Prefetch(place));
        }
    }

    /// The site says what is likely to be read next.
    fn hinted(&self, likely: &[Place]) {
        for place in self.ahead.hinted(likely, |place| self.is_here(place)) {
            self.tell(Request::Prefetch(place));
        }
    }

    /// A page that was asked for ahead is fetched for a neighbour, too.
    fn joined(&self, place: Place) {
        for place in self.ahead.joined(place, |place| self.is_here(place)) {
            self.tell(Request::Prefetch(place));
        }
    }

    /// A page that was asked for has come.
    fn arrived(&self, place: Place) {
        for place in self.ahead.arrived(place, |place| self.is_here(place)) {
            self.tell(Request::Prefetch(place));
        }
    }

    /// Asks for what is likely to be wanted after a page that is waited for.
    pub(crate) fn fetch_ahead(&self, place: Place, reads: &ReadSet) {
        if !self.ahead.is_on() || place.page.page.is_overflow() {
            return;
        }
        let is_read = |place| reads.image(place).is_some();
        let extent = self.extent(place);
        let is_here = |place| self.is_here(place);
        for place in self.ahead.missed(place, extent, is_read, is_here) {
            self.tell(Request::Prefetch(place));
        }
    }

    /// The first page of a segment that holds nothing. If the page that tells is not here, it is asked for, too.
    fn extent(&self, of: Place) -> Option<PageNo> {
        let page = PageId {
            page: HEAD_PAGE,
            ..of.page
        };
        let first = Place { page, ..of };
        let image = self.cache.image(first);
        if let Some(Content::Value(bytes)) = image.as_ref().map(|image| image.content(EXTENT_SLOT))
        {
            return bytes.try_into().ok().map(u32::from_le_bytes).map(PageNo);
        }
        self.prefetch(first);
        None
    }

    fn is_here(&self, place: Place) -> bool {
        let image = self.cache.image(place);
        image.is_some_and(|image| image.is_complete())
    }

    /// Asks for a page.
    pub(crate) fn ask_page(self: &Arc<Self>, place: Place, due: Instant) -> Result<RequestFuture> {
        self.ask(RequestKind::Response, due, Request::Fetch(place))
    }

    /// Has a page that was asked for in the cache, without holes; asks again for what is busy.
    pub(crate) async fn fetched(
        self: &Arc<Self>,
        mut asked: Result<RequestFuture>,
        place: Place,
        due: Instant,
    ) -> Result<Option<Source>> {
        loop {
            let wait = match asked {
                Ok(wait) => wait,
                Err(error) if error.is_retryable() => {
                    self.pause(PAUSE, due).await?;
                    asked = self.ask_page(place, due);
                    continue;
                }
                Err(error) => return Err(error),
            };
            match fetched(wait.await, place.page)? {
                Some(source) => return Ok(source),
                None => self.pause(PAUSE, due).await?,
            }
            asked = self.ask_page(place, due);
        }
    }

    /// Asks something else of a home; what is busy is asked again.
    pub(crate) async fn call(
        self: &Arc<Self>,
        home: HomeId,
        request: CallRequest,
        due: Instant,
    ) -> Result<CallResponse> {
        loop {
            let wait = self.ask_call(home, request.clone(), due)?;
            match called(wait.await)? {
                Some(response) => return Ok(response),
                None => self.pause(PAUSE, due).await?,
            }
        }
    }

    /// Begins to ask something else of a home.
    pub(crate) fn ask_call(
        self: &Arc<Self>,
        home: HomeId,
        request: CallRequest,
        due: Instant,
    ) -> Result<RequestFuture> {
        self.ask(RequestKind::Response, due, Request::Call { home, request })
    }

    /// Sends a commit. What it names is kept for as long as it may happen, whoever waits.
    pub(crate) fn ask_commit(
        self: &Arc<Self>,
        parts: Vec<Part>,
        staged: Vec<Arc<StagedTokens>>,
        (depends_on, after): (Vec<(HomeId, CommitId)>, Stamp),
        due: Instant,
    ) -> Result<RequestFuture> {
        let ask = Request::Commit {
            parts,
            depends_on,
            after,
            early: false,
        };
        let wait = self.wait(RequestKind::Commit(None), due);
        self.waits.hold(wait.ticket, staged);
        self.put(wait, ask)
    }

    /// Sends a commit whose program goes on as soon as it is shown (rule 14).
    pub(crate) fn ask_commit_early(
        self: &Arc<Self>,
        call: CommitCall,
        early: EarlyCommit,
        due: Instant,
    ) -> Result<RequestFuture> {
        let ask = Request::Commit {
            parts: call.parts,
            depends_on: call.depends_on,
            after: call.after,
            early: true,
        };
        let wait = self.wait(RequestKind::Commit(None), due);
        self.waits.hold_early(wait.ticket, early);
        self.put(wait, ask)
    }

    // --- Waiting ---

    /// PendingRequests for a time. Fails if it would end after `due`, or the member is closed.
    pub(crate) async fn pause(self: &Arc<Self>, pause: Duration, due: Instant) -> Result<()> {
        let until = Instant::now() + pause;
        if until > due {
            return Err(late());
        }
        self.sleep_until(until).await
    }

    /// PendingRequests until a time.
    pub(crate) async fn sleep_until(self: &Arc<Self>, until: Instant) -> Result<()> {
        match self.wait(RequestKind::Time, until).await {
            Completion::Closed => Err(Error::closed()),
            _ => Ok(()),
        }
    }

    /// PendingRequests until something changes. False: it was `due` before.
    pub(crate) async fn changed(
        self: &Arc<Self>,
        changes: &mut watch::Receiver<u64>,
        due: Instant,
    ) -> Result<bool> {
        tokio::select! {
            // The sending end is in this shared: it is there.
            _ = changes.changed() => Ok(true),
            slept = self.sleep_until(due) => slept.map(|()| false),
        }
    }

    /// PendingRequests until a home's stream is live.
    pub(crate) async fn reach(self: &Arc<Self>, home: HomeId, due: Instant) -> Result<()> {
        let mut changes = self.homes.changes();
        loop {
            changes.mark_unchanged();
            if self.homes.is_live(home) {
                return Ok(());
            }
            if !self.changed(&mut changes, due).await? {
                let name = self.homes.name(home).unwrap_or_else(|| format!("#{home}"));
                return Err(Error::unreachable(format!("home {name} cannot be reached")));
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.waits.is_closed()
    }

    // --- How transactions begin and end ---

    /// A read set, and the session's floor: threads of one program tell each other what they saw.
    pub(crate) fn begin(&self) -> (ReadSet, Stamp) {
        let mut begins = lock(&self.begins);
        (begins.idle.pop().unwrap_or_default(), begins.floor)
    }

    /// What begins now stands no lower.
    pub(crate) fn floor(&self) -> Stamp {
        lock(&self.begins).floor
    }

    /// A transaction stands at this stamp.
    pub(crate) fn raise_floor(&self, stamp: Stamp) {
        let floor = &mut lock(&self.begins).floor;
        *floor = stamp.max(*floor);
    }

    /// A transaction needs its read set no more.
    pub(crate) fn end(&self, mut reads: ReadSet) {
        reads.finish(&self.cache);
        let idle = &mut lock(&self.begins).idle;
        if idle.len() < IDLE_READ_SETS_MAX {
            idle.push(reads);
        }
    }
}

/// How a fetch ended; none: ask again a little later.
pub(crate) fn fetched(told: Completion, page: PageId) -> Result<Option<Option<Source>>> {
    match told {
        Completion::Response(Response::Fetched(source)) => Ok(Some(source)),
        Completion::Response(Response::NotFetched(FetchRefusal::Busy) | Response::Busy) => Ok(None),
        Completion::Response(Response::NotFetched(refusal)) => Err(refusal.into()),
        Completion::Response(..) => Err(Error::invalid("the member answered something else")),
        Completion::TimedOut(_) => Err(Error::unreachable(format!(
            "page {page} did not come in time"
        ))),
        Completion::Closed => Err(Error::closed()),
    }
}

/// How a call ended; none: ask again a little later.
pub(crate) fn called(told: Completion) -> Result<Option<CallResponse>> {
    match told {
        Completion::Response(Response::Called(Ok(response))) => Ok(Some(response)),
        Completion::Response(Response::Called(Err(CallError::Busy)) | Response::Busy) => Ok(None),
        Completion::Response(Response::Called(Err(error))) => Err(error.into()),
        Completion::Response(..) => Err(Error::invalid("the member answered something else")),
        Completion::TimedOut(_) => Err(late()),
        Completion::Closed => Err(Error::closed()),
    }
}

/// How a commit ended, and whose word that is.
pub(crate) fn committed(told: Completion) -> Result<(CommitId, Outcome, Option<HomeId>)> {
    match told {
        Completion::Response(Response::Outcome(id, outcome, by)) => Ok((id, outcome, by)),
        Completion::Response(..) => Err(Error::busy(PAUSE)),
        Completion::TimedOut(Some(id)) => Err(unknown(id)),
        // A commit times out only after it was given its id.
        Completion::TimedOut(None) | Completion::Closed => Err(Error::closed()),
    }
}

fn not_taken_error(not_taken: NotTaken) -> Error {
    match not_taken {
        NotTaken::TooMany => Error::busy(PAUSE),
        NotTaken::Gone => Error::closed(),
    }
}

fn late() -> Error {
    Error::unreachable("the home did not answer in time")
}

fn unknown(id: CommitId) -> Error {
    Error::new(
        crate::ErrorKind::OutcomeUnknown(id),
        format!("the outcome of commit {id} did not come in time: ask for it later"),
    )
}

impl Future for RequestFuture {
    type Output = Completion;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        let told = std::task::ready!(Pin::new(&mut self.told).poll(context));
        self.ended = true;
        // A sender is dropped unused only with the table it is in.
        Poll::Ready(told.unwrap_or(Completion::Closed))
    }
}

impl Drop for RequestFuture {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // The answer may be here, and nobody has looked; after this it is kept by who brings it.
        self.told.close();
        if let Ok(told) = self.told.try_recv() {
            return self.shared.waits.keep(told);
        }
        if self.shared.waits.forget(self.ticket) {
            self.shared.tell(Request::Forget(self.ticket));
        }
    }
}

/// Between two tries of what was busy.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_asked_is_waited_for_by_nobody() {
        // Its loop takes nothing.
        let shared = Arc::new(Shared::new(1 << 20, 0));
        let (parts, depends_on) = (Vec::new(), Vec::new());
        let after = thorp_model::Stamp::default();
        let ask = Request::Commit {
            parts,
            depends_on,
            after,
            early: false,
        };
        for kind in [RequestKind::Commit(None), RequestKind::Response] {
            assert!(shared.ask(kind, Instant::now(), ask.clone()).is_err());
            assert_eq!(shared.waits.waiting(), 0);
        }
    }
}
