//! What several runs come to.

use crate::Outcome;
use crate::faults::Tally;
use crate::judge::{self, Verdicts};
use crate::record::History;
use crate::told::Turns;
use crate::weak;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is added up.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// What `run --tally` wrote
    tally: PathBuf,
    /// So many operations there must be in all histories that hold
    #[arg(long, default_value_t = 0)]
    operations_min: u64,
}

/// What did not happen, and should have for the verdict to say something.
pub(crate) fn missing(
    history: &History,
    turns: Turns,
    tally: &Tally,
    options: &crate::Options,
) -> Option<String> {
    let committed = &history.committed;
    if committed.transactions < options.transactions {
        return Some(format!(
            "only {} transactions committed",
            committed.transactions
        ));
    }
    if committed.readers_over_both == 0 || committed.writers_over_both == 0 {
        return Some("over both homes nothing was read, or nothing written".to_owned());
    }
    let presets = weak::kinds().map(|(preset, _)| preset);
    let mut presets = presets.iter().filter(|_| options.weak > 0);
    if let Some(preset) = presets.find(|preset| !committed.weak.contains_key(**preset)) {
        return Some(format!("no append with {preset}"));
    }
    if options.calm {
        return None;
    }
    if let Some(fault) = tally.missing().filter(|_| !options.identities) {
        return Some(format!("no {fault}"));
    }
    let nobody = turns.turned == 0 || turns.carried == 0;
    nobody.then(|| "no member took the redirector over".to_owned())
}

/// What a run did, as one line of the tally.
pub(crate) fn note(
    path: &Path,
    (history, verdicts): (&History, &Verdicts),
    tally: &Tally,
    (ran, judged): (Duration, Duration),
    options: &crate::Options,
) -> Outcome<()> {
    let line = json!({
        "workload": format!("{:?}", options.workload),
        "model": judge::model(options.strict),
        "bug": options.bug,
        "operations": history.committed.operations(),
        "transactions": history.committed.transactions,
        "weak": history.committed.weak.values().sum::<u64>(),
        "snapshots": verdicts.snapshots.snapshots,
        "faults": tally.0,
        "ran_s": ran.as_secs_f64(),
        "judged_s": judged.as_secs_f64(),
    });
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    Ok(writeln!(file, "{line}")?)
}

/// All lines of a tally. Whether they are enough.
pub(crate) fn sum(options: &Options) -> Outcome<bool> {
    let lines = BufReader::new(File::open(&options.tally)?).lines();
    let mut sum = Totals::default();
    for line in lines {
        sum.add(&serde_json::from_str(&line?)?);
    }
    println!("{}", sum.told());
    let enough = sum.operations >= options.operations_min;
    if !enough {
        println!(
            "TOO FEW: {} operations are asked for",
            options.operations_min
        );
    }
    Ok(enough)
}

#[derive(Default)]
struct Totals {
    operations: u64,
    transactions: u64,
    weak: u64,
    snapshots: u64,
    histories: u64,
    rejected: Vec<String>,
    faults: BTreeMap<String, u64>,
    ran_s: f64,
    judged_s: f64,
}

impl Totals {
    fn add(&mut self, run: &Value) {
        self.ran_s += run["ran_s"].as_f64().unwrap_or_default();
        self.judged_s += run["judged_s"].as_f64().unwrap_or_default();
        if let Some(bug) = run["bug"].as_str() {
            self.rejected.push(bug.to_owned());
            return;
        }
        self.histories += 1;
        self.operations += run["operations"].as_u64().unwrap_or_default();
        self.transactions += run["transactions"].as_u64().unwrap_or_default();
        self.weak += run["weak"].as_u64().unwrap_or_default();
        self.snapshots += run["snapshots"].as_u64().unwrap_or_default();
        for (fault, count) in run["faults"].as_object().into_iter().flatten() {
            *self.faults.entry(fault.clone()).or_default() += count.as_u64().unwrap_or_default();
        }
    }

    fn told(&self) -> String {
        let faults = self.faults.iter();
        let faults: Vec<String> = faults
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        format!(
            "faults: {}\n\
             {} operations of {} transactions in {} histories, all (strictly) serializable; \
             beside them {} appends of weak sessions, and {} snapshots of one moment each; {} broken builds rejected ({}); \
             {:.0} s, of which the judges {:.0} s",
            faults.join(", "),
            self.operations,
            self.transactions,
            self.histories,
            self.weak,
            self.snapshots,
            self.rejected.len(),
            self.rejected.join(", "),
            self.ran_s + self.judged_s,
            self.judged_s,
        )
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn broken_builds_are_counted_and_their_operations_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let tally = dir.path().join("tally");
        let run = |bug: Option<&str>| json!({"bug": bug, "operations": 10, "transactions": 4, "faults": {"links cut": 2}, "ran_s": 1.0, "judged_s": 0.5});
        let lines = [run(None), run(Some("Bad")), run(None)].map(|line| line.to_string());
        std::fs::write(&tally, lines.join("\n")).unwrap();
        let mut totals = Totals::default();
        for line in [run(None), run(Some("Bad")), run(None)] {
            totals.add(&line);
        }
        let told = totals.told();
        assert!(told.contains("4 links cut"), "{told}");
        assert!(
            told.contains("20 operations of 8 transactions in 2 histories"),
            "{told}"
        );
        assert!(told.contains("1 broken builds rejected (Bad)"), "{told}");
        let enough = |operations_min| {
            let tally = tally.clone();
            sum(&Options {
                tally,
                operations_min,
            })
            .unwrap()
        };
        assert!(enough(20) && !enough(21));
    }
}
