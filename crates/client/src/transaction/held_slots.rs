//! Slots that a visit holds for objects that it makes.

use crate::allocator::Allocator;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thorp_session::Reservation;

/// Slots for objects that are not made yet. Dropped, they are free again, unless they are kept.
pub(crate) struct HeldSlots {
    slots: Vec<(Arc<Allocator>, Reservation)>,
    is_kept: AtomicBool,
}

impl HeldSlots {
    pub(super) fn new(slots: Vec<(Arc<Allocator>, Reservation)>) -> Self {
        HeldSlots {
            slots,
            is_kept: AtomicBool::new(false),
        }
    }

    /// The objects are made, or may be.
    pub(crate) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// They are not made, after all.
    pub(crate) fn hold(&self) {
        self.is_kept.store(false, Ordering::Relaxed);
    }
}

impl Drop for HeldSlots {
    fn drop(&mut self) {
        if self.is_kept.load(Ordering::Relaxed) {
            return;
        }
        for (allocator, taken) in self.slots.drain(..) {
            allocator.give_back(taken);
        }
    }
}
