//! What needs no iteration: asymptotic bounds.

use super::network::{Class, Group};

/// Asymptotic bounds for a class of machines that has the servers to itself (Lazowska et al. 1984, chapter 5).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// No more getpages a second than this, however many machines: the busiest server serves all the time.
    pub capacity_per_s: f64,
    /// Nor more than this with as many as there are: nobody waits.
    pub unhindered_per_s: f64,
    /// From about so many machines on the servers, and no more the machines, set the pace: `N*`.
    pub machines_at_knee: f64,
}

impl Limits {
    /// Of a class alone at its servers.
    pub fn of(class: &Class, groups: &[Group]) -> Self {
        let demands = class.routing.iter().zip(groups);
        let demands = demands.map(|(to, group)| {
            to * (group.getpage_s + class.putpages_per_getpage * group.putpage_s)
        });
        let busiest_s = demands.fold(0.0, f64::max);
        let cycle_s = class.think_s + class.demand_s(groups);
        Limits {
            capacity_per_s: 1.0 / busiest_s,
            unhindered_per_s: f64::from(class.machines) / cycle_s,
            machines_at_knee: cycle_s / busiest_s,
        }
    }

    /// No more getpages a second than this.
    pub fn getpages_per_s(&self) -> f64 {
        self.capacity_per_s.min(self.unhindered_per_s)
    }
}
