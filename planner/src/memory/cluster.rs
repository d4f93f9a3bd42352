//! The clusters that people ask about: machines alike, servers alike, at most one of them asked more than the others.

use super::network::{Class, Group, Kind, Network};
use super::solution::Solution;
use crate::invalid::{Invalid, fraction};

/// A cluster in few numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cluster {
    /// Machines that page to the memory of others: `N_global`.
    pub machines: u32,
    /// Mean time between a page's arrival and a machine's next request, in seconds: `Z`.
    pub think_s: f64,
    /// Pages that are sent to the servers for each that is asked for: `f`.
    pub putpages_per_getpage: f64,
    /// Servers with nothing else to do: `N_idle`.
    pub servers: u32,
    /// The part of what these are asked for that goes to one of them: *old memory heavily skewed to one node*. None: it is
    /// balanced.
    pub hottest_share: Option<f64>,
    /// Servers with work of their own: `N_local`.
    pub local_servers: u32,
    /// The part of all requests that goes to these, evenly: `P_local`.
    pub local_share: f64,
    /// Mean time to serve a getpage, in seconds.
    pub getpage_s: f64,
    /// Mean time to serve a putpage, in seconds.
    pub putpage_s: f64,
}

impl Default for Cluster {
    /// The thesis's: one machine that runs OO7, one server (sections 3.3.2 and table 3.1).
    fn default() -> Self {
        Cluster {
            machines: 1,
            think_s: OO7_THINK_S,
            putpages_per_getpage: 1.0,
            servers: 1,
            hottest_share: None,
            local_servers: 0,
            local_share: 0.0,
            getpage_s: SERVICE_S,
            putpage_s: SERVICE_S,
        }
    }
}

impl Cluster {
    /// The same as a network.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters: no server for requests that go there, a hottest server with less than its part.
    pub fn network(&self) -> Result<Network, Invalid> {
        self.check_shares()?;
        let idle = 1.0 - self.local_share;
        let hottest = self.hottest_share.filter(|_| self.servers > 1);
        let mut nodes = Vec::new();
        match hottest {
            Some(share) => {
                let others = self.servers - 1;
                nodes.push((Kind::Idle, 1, idle * share));
                nodes.push((Kind::Idle, others, idle * (1.0 - share) / f64::from(others)));
            }
            None => nodes.push((Kind::Idle, self.servers, idle / f64::from(self.servers))),
        }
        let local = self.local_share / f64::from(self.local_servers);
        nodes.push((Kind::Local, self.local_servers, local));
        nodes.retain(|&(_, count, _)| count > 0);
        let network = Network {
            classes: vec![Class {
                machines: self.machines,
                think_s: self.think_s,
                putpages_per_getpage: self.putpages_per_getpage,
                routing: nodes.iter().map(|&(_, _, to)| to).collect(),
            }],
            groups: nodes
                .iter()
                .map(|&(kind, count, _)| self.group(kind, count))
                .collect(),
        };
        network.check()?;
        Ok(network)
    }

    fn group(&self, kind: Kind, nodes: u32) -> Group {
        Group {
            kind,
            nodes,
            getpage_s: self.getpage_s,
            putpage_s: self.putpage_s,
        }
    }

    fn check_shares(&self) -> Result<(), Invalid> {
        fraction("local_share", self.local_share)?;
        if self.local_servers == 0 && self.local_share > 0.0 {
            let why = format!("cannot be {} without local servers", self.local_share);
            return Err(Invalid::new("local_share", why));
        }
        if self.servers == 0 && self.local_share < 1.0 {
            let why = "must be 1 or more, unless local servers serve everything";
            return Err(Invalid::new("servers", why));
        }
        let Some(share) = self.hottest_share else {
            return Ok(());
        };
        fraction("hottest_share", share)?;
        let even = 1.0 / f64::from(self.servers.max(1));
        // A hair below is rounding.
        if share < even - 1e-9 {
            let why = format!(
                "cannot be below {even:.3}, the part of each of {} servers, and is {share}",
                self.servers
            );
            return Err(Invalid::new("hottest_share", why));
        }
        Ok(())
    }

    /// How it performs, as quickly as [`Network::solve_quickly`] finds it.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters.
    pub fn solve(&self) -> Result<Solution, Invalid> {
        self.network()?.solve_quickly()
    }
}

/// Time between requests to global memory of the OO7 benchmark, in seconds (table 3.1).
pub const OO7_THINK_S: f64 = 5e-3;

/// Time to serve a request, in seconds (section 3.3.2).
const SERVICE_S: f64 = 194e-6;
