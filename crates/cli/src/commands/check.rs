//! `thorp check`: is everything in a home's directory as it was written?

use super::{say, say_json};
use crate::failure::{Code, Failure};
use clap::Args;
use std::path::PathBuf;
use thorp_store::readable_by_others;

/// What `thorp check` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The home's directory, or the store in it
    dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Exit code 3 if something is damaged.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let dir = super::home::store_in(&options.dir);
    let report = thorp_store::check(&dir)
        .map_err(|error| Failure::new(error.to_string(), "give the directory of a stopped home"))?;
    let readable =
        readable_by_others(&options.dir).map_err(|error| Failure::file(&options.dir, &error))?;
    if options.json {
        say_json(&as_json(&report, &readable))?;
    } else {
        for file in &readable {
            say(&format!("remark: others can read {}", file.display()))?;
        }
        say(&report.to_string())?;
    }
    if report.is_good() {
        return Ok(());
    }
    let what = format!(
        "{} is damaged in {} places",
        dir.display(),
        report.damage_count
    );
    let todo = "restore it from a copy, or copy what can be read with `thorp salvage DIR INTO`";
    Err(Failure::new(what, todo).with(Code::Wrong))
}

fn as_json(report: &thorp_store::Report, readable: &[PathBuf]) -> serde_json::Value {
    let tables = report.tables.iter().map(|each| {
        serde_json::json!({
            "table": each.table.name(),
            "records": each.found.records,
            "bytes": each.found.bytes,
        })
    });
    let damage = report.damage.iter().map(ToString::to_string);
    serde_json::json!({
        "good": report.is_good(),
        "format": report.format,
        "groups": report.groups,
        "incarnation": report.incarnation.map(|number| number.get()),
        "closed": report.closed.as_ref().map(|why| why.to_string()),
        "tables": tables.collect::<Vec<_>>(),
        "damage_count": report.damage_count,
        "damage": damage.collect::<Vec<_>>(),
        "remarks": report.remarks,
        "readable_by_others": readable.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
    })
}

const HELP: &str = "\
Reads everything and changes nothing. The home must not run. Files below DIR that other users of this \
machine can read are named, the first 100 of them; the permissions of the directories above DIR are not \
looked at.

Examples:
  thorp check alps";
