//! `thorp updates`: what a log keeps until homes have executed it.

use super::{say, say_json};
use crate::failure::{Code, Failure};
use crate::text::{Side, Table};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use thorp_model::records::UpdateRecord;
use thorp_store::UpdateLog;

/// What `thorp updates` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// List the updates that a log keeps
    #[command(after_help = LS_HELP)]
    Ls {
        /// The log's directory; no program has it open
        log: PathBuf,
        /// Only those that a home has refused
        #[arg(long)]
        rejected: bool,
    },
    /// Take updates out of a log that a home has refused
    #[command(after_help = DROP_HELP)]
    Drop {
        /// The log's directory; no program has it open
        log: PathBuf,
        /// The updates, as `thorp updates ls` names them; without any, all rejected ones
        updates: Vec<String>,
    },
}

/// Opens the log, which nobody else has open.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    match &options.action {
        Action::Ls { log, rejected } => {
            let listed = read(log)?.1;
            let wanted = |record: &&UpdateRecord| !rejected || record.rejected.is_some();
            list(listed.iter().filter(wanted), options.json)
        }
        Action::Drop { log, updates } => drop_rejected(log, updates, options.json),
    }
}

fn read(dir: &PathBuf) -> Result<(UpdateLog, Vec<UpdateRecord>), Failure> {
    let failed = |error: thorp_store::LogError| {
        let todo = "name the directory that `thorp put --log` or JoinConfig::log was given, and stop its program";
        Failure::new(error.to_string(), todo)
    };
    let log = UpdateLog::existing(dir).map_err(failed)?;
    let updates = log.updates().map_err(failed)?;
    Ok((log, updates))
}

/// An update's name on the command line: its home, log, segment and number. A log counts for each home and segment.
fn name(record: &UpdateRecord) -> String {
    let (home, id) = (record.update.home, record.update.id);
    format!("{home}/{}/{}/{}", id.log, id.segment, id.number)
}

fn list<'a>(updates: impl Iterator<Item = &'a UpdateRecord>, json: bool) -> Result<(), Failure> {
    let updates: Vec<&UpdateRecord> = updates.collect();
    if json {
        let each = updates.iter().map(|record| as_json(record));
        let each: Vec<_> = each.collect();
        return say_json(&serde_json::json!({ "updates": each }));
    }
    if updates.is_empty() {
        return say("nothing: homes have all of it");
    }
    let mut table = Table::new(&[
        ("update", Side::Left),
        ("objects", Side::Right),
        ("bytes", Side::Right),
        ("what became of it", Side::Left),
    ]);
    for record in updates {
        table.row(vec![
            name(record),
            objects(record).to_string(),
            record.update.bytes().to_string(),
            fate(record),
        ]);
    }
    say(&table.render())
}

fn objects(record: &UpdateRecord) -> usize {
    let pages = record.update.writes.iter();
    pages.map(|page| page.slots.len()).sum()
}

fn fate(record: &UpdateRecord) -> String {
    match &record.rejected {
        None => "its home has not said".to_owned(),
        Some(why) => format!("rejected: {why}"),
    }
}

fn as_json(record: &UpdateRecord) -> serde_json::Value {
    serde_json::json!({
        "update": name(record),
        "home": record.update.home.0,
        "objects": objects(record),
        "bytes": record.update.bytes(),
        "rejected": record.rejected.as_ref().map(ToString::to_string),
    })
}

/// Only what a home has refused: the rest it may have executed already.
fn drop_rejected(dir: &PathBuf, wanted: &[String], json: bool) -> Result<(), Failure> {
    let (log, updates) = read(dir)?;
    let is_wanted = |record: &&UpdateRecord| match wanted {
        [] => record.rejected.is_some(),
        wanted => wanted.contains(&name(record)),
    };
    let chosen: Vec<&UpdateRecord> = updates.iter().filter(is_wanted).collect();
    let names: Vec<String> = chosen.iter().map(|record| name(record)).collect();
    if let Some(missing) = wanted.iter().find(|wanted| !names.contains(wanted)) {
        let what = format!("there is no update {missing} in this log");
        let todo = "`thorp updates ls` names those that are there";
        return Err(Failure::new(what, todo).with(Code::NotThere));
    }
    if let Some(open) = chosen.iter().find(|record| record.rejected.is_none()) {
        let what = format!(
            "update {} was not refused: its home may have it",
            name(open)
        );
        let todo = "let its program run until the home has said what became of it";
        return Err(Failure::new(what, todo));
    }
    let dropped = chosen.into_iter().map(|record| record.update.clone());
    log.drop_updates(&dropped.collect::<Vec<_>>())
        .map_err(|error| Failure::new(error.to_string(), ""))?;
    match json {
        true => say_json(&serde_json::json!({ "dropped": names })),
        false if names.is_empty() => say("nothing: no update was rejected"),
        false => names
            .iter()
            .try_for_each(|name| say(&format!("dropped {name}"))),
    }
}

const HELP: &str = "\
Examples:
  thorp updates ls notes-log
  thorp updates drop notes-log";

const LS_HELP: &str = "\
A log leaves out what its homes have executed. docs/consistency.md says who writes by a log.

Examples:
  thorp updates ls notes-log
  thorp updates ls notes-log --rejected --json";

const DROP_HELP: &str = "\
Only updates that a home has refused can be dropped: the home may have executed the others already.

Examples:
  thorp updates drop notes-log";

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use thorp_model::records::{self, update_key};
    use thorp_model::{
        Batch, HomeId, LogId, Mark, MemberId, Purpose, Refusal, SegmentId, Table, Update, UpdateId,
    };

    /// A log with the first update for two homes, the second one refused, and another for the second home.
    fn log(dir: &Path) {
        let put = |home, number, rejected| {
            let id = UpdateId {
                log: LogId(MemberId(7)),
                segment: SegmentId(1),
                number,
            };
            let (home, writes) = (HomeId(home), Vec::new());
            let update = Update { home, id, writes };
            let record = UpdateRecord { update, rejected };
            records::put(Table::Meta, update_key(home, id), &record)
        };
        let ops = vec![
            put(1, 1, Some(Refusal::Unknown)),
            put(2, 1, Some(Refusal::Unknown)),
            put(2, 2, None),
        ];
        let log = UpdateLog::open(dir, "anna").unwrap();
        let (mark, purpose) = (Mark(1), Purpose::NewData);
        log.commit(&[Batch { mark, purpose, ops }]).unwrap();
    }

    fn names(dir: &PathBuf) -> Vec<String> {
        let updates = read(dir).unwrap().1;
        updates.iter().map(name).collect()
    }

    #[test]
    fn only_the_refused_updates_that_are_named_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("log");
        log(&dir);
        let before = names(&dir);
        assert_eq!(before.len(), 3);
        let open = std::slice::from_ref(&before[2]);
        assert!(drop_rejected(&dir, open, true).is_err(), "it may be saved");
        let other = ["1/7/1/9".to_owned()];
        assert!(
            drop_rejected(&dir, &other, true).is_err(),
            "it is not there"
        );
        let first = std::slice::from_ref(&before[0]);
        assert!(drop_rejected(&dir, first, true).is_ok());
        assert_eq!(names(&dir), before[1..], "the other home's stays");
        assert!(drop_rejected(&dir, &[], true).is_ok());
        assert_eq!(names(&dir), before[2..]);
    }
}
