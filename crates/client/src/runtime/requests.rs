//! The requests of the program's threads, and waiting for their completions.

use super::completion::{Completion, Fetched};
use super::early_commit::EarlyCommit;
use super::locks::Locks;
use super::pending_requests::{PendingRequests, RequestKind};
use super::request_sender::RequestSender;
use super::staged_tokens::StagedTokens;
use crate::limits::{HELD_LOOK, RETRY_PAUSE};
use crate::{Error, ErrorKind, Result};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use thorp_model::{CallRequest, CallResponse, HomeId, PageWrites, Place, RequestId, SegmentId};
use thorp_protocol::{Member, NotKept, Request, Response, Source};
use thorp_session::CommitCall;
use tokio::sync::{oneshot, watch};

/// Requests of the program's threads to the member. Each request that the loop has taken ends with one [`Completion`]:
/// its response, its timeout, or the end of the member.
pub(crate) struct Requests {
    pub(crate) sender: Arc<RequestSender>,
    pub(crate) pending: PendingRequests,
    /// The locks of the program's sessions.
    pub(super) locks: Locks,
}

/// A segment of which updates of neighbours are shown; dropped, no longer for its owner.
pub(crate) struct Followed {
    requests: Arc<Requests>,
    home: HomeId,
    segment: SegmentId,
}

/// A request under way. Dropped, it is given up; a commit goes on.
pub(crate) struct RequestFuture {
    requests: Arc<Requests>,
    id: RequestId,
    completion: oneshot::Receiver<Completion>,
    ended: bool,
    /// Its program goes on before the response, and has its id.
    early: bool,
}

impl Requests {
    pub(super) fn new(sender: RequestSender) -> Self {
        Requests {
            sender: Arc::new(sender),
            pending: PendingRequests::new(),
            locks: Locks::default(),
        }
    }

    // --- Requests ---

    fn begin(self: &Arc<Self>, kind: RequestKind, due: Instant) -> RequestFuture {
        let id = self.sender.next_id();
        RequestFuture {
            completion: self.pending.begin(id, kind, due),
            requests: Arc::clone(self),
            id,
            ended: false,
            early: false,
        }
    }

    fn send(&self, mut future: RequestFuture, request: Request) -> Result<RequestFuture> {
        self.sender.send_as(future.id, request).inspect_err(|_| {
            // The state machine has not got the request: there is nothing to give up there.
            future.ended = true;
            self.pending.cancel(future.id);
        })?;
        Ok(future)
    }

    /// Requests a page.
    pub(crate) fn fetch(self: &Arc<Self>, place: Place, due: Instant) -> Result<RequestFuture> {
        let future = self.begin(RequestKind::Response, due);
        self.send(future, Request::Fetch(place))
    }

    /// Waits until a requested page is in the cache, without holes. Requests it again while somebody is busy.
    pub(crate) async fn fetched(
        self: &Arc<Self>,
        mut request: Result<RequestFuture>,
        place: Place,
        due: Instant,
    ) -> Result<Option<Source>> {
        loop {
            let future = match request {
                Ok(future) => future,
                Err(error) if error.is_retryable() => {
                    self.pause(RETRY_PAUSE, due).await?;
                    request = self.fetch(place, due);
                    continue;
                }
                Err(error) => return Err(error),
            };
            match future.await.fetched()? {
                Fetched::Page(source) => return Ok(source),
                Fetched::Busy => self.pause(RETRY_PAUSE, due).await?,
            }
            request = self.fetch(place, due);
        }
    }

    /// Sends a call to a home.
    pub(crate) fn begin_call(
        self: &Arc<Self>,
        home: HomeId,
        request: CallRequest,
        due: Instant,
    ) -> Result<RequestFuture> {
        let future = self.begin(RequestKind::Response, due);
        self.send(future, Request::Call { home, request })
    }

    /// Sends a call to a home, again while somebody is busy, and waits for the response.
    pub(crate) async fn call(
        self: &Arc<Self>,
        home: HomeId,
        request: CallRequest,
        due: Instant,
    ) -> Result<CallResponse> {
        loop {
            let future = self.begin_call(home, request.clone(), due)?;
            match future.await.called()? {
                Some(response) => return Ok(response),
                None => self.pause(RETRY_PAUSE, due).await?,
            }
        }
    }

    /// Waits until all is here that was answered in these segments before, but for so many changes (rules C2 and C3).
    pub(crate) async fn pull(
        self: &Arc<Self>,
        home: HomeId,
        (segments, mods): (Vec<SegmentId>, u32),
        due: Instant,
    ) -> Result<()> {
        loop {
            // The home answers a little before it would be too late, and says whom it awaits.
            let left = due.saturating_duration_since(Instant::now());
            let patience = left.mul_f64(0.8).as_millis();
            let request = Request::Pull {
                home,
                segments: segments.clone(),
                patience_ms: u32::try_from(patience).unwrap_or(u32::MAX),
                mods,
            };
            let future = self.begin(RequestKind::Response, due);
            let future = self.send(future, request)?;
            if future.await.called()?.is_some() {
                return Ok(());
            }
            self.pause(RETRY_PAUSE, due).await?;
        }
    }

    /// Shows updates of neighbours in a segment, until what is returned is dropped. None, if that cannot be had in time.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        home: HomeId,
        segment: SegmentId,
        due: Instant,
    ) -> Result<Option<Followed>> {
        let on = true;
        let request = Request::Follow { home, segment, on };
        let future = self.begin(RequestKind::Response, due);
        let future = self.send(future, request)?;
        match future.await {
            Completion::Response(Response::Following) => Ok(Some(Followed {
                requests: Arc::clone(self),
                home,
                segment,
            })),
            Completion::Response(_) => Err(Error::busy(RETRY_PAUSE)),
            Completion::TimedOut(_) => Ok(None),
            Completion::Closed => Err(Error::closed()),
        }
    }

    /// Has the log keep an update. Returns whether the home has granted a lease for it: then who reads with a hard bound waits for it.
    pub(crate) async fn update(
        self: &Arc<Self>,
        (home, writes): (HomeId, Vec<PageWrites>),
        patience: Duration,
        due: Instant,
    ) -> Result<bool> {
        let request = Request::Update {
            home,
            writes,
            patience_ms: u32::try_from(patience.as_millis()).unwrap_or(u32::MAX),
        };
        let future = self.begin(RequestKind::Response, due);
        let future = self.send(future, request)?;
        match future.await {
            Completion::Response(Response::Kept { is_leased, .. }) => Ok(is_leased),
            Completion::Response(Response::NotKept(why)) => Err(not_kept(why)),
            Completion::Response(_) => Err(Error::busy(RETRY_PAUSE)),
            Completion::TimedOut(_) => Err(Error::new(
                ErrorKind::OutcomeLost,
                "the log did not answer in time: the update may be kept, and then its home gets it",
            )),
            Completion::Closed => Err(Error::closed()),
        }
    }

    /// Waits until all that a home's stream has brought is shown. After a broken stream pages are shown as of where that
    /// ended, until it is known which of them have changed (rule 13).
    pub(crate) async fn shown(self: &Arc<Self>, home: HomeId, due: Instant) -> Result<()> {
        while let Some(handle) = self.sender.handle() {
            let held = handle.inspect(move |member: &Member| member.is_behind(home));
            match held.await {
                Some(false) => return Ok(()),
                Some(true) => self.pause(HELD_LOOK, due).await?,
                None => break,
            }
        }
        Err(Error::closed())
    }

    /// Sends a commit. The staged values are kept until its outcome is known, also if nobody waits for that.
    pub(crate) fn commit(
        self: &Arc<Self>,
        kind: RequestKind,
        call: CommitCall,
        staged: Vec<Arc<StagedTokens>>,
        due: Instant,
    ) -> Result<RequestFuture> {
        let future = self.begin(kind, due);
        self.pending.hold(future.id, staged);
        self.send(future, request_of(call, false))
    }

    /// Sends a commit whose program goes on as soon as the page cache shows it (rule 14).
    pub(crate) fn commit_early(
        self: &Arc<Self>,
        call: CommitCall,
        early: EarlyCommit,
        due: Instant,
    ) -> Result<RequestFuture> {
        let mut future = self.begin(RequestKind::Commit(None), due);
        future.early = true;
        self.pending.hold_early(future.id, early);
        self.send(future, request_of(call, true))
    }

    // --- Waiting ---

    /// Waits for a time. Fails if that would end after `due`, or if the member is closed.
    pub(crate) async fn pause(self: &Arc<Self>, pause: Duration, due: Instant) -> Result<()> {
        let until = Instant::now() + pause;
        if until > due {
            return Err(Error::late());
        }
        self.sleep_until(until).await
    }

    /// Waits until a time. Fails if the member is closed.
    pub(crate) async fn sleep_until(self: &Arc<Self>, until: Instant) -> Result<()> {
        match self.begin(RequestKind::Time, until).await {
            Completion::Closed => Err(Error::closed()),
            _ => Ok(()),
        }
    }

    /// Waits until something changes. False: `due` came before.
    pub(crate) async fn changed(
        self: &Arc<Self>,
        changes: &mut watch::Receiver<u64>,
        due: Instant,
    ) -> Result<bool> {
        tokio::select! {
            // The member that waits here holds the sender: it is there.
            _ = changes.changed() => Ok(true),
            slept = self.sleep_until(due) => slept.map(|()| false),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.pending.is_closed()
    }
}

impl Future for RequestFuture {
    type Output = Completion;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        let completion = std::task::ready!(Pin::new(&mut self.completion).poll(context));
        self.ended = true;
        // A sender is dropped unused only with the table it is in.
        Poll::Ready(completion.unwrap_or(Completion::Closed))
    }
}

impl Drop for RequestFuture {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // The completion may be here unseen. After this close, its sender keeps it.
        self.completion.close();
        if let Ok(completion) = self.completion.try_recv() {
            if self.early {
                self.requests.pending.keep(completion);
            }
            return;
        }
        if self.requests.pending.forget(self.id) {
            self.requests.sender.try_send(Request::Forget(self.id));
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let (home, segment, on) = (self.home, self.segment, false);
        let sender = &self.requests.sender;
        sender.try_send(Request::Follow { home, segment, on });
    }
}

/// Why the log did not take an update, for the program.
fn not_kept(why: NotKept) -> Error {
    match why {
        NotKept::NoLog => Error::invalid(
            "there is no log on the way that could keep an update while its home is away: give the member one with \
             JoinConfig::log or --log, start its site with --log-identity, or take failures=pessimistic",
        ),
        NotKept::LogFull => Error::new(
            ErrorKind::Full,
            "the log is full, or this name has its share of it: the homes have to execute some updates first",
        ),
        NotKept::DiskFull(lack) => Error::new(
            ErrorKind::Full,
            format!("the disk under the log is full: {lack}"),
        )
        .lacking(lack),
        NotKept::Broken => Error::new(
            ErrorKind::OutcomeLost,
            "the disk under the log failed: whether the update is kept, the next start shows",
        ),
        NotKept::Invalid => {
            Error::invalid("an update writes at least one object, all of one segment")
        }
        // The log of the site is another one since a moment ago.
        NotKept::OtherLog(_) => Error::busy(RETRY_PAUSE),
        NotKept::NotProven => Error::new(
            ErrorKind::NoRight,
            "the log of the site does not accept the signature of this member: renew its certificate",
        ),
        NotKept::InDoubt => Error::new(
            ErrorKind::OutcomeLost,
            "the log of the site did not answer: the update may be kept, and then its home gets it",
        ),
    }
}

fn request_of(call: CommitCall, early: bool) -> Request {
    Request::Commit {
        parts: call.parts,
        histories: call.histories,
        depends_on: call.depends_on,
        after: call.after,
        early,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_was_not_taken_is_not_pending() {
        let requests = Arc::new(Requests::new(RequestSender::new(None)));
        let request = Request::Commit {
            parts: Vec::new(),
            histories: Vec::new(),
            depends_on: Vec::new(),
            after: thorp_model::Stamp::default(),
            early: false,
        };
        for kind in [RequestKind::Commit(None), RequestKind::Response] {
            let future = requests.begin(kind, Instant::now());
            assert_eq!(requests.pending.waiting(), 1);
            assert!(requests.send(future, request.clone()).is_err());
            assert_eq!(requests.pending.waiting(), 0);
        }
    }
}
