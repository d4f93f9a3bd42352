//! How sure an answer is.

use distrs::StudentsT;

/// A mean, and how far the true one may be from it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean of all runs.
    pub mean: f64,
    /// Half of the confidence interval (Student's t over independent runs).
    pub half_width: f64,
}

impl Estimate {
    /// From independent runs, at least two.
    pub(super) fn of(runs: &[f64], confidence: f64) -> Self {
        let count = runs.len() as f64;
        let mean = runs.iter().sum::<f64>() / count;
        let squares: f64 = runs.iter().map(|run| (run - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        Estimate {
            mean,
            half_width: error * quantile(confidence, count - 1.0),
        }
    }

    /// Whether a value lies in the interval.
    pub fn covers(&self, value: f64) -> bool {
        (self.mean - value).abs() <= self.half_width
    }

    /// How far a value is from the mean, as a part of the mean: above 0 if it is larger.
    pub fn off(&self, value: f64) -> f64 {
        value / self.mean - 1.0
    }
}

/// How many standard errors the interval reaches to each side.
fn quantile(confidence: f64, freedom: f64) -> f64 {
    StudentsT::ppf(f64::midpoint(1.0, confidence), freedom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (confidence, freedom, table) in [
            (0.95, 1.0, 12.706),
            (0.95, 19.0, 2.093),
            (0.999, 19.0, 3.883),
            (0.99, 30.0, 2.750),
        ] {
            assert!((quantile(confidence, freedom) - table).abs() < 1e-3);
        }
    }

    #[test]
    fn an_interval_by_hand() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0], 0.95);
        // The error is the root of 1 / 3, the quantile with two degrees of freedom 4.303.
        assert!((estimate.half_width - 4.303 / 3f64.sqrt()).abs() < 1e-3);
        assert!(estimate.covers(4.4) && !estimate.covers(4.5));
        assert!((estimate.off(2.5) - 0.25).abs() < 1e-12);
    }
}
