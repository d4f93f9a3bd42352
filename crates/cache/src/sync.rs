//! The atomics: the real ones, or those of the model checker.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::{AtomicU64, fence};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::{AtomicU64, fence};

pub(crate) use std::sync::atomic::Ordering;

/// Waits a moment for the writer, which is between two stores of its own and
/// waits for nobody.
pub(crate) struct Pause {
    #[cfg(not(feature = "loom"))]
    spins: u32,
}

impl Pause {
    pub(crate) fn new() -> Self {
        Pause {
            #[cfg(not(feature = "loom"))]
            spins: 0,
        }
    }

    #[cfg(not(feature = "loom"))]
    pub(crate) fn wait(&mut self) {
        if self.spins < crate::limits::SPINS_BEFORE_YIELD {
            self.spins += 1;
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }

    #[cfg(feature = "loom")]
    pub(crate) fn wait(&mut self) {
        loom::thread::yield_now();
    }
}
