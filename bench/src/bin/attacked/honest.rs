//! Members that commit, each an object of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use thorp_bench::Result;
use thorp_bench::village::{HOME, OBJECT_BYTES, Village};
use thorp_client::{Member, Reference};

const MEMBERS: usize = 4;

/// They commit until they are dropped.
pub(crate) struct Members {
    commits: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Members {
    /// They join at the home, under a name each.
    pub(crate) fn join(village: &Village) -> Result<Self> {
        let mut members = Members {
            commits: Arc::default(),
            is_over: Arc::default(),
            threads: Vec::new(),
        };
        for number in 0..MEMBERS {
            let member = village.member(HOME, &format!("honest-{number}"))?;
            let segment = member.open_or_create(&format!("thorp://{HOME}/of-{number}"))?;
            let object = member.transact(|tx| tx.create(&segment, vec![0; OBJECT_BYTES]))?;
            let (commits, is_over) = (Arc::clone(&members.commits), Arc::clone(&members.is_over));
            let thread = thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    if write(&member, &object).is_ok() {
                        commits.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            members.threads.push(thread);
        }
        Ok(members)
    }

    /// Commits in a second.
    pub(crate) fn rate(&self, time: Duration) -> f64 {
        let (before, begun) = (self.commits.load(Ordering::Relaxed), Instant::now());
        thread::sleep(time);
        let commits = self.commits.load(Ordering::Relaxed) - before;
        commits as f64 / begun.elapsed().as_secs_f64()
    }
}

fn write(member: &Member, object: &Reference) -> thorp_client::Result<()> {
    member.transact(|tx| tx.write(object, vec![1; OBJECT_BYTES]))
}

impl Drop for Members {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It panicked, or it is over.
            let _ = thread.join();
        }
    }
}
