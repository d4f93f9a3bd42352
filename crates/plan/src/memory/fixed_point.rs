//! The rate of putpages: a constant times that of the getpages, which they slow down.

use super::network::Network;
use super::solution::Solution;
use super::station::{Closed, stations};
use super::{Method, amva, exact, linearizer};
use crate::invalid::Invalid;

impl Network {
    /// Solves the network.
    ///
    /// With one class the rate is bracketed: without putpages more getpages are done than assumed, at the rate that fills a
    /// server with putpages fewer, and the more putpages, the fewer getpages; so it is always found. With several classes each
    /// one's part of the rate is iterated around that. [`Solution::residual`] tells how exactly it was found.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters; exact analysis of more mixes of machines than a computer can go through.
    pub fn solve(&self, method: Method) -> Result<Solution, Invalid> {
        self.check()?;
        if method == Method::Exact && exact::size(self) > EXACT_MAX {
            let why = "are too many, or of too many classes, for exact analysis";
            return Err(Invalid::new("machines", why));
        }
        Ok(self.balance(method))
    }

    /// Solves it exactly, or by approximation if it is so large that exact analysis takes long.
    ///
    /// Machines that are alike are then solved by Schweitzer's guess, which is within some thousandths of a machine's cycle
    /// `Z + R`, and within a fifth of `R` even where one server just fills; others by Linearizer.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters.
    pub fn solve_quickly(&self) -> Result<Solution, Invalid> {
        let method = match (exact::size(self) <= EXACT_SOON, self.classes.len()) {
            (true, _) => Method::Exact,
            (false, 1) => Method::Schweitzer,
            (false, _) => Method::Linearizer,
        };
        self.solve(method)
    }

    fn balance(&self, method: Method) -> Solution {
        let closed = |rates: &[f64]| self.closed(method, rates);
        let mut rates = self.unhindered();
        if self
            .classes
            .iter()
            .all(|class| class.putpages_per_getpage == 0.0)
        {
            return Solution::new(self, &rates, closed(&rates), 0.0);
        }
        // While the mix is still off, its sum need not be better.
        let mut within = if rates.len() == 1 { SETTLED } else { 1e-3 };
        for _ in 0..MIXES_MAX {
            let total: f64 = rates.iter().sum();
            let mix: Vec<f64> = rates.iter().map(|rate| rate / total).collect();
            let scaled = |total: f64| mix.iter().map(|part| part * total).collect::<Vec<f64>>();
            let excess = |total: f64| {
                let done = closed(&scaled(total)).getpages_per_s;
                done.iter().sum::<f64>() - total
            };
            rates = scaled(root(excess, self.rate_max(&mix), within));
            if rates.len() == 1 {
                break;
            }
            let done = closed(&rates).getpages_per_s;
            let off = difference(&done, &rates);
            if off < MIX_SETTLED {
                break;
            }
            (rates, within) = (done, (off / 10.0).max(SETTLED));
        }
        let done = closed(&rates);
        let off = difference(&done.getpages_per_s, &rates);
        Solution::new(self, &rates, done, off)
    }

    fn closed(&self, method: Method, getpages_per_s: &[f64]) -> Closed {
        let stations = stations(self, getpages_per_s);
        match method {
            Method::Exact => exact::exact(self, &stations),
            Method::Schweitzer => amva::schweitzer(self, &stations),
            Method::Linearizer => linearizer::linearizer(self, &stations),
        }
    }

    /// What each class would ask for if nobody waited.
    fn unhindered(&self) -> Vec<f64> {
        let rates = self.classes.iter().map(|class| {
            f64::from(class.machines) / (class.think_s + class.demand_s(&self.groups))
        });
        rates.collect()
    }

    /// A rate of all getpages that cannot be exceeded: nobody waits, or a server has time for nothing but putpages.
    fn rate_max(&self, mix: &[f64]) -> f64 {
        let of_servers = self.groups.iter().enumerate().map(|(number, group)| {
            let parts = self.classes.iter().zip(mix);
            let putpages: f64 = parts
                .map(|(class, part)| part * class.putpages_per_getpage * class.routing[number])
                .sum();
            (1.0 - NEARLY_FULL) / (putpages * group.putpage_s)
        });
        let unhindered: f64 = self.unhindered().iter().sum();
        of_servers.fold(unhindered, f64::min)
    }
}

/// Where a falling function is 0 between 0 and a bound at which it is not above 0: by secants within the bracket (the Illinois
/// method), halved where these are slow.
fn root(f: impl Fn(f64) -> f64, most: f64, within: f64) -> f64 {
    let (mut low, mut high) = ((0.0, f(0.0)), (most, f(most)));
    let mut best = high;
    for step in 0..ROOT_STEPS_MAX {
        let secant = low.0 + (high.0 - low.0) * low.1 / (low.1 - high.1);
        let at = match step % 4 {
            3 => f64::midpoint(low.0, high.0),
            _ => secant,
        };
        if !(at > low.0 && at < high.0) {
            break;
        }
        let here = (at, f(at));
        if here.1.abs() < best.1.abs() {
            best = here;
        }
        if here.1.abs() <= within * at {
            break;
        }
        if here.1 > 0.0 {
            (low, high.1) = (here, high.1 / 2.0);
        } else {
            (high, low.1) = (here, low.1 / 2.0);
        }
    }
    best.0
}

/// The largest difference of rates, relative to them.
fn difference(these: &[f64], those: &[f64]) -> f64 {
    let pairs = these.iter().zip(those);
    let differences = pairs.map(|(this, that)| (this - that).abs() / this.max(*that));
    differences.fold(0.0, f64::max)
}

const EXACT_MAX: f64 = 4e6;

/// What exact analysis goes through in a millisecond.
const EXACT_SOON: f64 = 1e4;

/// Above what the sum alone can be found to.
const MIX_SETTLED: f64 = 1e-10;

const MIXES_MAX: u32 = 200;

const ROOT_STEPS_MAX: u32 = 200;

const SETTLED: f64 = 1e-12;

/// How far from full with putpages a server stays in the bracket.
const NEARLY_FULL: f64 = 1e-12;
