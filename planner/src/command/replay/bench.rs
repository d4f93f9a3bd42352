//! Replays, one after the other, and how far they are.

use crate::Invalid;
use crate::command::print::note;
use crate::replay::{Kind, Knobs, Outcome, Village, replay};
use std::time::{Duration, Instant};

/// Does replays and tells now and then how far it is, if it takes long.
pub(super) struct Bench<'a> {
    pages: &'a [u32],
    knobs: Knobs,
    /// Requests of all replays.
    all: usize,
    done: usize,
    told: Instant,
}

impl<'a> Bench<'a> {
    /// For so many replays.
    pub(super) fn new(pages: &'a [u32], knobs: Knobs, replays: usize) -> Self {
        Bench {
            pages,
            knobs,
            all: pages.len() * replays,
            done: 0,
            told: Instant::now(),
        }
    }

    pub(super) fn outcome(
        &mut self,
        kind: Kind,
        village: &Village,
        clients: &[u16],
    ) -> Result<Outcome, Invalid> {
        let mut policy = kind.policy(village, &self.knobs)?;
        let Bench {
            all, done, told, ..
        } = self;
        let mut tell = |at: usize| {
            if told.elapsed() > TELL_EVERY {
                *told = Instant::now();
                // Whether anybody reads how far it is does not matter.
                let _ = note(&format!("replayed {} %", (*done + at) * 100 / *all));
            }
        };
        let outcome = replay(village, &mut *policy, self.pages, clients, &mut tell);
        self.done += self.pages.len();
        Ok(outcome)
    }
}

const TELL_EVERY: Duration = Duration::from_secs(2);
