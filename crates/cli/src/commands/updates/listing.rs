//! `thorp updates ls` and `rejected`: what is in a log.

use super::opened::{Opened, name};
use crate::commands::{say, say_json};
use crate::failure::Failure;
use crate::text::{Side, Table};
use thorp_model::records::UpdateRecord;

/// Lists the updates of a log, or only those that a home has refused.
pub(super) fn list(opened: &Opened, only_rejected: bool, json: bool) -> Result<(), Failure> {
    let updates = opened.updates.iter();
    let updates = updates.filter(|record| !only_rejected || record.rejected.is_some());
    let updates: Vec<&UpdateRecord> = updates.collect();
    if json {
        let each: Vec<_> = updates.iter().map(|record| as_json(record)).collect();
        return say_json(&serde_json::json!({ "updates": each }));
    }
    match (updates.is_empty(), only_rejected) {
        (true, true) => say("nothing: no update was rejected"),
        (true, false) => say("nothing: homes have all of it"),
        (false, _) => say(&table(&updates).render()),
    }
}

fn table(updates: &[&UpdateRecord]) -> Table {
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
    table
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
