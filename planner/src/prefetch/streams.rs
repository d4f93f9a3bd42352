//! Streams of references by several nodes, to hold GLFD against the optimum with.

use super::glfd::{Nodes, Reference};

/// Whose pages nodes refer to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sharing {
    /// Each to its own: no page is referred to by two.
    OfOneNodeEach,
    /// All to the same.
    Shared,
}

/// How long a stream is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Length {
    /// So short that most of what it costs is to read pages for the first time.
    Once,
    /// A few references over and over, until reading for the first time hardly counts.
    Periodic,
}

pub(super) const ONCE: usize = 16;
pub(super) const PERIOD: usize = 8;
pub(super) const PERIODS: usize = 16;

impl Sharing {
    /// Draws one of so many nodes and a page of few that it may refer to.
    pub(super) fn reference(self, random: &mut fastrand::Rng, nodes: usize) -> Reference {
        let page = random.usize(..6);
        let node = match self {
            Sharing::Shared => random.usize(..nodes),
            Sharing::OfOneNodeEach => page % nodes,
        };
        Reference { node, page }
    }
}

impl Length {
    /// Draws a stream.
    pub(super) fn references(
        self,
        random: &mut fastrand::Rng,
        sharing: Sharing,
        nodes: usize,
    ) -> Vec<Reference> {
        let (length, times) = match self {
            Length::Once => (ONCE, 1),
            Length::Periodic => (random.usize(3..=PERIOD), PERIODS),
        };
        let drawn: Vec<Reference> = (0..length)
            .map(|_| sharing.reference(random, nodes))
            .collect();
        drawn.repeat(times)
    }
}

/// Two or three nodes with one or two frames each. References to local memory cost nothing, which leaves the bound least room.
pub(super) fn drawn_nodes(random: &mut fastrand::Rng, disk_cost: f64) -> Nodes {
    let count = random.usize(2..=3);
    Nodes {
        frames: (0..count).map(|_| random.u32(1..=2)).collect(),
        local_cost: 0.0,
        global_cost: 1.0,
        disk_cost,
    }
}

/// Two nodes that share three pages, which fill their memories.
pub(super) fn two_nodes(disk_cost: f64) -> Nodes {
    Nodes {
        frames: vec![2, 1],
        local_cost: 0.0,
        global_cost: 1.0,
        disk_cost,
    }
}

/// For [`two_nodes`]: what GLFD sends away as held for the other node, the node itself refers to soon.
pub(super) fn sent_too_early(rounds: usize) -> Vec<Reference> {
    let cold = [(0, 0), (1, 1), (0, 2)];
    let round = [(1, 2), (0, 2), (0, 1), (1, 0), (0, 0), (1, 1), (0, 2)];
    repeated(&cold, &round, rounds)
}

/// For [`two_nodes`], of which one has room left: two pages that both refer to.
pub(super) fn with_room_left(rounds: usize) -> Vec<Reference> {
    let cold = [(0, 1), (0, 0)];
    let round = [(1, 1), (0, 1), (1, 0), (0, 0)];
    repeated(&cold, &round, rounds)
}

fn repeated(first: &[(usize, usize)], round: &[(usize, usize)], rounds: usize) -> Vec<Reference> {
    let all = [first.to_vec(), round.repeat(rounds)].concat();
    let reference = |(node, page)| Reference { node, page };
    all.into_iter().map(reference).collect()
}
