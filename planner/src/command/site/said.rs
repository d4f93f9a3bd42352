//! Numbers and times as people read them.

use crate::command::given::{numeral, three_digits};
use crate::report::long_time;

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

/// How far a site is, in three digits at most.
pub(super) fn distance(ms: f64) -> String {
    match ms {
        ms if ms >= 1000.0 => format!("{} s", three_digits(ms / 1000.0)),
        ms => format!("{} ms", three_digits(ms)),
    }
}

/// A time, in the unit in which people would say it, in three digits at most.
pub(super) fn time(ms: f64) -> String {
    match ms {
        ms if ms >= 6_000_000.0 => long_time(ms / 1000.0),
        ms if ms >= 120_000.0 => format!("{:.1} min", ms / 60_000.0),
        ms if ms >= 100_000.0 => format!("{:.0} s", ms / 1000.0),
        ms if ms >= 1000.0 => format!("{:.1} s", ms / 1000.0),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.2} ms"),
    }
}
