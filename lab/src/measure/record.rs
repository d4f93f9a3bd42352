//! Raw samples, and the files they are written to.

use super::finding::table;
use super::{Datagram, Finding, Interval, Protocol, RoundTrip};
use crate::Outcome;
use crate::chart::{Chart, distribution};
use crate::net::{Plan, Punctuality, Statistics};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Everything that was measured.
#[derive(Debug)]
pub struct Record {
    /// What was asked for.
    pub plan: Plan,
    /// How the kernel was set, by spoke.
    pub settings: BTreeMap<String, BTreeMap<String, String>>,
    /// By way, `from,to`.
    pub round_trips: Vec<(String, RoundTrip)>,
    /// By way.
    pub datagrams: Vec<(String, Datagram)>,
    /// By way.
    pub throughput: Vec<(String, Interval)>,
    /// What it comes to.
    pub findings: Vec<Finding>,
    /// How punctual the network was when little was sent.
    pub calm: Punctuality,
    /// The network's own count, of all.
    pub statistics: Statistics,
    /// Why packets may have been late, beside the machine's load.
    pub imprecision: Option<String>,
    /// Whether it was stopped before its end.
    pub cut_short: bool,
}

/// What was asked, and the circumstances.
#[derive(Serialize)]
struct Circumstances<'a> {
    plan: &'a Plan,
    settings: &'a BTreeMap<String, BTreeMap<String, String>>,
    findings: &'a [Finding],
    calm: &'a Punctuality,
    statistics: &'a Statistics,
    imprecision: &'a Option<String>,
    cut_short: bool,
    kernel: String,
    processors: usize,
    load_average: String,
}

impl Record {
    /// The findings, and how punctual the network was.
    pub fn table(&self) -> String {
        let mut text = table(&self.findings);
        for (when, late) in [
            ("in calm", self.calm),
            ("in all", self.statistics.punctuality),
        ] {
            text += &format!(
                "{when}, packets were late by {:.0} us (mean), {:.0} us (p99), {:.0} us (max)\n",
                late.late_mean_us, late.late_p99_us, late.late_max_us,
            );
        }
        let crossed = if self.statistics.whole_segments {
            "whole"
        } else {
            "in packets"
        };
        let cpu = self.statistics.carrier_cpu_s;
        text +=
            &format!("large segments crossed {crossed}; carrying took {cpu:.1} s of a processor\n");
        if let Some(why) = &self.imprecision {
            text += &format!("not as punctual as it could be: {why}\n");
        }
        if self.cut_short {
            text += "cut short\n";
        }
        text
    }

    /// Writes samples (`round_trips.csv`, `datagrams.csv`, `throughput.csv`), charts of them (`.svg`) and `record.json` into a
    /// directory, which it makes.
    pub fn write(&self, directory: &Path) -> Outcome<()> {
        let write = |name: &str, text: String| {
            let path = directory.join(name);
            fs::write(&path, text).map_err(|why| format!("{}: {why}", path.display()))
        };
        fs::create_dir_all(directory).map_err(|why| format!("{}: {why}", directory.display()))?;
        write("round_trips.csv", self.round_trips_csv())?;
        write("datagrams.csv", self.datagrams_csv())?;
        write("throughput.csv", self.throughput_csv())?;
        write("round_trips.svg", self.round_trips_chart().svg())?;
        write("throughput.svg", self.throughput_chart().svg())?;
        Ok(write(
            "record.json",
            serde_json::to_string_pretty(&self.circumstances())? + "\n",
        )?)
    }

    fn circumstances(&self) -> Circumstances<'_> {
        let first_line = |path| {
            fs::read_to_string(path)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        Circumstances {
            plan: &self.plan,
            settings: &self.settings,
            findings: &self.findings,
            calm: &self.calm,
            statistics: &self.statistics,
            imprecision: &self.imprecision,
            cut_short: self.cut_short,
            kernel: first_line("/proc/sys/kernel/osrelease"),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            load_average: first_line("/proc/loadavg"),
        }
    }

    fn round_trips_chart(&self) -> Chart {
        let sample = |(way, sample): &(String, RoundTrip)| {
            (
                line_name(way, sample.protocol),
                sample.took.as_secs_f64() * 1e3,
            )
        };
        let times = by_line(self.round_trips.iter().map(sample));
        Chart {
            title: "Round trips: how many took no longer".to_owned(),
            x: "round trip (ms)".to_owned(),
            y: "share (%)".to_owned(),
            lines: times
                .into_iter()
                .map(|(name, times)| (name, distribution(times)))
                .collect(),
            ..Chart::default()
        }
    }

    fn throughput_chart(&self) -> Chart {
        let sample = |(way, sample): &(String, Interval)| {
            let mbit = sample.bytes as f64 * 8.0 / 1e6 / sample.length.as_secs_f64().max(1e-9);
            (
                line_name(way, sample.protocol),
                (sample.at.as_secs_f64(), mbit),
            )
        };
        Chart {
            title: "What arrived in each tenth of a second".to_owned(),
            x: "time (s)".to_owned(),
            y: "rate (Mbit/s)".to_owned(),
            lines: by_line(self.throughput.iter().map(sample)),
            ..Chart::default()
        }
    }

    fn round_trips_csv(&self) -> String {
        let line = |(way, sample): &(String, RoundTrip)| {
            format!(
                "{way},{},{},{}\n",
                sample.protocol,
                sample.at.as_micros(),
                sample.took.as_nanos() as f64 / 1e3
            )
        };
        csv(
            "from,to,protocol,at_us,round_trip_us",
            self.round_trips.iter().map(line),
        )
    }

    fn datagrams_csv(&self) -> String {
        let line = |(way, datagram): &(String, Datagram)| {
            format!(
                "{way},{},{}\n",
                datagram.sequence,
                u8::from(datagram.arrived)
            )
        };
        csv("from,to,sequence,arrived", self.datagrams.iter().map(line))
    }

    fn throughput_csv(&self) -> String {
        let line = |(way, sample): &(String, Interval)| {
            let (at, length) = (sample.at.as_micros(), sample.length.as_micros());
            format!("{way},{},{at},{length},{}\n", sample.protocol, sample.bytes)
        };
        csv(
            "from,to,protocol,at_us,length_us,bytes",
            self.throughput.iter().map(line),
        )
    }
}

fn line_name(way: &str, protocol: Protocol) -> String {
    format!("{}, {protocol}", way.replace(',', " -> "))
}

/// Samples by the line they belong to, in the order of the first of each.
fn by_line<T>(samples: impl Iterator<Item = (String, T)>) -> Vec<(String, Vec<T>)> {
    let mut lines: Vec<(String, Vec<T>)> = Vec::new();
    for (name, sample) in samples {
        match lines.iter_mut().find(|line| line.0 == name) {
            Some((_, samples)) => samples.push(sample),
            None => lines.push((name, vec![sample])),
        }
    }
    lines
}

fn csv(head: &str, lines: impl Iterator<Item = String>) -> String {
    [format!("{head}\n")].into_iter().chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn samples_are_written_a_line_each() {
        let (at, way) = (Duration::from_millis(3), || "site,home".to_owned());
        let trip = |protocol| RoundTrip {
            protocol,
            at,
            took: Duration::from_micros(40_250),
        };
        let interval = Interval {
            protocol: Protocol::Udp,
            at,
            length: at,
            bytes: 1428,
        };
        let record = Record {
            plan: Plan::default(),
            settings: BTreeMap::new(),
            round_trips: [Protocol::Tcp, Protocol::Udp]
                .map(|protocol| (way(), trip(protocol)))
                .to_vec(),
            datagrams: vec![(
                way(),
                Datagram {
                    sequence: 7,
                    arrived: true,
                },
            )],
            throughput: vec![(way(), interval)],
            findings: Vec::new(),
            calm: Punctuality::default(),
            statistics: Statistics::default(),
            imprecision: None,
            cut_short: true,
        };
        let lines = |text: String| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            lines(record.round_trips_csv()),
            ["site,home,tcp,3000,40250", "site,home,udp,3000,40250"]
        );
        assert_eq!(lines(record.datagrams_csv()), ["site,home,7,1"]);
        assert_eq!(
            lines(record.throughput_csv()),
            ["site,home,udp,3000,3000,1428"]
        );
        let names: Vec<_> = record
            .round_trips_chart()
            .lines
            .into_iter()
            .map(|line| line.0)
            .collect();
        assert_eq!(names, ["site -> home, tcp", "site -> home, udp"]);
        assert!(record.table().ends_with("cut short\n"));
    }
}
