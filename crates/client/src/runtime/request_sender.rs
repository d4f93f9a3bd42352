//! How requests enter the loop of the member.

use crate::limits::RETRY_PAUSE;
use crate::reach::refusal;
use crate::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use thorp_model::RequestId;
use thorp_net::driver::{Handle, NotTaken};
use thorp_protocol::{Member, MemberCommand, Request};

/// Numbers the requests of the program and hands them to the loop that drives the member's state machine. No two
/// requests of a member have the same id.
pub(crate) struct RequestSender {
    /// None: there is no loop.
    handle: Option<Handle<Member>>,
    last_id: AtomicU64,
}

impl RequestSender {
    pub(super) fn new(handle: Option<Handle<Member>>) -> Self {
        RequestSender {
            handle,
            last_id: AtomicU64::new(0),
        }
    }

    pub(crate) fn handle(&self) -> Option<&Handle<Member>> {
        self.handle.as_ref()
    }

    /// Why the sites and homes of this member turn it away, if all do.
    pub(crate) fn refusal(&self) -> Option<String> {
        refusal(&self.handle.as_ref()?.parents())
    }

    /// An id that no other request has.
    pub(crate) fn next_id(&self) -> RequestId {
        RequestId(self.last_id.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Sends a request under an id. Fails if the loop has too many already, or has ended.
    pub(super) fn send_as(&self, id: RequestId, request: Request) -> Result<()> {
        let taken = match &self.handle {
            Some(handle) => handle.command(MemberCommand::Request { id, request }),
            None => Err(NotTaken::Gone),
        };
        taken.map_err(|not_taken| match not_taken {
            NotTaken::TooMany => Error::busy(RETRY_PAUSE),
            NotTaken::Gone => Error::closed(),
        })
    }

    /// Sends a request that gets no response, and that must not be lost.
    pub(crate) fn send(&self, request: Request) -> Result<()> {
        self.send_as(self.next_id(), request)
    }

    /// Sends a request that gets no response, or whose response nobody needs.
    pub(crate) fn try_send(&self, request: Request) {
        // If the loop has too many requests, this one may be left out. The loop takes always what may not be left out.
        let _ = self.send(request);
    }
}
