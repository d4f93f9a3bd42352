//! The verdict.

use crate::record::History;
use crate::{Options, Outcome, Workload};
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

/// Tells the verdict. Whether it is as it must be.
pub(crate) fn tell(report: &Report, history: &History, options: &Options) -> Outcome<bool> {
    if report.valid != Valid::True || options.out.is_some() {
        let out = options.out.clone();
        let out = out.unwrap_or_else(|| PathBuf::from("history.jsonl"));
        fs::write(&out, history.lines.join("\n"))?;
        println!("the history: {}", out.display());
    }
    for (kind, anomalies) in &report.anomalies {
        println!("{kind}: {}", anomalies.len());
        if let Some(first) = anomalies.first() {
            println!("{}", shortened(&first.explanation));
        }
    }
    match (report.valid, &options.bug) {
        (Valid::Unknown, _) => Err("the checker cannot tell".into()),
        (Valid::True, None) => {
            println!("it is {}", model(options.strict));
            Ok(true)
        }
        (Valid::False, None) => {
            println!("IT IS NOT {}", model(options.strict));
            Ok(false)
        }
        (Valid::False, Some(bug)) => {
            println!("rejected, as it must be with {bug} planted");
            Ok(true)
        }
        (Valid::True, Some(bug)) => {
            println!("NOT REJECTED, although {bug} is planted");
            Ok(false)
        }
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
