//! What was measured, as a table and as a document.

use super::operation::Operation;
use super::worker::Measured;
use crate::text::{self, Side, Table};
use std::time::Duration;

/// One operation, and what all members have measured of it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) operation: Operation,
    pub(super) measured: Measured,
}

/// A line for each operation.
pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        ("operation", Side::Left),
        ("count", Side::Right),
        ("a second", Side::Right),
        ("p50", Side::Right),
        ("p95", Side::Right),
        ("p99", Side::Right),
        ("max", Side::Right),
        ("requests each", Side::Right),
        ("conflicts", Side::Right),
        ("given up", Side::Right),
    ]);
    for Row {
        operation,
        measured,
    } in rows
    {
        let percentile = |percent| shown(measured.latencies.percentile(percent));
        let count = measured.latencies.count();
        table.row(vec![
            operation.words().to_owned(),
            count.to_string(),
            format!("{:.0}", measured.per_second),
            percentile(50),
            percentile(95),
            percentile(99),
            shown(measured.latencies.max()),
            each(measured.counts.requests, count),
            measured.counts.conflicts.to_string(),
            measured.failed.to_string(),
        ]);
    }
    table
}

/// Where the pages of the cold reads came from.
pub(super) fn sources(rows: &[Row]) -> Option<String> {
    let cold = rows
        .iter()
        .find(|row| row.operation == Operation::ColdRead)?;
    let counts = &cold.measured.counts;
    Some(format!(
        "pages of cold reads: {} from the home, {} through the site, {} from neighbours",
        counts.from_home, counts.through_site, counts.from_neighbours
    ))
}

pub(super) fn as_json(rows: &[Row]) -> Vec<serde_json::Value> {
    let each = rows.iter().map(|row| {
        let Measured {
            latencies,
            failed,
            per_second,
            counts,
            ..
        } = &row.measured;
        serde_json::json!({
            "operation": row.operation.key(),
            "count": latencies.count(),
            "given_up": failed,
            "per_second": (per_second * 10.).round() / 10.,
            "p50_ms": latencies.percentile(50).map(ms),
            "p95_ms": latencies.percentile(95).map(ms),
            "p99_ms": latencies.percentile(99).map(ms),
            "max_ms": latencies.max().map(ms),
            "requests": counts.requests,
            "conflicts": counts.conflicts,
            "pages_from_home": counts.from_home,
            "pages_through_site": counts.through_site,
            "pages_from_neighbours": counts.from_neighbours,
            "bytes_sent": counts.bytes_sent,
            "bytes_received": counts.bytes_received,
        })
    });
    each.collect()
}

/// To the nanosecond.
fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e9).round() / 1e6
}

fn shown(time: Option<Duration>) -> String {
    match time {
        None => "-".to_owned(),
        Some(time) if time < Duration::from_millis(1) => {
            format!("{:.1} µs", time.as_secs_f64() * 1e6)
        }
        Some(time) => text::time(time),
    }
}

fn each(what: u64, count: u64) -> String {
    match count {
        0 => "-".to_owned(),
        count => format!("{:.2}", what as f64 / count as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_are_told_in_microseconds() {
        assert_eq!(shown(None), "-");
        assert_eq!(shown(Some(Duration::from_nanos(300))), "0.3 µs");
        assert_eq!(shown(Some(Duration::from_micros(1500))), "1.5 ms");
        assert_eq!(
            (each(5, 0), each(5, 2)),
            ("-".to_owned(), "2.50".to_owned())
        );
    }
}
