//! What was asked and what was measured, in a line.

use super::{Datagram, Interval, Protocol, RoundTrip};
use serde::Serialize;
use std::time::Duration;

/// A line of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// From where to where.
    pub way: String,
    /// A quantity.
    pub what: String,
    /// In words; empty if nothing was.
    pub asked: String,
    /// In words.
    pub measured: String,
    /// Measured in terms of asked.
    pub ratio: Option<f64>,
}

impl Finding {
    pub(super) fn of_round_trips(
        way: &str,
        protocol: Protocol,
        asked: Duration,
        samples: &[RoundTrip],
        count: u32,
    ) -> Self {
        let mut times: Vec<_> = samples.iter().map(|sample| sample.took).collect();
        times.sort_unstable();
        let at = |share| ms(quantile(&times, share));
        let back = if times.len() < count as usize {
            format!(" of {count}")
        } else {
            String::new()
        };
        Finding {
            way: way.to_owned(),
            what: format!("round trip, {protocol}"),
            asked: format!("{:.3} ms", ms(asked)),
            measured: format!(
                "p50 {:.3} ms, p99 {:.3} ms ({}{back})",
                at(0.5),
                at(0.99),
                times.len()
            ),
            ratio: ratio(at(0.5), ms(asked)),
        }
    }

    pub(super) fn of_datagrams(
        way: &str,
        asked: f64,
        burst: Option<f64>,
        datagrams: &[Datagram],
    ) -> Self {
        let lost = datagrams
            .iter()
            .filter(|datagram| !datagram.arrived)
            .count();
        let share = lost as f64 / datagrams.len().max(1) as f64;
        let bursts = burst.map_or(String::new(), |burst| format!(", bursts of {burst}"));
        Finding {
            way: way.to_owned(),
            what: "loss, udp".to_owned(),
            asked: format!("{:.3} %{bursts}", asked * 100.0),
            measured: format!(
                "{:.3} % ({lost} of {}), bursts of {:.1}",
                share * 100.0,
                datagrams.len(),
                mean_burst(datagrams)
            ),
            ratio: ratio(share, asked),
        }
    }

    /// Of the second half, when TCP knows its way.
    pub(super) fn of_throughput(
        way: &str,
        protocol: Protocol,
        asked: Option<f64>,
        samples: &[Interval],
    ) -> Self {
        let (length, bytes) = samples[samples.len() / 2..]
            .iter()
            .fold((Duration::ZERO, 0), |(length, bytes), sample| {
                (length + sample.length, bytes + sample.bytes)
            });
        let mbit = bytes as f64 * 8.0 / 1e6 / length.as_secs_f64().max(1e-9);
        let counted = match protocol {
            Protocol::Tcp => "content",
            Protocol::Udp => "on the wire",
        };
        Finding {
            way: way.to_owned(),
            what: format!("throughput, {protocol}"),
            asked: asked.map_or(String::new(), |asked| format!("{asked:.1} Mbit/s")),
            measured: format!("{mbit:.1} Mbit/s {counted}"),
            ratio: asked.and_then(|asked| ratio(mbit, asked)),
        }
    }
}

/// All lines, in columns.
pub(super) fn table(findings: &[Finding]) -> String {
    let mut rows = vec![["way", "", "asked", "measured", "ratio"].map(str::to_owned)];
    rows.extend(findings.iter().map(|finding| {
        let ratio = finding
            .ratio
            .map_or(String::new(), |ratio| format!("{ratio:.3}"));
        [
            finding.way.clone(),
            finding.what.clone(),
            finding.asked.clone(),
            finding.measured.clone(),
            ratio,
        ]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4].map(width);
    let line = |row: &[String; 5]| {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn ratio(measured: f64, asked: f64) -> Option<f64> {
    (asked > 0.0).then(|| measured / asked)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The smallest that this share is not above; of nothing, nothing.
fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

fn mean_burst(datagrams: &[Datagram]) -> f64 {
    let lost = datagrams
        .iter()
        .filter(|datagram| !datagram.arrived)
        .count();
    let bursts = datagrams
        .chunk_by(|a, b| a.arrived == b.arrived)
        .filter(|run| !run[0].arrived)
        .count();
    lost as f64 / bursts.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let times: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(quantile(&times, 0.5), Duration::from_millis(50));
        assert_eq!(quantile(&times, 0.99), Duration::from_millis(99));
        assert_eq!(quantile(&times[..1], 0.99), Duration::from_millis(1));
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }

    #[test]
    fn loss_and_its_bursts_are_counted() {
        let arrived = [
            true, false, false, true, false, true, true, true, true, false,
        ];
        let datagrams = (0..)
            .zip(arrived)
            .map(|(sequence, arrived)| Datagram { sequence, arrived });
        let finding =
            Finding::of_datagrams("a -> b", 0.2, Some(2.0), &datagrams.collect::<Vec<_>>());
        assert_eq!(finding.measured, "40.000 % (4 of 10), bursts of 1.3");
        assert_eq!(finding.ratio, Some(2.0));
    }

    #[test]
    fn throughput_is_that_of_the_second_half() {
        let (protocol, length) = (Protocol::Tcp, SECOND);
        let samples = [1, 1, 1_000_000, 1_000_000].map(|bytes| Interval {
            protocol,
            at: SECOND,
            length,
            bytes,
        });
        let finding = Finding::of_throughput("a -> b", protocol, Some(10.0), &samples);
        assert_eq!(finding.ratio, Some(0.8));
        assert_eq!(
            Finding::of_throughput("a -> b", protocol, None, &[]).measured,
            "0.0 Mbit/s content"
        );
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn nothing_asked_is_nothing_to_compare_with() {
        let finding = Finding::of_datagrams("a -> b", 0.0, None, &[]);
        assert_eq!(finding.ratio, None);
        assert!(
            table(&[finding])
                .lines()
                .nth(1)
                .is_some_and(|line| line.starts_with("a -> b  loss, udp  0.000 %"))
        );
    }
}
