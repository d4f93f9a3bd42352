//! Zipf-like popularity: the i-th of n documents is asked for in proportion to i^-α.
//!
//! Sums over all documents are exact for the first 1024 and an integral for the rest, which takes microseconds for any n. The
//! error of the integral has a bound that holds for every function that is summed here. Those are of the form
//! h(p) = 1 - E e^(-pA) with a random time A ≥ 0 (see [`super::change`]), and with g(x) = p(x) h(p(x)):
//!
//! - one term against the integral over its own cell: |g(i) - ∫ g| ≤ 1/8 ∫ |g''| over the cell, for the kernel of that
//!   difference is (½ - |t|)²/2 ≤ 1/8;
//! - with y = pA: |p (p h)''| = |E y(2 - y)e^-y| ≤ 0.4612 and 0 ≤ (p h)' = E(1 - e^-y + y e^-y) ≤ 1 + e^-2, so that
//!   from a on ∫ |g''| ≤ (0.4612 α²/(α + 1) + 1.1353 α) p(a)/a;
//! - where documents are counted, not requests, g = h(p(x)), |p h'| ≤ 1/e, |p² h''| ≤ 4/e²: ∫ |g''| ≤ (4/e² α² + α(α + 1)/e)/a.

use super::bounded::Bounded;
use super::quadrature::integral;
use crate::Invalid;
use std::ops::RangeInclusive;

/// What a sum over documents counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Requests: a document counts as often as it is asked for; the sum over all of them is 1.
    Requests,
    /// Documents: each counts once; the sum over all of them is n.
    Documents,
}

/// How often each of n documents is asked for.
#[derive(Clone, Debug)]
pub struct Zipf {
    documents: u64,
    alpha: f64,
    /// Σ i^-α.
    scale: f64,
    /// The relative error of that sum.
    scale_error: f64,
    /// i^-α of the first documents.
    head: Vec<f64>,
}

impl Zipf {
    /// So many documents, and the exponent α: 0 for all alike, 1 for Zipf's law.
    ///
    /// # Errors
    ///
    /// No document, or an exponent that is not between 0 and 20.
    pub fn new(documents: u64, alpha: f64) -> Result<Self, Invalid> {
        if documents == 0 {
            return Err(Invalid::new("documents", "must be at least 1, not 0"));
        }
        if !(0.0..=ALPHA_MAX).contains(&alpha) {
            let why = format!("must be between 0 and {ALPHA_MAX}, not {alpha}");
            return Err(Invalid::new("alpha", why));
        }
        let head: Vec<f64> = (1..=documents.min(HEAD))
            .map(|rank| (rank as f64).powf(-alpha))
            .collect();
        let tail = power_sum(HEAD + 1, documents, alpha);
        // The smallest are added first, so that they are not lost.
        let scale = tail.value + head.iter().rev().sum::<f64>();
        Ok(Zipf {
            documents,
            alpha,
            scale,
            scale_error: tail.error / scale + ROUNDING,
            head,
        })
    }

    /// How many documents there are.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The exponent α.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The share of all requests that are for the document of that rank; 0 for a rank that none has.
    pub fn probability(&self, rank: u64) -> f64 {
        match (1..=self.documents).contains(&rank) {
            true => (rank as f64).powf(-self.alpha) / self.scale,
            false => 0.0,
        }
    }

    /// The share of all requests that are for the documents of these ranks.
    pub fn share(&self, ranks: RangeInclusive<u64>) -> Bounded {
        self.sum(ranks, Counted::Requests, |_| 1.0).as_share()
    }

    /// The sum of `hit` over the documents of these ranks, each counted as told. `hit` takes a document's probability, and
    /// has to be of the form 1 - E e^(-pA) for the bound of the error to hold.
    pub fn sum(
        &self,
        ranks: RangeInclusive<u64>,
        counted: Counted,
        hit: impl Fn(f64) -> f64,
    ) -> Bounded {
        self.sum_behind(HEAD, ranks, counted, hit)
    }

    /// The same with only so many documents one by one, for a `hit` that takes long. The error's bound tells what that costs.
    pub(super) fn sum_behind(
        &self,
        one_by_one: u64,
        ranks: RangeInclusive<u64>,
        counted: Counted,
        hit: impl Fn(f64) -> f64,
    ) -> Bounded {
        let one_by_one = one_by_one.min(HEAD);
        let (first, last) = ((*ranks.start()).max(1), (*ranks.end()).min(self.documents));
        if first > last {
            return Bounded::default();
        }
        let head = self.head(first, last.min(one_by_one), counted, &hit);
        let tail_first = first.max(one_by_one + 1);
        let tail = self.tail(tail_first, last, counted, &hit);
        let value = head + tail;
        // The scale is in each probability: once as a factor, and at most once more through `hit`, which is concave.
        let rounding = (ROUNDING + 2.0 * self.scale_error) * value;
        let cells = match tail_first <= last {
            true => self.cells_error(tail_first as f64 - 0.5, counted),
            false => 0.0,
        };
        Bounded {
            value,
            error: cells + rounding,
        }
    }

    fn head(&self, first: u64, last: u64, counted: Counted, hit: &impl Fn(f64) -> f64) -> f64 {
        let last = (last as usize).min(self.head.len());
        let ranks = (first as usize - 1).min(last)..last;
        let terms = self.head[ranks].iter().rev().map(|power| {
            let probability = power / self.scale;
            match counted {
                Counted::Requests => probability * hit(probability),
                Counted::Documents => hit(probability),
            }
        });
        terms.sum()
    }

    /// The integral from half before the first to half behind the last, in the logarithm of the rank.
    fn tail(&self, first: u64, last: u64, counted: Counted, hit: &impl Fn(f64) -> f64) -> f64 {
        let (from, to) = (first as f64 - 0.5, last as f64 + 0.5);
        if first > last {
            return 0.0;
        }
        self.integral(from, to, self.scale, counted, hit)
    }

    fn integral(
        &self,
        from: f64,
        to: f64,
        scale: f64,
        counted: Counted,
        hit: impl Fn(f64) -> f64,
    ) -> f64 {
        // As a function of u, `hit` is analytic and at most 2 as long as the argument of p turns less than a right angle.
        let width = 1.0 / self.alpha.max(1.0);
        integral(from.ln(), to.ln(), width, |u| {
            let probability = (-self.alpha * u).exp() / scale;
            match counted {
                Counted::Requests => ((1.0 - self.alpha) * u).exp() / scale * hit(probability),
                Counted::Documents => u.exp() * hit(probability),
            }
        })
    }

    /// The integral that the thesis (5.2.2) takes for the sum over all documents: from 1 to n, with ∫ x^-α as the scale. `hit`
    /// takes a rank as well. Nothing for one document, where both integrals are 0. The error is that of the quadrature, not
    /// the distance from the sum.
    pub fn paper_integral(
        &self,
        ranks: RangeInclusive<u64>,
        hit: impl Fn(f64) -> f64,
    ) -> Option<Bounded> {
        let n = self.documents as f64;
        let scale = power_integral(1.0, n, self.alpha);
        if self.documents == 1 {
            return None;
        }
        // Between the last popular document and the first of the others lies nothing: the step is at the former.
        let from = match *ranks.start() {
            0 | 1 => 1.0,
            first => first as f64 - 1.0,
        };
        let to = (*ranks.end() as f64).min(n);
        let value = self.integral(from, to, scale, Counted::Requests, hit);
        let error = ROUNDING * value + f64::EPSILON;
        Some(Bounded { value, error })
    }

    fn cells_error(&self, from: f64, counted: Counted) -> f64 {
        let a = self.alpha;
        match counted {
            Counted::Requests => {
                let bend = 0.4612 * a * a / (a + 1.0) + 1.1353 * a;
                bend * from.powf(-a) / self.scale / from / 8.0
            }
            Counted::Documents => (0.5414 * a * a + 0.3679 * a * (a + 1.0)) / from / 8.0,
        }
    }
}

/// Σ i^-α from the first to the last by Euler and Maclaurin's formula around the middles. x^-α is completely monotone, so the
/// first term that is left out bounds the error.
fn power_sum(first: u64, last: u64, alpha: f64) -> Bounded {
    if first > last {
        return Bounded::default();
    }
    let (from, to) = (first as f64 - 0.5, last as f64 + 0.5);
    let slope = |x: f64| -alpha * x.powf(-alpha - 1.0);
    let third = alpha * (alpha + 1.0) * (alpha + 2.0) * from.powf(-alpha - 3.0);
    Bounded {
        value: power_integral(from, to, alpha) - (slope(to) - slope(from)) / 24.0,
        error: 7.0 / 5760.0 * third,
    }
}

/// ∫ x^-α, without cancellation near α = 1.
pub(super) fn power_integral(from: f64, to: f64, alpha: f64) -> f64 {
    let (octaves, exponent) = ((to / from).ln(), 1.0 - alpha);
    let grown = match exponent * octaves {
        0.0 => octaves,
        grows => grows.exp_m1() / exponent,
    };
    from.powf(exponent) * grown
}

/// How many documents are summed one by one.
const HEAD: u64 = 1024;

/// What the rounding of some thousand operations may add up to, relatively.
const ROUNDING: f64 = 1e-12;

/// Above it, all but one document in a million requests is the first.
const ALPHA_MAX: f64 = 20.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(rate: f64) -> impl Fn(f64) -> f64 {
        move |p| 1.0 / (1.0 + 1.0 / (rate * p))
    }

    fn windowed(rate: f64) -> impl Fn(f64) -> f64 {
        move |p| -(-rate * p).exp_m1()
    }

    /// Brute force against the sum with its bound, for many seeded popularities and both ways to count.
    #[test]
    fn the_bound_holds_against_brute_force() {
        let mut random = fastrand::Rng::with_seed(53);
        for round in 0..60 {
            let documents = random.u64(1..200_000);
            let alpha = random.f64() * if round % 10 == 0 { 20.0 } else { 2.0 };
            let rate = 10f64.powf(random.f64() * 12.0 - 2.0);
            let zipf = Zipf::new(documents, alpha).unwrap();
            let first = random.u64(1..=documents);
            for first in [1, first] {
                check(&zipf, first..=documents, exponential(rate));
                check(&zipf, first..=documents, windowed(rate));
            }
        }
    }

    fn check(zipf: &Zipf, ranks: RangeInclusive<u64>, hit: impl Fn(f64) -> f64) {
        for counted in [Counted::Requests, Counted::Documents] {
            let found = zipf.sum(ranks.clone(), counted, &hit);
            let terms = ranks.clone().rev().map(|rank| {
                let p = zipf.probability(rank);
                if counted == Counted::Requests {
                    p * hit(p)
                } else {
                    hit(p)
                }
            });
            let exact: f64 = terms.sum();
            assert!(
                found.admits(exact),
                "{found:?} {exact} {ranks:?} {counted:?} {}",
                zipf.alpha
            );
        }
    }

    #[test]
    fn all_requests_are_for_some_document() {
        for documents in [1, 2, 1024, 1025, 1_000_000_000_000, u64::MAX] {
            for alpha in [0.0, 0.5, 0.8, 1.0 - 1e-13, 1.0, 1.0 + 1e-9, 1.5, 20.0] {
                let share = Zipf::new(documents, alpha).unwrap().share(1..=documents);
                assert!(share.admits(1.0), "{documents} {alpha} {share:?}");
                assert!(share.error < 1e-7, "{documents} {alpha} {share:?}");
            }
        }
    }

    #[test]
    fn harmonic_numbers_are_met() {
        // ln n + γ + 1/(2n).
        let zipf = Zipf::new(1_000_000_000_000, 1.0).unwrap();
        let harmonic = 1e12f64.ln() + 0.577_215_664_901_532_9;
        assert!((zipf.scale - harmonic).abs() < 1e-11, "{}", zipf.scale);
        // ζ(2) and ζ(1.5) but for the rest of the sum, which is 1e-12 and 2e-6.
        let zipf = Zipf::new(1_000_000_000_000, 2.0).unwrap();
        let zeta = std::f64::consts::PI.powi(2) / 6.0;
        assert!((zipf.scale - (zeta - 1e-12)).abs() < 1e-14);
        let zipf = Zipf::new(1_000_000_000_000, 1.5).unwrap();
        assert!((zipf.scale - (2.612_375_348_685_488 - 2e-6)).abs() < 1e-12);
    }

    #[test]
    fn no_document_and_a_wild_exponent_are_refused() {
        assert!(Zipf::new(0, 0.8).is_err());
        for alpha in [-0.1, 20.5, f64::NAN, f64::INFINITY] {
            assert!(Zipf::new(10, alpha).is_err(), "{alpha}");
        }
    }
}
