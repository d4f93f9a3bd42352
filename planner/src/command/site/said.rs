//! Numbers and times as people read them.

use crate::command::given::numeral;

/// A number in two digits, for what is not known better.
pub(super) fn thousands(value: f64) -> String {
    let size = 10_f64.powf(value.abs().max(0.1).log10().floor() - 1.0);
    let rounded = (value / size).round() * size;
    match rounded {
        many if many >= 1e9 => format!("{} billion", numeral(many / 1e9)),
        many if many >= 1e6 => format!("{} million", numeral(many / 1e6)),
        some => numeral(some),
    }
}

/// What a site does to a time, in words.
pub(super) fn words(saved: f64) -> String {
    match (saved * 100.0).round() {
        0.0 if saved.abs() < NOTHING => "save nothing".to_owned(),
        0.0 if saved < 0.0 => "lose less than 1 %".to_owned(),
        0.0 => "save less than 1 %".to_owned(),
        per_cent if per_cent < 0.0 => format!("lose {} %", -per_cent),
        per_cent => format!("save {per_cent} %"),
    }
}

/// Less than any clock would tell.
pub(super) const NOTHING: f64 = 1e-12;

/// A time, in the unit in which people would say it.
pub(super) fn time(ms: f64) -> String {
    match ms {
        ms if ms >= 120_000.0 => format!("{:.1} min", ms / 60_000.0),
        ms if ms >= 1000.0 => format!("{:.1} s", ms / 1000.0),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.2} ms"),
    }
}
