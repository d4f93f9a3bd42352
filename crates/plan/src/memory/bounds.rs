//! What needs no iteration: asymptotic bounds, and the thesis's bound on what a node may be asked for.

use super::network::{Class, Group};
use crate::invalid::{Invalid, fraction, positive};

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

/// The largest part of a machine's requests that may go to a node of which global memory may use no more than a part:
/// equation 3.2, and equation 3.3 with a part of 1. A machine sends a request, getpage or putpage, every `interval_s` seconds,
/// there are `machines`, and a request takes the node `service_s`.
///
/// # Errors
///
/// [`Invalid`] parameters.
pub fn share_max(
    utilisation_max: f64,
    interval_s: f64,
    machines: u32,
    service_s: f64,
) -> Result<f64, Invalid> {
    fraction("utilisation_max", utilisation_max)?;
    positive("interval_s", interval_s)?;
    positive("machines", f64::from(machines))?;
    positive("service_s", service_s)?;
    let share = utilisation_max * interval_s / (f64::from(machines) * service_s);
    Ok(share.min(1.0))
}
