//! Where a rising function crosses 0.

/// Where `f`, which rises from not above 0 at `low` to not below it at `high`, is 0. Regula falsi, where a side that stays is
/// halved (the Illinois method), and bisection whenever that does not shrink the interval well enough.
pub(super) fn rising(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut f_low, mut f_high) = (f(low), f(high));
    for round in 0..ROUNDS {
        let secant = (low * f_high - high * f_low) / (f_high - f_low);
        let middle = f64::midpoint(low, high);
        let is_inside = secant > low && secant < high;
        let at = match is_inside && round % 3 != 2 {
            true => secant,
            false => middle,
        };
        let value = f(at);
        if value.abs() <= RESIDUE || high - low <= WIDTH * high.abs().max(1.0) {
            return at;
        }
        if value < 0.0 {
            (low, f_low) = (at, value);
            f_high /= 2.0;
        } else {
            (high, f_high) = (at, value);
            f_low /= 2.0;
        }
    }
    f64::midpoint(low, high)
}

const ROUNDS: usize = 200;

/// What is left of functions that move between -1 and 1 by rounding.
const RESIDUE: f64 = 1e-13;

/// Relatively, or absolutely below 1.
const WIDTH: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steep_and_flat_crossings_are_found() {
        let root = rising(-5.0, 30.0, |x: f64| x.exp() - 10.0);
        assert!((root - 10f64.ln()).abs() < 1e-10, "{root}");
        let root = rising(0.0, 8.0, |x| (x - 3.0).powi(3));
        assert!((root - 3.0).abs() < 1e-4, "{root}");
        let root = rising(-1.0, 1.0, |x| if x < 0.25 { -1.0 } else { 1e9 });
        assert!((root - 0.25).abs() < 1e-9, "{root}");
    }
}
