//! Numbers as people read them.

/// A part of a whole, in percent with so many decimals; what is no number is a dash.
pub fn percent(part: f64, decimals: usize) -> String {
    if part.is_nan() {
        return "-".to_owned();
    }
    let scale = 10f64.powi(decimals as i32);
    // Nothing has no sign.
    let rounded = (part * 100.0 * scale).round() / scale + 0.0;
    format!("{rounded:.decimals$} %")
}

/// A time of minutes or more, in the unit in which people would tell it.
pub fn long_time(seconds: f64) -> String {
    match seconds {
        s if s < 2.0 * HOUR_S => format!("{:.0} min", s / 60.0),
        s if s < 2.0 * DAY_S => format!("{:.1} h", s / HOUR_S),
        s if s < 1e5 * DAY_S => format!("{:.0} days", s / DAY_S),
        s => format!("{:.1e} days", s / DAY_S),
    }
}

const HOUR_S: f64 = 3600.0;

const DAY_S: f64 = 24.0 * HOUR_S;

#[cfg(test)]
mod tests {
    use super::{long_time, percent};

    #[test]
    fn long_times_have_their_unit() {
        let told = [120.0, 7199.0, 7200.0, 1e5, 1e6, 1e12].map(long_time);
        let right = [
            "2 min",
            "120 min",
            "2.0 h",
            "27.8 h",
            "12 days",
            "1.2e7 days",
        ];
        assert_eq!(told, right);
    }

    #[test]
    fn nothing_has_no_sign() {
        let said = [-0.0, -0.0004, -0.0006, 0.1225, 1.0].map(|part| percent(part, 1));
        assert_eq!(said, ["0.0 %", "0.0 %", "-0.1 %", "12.3 %", "100.0 %"]);
        assert_eq!(
            [-0.001, 0.5, f64::NAN].map(|part| percent(part, 0)),
            ["0 %", "50 %", "-"]
        );
    }
}
