//! What comes out.

use super::network::{Kind, Network};
use super::station::{Closed, stations};

/// How the network performs.
#[derive(Clone, PartialEq, Debug)]
pub struct Solution {
    /// By class.
    pub classes: Vec<ClassSolution>,
    /// By group of servers.
    pub groups: Vec<GroupSolution>,
    /// How far the rate of getpages that putpages were computed with is from the one that came out, relative to it; or, if that
    /// is more, how much the last step of an iteration changed. Above some 1e-6 the solution is not to be trusted.
    pub residual: f64,
}

/// How a class of machines performs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClassSolution {
    /// How many they are.
    pub machines: u32,
    /// Mean time between a page's arrival and the next request, in seconds.
    pub think_s: f64,
    /// Mean time from a getpage's sending to its answer, in seconds: `R`.
    pub response_s: f64,
    /// Getpages a second of all machines of the class: `X_getpage`.
    pub getpages_per_s: f64,
}

/// How each node of a group performs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GroupSolution {
    /// What else it does.
    pub kind: Kind,
    /// How many they are.
    pub nodes: u32,
    /// The part of its time that it serves.
    pub utilisation: f64,
    /// The part of it that is putpages.
    pub putpage_utilisation: f64,
    /// Mean number of getpages that wait or are served.
    pub getpages: f64,
    /// Mean number of putpages that wait or are served.
    pub putpages: f64,
    /// Mean time of a getpage there, in seconds; of any class, as it finds the node on average.
    pub getpage_s: f64,
    /// Mean time of a putpage there, in seconds.
    pub putpage_s: f64,
}

impl Solution {
    pub(super) fn new(network: &Network, rates: &[f64], closed: Closed, off: f64) -> Self {
        let classes = network.classes.iter().enumerate();
        let classes = classes.map(|(number, class)| ClassSolution {
            machines: class.machines,
            think_s: class.think_s,
            response_s: closed.response_s[number],
            getpages_per_s: closed.getpages_per_s[number],
        });
        Solution {
            classes: classes.collect(),
            groups: groups(network, rates, &closed),
            residual: closed.residual.max(off),
        }
    }

    /// Mean time from a getpage's sending to its answer, of all machines, in seconds.
    pub fn response_s(&self) -> f64 {
        let waiting: f64 = self
            .classes
            .iter()
            .map(|class| class.response_s * class.getpages_per_s)
            .sum();
        waiting / self.getpages_per_s()
    }

    /// Getpages a second, of all machines.
    pub fn getpages_per_s(&self) -> f64 {
        self.classes.iter().map(|class| class.getpages_per_s).sum()
    }

    /// The utilisation of the busiest node of a kind; 0 if there is none.
    pub fn utilisation_max(&self, kind: Kind) -> f64 {
        let of_kind = self.groups.iter().filter(|group| group.kind == kind);
        of_kind.map(|group| group.utilisation).fold(0.0, f64::max)
    }
}

fn groups(network: &Network, rates: &[f64], closed: &Closed) -> Vec<GroupSolution> {
    let stations = stations(network, rates);
    let nodes = network.groups.iter().zip(&stations).enumerate();
    let solution = nodes.map(|(number, (group, station))| {
        let getpages = closed.at(number);
        let putpage_utilisation = station.putpage_busy();
        let putpage_s = station.putpage_s(getpages);
        let classes = network.classes.iter().zip(&closed.getpages_per_s);
        let getpages_per_s: f64 = classes
            .map(|(class, rate)| rate * class.routing[number])
            .sum();
        GroupSolution {
            kind: group.kind,
            nodes: group.nodes,
            utilisation: getpages_per_s * group.getpage_s + putpage_utilisation,
            putpage_utilisation,
            getpages,
            putpages: putpage_utilisation / group.putpage_s * putpage_s,
            getpage_s: match getpages_per_s > 0.0 {
                true => getpages / getpages_per_s,
                false => station.getpage_s(getpages),
            },
            putpage_s,
        }
    });
    solution.collect()
}

/// How much longer the same work takes than with another solution's waits: `(Z + R) / (Z + R') - 1` (figure 3.3).
pub fn slowdown(class: &ClassSolution, than: &ClassSolution) -> f64 {
    (class.think_s + class.response_s) / (than.think_s + than.response_s) - 1.0
}
