//! The rate of putpages: a constant times that of the getpages, which they slow down.

use super::network::{Group, Network};
use super::solution::Solution;
use super::station::{Closed, stations};
use super::{Method, amva, exact, linearizer};
use crate::invalid::Invalid;

impl Network {
    /// Solves the network.
    ///
    /// With one class the rate is bracketed: without putpages more getpages are done than assumed, at the rate that fills a
    /// server with putpages fewer, and the more putpages, the fewer getpages; so it is always found. With several classes all
    /// their rates are found together by Newton's method, which starts there. [`Solution::residual`] tells how exactly they
    /// were found.
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

    /// Solves it exactly, or by Schweitzer's guess if it is so large that exact analysis takes long.
    ///
    /// With machines that are alike, the guess is then within some thousandths of a machine's cycle `Z + R`. It is within a
    /// quarter of `R` also where one server just fills and nothing else goes on: in the limit of many machines N it has √N of
    /// them wait there, and exactly it is √(2N/π). With a putpage for each getpage it is within a sixth.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters.
    pub fn solve_quickly(&self) -> Result<Solution, Invalid> {
        let method = match exact::size(self) <= EXACT_SOON {
            true => Method::Exact,
            false => Method::Schweitzer,
        };
        self.solve(method)
    }

    fn balance(&self, method: Method) -> Solution {
        let closed = |rates: &[f64]| self.closed(method, rates);
        let unhindered = self.unhindered();
        if self
            .classes
            .iter()
            .all(|class| class.putpages_per_getpage == 0.0)
        {
            return Solution::new(self, &unhindered, closed(&unhindered), 0.0);
        }
        let total: f64 = unhindered.iter().sum();
        let mix: Vec<f64> = unhindered.iter().map(|rate| rate / total).collect();
        let scaled = |total: f64| mix.iter().map(|part| part * total).collect::<Vec<f64>>();
        let excess = |total: f64| {
            let done = closed(&scaled(total)).getpages_per_s;
            done.iter().sum::<f64>() - total
        };
        // Of several classes only a start is found so.
        let within = if mix.len() == 1 { SETTLED } else { 0.1 };
        let mut rates = scaled(root(excess, self.rate_max(&mix), within));
        if rates.len() > 1 {
            let off = |logs: &[f64]| self.off(method, logs);
            rates = exponentials(&zero(off, &logarithms(&rates), MIX_SETTLED));
        }
        let done = closed(&rates);
        let off = difference(&done.getpages_per_s, &rates);
        Solution::new(self, &rates, done, off)
    }

    /// How much more getpages each class does than these, in logarithms; none if a server had no time for all their putpages.
    fn off(&self, method: Method, logs: &[f64]) -> Option<Vec<f64>> {
        let rates = exponentials(logs);
        // Not if that is no number.
        let has_time = |(number, group): (usize, &Group)| {
            self.putpages_of(number, &rates) * group.putpage_s < 1.0 - NEARLY_FULL
        };
        if !self.groups.iter().enumerate().all(has_time) {
            return None;
        }
        let done = self.closed(method, &rates).getpages_per_s;
        let pairs = done.iter().zip(logs);
        Some(pairs.map(|(done, log)| done.ln() - log).collect())
    }

    /// Putpages that each server of a group gets a second, if classes do so many getpages.
    fn putpages_of(&self, group: usize, getpages_per_s: &[f64]) -> f64 {
        let rates = self.classes.iter().zip(getpages_per_s);
        rates
            .map(|(class, rate)| rate * class.putpages_per_getpage * class.routing[group])
            .sum()
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
            (1.0 - NEARLY_FULL) / (self.putpages_of(number, mix) * group.putpage_s)
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

/// Where a function of several numbers is 0, as near as it is found from a start at which it is defined: by Newton's method with
/// slopes from differences, and shorter steps where a whole one leads further away, or to where it is not defined.
fn zero(f: impl Fn(&[f64]) -> Option<Vec<f64>>, start: &[f64], within: f64) -> Vec<f64> {
    let mut at = start.to_vec();
    let Some(mut here) = f(&at) else {
        return at;
    };
    for _ in 0..NEWTON_STEPS_MAX {
        if largest(&here) <= within {
            break;
        }
        let Some(step) = slopes(&f, &at, &here).and_then(|slopes| solved(slopes, &here)) else {
            break;
        };
        let tried = (0..HALVINGS_MAX).find_map(|halvings| {
            let part = 0.5_f64.powi(halvings);
            let moved = at.iter().zip(&step).map(|(at, step)| at - part * step);
            let moved: Vec<f64> = moved.collect();
            let there = f(&moved)?;
            (largest(&there) < largest(&here)).then_some((moved, there))
        });
        let Some(nearer) = tried else {
            break;
        };
        (at, here) = nearer;
    }
    at
}

/// How each value changes with each number, row by row.
fn slopes(
    f: impl Fn(&[f64]) -> Option<Vec<f64>>,
    at: &[f64],
    here: &[f64],
) -> Option<Vec<Vec<f64>>> {
    let mut rows = vec![vec![0.0; at.len()]; here.len()];
    for number in 0..at.len() {
        let mut beside = at.to_vec();
        // Down: to fewer putpages, where a server has time for them.
        beside[number] -= BESIDE;
        for (row, (here, there)) in rows.iter_mut().zip(here.iter().zip(f(&beside)?)) {
            row[number] = (here - there) / BESIDE;
        }
    }
    Some(rows)
}

/// The solution of linear equations by Gaussian elimination; none if there is no single one.
fn solved(mut rows: Vec<Vec<f64>>, right: &[f64]) -> Option<Vec<f64>> {
    let count = rows.len();
    for (row, right) in rows.iter_mut().zip(right) {
        row.push(*right);
    }
    for column in 0..count {
        let by_size =
            |a: &usize, b: &usize| rows[*a][column].abs().total_cmp(&rows[*b][column].abs());
        let pivot = (column..count).max_by(by_size)?;
        rows.swap(column, pivot);
        let chosen = rows[column].clone();
        if chosen[column] == 0.0 || !chosen[column].is_finite() {
            return None;
        }
        for (number, row) in rows.iter_mut().enumerate() {
            if number != column {
                let factor = row[column] / chosen[column];
                let pairs = row.iter_mut().zip(&chosen);
                pairs.for_each(|(cell, chosen)| *cell -= factor * chosen);
            }
        }
    }
    let rows = rows.iter().enumerate();
    Some(rows.map(|(number, row)| row[count] / row[number]).collect())
}

fn largest(values: &[f64]) -> f64 {
    let sizes = values.iter().map(|value| value.abs());
    // What is no number is never small enough.
    sizes.fold(0.0, |most, size| {
        if size > most || size.is_nan() {
            size
        } else {
            most
        }
    })
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

fn exponentials(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.exp()).collect()
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

/// Above what rounding leaves of approximate solutions.
const MIX_SETTLED: f64 = 1e-10;

const NEWTON_STEPS_MAX: u32 = 100;

const HALVINGS_MAX: i32 = 40;

/// Wide enough that differences are above rounding.
const BESIDE: f64 = 1e-6;

const ROOT_STEPS_MAX: u32 = 200;

const SETTLED: f64 = 1e-12;

/// How far from full with putpages a server stays in the bracket.
const NEARLY_FULL: f64 = 1e-12;
