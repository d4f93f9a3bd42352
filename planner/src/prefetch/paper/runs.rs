//! Runs of the thesis's patterns, each made once.

use crate::Invalid;
use crate::prefetch::{Hierarchy, Job, Outcome, Pattern, Policy, limit_us, simulate};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A pattern of the thesis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stream {
    HotCold,
    /// As long as all pages cost the same, reverse and sequential are no different.
    Random,
    HotColdCyclic,
    RandomCyclic,
}

impl Stream {
    pub(super) const ALL: [Stream; 4] = [
        Stream::HotCold,
        Stream::Random,
        Stream::HotColdCyclic,
        Stream::RandomCyclic,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Stream::HotCold => "hotcold",
            Stream::Random => "random, reverse",
            Stream::HotColdCyclic => "hotcold, cyclic",
            Stream::RandomCyclic => "random, reverse, cyclic",
        }
    }

    fn pages(self) -> Result<Vec<u32>, Invalid> {
        let [(_, hotcold), (_, random), ..] = Pattern::of_thesis(1);
        let [(_, hotcold_cyclic), (_, random_cyclic), ..] = Pattern::of_thesis(3);
        match self {
            Stream::HotCold => hotcold.pages(),
            Stream::Random => random.pages(),
            Stream::HotColdCyclic => hotcold_cyclic.pages(),
            Stream::RandomCyclic => random_cyclic.pages(),
        }
    }
}

/// What is known already.
#[derive(Default)]
pub(super) struct Runs {
    pages: HashMap<Stream, Vec<u32>>,
    outcomes: HashMap<(Stream, Hierarchy, &'static str), Outcome>,
}

impl Runs {
    pub(super) fn pages(&mut self, stream: Stream) -> Result<&[u32], Invalid> {
        Ok(match self.pages.entry(stream) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(stream.pages()?),
        })
    }

    pub(super) fn run(
        &mut self,
        stream: Stream,
        hierarchy: &Hierarchy,
        policy: &Policy,
    ) -> Result<Outcome, Invalid> {
        let key = (stream, *hierarchy, policy.name);
        if let Some(known) = self.outcomes.get(&key) {
            return Ok(*known);
        }
        let outcome = simulate(hierarchy, &[Job::hinted(self.pages(stream)?)], policy)?[0];
        self.outcomes.insert(key, outcome);
        Ok(outcome)
    }

    pub(super) fn elapsed_us(
        &mut self,
        stream: Stream,
        hierarchy: &Hierarchy,
        policy: &Policy,
    ) -> Result<u64, Invalid> {
        Ok(self.run(stream, hierarchy, policy)?.elapsed_us)
    }

    pub(super) fn limit_us(
        &mut self,
        stream: Stream,
        hierarchy: &Hierarchy,
    ) -> Result<u64, Invalid> {
        limit_us(hierarchy, &Job::hinted(self.pages(stream)?))
    }

    /// Relative to one node without global memory and without prefetching (section 4.4.3).
    pub(super) fn speedup(
        &mut self,
        stream: Stream,
        hierarchy: &Hierarchy,
        policy: &Policy,
    ) -> Result<f64, Invalid> {
        let alone_us = self.elapsed_us(stream, &Hierarchy::of_thesis(0), &Policy::DEMAND_LRU)?;
        let elapsed_us = self.elapsed_us(stream, hierarchy, policy)?;
        Ok(super::ratio(alone_us, elapsed_us))
    }
}
