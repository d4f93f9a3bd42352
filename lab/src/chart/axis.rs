//! Axes that end at round numbers.

/// Lines on an axis, about.
const TICKS: f64 = 6.0;

/// From where to where an axis goes.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) step: f64,
}

impl Axis {
    pub(super) fn over(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::MAX, 0.0), |(low, high), value| {
                (value.min(low), value.max(high))
            });
        // What varies little far from zero would be a flat line.
        let near = low <= high && low > high * 0.75;
        let from = if near { low } else { 0.0 };
        let rough = ((high - from) / TICKS).max(1e-9);
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|nice| nice * power)
            .into_iter()
            .find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let from = (from / step).floor() * step;
        Axis {
            from,
            to: ((high / step).ceil() * step).max(from + step),
            step,
        }
    }

    /// From 0 at its beginning to 1 at its end.
    pub(super) fn at(&self, value: f64) -> f64 {
        (value - self.from) / (self.to - self.from)
    }

    pub(super) fn ticks(self) -> impl Iterator<Item = f64> {
        let count = ((self.to - self.from) / self.step).round() as u32;
        (0..=count).map(move |n| self.from + self.step * f64::from(n))
    }

    pub(super) fn label(&self, value: f64) -> String {
        let digits = (-self.step.log10().floor()).clamp(0.0, 9.0) as usize;
        format!("{value:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        let axis = Axis::over([3.0, 97.0].into_iter());
        assert_eq!((axis.from, axis.to, axis.step), (0.0, 100.0, 20.0));
        let near = Axis::over([40.2, 41.0].into_iter());
        assert!(near.from > 39.0 && near.from <= 40.2 && near.to >= 41.0);
        assert!(Axis::over([].into_iter()).ticks().count() < 10);
        assert!(Axis::over([0.0, 0.0].into_iter()).ticks().count() < 10);
    }
}
