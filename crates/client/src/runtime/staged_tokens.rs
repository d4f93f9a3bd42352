//! Values that a home keeps for a commit that has not happened.

use super::Shared;
use crate::lock::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Weak};
use thorp_model::{CallRequest, HomeId, Outcome, Refusal, Registration};
use thorp_protocol::Request;

/// The tokens of values staged at a home. The transaction holds this, and so does whatever waits for the outcome of the
/// commit that names them, whether anybody still waits for that or not. When nobody holds it any more the home is told to
/// forget the values, unless they have become objects.
#[derive(Debug)]
pub(crate) struct StagedTokens {
    shared: Weak<Shared>,
    home: HomeId,
    tokens: Mutex<Vec<u64>>,
    are_used: AtomicBool,
}

impl StagedTokens {
    pub(crate) fn new(shared: Weak<Shared>, home: HomeId) -> Self {
        StagedTokens {
            shared,
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
            Outcome::Committed { .. } | Outcome::Refused(Refusal::Forgotten)
        ) {
            self.are_used.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for StagedTokens {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
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
            shared.tell(Request::Call { home, request });
        }
    }
}
