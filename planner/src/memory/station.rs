//! One memory server as a request for a page sees it.

use super::network::{Class, Group, Network};

/// A server with the putpages that it has to serve besides.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Station {
    getpage_s: f64,
    putpage_s: f64,
    /// Part of the time that it serves putpages: below 1.
    putpage_busy: f64,
}

impl Station {
    pub(super) fn new(group: &Group, putpages_per_s: f64) -> Self {
        Station {
            getpage_s: group.getpage_s,
            putpage_s: group.putpage_s,
            putpage_busy: putpages_per_s * group.putpage_s,
        }
    }

    /// How long any request waits that finds so many getpages.
    ///
    /// It waits for these and for the putpages before it; as many putpages are before it as arrive while one of them waits and
    /// is served, and one that arrives finds the same. Solved for the wait. With equal demands a getpage then takes
    /// `D (1 + Q) / (1 - U_putpage)`, as in every mixed network with a product form (Lazowska et al. 1984, chapter 7): exact
    /// for independent putpages. Putpages that are quicker count as if they were not, or a server would serve a little more
    /// than it has time for. With unequal demands the model says more than is simulated: up to a tenth with quicker putpages,
    /// a sixth with ones that take twice, a third with ones that take four times as long.
    fn wait_s(&self, getpages: f64) -> f64 {
        let putpages_s = self.putpage_busy * self.putpage_s.max(self.getpage_s);
        (getpages * self.getpage_s + putpages_s) / (1.0 - self.putpage_busy)
    }

    pub(super) fn getpage_s(&self, getpages: f64) -> f64 {
        self.getpage_s + self.wait_s(getpages)
    }

    pub(super) fn putpage_s(&self, getpages: f64) -> f64 {
        self.putpage_s + self.wait_s(getpages)
    }

    /// How much longer a getpage takes for each other that it finds.
    pub(super) fn each_s(&self) -> f64 {
        self.getpage_s / (1.0 - self.putpage_busy)
    }

    pub(super) fn putpage_busy(&self) -> f64 {
        self.putpage_busy
    }
}

/// The stations, one for each group, if classes ask at these rates.
pub(super) fn stations(network: &Network, getpages_per_s: &[f64]) -> Vec<Station> {
    let groups = network.groups.iter().enumerate();
    let station = |(number, group): (usize, &Group)| {
        let rates = network.classes.iter().zip(getpages_per_s);
        let putpages_per_s = rates
            .map(|(class, rate)| rate * class.putpages_per_getpage * class.routing[number])
            .sum();
        Station::new(group, putpages_per_s)
    };
    groups.map(station).collect()
}

/// What the closed classes do at given stations.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Closed {
    /// Getpages a second, of each class.
    pub(super) getpages_per_s: Vec<f64>,
    /// How long one takes, by class.
    pub(super) response_s: Vec<f64>,
    /// How many are at a node, by class and group.
    pub(super) queues: Vec<Vec<f64>>,
    /// How much changed in the last step of an iteration, relative to what there is; 0 where nothing is iterated.
    pub(super) residual: f64,
}

impl Closed {
    /// Adds a class of so many machines, whose requests find so many getpages at a node of each group.
    pub(super) fn push(
        &mut self,
        network: &Network,
        stations: &[Station],
        class: &Class,
        machines: f64,
        found: impl Fn(usize) -> f64,
    ) {
        let at: Vec<f64> = stations
            .iter()
            .enumerate()
            .map(|(group, station)| station.getpage_s(found(group)))
            .collect();
        let routes = class.routing.iter().zip(&network.groups).zip(&at);
        let response_s: f64 = routes
            .map(|((to, group), at_s)| to * f64::from(group.nodes) * at_s)
            .sum();
        let getpages_per_s = machines / (class.think_s + response_s);
        let queues = class.routing.iter().zip(&at);
        self.queues.push(
            queues
                .map(|(to, at_s)| getpages_per_s * to * at_s)
                .collect(),
        );
        self.getpages_per_s.push(getpages_per_s);
        self.response_s.push(response_s);
    }

    /// Adds a class of which no machine is there.
    pub(super) fn push_nobody(&mut self, groups: usize) {
        self.queues.push(vec![0.0; groups]);
        self.getpages_per_s.push(0.0);
        self.response_s.push(0.0);
    }

    /// How many getpages are at a node of a group on average.
    pub(super) fn at(&self, group: usize) -> f64 {
        self.queues.iter().map(|queue| queue[group]).sum()
    }
}
