//! What a home has logged of leases: after a restart it does not know who holds one (rule C4).

use crate::home::Outbox;
use crate::home::log::Log;
use crate::home::log::queue::OnDurable;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::records::{self, LeaseRecord};
use thorp_model::{CallError, Millis, Privilege, Purpose, SegmentId, Table};

/// The longest lease of one privilege that was granted in each segment.
///
/// Invariant: in a segment in which a lease was granted, `granted` is as long as the longest lease, and durable before it.
#[derive(Debug)]
pub(super) struct LeaseLog {
    key: fn(SegmentId) -> Vec<u8>,
    granted: BTreeMap<SegmentId, u32>,
    /// The home has started again: until then leases of its last life may be held.
    quiet: BTreeMap<SegmentId, Millis>,
}

impl LeaseLog {
    /// A home starts, and finds these in its store.
    pub(super) fn new(
        privilege: Privilege,
        granted: BTreeMap<SegmentId, u32>,
        now: Millis,
    ) -> Self {
        let quiet = granted.iter();
        let quiet = quiet.map(|(segment, ms)| (*segment, now.plus(u64::from(*ms))));
        LeaseLog {
            key: match privilege {
                Privilege::Write => records::lease_key,
                Privilege::Read { .. } => records::read_lease_key,
            },
            quiet: quiet.collect(),
            granted,
        }
    }

    /// Nobody waits for leases of an earlier life: a planted bug.
    pub(super) fn forget(&mut self) {
        self.quiet.clear();
    }

    /// Until when leases of an earlier life may be held in one of these segments.
    pub(super) fn quiet_until(&self, segments: &[SegmentId]) -> Millis {
        let quiet = segments
            .iter()
            .filter_map(|segment| self.quiet.get(segment));
        quiet.copied().max().unwrap_or_default()
    }

    /// Until when they may be held in any segment.
    pub(super) fn quiet_anywhere(&self) -> Millis {
        self.quiet.values().copied().max().unwrap_or_default()
    }

    /// Logs that leases of this length are granted, where no longer one was.
    pub(super) fn note(
        &mut self,
        segments: &[SegmentId],
        lease_ms: u32,
        log: &mut Log,
        outbox: &mut Outbox,
    ) -> Result<(), CallError> {
        let is_new =
            |segment: &&SegmentId| self.granted.get(segment).is_none_or(|ms| *ms < lease_ms);
        let new: Vec<SegmentId> = segments.iter().filter(is_new).copied().collect();
        if new.is_empty() {
            return Ok(());
        }
        if !log.has_space() {
            return Err(CallError::Full(log.lack()));
        }
        self.granted
            .extend(new.iter().map(|segment| (*segment, lease_ms)));
        let record = LeaseRecord { lease_ms };
        let put = |segment| records::put(Table::Meta, (self.key)(segment), &record);
        let ops = new.into_iter().map(put).collect();
        log.append_ops(Purpose::Housekeeping, ops, OnDurable::Nothing, outbox);
        Ok(())
    }

    /// Forgets what is over: leases of an earlier life, and segments in which no lease is held any more.
    pub(super) fn sweep(
        &mut self,
        now: Millis,
        is_held: impl Fn(SegmentId) -> bool,
        log: &mut Log,
        outbox: &mut Outbox,
    ) {
        self.quiet.retain(|_, until| *until > now);
        let quiet = &self.quiet;
        let is_over = |segment: SegmentId| !is_held(segment) && !quiet.contains_key(&segment);
        let over = self.granted.keys().copied().filter(|of| is_over(*of));
        let over: Vec<SegmentId> = over.collect();
        if over.is_empty() || log.is_busy() {
            return;
        }
        let delete = |segment: &SegmentId| {
            self.granted.remove(segment);
            records::delete(Table::Meta, (self.key)(*segment))
        };
        let ops = over.iter().map(delete).collect();
        log.append_ops(Purpose::Housekeeping, ops, OnDurable::Nothing, outbox);
    }
}
