//! How a segment begins, and what the home writes into segments of its own.

use crate::home::Outbox;
use crate::home::commit::apply::extent_value;
use crate::home::commit::effects::Effects;
use crate::home::log::Log;
use crate::home::log::room::{Bill, Demand, NOBODY};
use crate::home::rights::{CREATORS_PATH, TEMPLATE_PATH};
use crate::home::tables::{Entry, Tables};
use crate::home::usage;
use alloc::string::{String, ToString};
use thorp_model::limits::SEGMENTS_MAX;
use thorp_model::records::{AuditMark, SegmentRecord};
use thorp_model::{
    AUDIT_PAGES, AUDIT_PATH, AuditRecord, CallError, Generation, NameId, Now, PageNo, RIGHTS_SLOT,
    RightsList, SegmentId, Slot, SlotChange, StorageError, Table, records, rights_page,
};

/// A segment that is about to be made.
#[derive(Debug)]
pub(super) struct NewSegment {
    pub(super) path: String,
    /// Its pages below this one may hold objects at once.
    pub(super) extent: PageNo,
    /// The name that it counts for (rule R7). None: the home itself, or an operator.
    pub(super) maker: Option<NameId>,
    /// Whose room it takes from on a full store (rule R7). None: it is refused there.
    pub(super) payer: Option<NameId>,
}

impl NewSegment {
    /// The home itself makes it.
    fn own(path: &str, extent: PageNo, payer: Option<NameId>) -> Self {
        NewSegment {
            path: String::from(path),
            extent,
            maker: None,
            payer,
        }
    }
}

/// Makes segments, and writes the audit.
#[derive(Debug)]
pub(super) struct Founding<'a> {
    pub(super) log: &'a mut Log,
    pub(super) tables: &'a mut Tables,
}

/// Bytes that a new segment brings beside its path and its list: its record, its first page, its log record.
const SEGMENT_BYTES: u64 = 768;

/// What an audit record takes of the room that a full store keeps back: its object, whatever is in it.
const RECORD: Demand = Demand {
    brought: 320,
    lasting: 320,
};

/// What a batch of them takes beside that.
const RECORDS: Demand = Demand {
    brought: 256,
    lasting: 0,
};

impl Founding<'_> {
    /// A segment begins, with a list. Its maker's shares have been judged.
    pub(super) fn found(
        &mut self,
        now: Now,
        new: NewSegment,
        list: &RightsList,
        outbox: &mut Outbox,
    ) -> Result<SegmentId, CallError> {
        let NewSegment {
            path,
            extent,
            maker,
            payer,
        } = new;
        let bytes = list.to_bytes();
        let brought = SEGMENT_BYTES + 2 * (path.len() + bytes.len()) as u64;
        let bill = self.bill(payer, brought)?;
        if self.tables.pages.mob_is_full() {
            return Err(CallError::Busy);
        }
        let has_ids = usage::has_ids(self.tables.next.segment);
        if self.tables.segments.len() >= SEGMENTS_MAX || !has_ids {
            return Err(CallError::TooMany);
        }
        self.tables.next.segment = self.tables.next.segment.next();
        let id = self.tables.next.segment;
        let record = SegmentRecord {
            path,
            granted: extent,
            extent,
            overflow: PageNo::OVERFLOW_FIRST,
            removing: false,
        };
        self.tables.segments.insert(id, record);
        let first = rights_page(id);
        self.tables.pages.put_fresh(first);
        let list = SlotChange::Value {
            generation: Generation(1),
            bytes: bytes.into(),
        };
        let mut effects = Effects::paid(bill);
        effects.set(first, Slot(0), extent_value(extent));
        effects.set(first, RIGHTS_SLOT, list);
        effects.ops.push(self.tables.put_next());
        effects.ops.extend(self.tables.segments.put(id));
        effects.ops.extend(self.tables.usage.made(id, maker));
        self.tables.rights.made(id, maker);
        let entry = Entry::own(self.log.clock.stamp(now.wall), effects);
        self.tables.accept(now, entry, self.log, outbox);
        Ok(id)
    }

    fn bill(&self, payer: Option<NameId>, brought: u64) -> Result<Bill, CallError> {
        let demand = Demand {
            brought,
            lasting: brought,
        };
        if self.log.has_space() {
            return Ok(Bill::default());
        }
        let bill = payer.and_then(|payer| self.log.bill(payer, demand));
        bill.ok_or_else(|| CallError::Full(self.log.lack()))
    }

    /// The segments whose empty lists leave it to operators who may make segments, and new segments to their makers. Nothing
    /// is made where a list says who may.
    ///
    /// # Errors
    ///
    /// The store has no space for them: a home that should be closed does not begin open.
    pub(super) fn found_closed_lists(
        &mut self,
        now: Now,
        outbox: &mut Outbox,
    ) -> Result<(), StorageError> {
        if self.tables.segments.find(CREATORS_PATH).is_some() {
            return Ok(());
        }
        // The list that says that it is done comes last.
        for path in [TEMPLATE_PATH, CREATORS_PATH] {
            if self.tables.segments.find(path).is_some() {
                continue;
            }
            let new = NewSegment::own(path, PageNo(1), None);
            let made = self.found(now, new, &RightsList::default(), outbox);
            made.map_err(|error| StorageError::Full {
                detail: error.to_string(),
            })?;
        }
        Ok(())
    }

    /// Writes what has to be recorded into the home's own segment (rule R8). On a full store each record takes from the room
    /// of the name that it is about (rule R7). What does not fit there waits.
    pub(super) fn write_audit(&mut self, now: Now, outbox: &mut Outbox) {
        if !self.tables.audit.is_due() {
            return;
        }
        let segment = match self.tables.segments.find(AUDIT_PATH) {
            Some(segment) => Ok(segment),
            None => {
                let new = NewSegment::own(AUDIT_PATH, PageNo(AUDIT_PAGES + 1), Some(NOBODY));
                self.found(now, new, &RightsList::default(), outbox)
            }
        };
        let Ok(segment) = segment else {
            return;
        };
        if self.tables.pages.mob_is_full() {
            return;
        }
        let at = (self.log.tip(), now.wall.0);
        let segments = &self.tables.segments;
        let path_of = |of| segments.get(of).map(|record| record.path.clone());
        let mut bill = Bill::default();
        let log = &*self.log;
        let is_paid = |payer: NameId| {
            if log.has_space() {
                return true;
            }
            let batch = if bill.is_empty() {
                Bill::of(NOBODY, RECORDS)
            } else {
                bill.clone()
            };
            let with = batch.with(payer, RECORD);
            let affords = log.affords(&with);
            if affords {
                bill = with;
            }
            affords
        };
        let records = self.tables.audit.take(at, path_of, is_paid);
        if records.is_empty() {
            return;
        }
        let mut effects = Effects::paid(bill);
        for record in records {
            let (page, slot) = AuditRecord::place(segment, record.number);
            let value = SlotChange::Value {
                generation: Generation(1),
                bytes: record.to_bytes().into(),
            };
            effects.set(page, slot, value);
        }
        let mark = AuditMark {
            last: self.tables.audit.last(),
        };
        let key = records::AUDIT_KEY.to_vec();
        effects.ops.push(records::put(Table::Meta, key, &mark));
        if let Some(mark) = self.tables.audit.take_opened() {
            let key = records::OPENED_KEY.to_vec();
            effects.ops.push(records::put(Table::Meta, key, &mark));
        }
        let entry = Entry::own(self.log.clock.stamp(now.wall), effects);
        self.tables.accept(now, entry, self.log, outbox);
    }
}
