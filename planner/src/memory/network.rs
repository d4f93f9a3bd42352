//! The network of figure 3.1.

use crate::invalid::{Invalid, at_least, fraction, positive};

/// Active machines, and the nodes that serve memory to them.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// The machines. The thesis has one class; with several, think times are not homogeneous.
    pub classes: Vec<Class>,
    /// The memory servers.
    pub groups: Vec<Group>,
}

/// Active machines that are alike: *global nodes* with one global job each.
#[derive(Clone, PartialEq, Debug)]
pub struct Class {
    /// How many, `N_global`.
    pub machines: u32,
    /// Mean time between a page's arrival and the next request, in seconds: `Z`.
    pub think_s: f64,
    /// Pages that are sent to the servers for each that is asked for: `f`.
    pub putpages_per_getpage: f64,
    /// For each group of nodes, the probability that a request goes to a given one of them: `P_idle,i` and `P_local,l`. Over
    /// all nodes they sum to 1.
    pub routing: Vec<f64>,
}

/// Memory servers that are alike.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Group {
    /// What else they do.
    pub kind: Kind,
    /// How many.
    pub nodes: u32,
    /// Mean time to serve a getpage, in seconds: `D_idle,i`, `D_local,l`.
    pub getpage_s: f64,
    /// Mean time to serve a putpage, in seconds; the thesis takes the same.
    pub putpage_s: f64,
}

/// What a memory server does beside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nothing.
    Idle,
    /// Work of its own, which waits while it serves.
    Local,
}

impl Network {
    /// Refuses what cannot be.
    ///
    /// # Errors
    ///
    /// [`Invalid`]: nobody there, negative times, probabilities that do not sum to 1, more than a machine can compute.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.classes.is_empty() {
            return Err(Invalid::new("machines", "must be 1 or more"));
        }
        if self.groups.is_empty() {
            return Err(Invalid::new("servers", "must be 1 or more"));
        }
        self.groups.iter().try_for_each(Group::check)?;
        self.classes
            .iter()
            .try_for_each(|class| class.check(&self.groups))
    }

    /// All active machines.
    pub fn machines(&self) -> u32 {
        self.classes.iter().map(|class| class.machines).sum()
    }

    /// The same network with the requests to nodes of each kind spread evenly over these.
    #[must_use]
    pub fn balanced(&self) -> Network {
        let mut balanced = self.clone();
        for class in &mut balanced.classes {
            let even = [Kind::Idle, Kind::Local].map(|kind| (kind, self.even(class, kind)));
            for (to, group) in class.routing.iter_mut().zip(&self.groups) {
                let of_kind = even.iter().find(|(kind, _)| *kind == group.kind);
                *to = of_kind.map_or(*to, |(_, even)| *even);
            }
        }
        balanced
    }

    /// The probability that each node of a kind would have.
    fn even(&self, class: &Class, kind: Kind) -> f64 {
        let of_kind = self.groups.iter().zip(&class.routing);
        let of_kind = of_kind.filter(|(group, _)| group.kind == kind);
        let (nodes, share) = of_kind.fold((0.0, 0.0), |(nodes, share), (group, to)| {
            let count = f64::from(group.nodes);
            (nodes + count, share + count * to)
        });
        if nodes > 0.0 { share / nodes } else { 0.0 }
    }
}

impl Class {
    fn check(&self, groups: &[Group]) -> Result<(), Invalid> {
        if !(1..=MACHINES_MAX).contains(&self.machines) {
            let why = format!("must be from 1 to {MACHINES_MAX}, not {}", self.machines);
            return Err(Invalid::new("machines", why));
        }
        at_least("think_s", self.think_s, 0.0)?;
        at_least("putpages_per_getpage", self.putpages_per_getpage, 0.0)?;
        if self.routing.len() != groups.len() {
            let why = format!(
                "must be given for {} groups of nodes, not {}",
                groups.len(),
                self.routing.len()
            );
            return Err(Invalid::new("routing", why));
        }
        self.routing
            .iter()
            .try_for_each(|&to| fraction("routing", to))?;
        let sum: f64 = self.routing.iter().zip(groups).map(share).sum();
        if (sum - 1.0).abs() > 1e-9 {
            let why = format!("must sum to 1 over all nodes, not to {sum}");
            return Err(Invalid::new("routing", why));
        }
        Ok(())
    }

    /// The mean demand of one request, if nobody else were there, in seconds.
    pub fn demand_s(&self, groups: &[Group]) -> f64 {
        let demands = self.routing.iter().zip(groups);
        demands
            .map(|(to, group)| share((to, group)) * group.getpage_s)
            .sum()
    }
}

fn share((to, group): (&f64, &Group)) -> f64 {
    to * f64::from(group.nodes)
}

impl Group {
    fn check(&self) -> Result<(), Invalid> {
        if self.nodes == 0 {
            return Err(Invalid::new("nodes", "must be 1 or more in each group"));
        }
        positive("getpage_s", self.getpage_s)?;
        positive("putpage_s", self.putpage_s)
    }
}

/// More machines of one class than this are refused.
const MACHINES_MAX: u32 = 1_000_000;
