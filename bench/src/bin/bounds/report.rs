//! What a run found: judged, as a table, and as a document.

use crate::cast::{Class, Object, Place, READERS, SITE_B, objects};
use crate::clock::MS_NS;
use crate::judge::{Answers, Judge, Verdict};
use crate::reader;
use crate::record::{ANSWERS, Recorded};
use crate::village::ROUND_TRIP_MS;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use thorp_bench::Result;
use thorp_client::Consistency;

/// What was found in a run.
pub(crate) struct Report {
    rows: Vec<Row>,
    /// By place.
    changes: Vec<(Place, usize)>,
    unleased: usize,
    took: Duration,
    bug: Option<String>,
}

/// A class of a reader.
struct Row {
    reader: &'static str,
    at: &'static str,
    class: &'static Class,
    consistency: Consistency,
    verdict: Verdict,
}

impl Report {
    /// Judges what everybody has written down.
    pub(crate) fn of(dir: &Path, took: Duration, bug: Option<String>) -> Result<Self> {
        let answers = answers(dir)?;
        let count = |place| {
            let here = objects().filter(|object: &Object| object.place == place);
            here.map(|object| answers.count(object.number)).sum()
        };
        let changes = Place::ALL.map(|place| (place, count(place))).to_vec();
        let mut rows = Vec::new();
        for reader in &READERS {
            for (number, class) in reader.classes.iter().enumerate() {
                let file = reader::file(dir, reader.name, number);
                let consistency = class.consistency()?;
                rows.push(Row {
                    reader: reader.name,
                    at: reader.at,
                    class,
                    consistency,
                    verdict: verdict(&file, &answers, class)?,
                });
            }
        }
        Ok(Report {
            rows,
            changes,
            unleased: answers.unleased,
            took,
            bug,
        })
    }

    fn hard(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.consistency.is_hard())
    }

    pub(crate) fn hard_reads(&self) -> usize {
        self.hard().map(|row| row.verdict.reads).sum()
    }

    pub(crate) fn violations(&self) -> usize {
        self.hard().map(|row| row.verdict.violations()).sum()
    }

    fn leased(&self) -> usize {
        let leased = self.hard().filter(|row| row.is_leased_if_silent());
        leased.map(|row| row.verdict.silent).sum()
    }

    fn changed(&self) -> usize {
        self.hard().map(|row| row.verdict.changed).sum()
    }

    /// Why the run says nothing, if it does not.
    pub(crate) fn says_nothing(&self) -> Option<String> {
        if let Some((place, _)) = self.changes.iter().find(|(_, count)| *count == 0) {
            return Some(format!("nobody changed {}", place.name()));
        }
        let idle = self.rows.iter().find(|row| row.verdict.changed == 0);
        if let Some(Row { reader, class, .. }) = idle {
            let consistency = class.consistency;
            return Some(format!("{reader} saw no change with {consistency}"));
        }
        (self.leased() == 0).then(|| "no read was served under a read lease".to_owned())
    }

    /// For people.
    pub(crate) fn print(&self) {
        println!(
            "{:6} {:4} {:20} {:32} {:>8} {:>8} {:>8} {:>6}  {:>25}  {:>19} {:>10}",
            "reader",
            "at",
            "segments",
            "consistency",
            "reads",
            "silent",
            "changed",
            "failed",
            "age ms p50/p90/p99/max",
            "missed p50/p90/p99/max",
            "violations"
        );
        self.rows.iter().for_each(Row::print);
        let firsts = self
            .rows
            .iter()
            .filter_map(|row| Some((row, row.verdict.first.as_ref()?)));
        for (row, first) in firsts {
            println!("{}, {}: {first}", row.reader, row.class.consistency);
        }
        let changes = self.changes.iter();
        let changes = changes.map(|(place, count)| format!("{} {count}", place.name()));
        println!(
            "changes answered: {}; {} of them without a lease",
            changes.collect::<Vec<_>>().join(", "),
            self.unleased
        );
        println!(
            "{} hard reads in {:.0} s, {} of them under read leases, {} saw a change; {} violations",
            self.hard_reads(),
            self.took.as_secs_f64(),
            self.leased(),
            self.changed(),
            self.violations()
        );
    }

    /// For programs.
    pub(crate) fn document(&self) -> Value {
        let changes = self.changes.iter();
        let changes = changes.map(|(place, count)| (place.name().to_owned(), json!(count)));
        json!({
            "planted": self.bug,
            "round_trip_ms": ROUND_TRIP_MS,
            "seconds": self.took.as_secs_f64(),
            "hard_reads": self.hard_reads(),
            "under_read_leases": self.leased(),
            "saw_a_change": self.changed(),
            "violations": self.violations(),
            "changes": changes.collect::<serde_json::Map<_, _>>(),
            "changes_without_a_lease": self.unleased,
            "classes": self.rows.iter().map(Row::document).collect::<Vec<_>>(),
        })
    }
}

impl Row {
    /// A visit that must ask, and has not, was served under a read lease. One with a bound in time may have asked before.
    fn is_leased_if_silent(&self) -> bool {
        let must_ask =
            self.consistency.mods().is_some() || self.consistency.time() == Some(Duration::ZERO);
        must_ask && self.is_far()
    }

    /// To a reader at the home a question takes no time.
    fn is_far(&self) -> bool {
        self.at == SITE_B
    }

    fn segments(&self) -> String {
        let places = self.class.places.iter().map(|place| place.name());
        places.collect::<Vec<_>>().join("+")
    }

    fn silent(&self) -> Option<usize> {
        self.is_far().then_some(self.verdict.silent)
    }

    fn print(&self) {
        let verdict = &self.verdict;
        let ages = Shares::of(&verdict.ages_us);
        let ages = ages.0.map(|us| format!("{:.1}", f64::from(us) / 1e3));
        let missed = Shares::of(&verdict.missed).0.map(|count| count.to_string());
        let violations = match self.consistency.is_hard() {
            true => verdict.violations().to_string(),
            false => "soft".to_owned(),
        };
        println!(
            "{:6} {:4} {:20} {:32} {:>8} {:>8} {:>8} {:>6}  {:>25}  {:>19} {:>10}",
            self.reader,
            self.at,
            self.segments(),
            self.class.consistency,
            verdict.reads,
            self.silent()
                .map_or_else(|| "-".to_owned(), |count| count.to_string()),
            verdict.changed,
            verdict.failed,
            ages.join("/"),
            missed.join("/"),
            violations
        );
    }

    fn document(&self) -> Value {
        let verdict = &self.verdict;
        json!({
            "reader": self.reader,
            "at": self.at,
            "segments": self.class.places.iter().map(|place| place.name()).collect::<Vec<_>>(),
            "consistency": self.class.consistency,
            "reads": verdict.reads,
            "failed": verdict.failed,
            "silent": self.silent(),
            "saw_a_change": verdict.changed,
            "age_us": Shares::of(&verdict.ages_us).document(),
            "missed": Shares::of(&verdict.missed).document(),
            "too_old": verdict.too_old,
            "missed_too_many": verdict.missed_too_many,
        })
    }
}

/// What half, nine in ten, and 99 in a hundred of some numbers are not above, and the largest.
struct Shares([u32; 4]);

impl Shares {
    fn of(numbers: &[u32]) -> Self {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        let at = |share: f64| {
            let index = (last as f64 * share).ceil() as usize;
            sorted.get(index).copied().unwrap_or_default()
        };
        Shares([at(0.5), at(0.9), at(0.99), at(1.0)])
    }

    fn document(&self) -> Value {
        let [p50, p90, p99, max] = self.0;
        json!({"p50": p50, "p90": p90, "p99": p99, "max": max})
    }
}

fn answers(dir: &Path) -> Result<Answers> {
    let mut answers = Answers::default();
    for object in objects() {
        let file = dir.join(format!("{}.{ANSWERS}", object.number));
        let mut recorded = Recorded::open(&file)?;
        let mut all = Vec::new();
        while let Some(answer) = recorded.answer()? {
            all.push(answer);
        }
        answers.add(object.number, &all)?;
    }
    Ok(answers)
}

fn verdict(file: &Path, answers: &Answers, class: &Class) -> Result<Verdict> {
    let places = class.places.iter();
    let numbers = |place: &Place| {
        let here = objects().filter(move |object: &Object| object.place == *place);
        here.map(|object| object.number).collect()
    };
    let objects: Vec<Vec<usize>> = places.map(numbers).collect();
    let of = (class.consistency()?, &objects[..]);
    let mut judge = Judge::new(answers, of, ROUND_TRIP_MS * MS_NS);
    let mut recorded = Recorded::open(file)?;
    while let Some(read) = recorded.read()? {
        judge.judge(&read)?;
    }
    Ok(judge.verdict())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_sorted_numbers() {
        let numbers: Vec<u32> = (0..=100).rev().collect();
        assert_eq!(Shares::of(&numbers).0, [50, 90, 99, 100]);
        assert_eq!(Shares::of(&[]).0, [0; 4]);
    }
}
