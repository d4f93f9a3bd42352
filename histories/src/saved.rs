//! Appends that a log has answered. Their transactions end when the log is empty: their homes have executed them all then.

use crate::Outcome;
use crate::append::Append;
use crate::record::SAVED;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use thorp_client::{LogStatus, Member};

/// What a log has answered, and its homes may not have executed yet.
#[derive(Default)]
pub(crate) struct Saved(Mutex<Vec<Append>>);

impl Saved {
    /// A log has answered it.
    pub(crate) fn add(&self, append: Append) {
        append.tell(SAVED);
        self.waiting().push(append);
    }

    /// Looks at the log until it is empty after the end, and tells what has ended.
    pub(crate) fn follow(&self, member: &Member, is_over: impl Fn() -> bool) -> Outcome<()> {
        let mut end = None;
        loop {
            thread::sleep(LOOK_EVERY);
            let is_over = is_over();
            // They were in the log before it is looked at.
            let count = self.waiting().len();
            let log = member.log().ok_or("the member has no log")?;
            if log.rejected > 0 {
                return Err(format!("a home has refused updates: {log:?}").into());
            }
            if log.tentative == 0 {
                let ended: Vec<Append> = self.waiting().drain(..count).collect();
                ended.iter().for_each(|append| append.tell("ok"));
            }
            match is_over {
                true if log.tentative == 0 => return Ok(()),
                true => expect_progress(&mut end, log)?,
                false => {}
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Append>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything is mended, so the log becomes empty.
fn expect_progress(end: &mut Option<Instant>, log: LogStatus) -> Outcome<()> {
    let end = *end.get_or_insert_with(|| Instant::now() + EMPTYING_TIME_MAX);
    match Instant::now() < end {
        true => Ok(()),
        false => Err(format!("the log does not become empty: {log:?}").into()),
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(20);
const EMPTYING_TIME_MAX: Duration = Duration::from_secs(60);
