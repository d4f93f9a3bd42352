//! The probability of a hit for many documents that are kept equally long, where it has no closed form.

use super::change::Spacing;
use super::quadrature::nodes;

/// ∫₀^T s e^(-st) P(A > t) dt for any rate s up to a limit: P(A > t) is computed at each node once, not for each s.
#[derive(Debug)]
pub(super) struct Window {
    /// Up to here, P(A > t) is a line.
    near_s: f64,
    change_s: f64,
    keep_s: f64,
    /// ∫₀^T P(A > t) dt and ∫₀^T t P(A > t) dt.
    moments: [f64; 2],
    /// A time, and P(A > t) t by its weight.
    nodes: Vec<(f64, f64)>,
}

impl Window {
    /// For documents that change so often, are kept so long, and are asked for at most so often. All three are finite and
    /// above 0.
    pub(super) fn new(spacing: Spacing, change_s: f64, keep_s: f64, fastest: f64) -> Self {
        let near_s = (NEAR * change_s.min(1.0 / fastest)).max(f64::MIN_POSITIVE);
        let near_s = near_s.min(keep_s);
        let all = nodes(near_s.ln(), keep_s.ln(), spacing.width());
        let nodes = all.into_iter().map(|(log, weight)| {
            let at_s = log.exp();
            (at_s, weight * at_s * spacing.unchanged(at_s / change_s))
        });
        let nodes: Vec<(f64, f64)> = nodes.collect();
        let all: f64 = nodes.iter().map(|(_, weight)| weight).sum();
        let late: f64 = nodes.iter().map(|(at_s, weight)| at_s * weight).sum();
        Window {
            near_s,
            change_s,
            keep_s,
            moments: [
                near_s - near_s * near_s / change_s / 2.0 + all,
                near_s * near_s / 2.0 + late,
            ],
            nodes,
        }
    }

    /// For a document that is asked for so often in a second.
    pub(super) fn hit(&self, requests_s: f64) -> f64 {
        if requests_s * self.keep_s < RARE {
            let [all, late] = self.moments;
            return (requests_s * (all - requests_s * late)).clamp(0.0, 1.0);
        }
        let soon = requests_s * self.near_s;
        let near = soon - soon * (soon + self.near_s / self.change_s) / 2.0;
        // Behind that nothing is left of e^-st.
        let last_s = REQUESTS_MAX / requests_s;
        let nodes = self.nodes.iter().take_while(|(at_s, _)| *at_s < last_s);
        let rest: f64 = nodes
            .map(|(at_s, weight)| (-requests_s * at_s).exp() * weight)
            .sum();
        (near + requests_s * rest).clamp(0.0, 1.0)
    }
}

/// What is before this part of the least interval is a line.
const NEAR: f64 = 1e-5;

/// Where fewer requests come as long as a copy is kept, e^-st is 1 - st, and the third power of this, by 6, is too much.
const RARE: f64 = 1e-4;

/// e to the minus this is nothing.
const REQUESTS_MAX: f64 = 40.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_probability_that_is_computed_for_each_rate() {
        let mut random = fastrand::Rng::with_seed(7);
        for spacing in [
            Spacing::Exponential,
            Spacing::Pareto { shape: 1.2 },
            Spacing::Lognormal { sigma: 0.3 },
            Spacing::Lognormal { sigma: 3.0 },
        ] {
            for _ in 0..40 {
                let [change_s, keep_s, fastest] =
                    [(); 3].map(|()| 10f64.powf(random.f64() * 9.0 - 2.0));
                let window = Window::new(spacing, change_s, keep_s, fastest);
                for _ in 0..10 {
                    let rate = fastest * 10f64.powf(-random.f64() * 12.0);
                    let exact = spacing.hit_within(rate * change_s, rate * keep_s);
                    let off = (window.hit(rate) - exact).abs();
                    assert!(off < 1e-10, "{spacing:?} {change_s} {keep_s} {rate}: {off}");
                }
            }
        }
    }
}
