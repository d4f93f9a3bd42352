//! When a document is still what it was at the last request for it.
//!
//! Requests for a document are a Poisson process of rate s; its changes are a renewal process, whose intervals X have mean m
//! and any distribution. A request hits if the one before it came after the last change. Looking back from a request, the last
//! change lies A ago, the age of a renewal process in its steady state: P(A > t) = E(X - t)⁺ / m. The request before lies an
//! exponential time ago, independently. So
//!
//! h(s) = P(the request before is younger than A) = 1 - E e^(-sA) = ∫₀^∞ s e^(-st) P(A > t) dt,
//!
//! where E e^(-sA) = (1 - E e^(-sX)) / (s m). For exponential intervals, A is X again, and h = s / (s + 1/m), as in section
//! 5.2.2 of the thesis. e^(-sx) is convex in x: the more the intervals vary about the same mean, the larger E e^(-sX) and the
//! more requests hit. Equal intervals are the worst, and no distribution with that mean is below them.
//!
//! In a cache that keeps a copy for a time T after the last request for it, the integral ends at T (see [`super::finite`]).

use super::quadrature::integral;
use crate::{Invalid, positive};
use libm::erfc;
use serde::Serialize;
use std::f64::consts::SQRT_2;

/// How the intervals between two changes of a document vary about their mean.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub enum Spacing {
    /// Changes come at random, as in the thesis.
    #[default]
    Exponential,
    /// Heavy-tailed from 0 on (Pareto's second kind, Lomax): P(X > x) = (1 + x / (m (shape - 1)))^-shape. The smaller the
    /// shape, the heavier the tail; from 2 down the variance is infinite. Without a limit above it is the exponential.
    Pareto {
        /// Above 1, so that there is a mean; at most 1000.
        shape: f64,
    },
    /// The logarithm of an interval is normal.
    Lognormal {
        /// The standard deviation of that (natural) logarithm, between 0.1 and 10.
        sigma: f64,
    },
    /// All intervals are equal: the fewest hits that any distribution with that mean allows.
    Regular,
}

impl Spacing {
    /// Refuses a shape that has no mean or that cannot be computed well.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the shape's name.
    pub fn check(self) -> Result<(), Invalid> {
        match self {
            Spacing::Exponential | Spacing::Regular => Ok(()),
            Spacing::Pareto { shape } => {
                positive("shape", shape)?;
                within("shape", shape, 1.001, 1000.0)
            }
            Spacing::Lognormal { sigma } => within("sigma", sigma, 0.1, 10.0),
        }
    }

    /// P(A > t), where t is told in mean intervals.
    pub fn unchanged(self, t: f64) -> f64 {
        match self {
            Spacing::Exponential => (-t).exp(),
            Spacing::Regular => (1.0 - t).max(0.0),
            Spacing::Pareto { shape } => {
                let tail = shape - 1.0;
                (-tail * (t / tail).ln_1p()).exp()
            }
            Spacing::Lognormal { .. } if t <= 0.0 => 1.0,
            Spacing::Lognormal { sigma } => {
                // E(X - t)⁺ of a lognormal X with mean 1.
                let above = sigma / 2.0 - t.ln() / sigma;
                (normal(above) - t * normal(above - sigma)).max(0.0)
            }
        }
    }

    /// The probability of a hit where `rate` requests come in a mean interval between changes.
    pub fn hit(self, rate: f64) -> f64 {
        match self {
            Spacing::Exponential => 1.0 / (1.0 + 1.0 / rate),
            _ => self.hit_within(rate, f64::INFINITY),
        }
    }

    /// The same, where a copy is kept for a time in which `window` requests come on average.
    pub fn hit_within(self, rate: f64, window: f64) -> f64 {
        if rate <= 0.0 || window <= 0.0 || rate.is_nan() || window.is_nan() {
            return 0.0;
        }
        if rate.is_infinite() {
            return -(-window).exp_m1();
        }
        match self {
            Spacing::Exponential => -(-window * (1.0 + 1.0 / rate)).exp_m1() / (1.0 + 1.0 / rate),
            Spacing::Regular => regular(rate, window.min(rate)),
            _ => self.by_quadrature(rate, window.min(REQUESTS_MAX)),
        }
    }

    /// How wide panels may be in the logarithm of a time: P(A > t) is as steep as a lognormal is narrow.
    pub(super) fn width(self) -> f64 {
        match self {
            Spacing::Lognormal { sigma } => (2.0 * sigma).min(1.0),
            _ => 1.0,
        }
    }

    /// ∫₀^v e^-w P(A > w / y) dw with y the rate and v the window, in the logarithm of w.
    fn by_quadrature(self, rate: f64, window: f64) -> f64 {
        let rate = rate.max(RATE_MIN);
        let from = (NEAR * rate.min(1.0)).min(window);
        // Below, the integrand falls from 1 with the slope -(1 + 1/y).
        let near = from - from * from / 2.0 * (1.0 + 1.0 / rate);
        let rest = integral(from.ln(), window.ln(), self.width(), |u| {
            let w = u.exp();
            (u - w).exp() * self.unchanged(w / rate)
        });
        (near + rest).clamp(0.0, 1.0)
    }
}

/// ∫₀^v e^-w (1 - w/y) dw.
fn regular(rate: f64, window: f64) -> f64 {
    let come = -(-window).exp_m1();
    // 1 - e^-v (1 + v), of which nothing is left for a small v when it is computed so.
    let late = match window < 1e-2 {
        true => {
            let v = window;
            v * v * (0.5 - v * (1.0 / 3.0 - v * (1.0 / 8.0 - v * (1.0 / 30.0 - v / 144.0))))
        }
        false => come - window * (-window).exp(),
    };
    (come - late / rate).clamp(0.0, 1.0)
}

fn normal(x: f64) -> f64 {
    erfc(-x / SQRT_2) / 2.0
}

fn within(parameter: &'static str, value: f64, least: f64, most: f64) -> Result<(), Invalid> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => {
            let why = format!("must be between {least} and {most}, not {value}");
            Err(Invalid::new(parameter, why))
        }
    }
}

/// e to the minus this is nothing.
const REQUESTS_MAX: f64 = 40.0;

/// Below, its inverse is no number any more. Fewer requests hit no more often.
const RATE_MIN: f64 = 1e-290;

/// From here on down, the square of it is nothing.
const NEAR: f64 = 1e-6;

/// An interval with the mean 1, drawn.
#[cfg(test)]
pub(super) fn interval(spacing: Spacing, random: &mut fastrand::Rng) -> f64 {
    let uniform = 1.0 - random.f64();
    match spacing {
        Spacing::Exponential => -uniform.ln(),
        Spacing::Regular => 1.0,
        Spacing::Pareto { shape } => (shape - 1.0) * (uniform.powf(-1.0 / shape) - 1.0),
        Spacing::Lognormal { sigma } => {
            let angle = std::f64::consts::TAU * random.f64();
            let normal = (-2.0 * uniform.ln()).sqrt() * angle.cos();
            (sigma * normal - sigma * sigma / 2.0).exp()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Spacing; 8] = [
        Spacing::Exponential,
        Spacing::Regular,
        Spacing::Pareto { shape: 1.05 },
        Spacing::Pareto { shape: 1.5 },
        Spacing::Pareto { shape: 3.0 },
        Spacing::Lognormal { sigma: 0.1 },
        Spacing::Lognormal { sigma: 1.5 },
        Spacing::Lognormal { sigma: 4.0 },
    ];

    fn rates() -> impl Iterator<Item = f64> {
        (-60..=60).map(|tenths| 10f64.powf(f64::from(tenths) / 5.0))
    }

    #[test]
    fn the_quadrature_meets_the_exponential_closed_form() {
        for rate in rates() {
            let spacing = Spacing::Exponential;
            let found = spacing.by_quadrature(rate, REQUESTS_MAX);
            let exact = rate / (1.0 + rate);
            assert!(
                (found - exact).abs() < 1e-11 * exact.max(1e-3),
                "{rate} {found} {exact}"
            );
            let window = rate.sqrt().min(REQUESTS_MAX);
            let found = spacing.by_quadrature(rate, window);
            let exact = spacing.hit_within(rate, window);
            assert!((found - exact).abs() < 1e-11, "{rate} {found} {exact}");
        }
    }

    /// For shape 2, 1 - h = e^y E₂(y), and E₂(y) = e^-y - y E₁(y) with E₁ by its series.
    #[test]
    fn pareto_meets_the_exponential_integral() {
        for rate in [1e-3, 0.1, 1.0, 3.0f64] {
            let terms = (1..60).scan(-1.0, |term, k| {
                *term *= -rate / f64::from(k);
                Some(*term / f64::from(k))
            });
            let e1 = -0.577_215_664_901_532_9 - rate.ln() + terms.sum::<f64>();
            let exact = rate * rate.exp() * e1;
            let found = Spacing::Pareto { shape: 2.0 }.hit(rate);
            assert!((found - exact).abs() < 1e-11, "{rate} {found} {exact}");
        }
    }

    #[test]
    fn equal_intervals_are_the_worst_and_all_is_within_bounds() {
        for spacing in ALL {
            let mut before = 0.0;
            for rate in rates() {
                let hit = spacing.hit(rate);
                let least = Spacing::Regular.hit(rate);
                assert!(hit >= least - 1e-11 && hit <= 1.0, "{spacing:?} {rate}");
                assert!(hit >= before - 1e-11, "{spacing:?} {rate}");
                before = hit;
            }
        }
    }

    #[test]
    fn limits_in_the_shape_are_met() {
        for rate in rates() {
            let random = Spacing::Exponential.hit(rate);
            let near = Spacing::Pareto { shape: 1000.0 }.hit(rate);
            assert!((near - random).abs() < 1e-3, "{rate} {near} {random}");
            // The exponential is the least that Lomax's intervals, a mixture of exponential ones, can have.
            assert!(near >= random - 1e-11, "{rate}");
            let narrow = Spacing::Lognormal { sigma: 0.1 }.hit(rate);
            let equal = Spacing::Regular.hit(rate);
            assert!((narrow - equal).abs() < 6e-3, "{rate} {narrow} {equal}");
        }
    }

    #[test]
    fn a_longer_window_hits_more_and_a_long_one_all() {
        for spacing in ALL {
            for rate in rates() {
                let windows = [0.0, 1e-9, 1e-3, 0.3, 2.0, 50.0, f64::INFINITY];
                let hits = windows.map(|window| spacing.hit_within(rate, window));
                assert!(
                    hits.windows(2).all(|pair| pair[0] <= pair[1] + 1e-12),
                    "{spacing:?} {hits:?}"
                );
                assert!((hits[6] - spacing.hit(rate)).abs() < 1e-11);
            }
        }
    }

    #[test]
    fn no_extreme_yields_what_is_no_number() {
        for spacing in ALL {
            for rate in [
                0.0,
                1e-310,
                1e-300,
                1e-30,
                1e30,
                1e300,
                f64::INFINITY,
                f64::NAN,
            ] {
                for window in [0.0, 1e-300, 1.0, 1e300, f64::INFINITY] {
                    let hit = spacing.hit_within(rate, window);
                    assert!((0.0..=1.0).contains(&hit), "{spacing:?} {rate} {window}");
                }
            }
        }
    }

    #[test]
    fn shapes_without_a_mean_are_refused() {
        for shape in [1.0, 0.5, f64::NAN, f64::INFINITY] {
            assert!(Spacing::Pareto { shape }.check().is_err(), "{shape}");
        }
        for sigma in [0.0, -1.0, 11.0, f64::NAN] {
            assert!(Spacing::Lognormal { sigma }.check().is_err(), "{sigma}");
        }
        assert!(ALL.iter().all(|spacing| spacing.check().is_ok()));
    }

    /// Requests and changes drawn one by one; every figure within four standard errors.
    #[test]
    fn a_document_that_is_drawn_hits_as_often() {
        let mut random = fastrand::Rng::with_seed(5);
        for spacing in ALL {
            for rate in [0.3, 2.0, 8.0] {
                let (hits, requests) = (drawn(spacing, rate, &mut random), f64::from(DRAWN));
                let hit = spacing.hit(rate);
                // Requests between two changes are alike; the interval is what is independent.
                let independent = requests / rate.max(1.0) / 4.0;
                let error = (hit * (1.0 - hit) / independent).sqrt();
                let seen = f64::from(hits) / requests;
                if !is_wild(spacing) {
                    assert!(
                        (seen - hit).abs() < 4.0 * error,
                        "{spacing:?} {rate} {seen} {hit}"
                    );
                }
            }
        }
    }

    const DRAWN: u32 = 60_000;

    /// The mean of a few ten thousand of its intervals is not near the mean of all.
    fn is_wild(spacing: Spacing) -> bool {
        matches!(spacing, Spacing::Pareto { shape } if shape <= 1.5)
            || matches!(spacing, Spacing::Lognormal { sigma } if sigma > 2.0)
    }

    fn drawn(spacing: Spacing, rate: f64, random: &mut fastrand::Rng) -> u32 {
        let (mut hits, mut last) = (0, -1.0);
        let (mut now, mut change, mut next) = (0.0, 0.0, interval(spacing, random));
        for _ in 0..DRAWN {
            now += -(1.0 - random.f64()).ln() / rate;
            while next <= now {
                change = next;
                next += interval(spacing, random);
            }
            hits += u32::from(last > change);
            last = now;
        }
        hits
    }
}
