//! The same network, event by event: what the model leaves out, and how far it is off.

mod agenda;
mod estimate;
mod world;

use super::network::{Class, Network};
use super::{Method, exact};
use crate::invalid::{Invalid, fraction, positive};

pub use estimate::Estimate;

/// What is simulated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Experiment {
    /// The same seed, the same answer.
    pub seed: u64,
    /// Independent runs: from 2 on they tell how sure the answer is.
    pub runs: u32,
    /// About how many getpages are measured in each.
    pub getpages: u32,
    /// Where putpages come from.
    pub putpages: Putpages,
    /// How service times vary.
    pub service: Service,
    /// With which probability the true value lies in the interval that is told.
    pub confidence: f64,
}

/// Where putpages come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Putpages {
    /// From nowhere, at random times, at the mean rate that the model finds: what the model assumes.
    Independent,
    /// Each machine sends them when it sends a getpage, to make room: what happens.
    WithGetpages,
}

/// How service times vary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// Exponentially distributed: what the model assumes.
    Exponential,
    /// Not at all: copying a page always takes the same.
    Fixed,
}

impl Default for Experiment {
    fn default() -> Self {
        Experiment {
            seed: 1,
            runs: 20,
            getpages: 20_000,
            putpages: Putpages::WithGetpages,
            service: Service::Exponential,
            confidence: 0.95,
        }
    }
}

/// What was seen.
#[derive(Clone, PartialEq, Debug)]
pub struct Seen {
    /// Mean time of a getpage in seconds, by class.
    pub response_s: Vec<Estimate>,
    /// The same over all classes.
    pub response_of_all_s: Estimate,
    /// Getpages a second, by class.
    pub getpages_per_s: Vec<Estimate>,
    /// Mean time of a putpage in seconds, if there was any.
    pub putpage_s: Option<Estimate>,
    /// Utilisation of the nodes of each group.
    pub utilisation: Vec<Estimate>,
}

impl Experiment {
    /// Simulates a network; is told how many runs are done after each.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters.
    pub fn run(&self, network: &Network, mut done: impl FnMut(u32)) -> Result<Seen, Invalid> {
        self.check()?;
        let plan = self.plan(network)?;
        let mut runs = Vec::new();
        for run in 0..self.runs {
            // Neighbouring seeds give unrelated numbers.
            let seed = self.seed.wrapping_add(u64::from(run));
            runs.push(world::run(network, &plan, seed));
            done(run + 1);
        }
        Ok(self.seen(network, &runs))
    }

    fn check(&self) -> Result<(), Invalid> {
        if self.runs < 2 {
            return Err(Invalid::new("runs", "must be 2 or more"));
        }
        positive("getpages", f64::from(self.getpages))?;
        fraction("confidence", self.confidence)?;
        positive("confidence", 1.0 - self.confidence)
    }

    /// How long a run has to be, and what it draws putpages from.
    fn plan(&self, network: &Network) -> Result<world::Plan, Invalid> {
        let method = match exact::size(network) < 1e5 {
            true => Method::Exact,
            false => Method::Linearizer,
        };
        let expected = network.solve(method)?;
        let measured_s = f64::from(self.getpages) / expected.getpages_per_s();
        let cycles_s = expected.classes.iter().map(|c| c.think_s + c.response_s);
        let independent = network.classes.iter().zip(&expected.classes);
        let independent = independent
            .map(|(class, solved): (&Class, _)| solved.getpages_per_s * class.putpages_per_getpage);
        Ok(world::Plan {
            warm_up_s: cycles_s.fold(0.0, f64::max) * WARM_UP_CYCLES + measured_s * WARM_UP_PART,
            measured_s,
            service: self.service,
            independent_per_s: match self.putpages {
                Putpages::Independent => Some(independent.collect()),
                Putpages::WithGetpages => None,
            },
        })
    }

    fn seen(&self, network: &Network, runs: &[world::Run]) -> Seen {
        let over = |value: &dyn Fn(&world::Run) -> f64| {
            let values: Vec<f64> = runs.iter().map(value).collect();
            Estimate::of(&values, self.confidence)
        };
        let classes = 0..network.classes.len();
        let groups = 0..network.groups.len();
        let has_putpages = runs.iter().all(|run| run.putpages.count > 0);
        Seen {
            response_s: classes
                .clone()
                .map(|class| over(&|run| run.getpages[class].mean_s()))
                .collect(),
            response_of_all_s: over(&|run| run.all().mean_s()),
            getpages_per_s: classes
                .map(|class| over(&|run| run.getpages[class].count as f64 / run.measured_s))
                .collect(),
            putpage_s: has_putpages.then(|| over(&|run| run.putpages.mean_s())),
            utilisation: groups
                .map(|group| over(&|run| run.utilisation(group, &network.groups[group])))
                .collect(),
        }
    }
}

/// Before anything is measured each machine has gone around so often,
const WARM_UP_CYCLES: f64 = 50.0;

/// and this part of what will be measured has passed.
const WARM_UP_PART: f64 = 0.1;
