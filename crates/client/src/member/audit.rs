//! What a home has recorded about rights (rule R8).

use super::Member;
use crate::Result;
use crate::name::SegmentName;
use thorp_model::{AUDIT_PATH, AuditRecord, Right, SegmentId};

/// One record of a home's audit. Equal events are one record with a count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    /// Counts the records of the home, from 1.
    pub number: u64,
    /// What happened.
    pub event: AuditEvent,
    /// Who did it: its name, or `#` and the id of its name, where the home does not know that. Of a caller that was turned
    /// away and has shown no certificate of this village: `(not known)`.
    pub who: String,
    /// The site that reported it or brought the request: then only that site says who it was. None if the node came to
    /// the home itself.
    pub site: Option<String>,
    /// The segment; number 0 if the event concerns none.
    pub segment: SegmentId,
    /// The path of the segment at that time, perhaps only its beginning.
    pub path: String,
    /// The position of the home when it happened last.
    pub position: crate::Position,
    /// The wall clock of the home then, in milliseconds since 1970.
    pub wall_ms: u64,
    /// How often it has happened.
    pub count: u64,
}

pub use thorp_model::AuditEvent;

/// The records of a home, the oldest first.
pub(super) fn read(member: &Member, home: &str) -> Result<Vec<AuditEntry>> {
    let segment = member.open(&SegmentName::format(home, AUDIT_PATH))?;
    let mut records = member.transact(|tx| {
        let mut records = Vec::new();
        tx.scan(&segment, |_, bytes| {
            records.extend(AuditRecord::parse(bytes));
            Ok(())
        })?;
        Ok(records)
    })?;
    records.sort_by_key(|record| record.number);
    Ok(records.into_iter().map(AuditEntry::from).collect())
}

impl From<AuditRecord> for AuditEntry {
    fn from(record: AuditRecord) -> Self {
        let who = match (record.event, record.name.is_empty()) {
            (_, false) => record.name,
            (AuditEvent::TurnedAway { .. }, true) => "(not known)".to_owned(),
            (_, true) => format!("#{}", record.who),
        };
        AuditEntry {
            number: record.number,
            event: record.event,
            who,
            site: record.site,
            segment: record.segment,
            path: record.path,
            position: record.position,
            wall_ms: record.wall_ms,
            count: record.count,
        }
    }
}

impl AuditEntry {
    /// The right that was missing, of a request that was denied.
    pub fn missing(&self) -> Option<Right> {
        match self.event {
            AuditEvent::Denied { right } => Some(right),
            _ => None,
        }
    }
}
