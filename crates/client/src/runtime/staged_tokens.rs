//! Values that a home keeps for a commit that has not happened.

use super::request_sender::RequestSender;
use crate::lock::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use thorp_model::{CallRequest, HomeId, Outcome, Refusal, Registration};
use thorp_protocol::Request;

/// The tokens of values staged at a home. The transaction holds them, and so does the pending request of the commit
/// that names them, also when no thread waits for it. When the last holder drops them, the home gets the order to
/// forget the values, unless they have become objects.
pub(crate) struct StagedTokens {
    sender: Arc<RequestSender>,
    home: HomeId,
    tokens: Mutex<Vec<u64>>,
    are_used: AtomicBool,
}

impl StagedTokens {
    pub(crate) fn new(sender: Arc<RequestSender>, home: HomeId) -> Self {
        StagedTokens {
            sender,
            home,
            tokens: Mutex::default(),
            are_used: AtomicBool::new(false),
        }
    }

    /// One more value.
    pub(crate) fn add(&self, token: u64) {
        lock(&self.tokens).push(token);
    }

    /// How a commit that names them ended.
    pub(super) fn ended(&self, outcome: &Outcome) {
        // What the home has forgotten may have happened.
        if matches!(
            outcome,
            Outcome::Committed { .. } | Outcome::Refused(Refusal::Forgotten | Refusal::Lost)
        ) {
            self.are_used.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for StagedTokens {
    fn drop(&mut self) {
        if self.are_used.load(Ordering::Relaxed) {
            return;
        }
        for token in lock(&self.tokens).drain(..) {
            // The state machine puts in the registration under which the home knows this member.
            let registration = Registration::default();
            let request = CallRequest::Unstage {
                registration,
                token,
            };
            let home = self.home;
            self.sender.try_send(Request::Call { home, request });
        }
    }
}
