//! The probability of a hit for documents that are hardly ever asked for.
//!
//! With y requests in a mean interval between changes and a the shape of Pareto's law less 1, z = ya and v = w + z,
//! h = ∫₀^∞ e^-w (1 + w/z)^-a dw = z^a e^z ∫_z^∞ v^-a e^-v dv. Up to a = 1½ that is z^a (∫_z^1 v^-a dv - K) with
//! K = ∫₀^1 v^-a (1 - e^-v) dv - ∫_1^∞ v^-a e^-v dv: what is left out is below z h + 2 z². Above, it is z/(a - 1), which is too
//! much by at most z^a ∫₀^∞ (u + z)^-a min(u, 1) du < 4 z^1½ for a to 2, and less for more.
//!
//! For a lognormal, A has moments: 0 ≤ y E A - h ≤ y² E A²/2, with E A = E X²/2 = e^σ²/2 and E A² = E X³/3 = e^3σ²/3.

use super::change::Spacing;
use super::quadrature::integral;
use super::zipf::power_integral;

/// What the probability is below some rate.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rare {
    /// In proportion to the rate, below e to some power.
    Linear { slope: f64, log_max: f64 },
    /// Pareto's law with a tail so heavy that the age has no mean, or nearly none.
    Power { tail: f64, rest: f64 },
}

impl Rare {
    /// None for what has a closed form.
    pub(super) fn of(spacing: Spacing) -> Option<Self> {
        match spacing {
            Spacing::Exponential | Spacing::Regular => None,
            Spacing::Pareto { shape } if shape - 1.0 <= POWER_MAX => Some(Rare::Power {
                tail: shape - 1.0,
                rest: rest(shape - 1.0),
            }),
            Spacing::Pareto { shape } => Some(Rare::Linear {
                slope: (shape - 1.0) / (shape - 2.0),
                log_max: f64::INFINITY,
            }),
            Spacing::Lognormal { sigma } => Some(Rare::Linear {
                slope: (sigma * sigma).exp() / 2.0,
                log_max: ((6.0 * ERROR).ln() - 3.0 * sigma * sigma) / 2.0,
            }),
        }
    }

    /// The logarithm of the rate up to which it is right; infinite if that is far above where it is used.
    pub(super) fn log_max(self) -> f64 {
        match self {
            Rare::Linear { log_max, .. } => log_max,
            Rare::Power { .. } => f64::INFINITY,
        }
    }

    pub(super) fn hit(self, rate: f64) -> f64 {
        if rate.is_nan() || rate <= 0.0 {
            return 0.0;
        }
        let hit = match self {
            Rare::Linear { slope, .. } => slope * rate,
            Rare::Power { tail, rest } => {
                let z = (rate * tail).max(f64::MIN_POSITIVE);
                z.powf(tail) * (power_integral(z, 1.0, tail) - rest)
            }
        };
        hit.clamp(0.0, 1.0)
    }
}

/// K, in the logarithm of v: before e^-60 nothing is left of the first integral, behind 40 nothing of the second.
fn rest(tail: f64) -> f64 {
    let soon = integral(-60.0 / (2.0 - tail), 0.0, 1.0, |u| {
        -((1.0 - tail) * u).exp() * (-u.exp()).exp_m1()
    });
    let late = integral(0.0, 40f64.ln(), 1.0, |u| ((1.0 - tail) * u - u.exp()).exp());
    soon - late
}

/// Above this tail, the age has a mean that is not too large.
const POWER_MAX: f64 = 1.5;

/// What may be left out.
const ERROR: f64 = 1e-12;
