//! How the work and the memory of a home and its sites grow with a village. A program of the product's own measures, for
//! it needs its state machines; here that is kept and drawn.

use super::{CUT_SHORT, Samples, busy};
use crate::Outcome;
use crate::chart::{Chart, Points};
use crate::stop::Stop;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What the experiment is told.
#[derive(Clone, Debug)]
pub struct Scale {
    /// The program that measures.
    pub bench: PathBuf,
    /// Pages that a member holds in the largest village.
    pub pages: usize,
    /// Where the raw samples go.
    pub out: PathBuf,
}

/// What villages grow in, and what is drawn of it: the file's name, what it is called there, whether it is memory.
const CHARTS: [(&str, &str, bool); 4] = [
    ("members of a site", "scale-members", false),
    ("sites", "scale-sites", false),
    ("pages", "scale-pages", false),
    ("pages", "scale-memory", true),
];
/// The operation that is none.
const MEMORY: &str = "bytes in memory";

/// Runs it; tells the table.
pub fn scale(told: &Scale, stop: &Stop, show: &mut dyn FnMut(&str)) -> Outcome<String> {
    let mut samples = Samples::keep_in(&told.out, "scale")?;
    let busy = busy();
    let mut child = Command::new(&told.bench)
        .arg(told.pages.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|why| format!("{}: {why}", told.bench.display()))?;
    let lines = child.stdout.take().ok_or("it has no output")?;
    for line in BufReader::new(lines).lines() {
        let sample: Value = serde_json::from_str(&line?)?;
        if let (Some(along), Some(number)) = (sample["along"].as_str(), sample["number"].as_u64()) {
            show(&format!("measured along {along}: {number}"));
        }
        samples.add(&[], &sample)?;
        if stop.is_set() {
            child.kill()?;
        }
    }
    let ended = child.wait()?;
    if !ended.success() && !stop.is_set() {
        return Err(format!("{} failed: {ended}", told.bench.display()).into());
    }
    for (along, name, is_memory) in CHARTS {
        let chart = chart(&samples, along, is_memory);
        fs::write(told.out.join(format!("{name}.svg")), chart.svg())?;
    }
    let table = table(&samples) + &busy;
    Ok(if ended.success() {
        table
    } else {
        table + CUT_SHORT
    })
}

fn chart(samples: &Samples, along: &str, is_memory: bool) -> Chart {
    let (y, unit) = match is_memory {
        true => ("MB", 1e6),
        false => ("microseconds for each, all sites together", 1e3),
    };
    let mut lines: Vec<Points> = Vec::new();
    for whose in ["home", "sites"] {
        for sample in samples.those(&[("along", json!(along))]) {
            let (Some(operation), Some(number), Some(cost)) = (
                sample["operation"].as_str(),
                sample.get("number").and_then(Value::as_f64),
                sample.get(whose).and_then(Value::as_f64),
            ) else {
                continue;
            };
            if (operation == MEMORY) != is_memory {
                continue;
            }
            let name = match is_memory {
                true => whose.to_owned(),
                false => format!("{operation}: {whose}"),
            };
            let point = (number, cost / unit);
            match lines.iter_mut().find(|(known, _)| *known == name) {
                Some((_, points)) => points.push(point),
                None => lines.push((name, vec![point])),
            }
        }
    }
    Chart {
        title: format!(
            "What a home and its sites {}, along {along}",
            if is_memory { "keep" } else { "do" }
        ),
        x: along.to_owned(),
        y: y.to_owned(),
        lines,
        ..Chart::default()
    }
}

fn table(samples: &Samples) -> String {
    let mut text = String::from(
        "along             | what is done                       | by    | from | to      | growth: times for each | no faster\n",
    );
    for sample in samples.those(&[]) {
        let Some(growth) = sample
            .get("growth against proportion")
            .and_then(Value::as_f64)
        else {
            continue;
        };
        let words = |key: &str| sample.get(key).and_then(Value::as_str).unwrap_or_default();
        let number = |key: &str| sample.get(key).and_then(Value::as_u64).unwrap_or_default();
        text += &format!(
            "{:17} | {:34} | {:5} | {:4} | {:7} | {growth:22.3} | {}\n",
            words("along"),
            words("operation"),
            words("whose"),
            number("from"),
            number("to"),
            if sample.get("met") == Some(&json!(true)) {
                "yes"
            } else {
                "NO"
            }
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn told(out: PathBuf, script: &str) -> Scale {
        let bench = out.join("bench");
        fs::write(&bench, format!("#!/bin/sh\n{script}\n")).expect("a file");
        fs::set_permissions(&bench, fs::Permissions::from_mode(0o755)).expect("permissions");
        Scale {
            bench,
            pages: 1_000,
            out,
        }
    }

    #[test]
    fn what_is_measured_is_kept_told_and_drawn() {
        let out = tempfile::tempdir().expect("a directory");
        let one =
            r#"{"along":"sites","number":4,"operation":"a heartbeat","home":2000.0,"sites":500.0}"#;
        let grown = r#"{"along":"sites","operation":"a heartbeat","whose":"home","from":1,"to":4,"growth against proportion":1.5,"met":false}"#;
        let told = told(out.path().into(), &format!("echo '{one}'\necho '{grown}'"));
        let mut shown = Vec::new();
        let stop = Stop::default();
        let table = scale(&told, &stop, &mut |text| shown.push(text.to_owned())).expect("a table");
        assert_eq!(shown, ["measured along sites: 4"]);
        let row = table.lines().find(|line| line.starts_with("sites"));
        assert!(row.is_some_and(|row| row.contains("1.500 | NO")), "{table}");
        let raw = fs::read_to_string(out.path().join("scale.jsonl")).expect("samples");
        assert_eq!(raw.lines().count(), 2);
        let chart = fs::read_to_string(out.path().join("scale-sites.svg")).expect("a chart");
        assert!(chart.contains("a heartbeat: home"));
    }

    #[test]
    fn a_program_that_fails_is_told() {
        let out = tempfile::tempdir().expect("a directory");
        let told = told(out.path().into(), "exit 3");
        let failed = scale(&told, &Stop::default(), &mut |_| ());
        assert!(failed.is_err_and(|why| why.to_string().contains("failed")));
    }
}
