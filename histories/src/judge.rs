//! The verdict.

use crate::record::History;
use crate::{Options, Outcome, Workload};
use adya::{Opts, Report, Valid};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// For each knot of transactions that the checker has to untie.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(120);
/// A history in which too little happened says nothing.
const COMMITTED_PERCENT_MIN: u64 = 20;

/// What the checker says.
pub(crate) fn judge(history: &History, options: &Options) -> Outcome<Report> {
    let model = match options.strict {
        true => "strict-serializable",
        false => "serializable",
    };
    let parsed = adya::History::from_json(&history.lines.join("\n"))?;
    let (workload, order) = match options.workload {
        Workload::Lists => (adya::Workload::ListAppend, None),
        Workload::Registers => (adya::Workload::RwRegister, Some(history.order.clone())),
    };
    let opts = Opts {
        models: vec![model.to_owned()],
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
    let committed = history.count("ok");
    if committed * 100 < options.transactions * COMMITTED_PERCENT_MIN || history.over_both() == 0 {
        return Err(format!("only {committed} transactions committed: that says nothing").into());
    }
    for (kind, anomalies) in &report.anomalies {
        println!("{kind}: {}", anomalies.len());
        if let Some(first) = anomalies.first() {
            println!("{}", first.explanation);
        }
    }
    match (report.valid, &options.bug) {
        (Valid::Unknown, _) => Err("the checker cannot tell".into()),
        (Valid::True, None) => {
            println!("it holds");
            Ok(true)
        }
        (Valid::False, None) => {
            println!("IT DOES NOT HOLD");
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
