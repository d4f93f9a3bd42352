//! A lock of a session (rule C5).

use super::requests::Requests;
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Instant;
use thorp_model::planted::Bug;
use thorp_model::{CallRequest, CallResponse, Fence, HomeId, LockMode, SegmentId, planted};
use thorp_net::driver::now;
use thorp_protocol::Request;

/// A lock of a session. Dropped, it is given back.
pub(crate) struct HeldLock {
    requests: Arc<Requests>,
    home: HomeId,
    fence: Fence,
    /// The stream in which it was asked for, as [`Pulls::stream`](super::pulls::Pulls::stream) tells.
    stream: u64,
    is_over: bool,
}

impl HeldLock {
    /// Waits for a lock on segments of a home, ascending.
    pub(crate) async fn take(
        requests: &Arc<Requests>,
        home: HomeId,
        (segments, mode): (Vec<SegmentId>, LockMode),
        stream: u64,
        due: Instant,
    ) -> Result<HeldLock> {
        // The home answers a little before it would be too late, and says whom it awaits.
        let left = due.saturating_duration_since(Instant::now());
        let patience = left.mul_f64(0.8).as_millis();
        let request = CallRequest::Lock {
            segments,
            mode,
            patience_ms: u32::try_from(patience).unwrap_or(u32::MAX),
        };
        match requests.call(home, request, due).await? {
            CallResponse::Locked { fence, .. } => {
                requests.locks.claim((home, fence));
                Ok(HeldLock {
                    requests: Arc::clone(requests),
                    home,
                    fence,
                    stream,
                    is_over: false,
                })
            }
            _ => Err(Error::invalid("the home answered something else")),
        }
    }

    /// Where it is held.
    pub(crate) fn home(&self) -> HomeId {
        self.home
    }

    /// Whether all that was answered before the lock comes in this stream (rule C3). Another one may be behind that.
    pub(crate) fn is_of(&self, home: HomeId, stream: u64) -> bool {
        (self.home, self.stream) == (home, stream)
    }

    /// What is written under it names this.
    pub(crate) fn fence(&self) -> Fence {
        self.fence
    }

    /// Whether it holds still.
    ///
    /// # Errors
    ///
    /// [`LockLost`](ErrorKind::LockLost).
    pub(crate) fn check(&self) -> Result<()> {
        let holds = self
            .requests
            .locks
            .holds((self.home, self.fence), now().mono);
        match holds || planted::is(Bug::LockNotLooked) {
            true => Ok(()),
            false => Err(lost()),
        }
    }

    /// Gives it back, and waits until the home has it.
    pub(crate) async fn give_back(mut self, due: Instant) -> Result<()> {
        self.is_over = true;
        let of = (self.home, self.fence);
        self.requests.locks.end(of);
        let fence = self.fence;
        let unlock = CallRequest::Unlock { fence };
        let answer = self.requests.call(self.home, unlock, due).await;
        answer.map(|_| ())
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (home, fence) = (self.home, self.fence);
        self.requests.locks.end((home, fence));
        unlock(&self.requests, (home, fence));
    }
}

/// Gives back a lock; nobody waits for the answer.
pub(super) fn unlock(requests: &Requests, (home, fence): (HomeId, Fence)) {
    let request = CallRequest::Unlock { fence };
    requests.sender.try_send(Request::Call { home, request });
}

fn lost() -> Error {
    Error::new(
        ErrorKind::LockLost,
        "the lock of this visit is over, and others may have written since: open another visit, and read again",
    )
}
