//! The verdict.

use crate::record::History;
use crate::snapshots::Judged;
use crate::{By, Options, Outcome, Workload};
use adya::{Opts, Report, Valid};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// For each knot of transactions that the checker has to untie.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(20);
const EXPLANATION_LINES_MAX: usize = 40;

/// What a history is judged as. Sessions see what they did themselves and go on from where they were, also those that are not
/// strict.
pub(crate) fn model(strict: bool) -> &'static str {
    match strict {
        true => "strict-serializable",
        false => "strong-session-serializable",
    }
}

/// What the checker says.
pub(crate) fn judge(history: &History, options: &Options) -> Outcome<Report> {
    let parsed = adya::History::from_json(&history.lines.join("\n"))?;
    let (workload, order) = match options.workload {
        Workload::Lists => (adya::Workload::ListAppend, None),
        Workload::Registers => (adya::Workload::RwRegister, Some(history.order.clone())),
    };
    let opts = Opts {
        models: vec![model(options.strict).to_owned()],
        timeout: SEARCH_TIME_MAX,
        transaction_order: order,
        ..Opts::default()
    };
    Ok(adya::check(&parsed, workload, &opts))
}

/// What all judges say.
pub(crate) struct Verdicts {
    pub(crate) report: Report,
    /// Of lists: what is lost, or there and should not be.
    pub(crate) appends: Vec<String>,
    pub(crate) snapshots: Judged,
}

impl Verdicts {
    /// Tells the verdicts. Whether they are as they must be.
    pub(crate) fn tell(&self, history: &History, options: &Options) -> Outcome<bool> {
        let rejected = self.rejected();
        if !rejected.is_empty() || options.out.is_some() {
            let out = options.out.clone();
            let out = out.unwrap_or_else(|| PathBuf::from("history.jsonl"));
            fs::write(&out, history.lines.join("\n"))?;
            println!("the history: {}", out.display());
        }
        for (kind, anomalies) in &self.report.anomalies {
            println!("{kind}: {}", anomalies.len());
            if let Some(first) = anomalies.first() {
                println!("{}", shortened(&first.explanation));
            }
        }
        let wrong = self.appends.iter().take(EXPLANATION_LINES_MAX);
        wrong.for_each(|wrong| println!("{wrong}"));
        if options.weak > 0 {
            self.snapshots.tell();
        }
        if self.report.valid == Valid::Unknown {
            return Err("the checker cannot tell".into());
        }
        let model = model(options.strict);
        match (&options.bug, rejected.as_slice()) {
            (None, []) => println!("it is {model}"),
            (None, by) => println!("IT IS NOT {model}, or something else is wrong: {by:?}"),
            (Some(bug), by) if by.contains(&options.by) => {
                println!("rejected, as it must be with {bug} planted: {by:?}");
            }
            (Some(bug), by) => println!(
                "NOT REJECTED by {:?}, although {bug} is planted: {by:?}",
                options.by
            ),
        }
        Ok(match options.bug {
            None => rejected.is_empty(),
            Some(_) => rejected.contains(&options.by),
        })
    }

    /// Who rejects it.
    fn rejected(&self) -> Vec<By> {
        let all = [
            (By::Adya, self.report.valid != Valid::True),
            (By::Appends, !self.appends.is_empty()),
            (By::Snapshots, !self.snapshots.anomalies.is_empty()),
        ];
        let rejected = all.into_iter().filter(|(_, rejects)| *rejects);
        rejected.map(|(by, _)| by).collect()
    }

    /// What snapshots should have shown and did not.
    pub(crate) fn missing(&self, options: &Options) -> Option<String> {
        let shows_nothing = self.snapshots.whole == 0 || self.snapshots.stale == 0;
        (options.weak > 0 && shows_nothing)
            .then(|| "no snapshot of several parts, or none that was old".to_owned())
    }
}

/// A cycle over hundreds of transactions is in the history, for whoever wants it.
fn shortened(explanation: &str) -> String {
    let mut lines = explanation.lines();
    let first: Vec<&str> = lines.by_ref().take(EXPLANATION_LINES_MAX).collect();
    match lines.count() {
        0 => first.join("\n"),
        more => format!("{}\n  ({more} more lines)", first.join("\n")),
    }
}
