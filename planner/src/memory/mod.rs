//! Memory servers and the machines that page to them: Voelker's thesis, chapter 3.
//!
//! Figure 3.1: each active machine thinks, then waits for a page (*getpage*) from one of the nodes that serve memory, drawn by
//! routing probabilities; it is a customer of a closed class. Each page that it gets pushes others out, which it sends to the
//! servers without waiting (*putpage*); these are an open class, whose rate is a constant times the rate of getpages and is
//! found by iteration. Nodes serve in the order of arrival, and before anything else that they do: so an idle node and a node
//! with work of its own (*local*) serve alike, and a local node's utilisation is what its own work loses (section 3.5).
//!
//! Beyond the thesis: several classes of machines with think times and routing of their own, nodes that differ, exact mean
//! value analysis beside two approximations, and a simulation of the same network. Service times are exponentially distributed
//! in the model, so that with equal demands of both kinds of request it is exact for putpages that come independently (a
//! product form); the simulation has also service times that do not vary, and putpages that come with getpages.

mod amva;
mod bounds;
mod cluster;
mod exact;
mod fixed_point;
mod linearizer;
mod network;
mod paper;
mod questions;
pub mod simulate;
mod solution;
mod station;

pub use bounds::Limits;
pub use cluster::{Cluster, OO7_THINK_S};
pub use network::{Class, Group, Kind, Network};
pub use paper::paper;
pub use questions::{least_servers, local_share_max, machines_until, servers_needed};
pub use solution::{ClassSolution, GroupSolution, Solution, slowdown};

/// How the closed part of the network is solved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// Exact mean value analysis (Reiser and Lavenberg 1980), which takes time for each mix of machines that is possible.
    #[default]
    Exact,
    /// What an arriving request finds is guessed from what there is on average (Bard 1979, Schweitzer 1979): what the thesis
    /// calls AMVA. A few per cent off near saturation.
    Schweitzer,
    /// The same with the guess corrected by how it changes with one machine fewer (Chandy and Neuse 1982).
    Linearizer,
}

#[cfg(test)]
mod tests;
