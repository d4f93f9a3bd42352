//! A clock for link delays, finer than tokio's.
//!
//! Tokio's timers tick in milliseconds, far too coarse for a link of a few milliseconds. Spinning would be exact but
//! would take a whole processor core for every delayed link. So one thread for the whole process sleeps with the system's own
//! precision (some 50 us late on Linux) and wakes whoever is due.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// Waits until `due`, never less. Without its thread (the system refused one) it is as coarse as tokio's timers.
pub(crate) async fn sleep_until(due: Instant) {
    match clock() {
        Some(clock) => {
            // The sender is dropped unsent only if the thread died; being early is then mended by the caller's loop,
            // and being late by tokio's timer.
            if clock.alarm(due).await.is_err() {
                tokio::time::sleep_until(due.into()).await;
            }
        }
        None => tokio::time::sleep_until(due.into()).await,
    }
}

/// The moment `wait` after `from`. A wait that no clock can express ends after [`FAR`]: a program may set any duration.
pub(crate) fn later(from: Instant, wait: Duration) -> Instant {
    from.checked_add(wait).unwrap_or_else(|| from + FAR)
}

/// A year: longer than any connection, and within what every clock can express.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The sleepers, one for each link that waits for its next frame: bounded by the number of connections, and an
/// abandoned one leaves when its time comes.
#[derive(Default)]
struct Clock {
    sleepers: Mutex<BinaryHeap<Reverse<Sleeper>>>,
    earlier: Condvar,
}

struct Sleeper {
    due: Instant,
    wake: oneshot::Sender<()>,
}

fn clock() -> Option<&'static Arc<Clock>> {
    static CLOCK: OnceLock<Option<Arc<Clock>>> = OnceLock::new();
    CLOCK.get_or_init(start).as_ref()
}

fn start() -> Option<Arc<Clock>> {
    let clock = Arc::new(Clock::default());
    let runner = Arc::clone(&clock);
    thread::Builder::new()
        .name("thorp-link-clock".to_owned())
        .spawn(move || runner.run())
        .ok()?;
    Some(clock)
}

impl Clock {
    fn alarm(&self, due: Instant) -> oneshot::Receiver<()> {
        let (wake, woken) = oneshot::channel();
        let mut sleepers = self.lock();
        let first = sleepers.peek().is_none_or(|Reverse(next)| due < next.due);
        sleepers.push(Reverse(Sleeper { due, wake }));
        drop(sleepers);
        if first {
            self.earlier.notify_one();
        }
        woken
    }

    fn run(&self) {
        let mut sleepers = self.lock();
        loop {
            let now = Instant::now();
            while let Some(sleeper) = pop_due(&mut sleepers, now) {
                // Who no longer listens does not want to know.
                let _ = sleeper.wake.send(());
            }
            sleepers = match sleepers.peek() {
                Some(Reverse(next)) => {
                    let pause = next.due.saturating_duration_since(now);
                    self.earlier
                        .wait_timeout(sleepers, pause)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self
                    .earlier
                    .wait(sleepers)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, BinaryHeap<Reverse<Sleeper>>> {
        // Nothing in here panics half-way through a change.
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pop_due(sleepers: &mut BinaryHeap<Reverse<Sleeper>>, now: Instant) -> Option<Sleeper> {
    if sleepers.peek()?.0.due > now {
        return None;
    }
    sleepers.pop().map(|Reverse(sleeper)| sleeper)
}

impl Ord for Sleeper {
    fn cmp(&self, other: &Self) -> Ordering {
        self.due.cmp(&other.due)
    }
}

impl PartialOrd for Sleeper {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Sleeper {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_is_woken_early_whatever_the_order_of_asking() {
        let start = Instant::now();
        let waits = [7u64, 1, 12, 3, 3, 0].map(|ms| {
            tokio::spawn(async move {
                let due = start + Duration::from_millis(ms);
                sleep_until(due).await;
                assert!(Instant::now() >= due);
            })
        });
        for wait in waits {
            wait.await.unwrap();
        }
    }
}
