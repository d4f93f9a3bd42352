//! What tests have in common that kill homes under load, again and again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thorp_client::{Error, ErrorKind};

pub(crate) const KILL_AFTER_MS_MAX: u64 = 120;
/// Half of the writers are so impatient that they have to ask for outcomes later.
pub(crate) const IMPATIENCE: Duration = Duration::from_millis(25);

/// How often to kill, and the seed of the moments: as the environment says, or so often and at random.
pub(crate) fn rounds_and_seed(rounds: u64) -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let rounds = number("THORP_KILL_ROUNDS").unwrap_or(rounds);
    let seed = number("THORP_KILL_SEED").unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        u64::from(since.subsec_nanos())
    });
    // Whatever fails, this is printed with it.
    println!("THORP_KILL_SEED={seed} THORP_KILL_ROUNDS={rounds}");
    (rounds, seed)
}

/// Says that it is over, also when a test fails: or the writers would be waited for in vain.
pub(crate) struct Over<'a>(pub(crate) &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// These say that nothing was changed; all others would be wrong here.
pub(crate) fn assert_expected(error: &Error) {
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Conflict | ErrorKind::Busy { .. } | ErrorKind::HomeUnreachable
        ),
        "{:?}: {error}",
        error.kind()
    );
}
