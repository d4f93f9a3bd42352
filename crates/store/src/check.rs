//! Walking a whole store without changing it: behind `thorp check`.

use crate::dir::Locked;
use crate::engine::{self, Opened};
use crate::error::OpenError;
use crate::history::{self, Evidence, History};
use crate::journal::{self, Verdict};
use crate::origin::Origin;
use crate::store::{ask_complete, read_usage, value_of};
use crate::usage::{TableUsage, Usage};
use crate::{manifest, marker, note, record};
use std::path::Path;
use std::{fmt, fs, io};
use thorp_model::records::{self, QuarantineRecord};
use thorp_model::{Closed, Incarnation, StorageError, Table};

/// What a check found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The format version of the store.
    pub format: u32,
    /// Groups committed since the store was made.
    pub groups: u64,
    /// How often it was opened as closed; none in a store of an earlier build.
    pub incarnation: Option<Incarnation>,
    /// Why it is closed; none if it is open.
    pub closed: Option<Closed>,
    /// What each table holds.
    pub tables: Vec<TableReport>,
    /// Damage, the first [`Report::DAMAGE_MAX`] of it.
    pub damage: Vec<Damage>,
    /// How often damage was found, listed or not.
    pub damage_count: u64,
    /// What is worth knowing but no damage, each a sentence for a person.
    pub remarks: Vec<String>,
}

impl Report {
    /// How much damage a report lists.
    pub const DAMAGE_MAX: usize = 100;

    /// Whether nothing is damaged.
    pub fn is_good(&self) -> bool {
        self.damage_count == 0
    }

    fn add(&mut self, damage: Damage) {
        self.damage_count += 1;
        if self.damage.len() < Report::DAMAGE_MAX {
            self.damage.push(damage);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "format {}, {} groups committed",
            self.format, self.groups
        )?;
        if let Some(incarnation) = self.incarnation {
            writeln!(f, "incarnation {incarnation}")?;
        }
        for each in &self.tables {
            let (name, found) = (each.table.name(), each.found);
            writeln!(
                f,
                "{name:>10}: {} records, {} bytes",
                found.records, found.bytes
            )?;
        }
        for remark in &self.remarks {
            writeln!(f, "remark: {remark}")?;
        }
        for damage in &self.damage {
            writeln!(f, "damage: {damage}")?;
        }
        match self.damage_count {
            0 => write!(f, "no damage"),
            count => write!(f, "damage in {count} places"),
        }
    }
}

/// What a check found in one table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableReport {
    /// The table.
    pub table: Table,
    /// Readable records and their bytes, those with wrong checksums included.
    pub found: TableUsage,
}

/// A damaged place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Damage {
    /// A record that is not what was written, or, if the engine could not read on,
    /// the last key before that.
    Record(StorageError),
    /// Something else, for a person.
    Other(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Record(error) => write!(f, "{error}"),
            Damage::Other(words) => f.write_str(words),
        }
    }
}

/// Reads everything in the store in `dir` and reports what is damaged. The
/// store is not changed. The engine changes files when it opens them, so it
/// opens others, in the system's directory for temporary files: a copy of the
/// journals, and links to the tables.
///
/// An error means that there is nothing to report on: no store, one in use,
/// or no space for the copy. A store that the engine cannot open is reported.
pub fn check(dir: impl AsRef<Path>) -> Result<Report, OpenError> {
    let dir = dir.as_ref();
    let locked = Locked::existing(dir)?;
    let mut report = Report {
        format: marker::read(dir)?.unwrap_or_default(),
        groups: 0,
        incarnation: None,
        closed: None,
        tables: Vec::new(),
        damage: Vec::new(),
        damage_count: 0,
        remarks: Vec::new(),
    };
    let read = note::read(dir).map_err(|error| OpenError::io(dir, error))?;
    let noted = read.unwrap_or_default();
    let scratch =
        tempfile::tempdir().map_err(|error| OpenError::io(&std::env::temp_dir(), error))?;
    let copy = scratch.path().join("engine");
    if let Err(error) = mirror(&locked.engine_dir(), &copy) {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(OpenError::io(&locked.engine_dir(), error));
        }
        report.add(Damage::Other(
            "the engine's directory is missing".to_string(),
        ));
        return Ok(report);
    }
    check_files(&copy, noted, &mut report)?;
    match engine::open(&copy, CACHE_BYTES, 0) {
        Ok(opened) => {
            check_tables(&opened, noted, &mut report);
            list_aside(&opened, &mut report);
            list_history(dir, &opened, read.is_some(), &mut report)?;
        }
        Err(OpenError::Damaged { detail, .. }) => report.add(Damage::Other(detail)),
        Err(error) => return Err(error),
    }
    Ok(report)
}

/// Memory for blocks: a walk reads each only once.
pub(crate) const CACHE_BYTES: u64 = 8 << 20;

/// Links to the table files, which the engine never changes, and copies of
/// all others, which it may.
pub(crate) fn mirror(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    let from = from.canonicalize()?;
    for entry in fs::read_dir(&from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            mirror(&entry.path(), &target)?;
        } else if from.ends_with("tables") || from.ends_with("blobs") {
            std::os::unix::fs::symlink(entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

fn check_files(engine_dir: &Path, noted: u64, report: &mut Report) -> Result<(), OpenError> {
    let failed = |error| OpenError::io(engine_dir, error);
    if let Err(detail) = manifest::inspect(engine_dir).map_err(failed)? {
        report.add(Damage::Other(detail));
    }
    match journal::inspect(engine_dir, noted).map_err(failed)? {
        Verdict::Whole => {}
        Verdict::CutShort { file, at } => {
            report
                .remarks
                .push("the last write was cut short and will be dropped".to_string());
            journal::cut(&file, at).map_err(failed)?;
        }
        Verdict::Lost(detail) => report.add(Damage::Other(detail)),
    }
    Ok(())
}

fn check_tables(opened: &Opened, noted: u64, report: &mut Report) {
    let usage = match read_usage(opened) {
        Ok(usage) => usage,
        Err(detail) => {
            report.add(Damage::Other(detail));
            return walk_tables(opened, None, report);
        }
    };
    report.groups = usage.groups;
    // The journals may have told already.
    if let (Err(detail), true) = (ask_complete(usage, noted), report.is_good()) {
        report.add(Damage::Other(detail));
    }
    walk_tables(opened, Some(usage), report);
}

fn walk_tables(opened: &Opened, usage: Option<Usage>, report: &mut Report) {
    for table in Table::ALL {
        let found = walk(opened, table, report);
        report.tables.push(TableReport { table, found });
        let counted = usage.map(|usage| usage.table(table));
        if let Some(counted) = counted.filter(|counted| *counted != found) {
            report.add(Damage::Other(format!(
                "table {} should hold {} records of {} bytes, {} of {} can be read",
                table.name(),
                counted.records,
                counted.bytes,
                found.records,
                found.bytes
            )));
        }
    }
}

/// Tells how often it was opened as closed, whether it is closed, and whether its next start would have proof (rule R9).
fn list_history(
    dir: &Path,
    opened: &Opened,
    has_note: bool,
    report: &mut Report,
) -> Result<(), OpenError> {
    let known = match history::read(opened) {
        Ok(known) => known,
        Err(detail) => {
            report.add(Damage::Other(detail));
            return Ok(());
        }
    };
    let evidence = Evidence {
        has_note: has_note || report.groups == 0,
        origin: Origin::of(dir).map_err(|error| OpenError::io(dir, error))?,
        origin_counts: true,
    };
    let closed = known.as_ref().and_then(History::closed);
    let unproven = match &known {
        Some(known) => known.unproven(&evidence),
        None => (!evidence.has_note).then_some(Closed::NoNote),
    };
    report.incarnation = known.as_ref().map(History::incarnation);
    report.closed = closed.clone();
    if let Some(why) = closed {
        report
            .remarks
            .push(format!("it is closed, only operators get in: {why}"));
    } else if let Some(why) = unproven {
        report
            .remarks
            .push(format!("its home would start closed: {why}"));
    }
    Ok(())
}

/// Tells of the changes that a home keeps beside damaged pages.
fn list_aside(opened: &Opened, report: &mut Report) {
    let (from, to) = records::quarantine_range();
    let found = engine::unpanicked(|| {
        let found = opened.table(Table::Meta).range::<Vec<u8>, _>(from..to);
        // What cannot be read was reported with its table.
        let readable = found.filter_map(|record| record.into_inner().ok());
        readable
            .map(|(key, stored)| aside_remark(&key, &stored))
            .collect::<Vec<_>>()
    });
    for remark in found.unwrap_or_default() {
        match remark {
            Ok(remark) => report.remarks.push(remark),
            Err(error) => report.add(Damage::Record(error)),
        }
    }
}

fn aside_remark(key: &[u8], stored: &[u8]) -> Result<String, StorageError> {
    let value = value_of(Table::Meta, key, stored)?;
    let record: QuarantineRecord = records::decode(Table::Meta, key, value)?;
    let Some(page) = records::quarantine_of(key) else {
        return Err(records::damaged(Table::Meta, key, "no page has this key"));
    };
    let last = record.changes.last();
    let position = last.map(|change| change.position).unwrap_or_default();
    Ok(format!(
        "page {page} was found damaged: its last {} changes, up to position {position}, are kept beside it and \
         applied as soon as it can be read",
        record.changes.len()
    ))
}

/// Reads a table as far as the engine can.
fn walk(opened: &Opened, table: Table, report: &mut Report) -> TableUsage {
    let mut found = TableUsage::default();
    let mut reached = Vec::new();
    let mut records = opened.table(table).iter();
    loop {
        let error = match engine::unpanicked(|| records.next().map(fjall::Guard::into_inner)) {
            Ok(None) => return found,
            Ok(Some(Ok((key, stored)))) => {
                found.records += 1;
                let value_bytes = stored.len().saturating_sub(record::CHECKSUM_BYTES);
                found.bytes += record::charge(&key, value_bytes);
                if let Err(error) = value_of(table, &key, &stored) {
                    report.add(Damage::Record(error));
                }
                reached.clear();
                reached.extend_from_slice(&key);
                continue;
            }
            Ok(Some(Err(error))) => engine::read_error(table, &reached, &error),
            Err(words) => StorageError::Damaged {
                table,
                key: reached,
                detail: words,
            },
        };
        // The engine may give the same error for ever: the comparison of
        // counts tells how much is behind it.
        report.add(Damage::Record(error));
        return found;
    }
}
