use super::Village;
use super::aged::{Chooser, State, Told};
use crate::{Invalid, fraction, positive};
use fastrand::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Epochs of GMS (thesis, section 2.1.3; Feeley and others, 1995): at the beginning of each the ages of all pages are gathered, and
/// all nodes are told which part of the M oldest each has. A page that has to go is sent to one that is drawn by these weights, or
/// is lost at once if it is itself one of the M oldest, or if its own node is drawn. An epoch ends after its time, or when M pages
/// were replaced.
///
/// Frames in which nothing is yet are older than any page.
pub(super) struct Epochs {
    length_ms: f64,
    oldest_pages: usize,
    begun_ms: f64,
    replaced: usize,
    is_over: bool,
    weights: Vec<f64>,
    /// What was used last before this request is one of the M oldest.
    oldest_until: u32,
}

impl Epochs {
    /// Of so many milliseconds, and with that part of all pages as M.
    pub(super) fn new(
        village: &Village,
        length_ms: f64,
        oldest_part: f64,
    ) -> Result<Self, Invalid> {
        positive("epoch_ms", length_ms)?;
        positive("oldest", oldest_part)?;
        fraction("oldest", oldest_part)?;
        let pages: usize = village.pages_with_home().iter().sum();
        Ok(Epochs {
            length_ms,
            oldest_pages: ((pages as f64 * oldest_part.min(1.0)) as usize).max(1),
            begun_ms: 0.0,
            replaced: 0,
            is_over: true,
            weights: vec![0.0; village.nodes() + 1],
            oldest_until: 0,
        })
    }

    /// Begins an epoch if it is time; true if it was.
    pub(super) fn begin_if_over(&mut self, state: &State) -> bool {
        if !std::mem::take(&mut self.is_over) {
            return false;
        }
        self.replaced = 0;
        self.gather(state);
        true
    }

    pub(super) fn length_ms(&self) -> f64 {
        self.length_ms
    }

    /// The share of the oldest pages that each node had.
    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Whether a page is to be lost at once. One more is replaced then, in any case.
    pub(super) fn is_lost(&mut self, used: u32) -> bool {
        self.replaced += 1;
        used < self.oldest_until
    }

    pub(super) fn note(&mut self, told: &Told<'_>) {
        let now_ms = told.clock.mean_ms();
        if now_ms - self.begun_ms >= self.length_ms || self.replaced >= self.oldest_pages {
            self.begun_ms = now_ms;
            self.is_over = true;
        }
    }

    /// Merges the nodes' pages from the oldest.
    fn gather(&mut self, state: &State) {
        self.weights.fill(0.0);
        let mut left = self.oldest_pages;
        for (node, weight) in state.nodes.iter().zip(&mut self.weights) {
            let empty = node.room.saturating_sub(node.pages.len()).min(left);
            *weight += empty as f64;
            left -= empty;
        }
        let mut pages: Vec<_> = state.nodes.iter().map(|node| node.pages.iter()).collect();
        let firsts = pages.iter_mut().enumerate();
        let mut oldest: BinaryHeap<_> = firsts
            .filter_map(|(at, pages)| Some(Reverse((pages.next()?.0, at))))
            .collect();
        self.oldest_until = 0;
        while left > 0
            && let Some(Reverse((used, at))) = oldest.pop()
        {
            left -= 1;
            self.weights[at] += 1.0;
            self.oldest_until = used;
            oldest.extend(pages[at].next().map(|&(used, _)| Reverse((used, at))));
        }
        let sum: f64 = self.weights.iter().sum();
        self.weights
            .iter_mut()
            .for_each(|weight| *weight /= sum.max(1.0));
    }
}

/// The Global Memory Service: pages go to where the oldest were when it was last told.
pub(super) struct Gms {
    epochs: Epochs,
    random: Rng,
}

impl Gms {
    pub(super) fn new(village: &Village, epochs: Epochs) -> Self {
        Gms {
            epochs,
            random: Rng::with_seed(!village.seed),
        }
    }
}

impl Chooser for Gms {
    fn target(&mut self, _: usize, used: u32, state: &State) -> Option<usize> {
        self.epochs.begin_if_over(state);
        match self.epochs.is_lost(used) {
            true => None,
            false => drawn(self.epochs.weights(), &mut self.random),
        }
    }

    fn note(&mut self, told: &Told<'_>) {
        self.epochs.note(told);
    }
}

/// One of those with these frequencies; `None` for what is missing of 1.
pub(super) fn drawn(frequencies: &[f64], random: &mut Rng) -> Option<usize> {
    let mut left = random.f64();
    frequencies.iter().position(|frequency| {
        left -= frequency;
        left < 0.0
    })
}
