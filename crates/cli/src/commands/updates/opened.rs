//! A log that is open, and the updates in it.

use crate::failure::{Code, Failure};
use std::path::Path;
use thorp_model::LeftRecord;
use thorp_model::records::UpdateRecord;
use thorp_store::{LogError, OpenError, UpdateLog};

/// A log that this command alone has open.
pub(super) struct Opened {
    pub(super) log: UpdateLog,
    pub(super) updates: Vec<UpdateRecord>,
    pub(super) left: LeftRecord,
}

impl Opened {
    /// The log in a directory.
    pub(super) fn at(dir: &Path) -> Result<Self, Failure> {
        let log = UpdateLog::existing(dir).map_err(failure)?;
        let updates = log.updates().map_err(failure)?;
        let left = log.left().map_err(failure)?;
        Ok(Opened { log, updates, left })
    }

    /// The updates of these names, or all that a home has refused if none is named. Only those.
    pub(super) fn refused(&self, wanted: &[String]) -> Result<Vec<&UpdateRecord>, Failure> {
        let chosen = self.chosen(wanted)?;
        let Some(open) = chosen.iter().find(|record| record.rejected.is_none()) else {
            return Ok(chosen);
        };
        let what = format!(
            "update {} was not refused: its home may have it",
            name(open)
        );
        let todo = "let its program run until the home has said what became of it";
        Err(Failure::new(what, todo))
    }

    /// The updates of these names, or all that a home has refused if none is named.
    pub(super) fn chosen(&self, wanted: &[String]) -> Result<Vec<&UpdateRecord>, Failure> {
        let is_wanted = |record: &&UpdateRecord| match wanted {
            [] => record.rejected.is_some(),
            wanted => wanted.contains(&name(record)),
        };
        let chosen: Vec<&UpdateRecord> = self.updates.iter().filter(is_wanted).collect();
        let is_there = |wanted: &String| chosen.iter().any(|record| name(record) == *wanted);
        match wanted.iter().find(|wanted| !is_there(wanted)) {
            None => Ok(chosen),
            Some(missing) => {
                let what = format!("there is no update {missing} in this log");
                let todo = "`thorp updates ls` names those that are there";
                Err(Failure::new(what, todo).with(Code::NotThere))
            }
        }
    }
}

/// An update's name on the command line: its home, log, segment and number. A log counts for each home and segment.
pub(super) fn name(record: &UpdateRecord) -> String {
    let (home, id) = (record.update.home, record.update.id);
    format!("{home}/{}/{}/{}", id.log, id.segment, id.number)
}

/// Why a log cannot be used, and what a person can do.
pub(super) fn failure(error: LogError) -> Failure {
    let (todo, code) = match &error {
        LogError::Open(OpenError::InUse { .. }) => (
            "stop the program that writes by this log: it has the log open",
            Code::Failed,
        ),
        LogError::Open(OpenError::Damaged { .. } | OpenError::DamagedMarker { .. })
        | LogError::Storage(_) => (
            "restore the directory from a backup: what its home has executed by then leaves it when its program starts",
            Code::Wrong,
        ),
        LogError::Full(_) => (
            "free some room on the volume, or take updates out with `thorp updates drop`",
            Code::Failed,
        ),
        LogError::Open(_) | LogError::Foreign { .. } => (
            "name the directory that `thorp put --log` or JoinConfig::log was given",
            Code::Failed,
        ),
    };
    Failure::new(error.to_string(), todo).with(code)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use thorp_model::records::{self, update_key};
    use thorp_model::{
        Batch, HomeId, LogId, Mark, MemberId, Purpose, Refusal, SegmentId, Table, Update, UpdateId,
    };

    /// A log with the first update for two homes, the second one refused, and another for the second home.
    pub(in crate::commands::updates) fn log(dir: &Path) {
        let put = |home, number, rejected| {
            let id = UpdateId {
                log: LogId(MemberId(7)),
                segment: SegmentId(1),
                number,
            };
            let (home, writes) = (HomeId(home), Vec::new());
            let update = Update { home, id, writes };
            let record = UpdateRecord {
                update,
                rejected,
                author: None,
            };
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

    pub(in crate::commands::updates) fn names(dir: &Path) -> Vec<String> {
        let opened = Opened::at(dir).unwrap();
        opened.updates.iter().map(name).collect()
    }

    #[test]
    fn only_what_a_home_has_refused_is_chosen() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("log");
        log(&dir);
        let opened = Opened::at(&dir).unwrap();
        let all: Vec<String> = opened.updates.iter().map(name).collect();
        let of = |chosen: Vec<&UpdateRecord>| chosen.into_iter().map(name).collect::<Vec<_>>();
        assert_eq!(of(opened.refused(&[]).unwrap()), all[..2]);
        assert_eq!(of(opened.chosen(&all).unwrap()), all);
        assert!(opened.refused(&all[2..]).is_err(), "it may be saved");
        let other = ["1/7/1/9".to_owned()];
        let missing = opened.chosen(&other).unwrap_err();
        assert_eq!(missing.code(), Code::NotThere);
    }
}
