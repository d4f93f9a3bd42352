//! `thorp updates export`: what updates would change, for a person who does it by hand.

use super::opened::{Opened, name};
use crate::commands::{say, say_json};
use crate::destination::Destination;
use crate::failure::Failure;
use crate::text;
use rustix::fs::OFlags;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use thorp_model::records::UpdateRecord;
use thorp_model::{Blob, NewValue, PageId, Procedure, Slot, WriteOp};

/// Writes the chosen updates, a line for each. The log keeps them.
pub(super) fn export(
    opened: &Opened,
    (wanted, all): (&[String], bool),
    out: &Path,
    json: bool,
) -> Result<(), Failure> {
    let chosen = match all {
        true => opened.updates.iter().collect(),
        false => opened.chosen(wanted)?,
    };
    let failed = |error: io::Error| Failure::file(out, &error);
    match Destination::of(out) {
        Destination::Standard => {
            return chosen
                .iter()
                .try_for_each(|record| say(&text::json(&as_json(record).to_string())));
        }
        Destination::Stream(name) => {
            let file = OpenOptions::new().write(true).open(&name);
            file.and_then(|file| write(&chosen, file)).map_err(failed)?;
        }
        Destination::Regular { place, part } => {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                // What it holds may be for nobody else, and it follows no link that somebody has put there.
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits() as i32)
                .open(&part);
            file.and_then(|file| write(&chosen, file)).map_err(failed)?;
            fs::rename(&part, &place).map_err(failed)?;
        }
    }
    let (count, file) = (chosen.len(), out.display().to_string());
    match json {
        true => say_json(&json!({"updates": count, "file": file})),
        false => say(&format!("{count} updates are in {file}")),
    }
}

fn write(updates: &[&UpdateRecord], out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    for record in updates {
        writeln!(out, "{}", as_json(record))?;
    }
    out.flush()
}

fn as_json(record: &UpdateRecord) -> Value {
    let pages = record.update.writes.iter();
    let writes = pages.flat_map(|page| {
        let slots = page.slots.iter();
        slots.map(|(slot, op)| one(page.page, *slot, op))
    });
    json!({
        "update": name(record),
        "home": record.update.home.0,
        "segment": record.update.id.segment.0,
        "rejected": record.rejected.as_ref().map(ToString::to_string),
        "writes": writes.collect::<Vec<_>>(),
    })
}

/// What is done to one object.
fn one(page: PageId, slot: Slot, op: &WriteOp) -> Value {
    let generation = op.generation();
    let object = format!("#{}.{}.{}", page.page.0, slot.0, generation.0);
    match op {
        WriteOp::Create { value, .. } => json!({"object": object, "create": of_value(value)}),
        WriteOp::Write { value, .. } => json!({"object": object, "write": of_value(value)}),
        WriteOp::Patch { offset, bytes, .. } => {
            json!({"object": object, "patch": of_bytes(bytes.bytes()), "offset": offset})
        }
        WriteOp::Delete { .. } => json!({"object": object, "delete": true}),
        WriteOp::Apply { procedures, .. } => {
            let run: Vec<Value> = procedures.iter().map(of_procedure).collect();
            json!({"object": object, "run": run})
        }
    }
}

/// A log keeps no value that lies elsewhere (`Update::is_whole`).
fn of_value(value: &NewValue) -> Value {
    match value {
        NewValue::Inline(blob) => of_bytes(blob.bytes()),
        NewValue::Staged(_) => Value::Null,
    }
}

fn of_procedure(procedure: &Procedure) -> Value {
    match procedure {
        Procedure::Add(number) => json!({"procedure": "add", "number": number}),
        Procedure::Max(number) => json!({"procedure": "max", "number": number}),
        Procedure::Append(blob) => json!({"procedure": "append", "value": of_bytes(blob.bytes())}),
        Procedure::Insert(blob) => json!({"procedure": "insert", "value": of_bytes(blob.bytes())}),
        Procedure::Remove(blob) => json!({"procedure": "remove", "value": of_bytes(blob.bytes())}),
        Procedure::PutIfAbsent { key, value } => of_entry("put_if_absent", key, value),
        Procedure::Put { key, value } => of_entry("put", key, value),
        Procedure::PutNew { key, value } => of_entry("put_new", key, value),
        Procedure::PutBeside { key, beside, value } => {
            let mut entry = of_entry("put_beside", key, value);
            entry["beside"] = of_bytes(beside.bytes());
            entry
        }
    }
}

fn of_entry(procedure: &str, key: &Blob, value: &Blob) -> Value {
    json!({
        "procedure": procedure,
        "key": of_bytes(key.bytes()),
        "value": of_bytes(value.bytes()),
    })
}

/// Bytes that are no text are given in digits: a line has nothing else.
fn of_bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "text": text }),
        Err(_) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            json!({ "hex": digits.collect::<String>() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{
        Generation, HomeId, LogId, MemberId, PageNo, PageWrites, Refusal, SegmentId, Update,
        UpdateId,
    };

    #[test]
    fn a_line_has_all_that_is_needed_to_do_it_by_hand() {
        let generation = Generation(3);
        let blob = |bytes: &[u8]| Blob::from(bytes);
        let write = WriteOp::Write {
            generation,
            value: NewValue::Inline(blob(b"hi")),
        };
        let apply = WriteOp::Apply {
            generation,
            procedures: vec![Procedure::Add(-2), Procedure::Append(blob(b"\xff"))],
        };
        let segment = SegmentId(5);
        let page = PageId {
            segment,
            page: PageNo(4),
        };
        let id = UpdateId {
            log: LogId(MemberId(7)),
            segment,
            number: 9,
        };
        let writes = vec![PageWrites {
            page,
            slots: vec![
                (Slot(0), write),
                (Slot(1), apply),
                (Slot(2), WriteOp::Delete { generation }),
            ],
        }];
        let update = Update {
            home: HomeId(1),
            id,
            writes,
        };
        let rejected = Some(Refusal::Unknown);
        let line = as_json(&UpdateRecord {
            update,
            rejected,
            author: None,
        });
        assert_eq!((&line["home"], &line["segment"]), (&json!(1), &json!(5)));
        assert_eq!(line["rejected"], Refusal::Unknown.to_string());
        let wanted = json!([
            {"object": "#4.0.3", "write": {"text": "hi"}},
            {"object": "#4.1.3", "run": [
                {"procedure": "add", "number": -2},
                {"procedure": "append", "value": {"hex": "ff"}},
            ]},
            {"object": "#4.2.3", "delete": true},
        ]);
        assert_eq!(line["writes"], wanted);
    }
}
