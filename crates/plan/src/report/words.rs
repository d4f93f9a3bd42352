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

#[cfg(test)]
mod tests {
    use super::percent;

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
