//! What every kind of attack has in common.

use super::eyes::Eyes;
use std::convert::Infallible;
use thorp_model::{EdgeId, Epoch, HomeId, Now, Outbox, Xoshiro256};

/// What a hostile node sends.
pub(crate) type ToParent = Outbox<Infallible>;

/// A stream of a home, on an edge to a parent, that is attacked at a time.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    /// When.
    pub(crate) now: Now,
    /// The edge to the parent.
    pub(crate) edge: EdgeId,
    /// The home of the stream.
    pub(crate) home: HomeId,
    /// The life of the stream.
    pub(crate) epoch: Epoch,
}

/// A kind of attack, with what it remembers.
pub(crate) trait Attack {
    /// Its name, for counts.
    fn name(&self) -> &'static str;

    /// Attacks once.
    fn strike(&mut self, at: Target, eyes: &Eyes, prng: &mut Xoshiro256, outbox: &mut ToParent);
}
