//! Prefetching between local memory, global memory and disk: chapter 4 of the thesis (*Cooperative Prefetching and Caching*),
//! with the policies of section 2.3.1 to compare with.
//!
//! - [`simulate`] runs processes with hints under a [`Policy`]; [`compare`] runs several policies and says how far each is from
//!   [`limit_us`], a time that no policy can be faster than.
//! - [`optimum_us`] finds the least time of tiny instances by trying everything.
//! - [`Nodes`] counts what GLFD and the offline optimum cost, for the theorem of section 4.2.3. That theorem is about replacement
//!   on demand: the factor 1 + 3 F_G/F_D bounds the *total memory access cost* of GLFD, not the elapsed time of anything that
//!   prefetches. It is stated for all streams, and was seen to hold for those in which no page is referred to by two nodes; where
//!   nodes share pages there are streams beyond it.
//!
//! What the text leaves open, and how it is here: the link to global memory and the node's own disk are two channels, one page at
//! a time each (the text serializes them only for computing the prefetch predicate); a page on its way into global memory counts
//! as there for that predicate (section 4.3.3: the acknowledgement when a prefetch begins), and is waited for when it is the
//! first that misses; pages prefetched into global memory replace pages there, not in the memory of active nodes; pages that are
//! evicted travel at no cost, and none is dirty.

mod cluster;
mod glfd;
mod hierarchy;
mod hints;
mod job;
mod limit;
mod missing;
mod optimum;
mod outcome;
mod paper;
mod patterns;
mod policy;
mod process;
mod residents;
mod streams;
#[cfg(test)]
mod tests;

pub use cluster::simulate;
pub use glfd::{Nodes, Reference, Served};
pub use hierarchy::Hierarchy;
pub use hints::Hinting;
pub use job::{Job, dense};
pub use limit::limit_us;
pub use optimum::optimum_us;
pub use outcome::{Fetches, Outcome};
pub use paper::{paper, paper_of_traces};
pub use patterns::{Pattern, Phases, REFERENCES_MAX, Shape};
pub use policy::{Policy, Rule};

use crate::Invalid;
use serde::Serialize;

/// What policies make of the same references.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// No policy can end before, microseconds.
    pub limit_us: u64,
    /// What came of each policy.
    pub outcomes: Vec<(Policy, Outcome)>,
}

/// Runs one process under several policies.
///
/// # Errors
///
/// [`Invalid`] if a parameter cannot be.
pub fn compare(
    hierarchy: &Hierarchy,
    job: &Job<'_>,
    policies: &[Policy],
) -> Result<Comparison, Invalid> {
    let limit_us = limit_us(hierarchy, job)?;
    let outcome = |policy: &Policy| {
        let outcomes = simulate(hierarchy, std::slice::from_ref(job), policy)?;
        Ok((*policy, outcomes[0]))
    };
    let outcomes = policies
        .iter()
        .map(outcome)
        .collect::<Result<_, Invalid>>()?;
    Ok(Comparison { limit_us, outcomes })
}
