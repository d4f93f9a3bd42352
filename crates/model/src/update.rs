//! Updates: commits with nothing to validate, which a log keeps until their home has them (rules C6 and C7).

use crate::change::{NewValue, WriteOp};
use crate::ids::{HomeId, MemberId, NameId, SegmentId};
use crate::message::{PageWrites, Part};
use crate::{Millis, Position};
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Names a log: the process start that began it. Updates of an earlier start keep theirs (rule C7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct LogId(pub MemberId);

impl LogId {
    /// Whose log it is. Only this name saves updates of it.
    pub fn name(self) -> NameId {
        self.0.name()
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Names an update at its home, for ever (rule C7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct UpdateId {
    /// The log that has custody of it.
    pub log: LogId,
    /// The only segment that it writes to.
    pub segment: SegmentId,
    /// Counts the updates of that log in that segment, from 1.
    pub number: u64,
}

/// Where a log stands in a segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct LogHead {
    /// The log.
    pub log: LogId,
    /// The segment.
    pub segment: SegmentId,
    /// The number of its last update.
    pub number: u64,
}

/// An update: a commit with nothing to validate, within one segment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Update {
    /// The home of its segment.
    pub home: HomeId,
    /// Its name.
    pub id: UpdateId,
    /// What it writes, pages and slots ascending, each once. All pages are of its segment.
    pub writes: Vec<PageWrites>,
}

impl Update {
    /// It as what a home executes: it has read nothing.
    pub fn part(&self) -> Part {
        Part {
            home: self.home,
            evidence: Position(0),
            reads: Vec::new(),
            writes: self.writes.clone(),
            under: None,
        }
    }

    /// Bytes of values and slots, for limits.
    pub fn bytes(&self) -> usize {
        Update::bytes_of(&self.writes)
    }

    /// Bytes of what an update writes.
    pub(crate) fn bytes_of(writes: &[PageWrites]) -> usize {
        let slots = |page: &PageWrites| {
            page.slots
                .iter()
                .map(|(_, op)| 16 + op.bytes())
                .sum::<usize>()
        };
        let pages = writes.iter();
        64 + pages.map(|page| 16 + slots(page)).sum::<usize>()
    }

    /// Whether it writes something, all of it in its segment, and no value that is staged elsewhere.
    pub fn is_whole(&self) -> bool {
        let is_staged = |op: &WriteOp| match op {
            WriteOp::Create { value, .. } | WriteOp::Write { value, .. } => {
                matches!(value, NewValue::Staged(_))
            }
            _ => false,
        };
        let is_here = |page: &PageWrites| {
            let mut ops = page.slots.iter();
            page.page.segment == self.id.segment && !ops.any(|(_, op)| is_staged(op))
        };
        !self.writes.is_empty() && self.writes.iter().all(is_here)
    }
}

/// What a home says of a log in a segment (rule C7).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LogState {
    /// The log.
    pub log: LogId,
    /// Up to this number its updates are saved, or refused.
    pub saved: u64,
    /// Of these the ones that were refused, until the log has confirmed that it knows.
    pub refused: Vec<u64>,
}

/// What a node shows of updates that their homes have not executed, from one moment to the next (rule C6).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TentativeChange {
    /// They are shown from now on.
    pub shown: Vec<Update>,
    /// They are shown no more: what is published beside this has them, or they were refused.
    pub settled: Vec<UpdateId>,
}

/// How long a lease of so many milliseconds counts for its holder. Its parent lets it last to its end, so the holder's ends first
/// although their clocks may differ by one part in sixteen (rule C4).
pub fn believed_ms(lease_ms: u64) -> u64 {
    lease_ms - lease_ms / 16
}

/// The end of a lease as its holder has it, which counts from sending the request.
pub fn believed_until(sent: Millis, lease_ms: u64) -> Millis {
    sent.plus(believed_ms(lease_ms))
}
