//! Ctrl-C and SIGTERM: what runs is cut short and tells what it has; a second one ends it at once.

use crate::Outcome;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The exit code of what a second signal ends, as a shell tells SIGINT.
const AT_ONCE: i32 = 130;
const GLANCE: Duration = Duration::from_millis(20);

/// Whether to stop.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// One that signals set.
    pub fn on_signals() -> Outcome<Self> {
        let stop = Stop::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first signal finds it unset.
            flag::register_conditional_shutdown(signal, AT_ONCE, stop.0.clone())?;
            flag::register(signal, stop.0.clone())?;
        }
        Ok(stop)
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Sleeps so long, or until it is set.
    pub fn sleep(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.is_set() {
            match end.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return,
                left => thread::sleep(left.min(GLANCE)),
            }
        }
    }
}
