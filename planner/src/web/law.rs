//! The probability of a hit as a table, where it has no closed form.

use super::asymptote::Rare;
use super::change::Spacing;
use super::window::Window;
use crate::Invalid;
use std::sync::Arc;

/// A spacing of changes with what was computed ahead for it.
#[derive(Clone, Debug)]
pub(super) struct Law {
    spacing: Spacing,
    /// What has a closed form has no table.
    table: Option<Arc<Table>>,
}

#[derive(Debug)]
struct Table {
    /// It begins at e to this.
    first: i32,
    panels: Vec<[f64; DEGREE + 1]>,
    below: Rare,
}

impl Law {
    pub(super) fn new(spacing: Spacing) -> Result<Self, Invalid> {
        spacing.check()?;
        let table = Rare::of(spacing).map(|below| Arc::new(Table::new(spacing, below)));
        Ok(Law { spacing, table })
    }

    pub(super) fn spacing(&self) -> Spacing {
        self.spacing
    }

    /// See [`Spacing::hit`].
    pub(super) fn hit(&self, rate: f64) -> f64 {
        match &self.table {
            Some(table) => table.hit(rate),
            None => self.spacing.hit(rate),
        }
    }

    /// See [`Spacing::hit_within`].
    pub(super) fn hit_within(&self, rate: f64, window: f64) -> f64 {
        match window.is_infinite() {
            true => self.hit(rate),
            false => self.spacing.hit_within(rate, window),
        }
    }

    /// The same for all documents that change so often, are kept so long and are asked for at most so often, where that is
    /// computed faster together.
    pub(super) fn window(&self, change_s: f64, keep_s: f64, fastest: f64) -> Option<Window> {
        let can_be = |time_s: f64| time_s.is_normal() && time_s > 0.0;
        let is_costly = !matches!(self.spacing, Spacing::Exponential | Spacing::Regular);
        let is_common = can_be(change_s) && can_be(keep_s) && can_be(fastest);
        (is_costly && is_common).then(|| Window::new(self.spacing, change_s, keep_s, fastest))
    }

    /// How far a probability may be from the true one.
    pub(super) fn error(&self) -> f64 {
        match self.spacing {
            Spacing::Exponential | Spacing::Regular => 0.0,
            _ => ERROR,
        }
    }
}

impl Table {
    fn new(spacing: Spacing, below: Rare) -> Self {
        let first = FIRST.min(below.log_max().floor() as i32);
        Table {
            first,
            panels: (first..LAST).map(|at| panel(spacing, at)).collect(),
            below,
        }
    }

    fn hit(&self, rate: f64) -> f64 {
        let at = rate.ln() - f64::from(self.first);
        if at.is_nan() || at < 0.0 {
            return self.below.hit(rate);
        }
        match self.panels.get(at as usize) {
            Some(panel) => clenshaw(panel, 2.0 * at.fract() - 1.0).clamp(0.0, 1.0),
            // With y requests in an interval, E e^(-yX) / y is left out, which is below 10⁻¹³ here.
            None => 1.0 - 1.0 / rate,
        }
    }
}

/// The coefficients of the polynomial through Chebyshev's points of a panel of width 1 in the logarithm of the rate.
///
/// For any distribution, h is analytic and below 2 where the argument of the rate is less than a right angle. The largest
/// ellipse there has ρ = π + √(π² + 1) = 6.4, and the polynomial's error is at most 4 · 2 ρ^-15 / (ρ - 1) = 10⁻¹².
fn panel(spacing: Spacing, at: i32) -> [f64; DEGREE + 1] {
    let count = (DEGREE + 1) as f64;
    let angle = |number: usize| std::f64::consts::PI * (number as f64 + 0.5) / count;
    let values: [f64; DEGREE + 1] = std::array::from_fn(|number| {
        let log = f64::from(at) + (angle(number).cos() + 1.0) / 2.0;
        spacing.hit(log.exp())
    });
    std::array::from_fn(|order| {
        let terms = values.iter().enumerate();
        let sum: f64 = terms
            .map(|(number, value)| value * (order as f64 * angle(number)).cos())
            .sum();
        sum * if order == 0 { 1.0 } else { 2.0 } / count
    })
}

fn clenshaw(coefficients: &[f64], x: f64) -> f64 {
    let (mut now, mut before) = (0.0, 0.0);
    for coefficient in coefficients[1..].iter().rev() {
        (now, before) = (2.0 * x * now - before + coefficient, now);
    }
    x * now - before + coefficients[0]
}

const DEGREE: usize = 15;

/// The table covers e to these, and more below where [`Rare`] begins later: from a request in ten million million intervals to
/// as many requests in one.
const FIRST: i32 = -30;
const LAST: i32 = 30;

/// What polynomial and quadrature may be wrong by, with room; a test compares the table with finer quadrature.
const ERROR: f64 = 1e-10;

#[cfg(test)]
mod tests {
    use super::*;

    const HEAVY: [Spacing; 9] = [
        Spacing::Pareto { shape: 1.001 },
        Spacing::Pareto { shape: 1.5 },
        Spacing::Pareto { shape: 2.0 },
        Spacing::Pareto { shape: 2.499 },
        Spacing::Pareto { shape: 3.0 },
        Spacing::Pareto { shape: 1000.0 },
        Spacing::Lognormal { sigma: 0.1 },
        Spacing::Lognormal { sigma: 1.5 },
        Spacing::Lognormal { sigma: 10.0 },
    ];

    impl Law {
        fn ends(&self) -> (f64, f64) {
            let table = self.table.as_ref().expect("it has no closed form");
            (f64::from(table.first), f64::from(LAST))
        }
    }

    #[test]
    fn the_table_is_as_good_as_it_says() {
        let mut random = fastrand::Rng::with_seed(15);
        for spacing in [
            Spacing::Pareto { shape: 1.02 },
            Spacing::Pareto { shape: 2.5 },
            Spacing::Lognormal { sigma: 0.1 },
            Spacing::Lognormal { sigma: 6.0 },
        ] {
            let law = Law::new(spacing).unwrap();
            for _ in 0..300 {
                let rate = (random.f64() * 62.0 - 31.0).exp();
                let off = (law.hit(rate) - spacing.hit(rate)).abs();
                assert!(off < law.error() / 10.0, "{spacing:?} {rate} {off}");
            }
        }
    }

    #[test]
    fn what_is_outside_the_table_is_as_good() {
        for spacing in HEAVY {
            let law = Law::new(spacing).unwrap();
            let (first, last) = law.ends();
            for step in 0..20 {
                let apart = 0.01 + f64::from(step * step);
                for rate in [(first - apart).exp(), (last + apart).exp()] {
                    let off = (law.hit(rate) - spacing.hit(rate)).abs();
                    assert!(off < law.error() / 10.0, "{spacing:?} {rate} {off}");
                }
            }
            for rate in [0.0, 1e-300, 1e300, f64::INFINITY, f64::NAN] {
                assert!((0.0..=1.0).contains(&law.hit(rate)), "{rate}");
            }
        }
    }
}
