//! Numbers as people read them.

use crate::report::{self, Cell};
use crate::web::Workload;
use crate::web::schemes::Sites;

pub(super) fn caches(caches: u64) -> String {
    match caches {
        1 => "1 cache".to_owned(),
        caches => format!("{} caches", readable(caches.to_string())),
    }
}

/// With *as many that do not* after it.
pub(super) fn compared(saved: f64) -> String {
    match (saved * 100.0).round() {
        0.0 => "save nothing of the waiting of".to_owned(),
        per_cent if per_cent > 0.0 => format!("save {per_cent} % of the waiting of"),
        per_cent if per_cent >= -100.0 => {
            format!("let clients wait {} % longer than", -per_cent)
        }
        _ => format!("let clients wait {} times as long as", times(1.0 - saved)),
    }
}

/// In a table: what is lost may be more than all, and caches behind the server save nothing that anybody had to lose.
pub(super) fn saving(workload: &Workload, sites: &Sites, saved: f64) -> Cell {
    match saved {
        _ if is_nearest(workload, sites) => "-".into(),
        saved if saved >= -1.0 => share(saved),
        saved => format!("-, {} times as long", times(1.0 - saved)).into(),
    }
}

/// Whether a server answers no later than even a client's own cache.
pub(super) fn is_nearest(workload: &Workload, sites: &Sites) -> bool {
    workload.server_s <= sites.near_s
}

fn times(factor: f64) -> String {
    match factor < 10.0 {
        true => count(factor),
        false => count(factor.round()),
    }
}

pub(super) fn percent(part: f64) -> String {
    report::percent(part, 0)
}

pub(super) fn time(s: f64) -> String {
    match s {
        _ if s >= 120.0 => report::long_time(s),
        _ if s >= 10.0 => format!("{s:.0} s"),
        _ if s >= 1.0 => format!("{s:.2} s"),
        _ if s > 0.0 && s < SHOWN_S => "less than 0.1 µs".to_owned(),
        _ if s > 0.0 && s < 1e-4 => format!("{:.1} µs", s * 1e6),
        _ if s > 0.0 && s < 0.01 => format!("{:.1} ms", s * 1000.0),
        _ => format!("{:.0} ms", s * 1000.0),
    }
}

/// A part, as a cell of a table.
pub(super) fn share(part: f64) -> Cell {
    Cell::part(percent(part), part)
}

/// A time, as a cell of a table.
pub(super) fn took(s: f64) -> Cell {
    Cell::time(time(s), s)
}

/// A count, as a cell of a table.
pub(super) fn counted(value: f64) -> Cell {
    Cell::count(count(value), value)
}

/// Rates, as a cell of a table: several are no number.
pub(super) fn rates(requests_s: &[f64]) -> Cell {
    match requests_s {
        &[one_s] => Cell::rate(rate(one_s), one_s),
        several => {
            let texts: Vec<String> = several.iter().map(|&each_s| rate(each_s)).collect();
            texts.join(", ").into()
        }
    }
}

/// Shorter times are not told apart.
pub(super) const SHOWN_S: f64 = 1e-7;

fn rate(requests_s: f64) -> String {
    match requests_s {
        _ if requests_s >= 10.0 => format!("{requests_s:.0}/s"),
        _ => format!("{requests_s:.2}/s"),
    }
}

pub(super) fn size(bytes: f64) -> Cell {
    let text = match bytes {
        _ if bytes >= 1e12 => format!("{:.1} TB", bytes / 1e12),
        _ if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        _ => format!("{:.1} MB", bytes / 1e6),
    };
    Cell::size(text, bytes)
}

/// Of bytes, as a number that has the unit in its column's name.
pub(super) fn megabytes(bytes: f64) -> String {
    match bytes / 1e6 {
        megabytes if megabytes >= 1e15 => format!("{megabytes:.1e}"),
        megabytes if megabytes >= 10.0 => format!("{megabytes:.0}"),
        megabytes if megabytes >= 0.01 || megabytes == 0.0 => format!("{megabytes:.2}"),
        megabytes => format!("{megabytes:.1e}"),
    }
}

/// With the digits that are read, and a unit for what is large.
pub(super) fn count(value: f64) -> String {
    match value.round() {
        whole if whole >= 1e15 => format!("{whole:.1e}"),
        whole if whole >= 1e9 => short(whole / 1e9, " billion"),
        whole if whole >= 1e6 => short(whole / 1e6, " million"),
        whole if whole >= 1e4 => format!("{:.0},{:03.0}", (whole / 1e3).trunc(), whole % 1e3),
        _ => short(value, ""),
    }
}

fn short(value: f64, unit: &str) -> String {
    let digits = format!("{value:.1}");
    format!("{}{unit}", digits.strip_suffix(".0").unwrap_or(&digits))
}

/// A parameter's value as people read it: nothing of what was told is left out.
pub(super) fn readable(value: String) -> String {
    match &*value {
        "inf GB" => return "as much as there is".to_owned(),
        "inf days" => return "never".to_owned(),
        "1 days" => return "1 day".to_owned(),
        _ => {}
    }
    match value.parse::<u64>() {
        Ok(whole) if whole >= 10_000 => {
            let unit = if whole < 1_000_000_000 {
                1_000_000
            } else {
                1_000_000_000
            };
            match whole.is_multiple_of(unit / 10) {
                true => count(whole as f64),
                false => grouped(whole),
            }
        }
        _ => value,
    }
}

/// In threes.
fn grouped(whole: u64) -> String {
    let digits = whole.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_easily() {
        let told = [2.5, 5000.0, 99_999.999, 123_456.0, 999_999.99, 3.2e9, 2e15].map(count);
        assert_eq!(
            told,
            [
                "2.5",
                "5000",
                "100,000",
                "123,456",
                "1 million",
                "3.2 billion",
                "2.0e15"
            ]
        );
    }

    #[test]
    fn megabytes_are_numbers_of_few_digits() {
        let told = [0.0, 1e-3, 2e4, 1.25e6, 13.97e6, 3e21].map(megabytes);
        assert_eq!(told, ["0.00", "1.0e-9", "0.02", "1.25", "14", "3.0e15"]);
    }

    #[test]
    fn nothing_has_no_sign() {
        assert_eq!(percent(-0.001), "0 %");
        assert_eq!(compared(-0.001), "save nothing of the waiting of");
    }

    #[test]
    fn short_times_are_no_zeros() {
        let told = [0.0, 1e-300, 4.6e-6, 0.0025, 0.05, 1.9, 12.0, 1e6].map(time);
        let right = [
            "0 ms",
            "less than 0.1 µs",
            "4.6 µs",
            "2.5 ms",
            "50 ms",
            "1.90 s",
            "12 s",
            "12 days",
        ];
        assert_eq!(told, right);
        assert_eq!(caches(50_000), "50,000 caches");
    }

    #[test]
    fn no_more_than_all_is_lost() {
        assert_eq!(compared(-0.05), "let clients wait 5 % longer than");
        let long = "let clients wait 1474 times as long as";
        assert_eq!(compared(-1473.29), long);
        let workload = Workload::washington();
        let near = Sites {
            clients: 5e5,
            caches: 10,
            near_s: 0.01,
            between_s: 0.05,
            store: None,
        };
        assert_eq!(saving(&workload, &near, -0.05), Cell::part("-5 %", -0.05));
        let long = "-, 1474 times as long";
        assert_eq!(saving(&workload, &near, -1473.29), long.into());
        let far = Sites {
            near_s: 2.0,
            ..near
        };
        assert_eq!(saving(&workload, &far, 0.99), "-".into());
    }

    #[test]
    fn a_told_count_keeps_all_its_digits() {
        let told = [
            "3200000000",
            "3456789012",
            "500000",
            "0.8",
            "1 days",
            "2 days",
            "inf GB",
        ];
        let read = told.map(|value| readable(value.to_owned()));
        let right = [
            "3.2 billion",
            "3,456,789,012",
            "500,000",
            "0.8",
            "1 day",
            "2 days",
            "as much as there is",
        ];
        assert_eq!(read, right);
    }
}
