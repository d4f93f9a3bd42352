//! How a home starts: from nothing, or from what its store holds.

use crate::home::audit::Audit;
use crate::home::clock::Clock;
use crate::home::commit::changes::Changes;
use crate::home::config::HomeConfig;
use crate::home::history::OwnHistory;
use crate::home::log::Log;
use crate::home::outcomes::Outcomes;
use crate::home::pages::store::Pages;
use crate::home::rights::Rights;
use crate::home::saved::Saved;
use crate::home::segment_locks::SegmentLocks;
use crate::home::segments::Segments;
use crate::home::staging::Staging;
use crate::home::tables::Tables;
use crate::home::two_phase::joints::Joints;
use crate::home::two_phase::receipts::OtherReceipts;
use crate::home::two_phase::votes::Votes;
use crate::home::usage::Usage;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::de::DeserializeOwned;
use thorp_model::planted::Bug;
use thorp_model::records::{
    AuditMark, CarrierRecord, DelegationRecord, FORMAT_VERSION, HomeRecord, LeaseRecord, LogRecord,
    MadeRecord, MemberRecord, NextRecord, OpenedMark, OutcomeRecord, QuarantineRecord,
    ReceiptRecord, RightsRecord, SavedRecord, SegmentRecord, StagedRecord, SystemRecord,
    UsageRecord, VoteRecord,
};
use thorp_model::{
    Fence, HomeId, Incarnation, Lock, Now, Op, Position, Reader, Receipt, Scan, SegmentId, Stamp,
    StorageError, Table, planted, records,
};

/// A home's state, as its store holds it.
#[derive(Debug)]
pub(in crate::home) struct Recovered {
    pub(in crate::home) log: Log,
    pub(in crate::home) tables: Tables,
    /// The log begins above this position.
    pub(in crate::home) installed: Position,
    /// What the first batch does, which marks this life.
    pub(in crate::home) first_ops: Vec<Op>,
    /// What other homes had proved, by their names (rule R9).
    pub(in crate::home) receipts: Vec<(String, Receipt)>,
    /// The longest leases that were granted in segments (rule C4).
    pub(in crate::home) granted: BTreeMap<SegmentId, u32>,
    /// The longest read leases that were.
    pub(in crate::home) granted_to_read: BTreeMap<SegmentId, u32>,
}

/// Reads a home's state from its store, empty or not.
pub(in crate::home) fn recover(
    config: &HomeConfig,
    store: &dyn Reader,
    now: Now,
) -> Result<Recovered, StorageError> {
    let known = read::<HomeRecord>(store, records::HOME_KEY)?;
    if store.get(Table::Meta, records::LOG_OWNER_KEY)?.is_some() {
        let detail = "it is the log of a member, and no home's store: name another directory";
        return Err(records::damaged(
            Table::Meta,
            records::LOG_OWNER_KEY,
            detail,
        ));
    }
    check_identity(known.as_ref(), config)?;
    let mut next = read::<NextRecord>(store, records::NEXT_KEY)?.unwrap_or_default();
    next.life += 1;
    let installed = read::<Position>(store, records::INSTALLED_KEY)?.unwrap_or_default();
    let ceiling = read::<u64>(store, records::CLOCK_KEY)?.unwrap_or_default();
    let audited = read::<AuditMark>(store, records::AUDIT_KEY)?.unwrap_or_default();
    let recorded = read::<OpenedMark>(store, records::OPENED_KEY)?.unwrap_or_default();
    let mut parts = Parts {
        pages: Pages::new(config.cache_bytes, config.mob_bytes_high)
            .installing_at_most(config.install_pages_max),
        outcomes: Outcomes::new(
            config.outcomes_per_member,
            config.registrations_max,
            config.history.incarnation,
        ),
        segments: Segments::default(),
        rights: Rights::new(config.readers_bytes_max),
        staging: Staging::default(),
        usage: Usage::new(config.per_name),
        saved: Saved::default(),
        granted: BTreeMap::new(),
        granted_to_read: BTreeMap::new(),
        segment_locks: SegmentLocks::new(config.lease_ms),
        lost_locks: Vec::new(),
    };
    parts.recover(store, now)?;
    parts.recover_locks(store, now, config.history.incarnation)?;
    if config.history.incarnation != Incarnation::default() && planted::is(Bug::SavedNotKept) {
        parts.saved.forget_all();
    }
    let (tip, last_stamp) = parts.recover_log(store, installed)?;
    let history = config.history.clone();
    let mut audit = Audit::new(audited.last);
    audit.note_openings(&history.openings, (recorded, &config.name, tip));
    // The life before began its clock above the last stamp, too, and may have promised that.
    let promised = ceiling.max(last_stamp.clock);
    let history = OwnHistory::new(config.home, history, next.life, (tip, promised));
    let mut tables = Tables {
        changes: Changes::new(tip, config.changes_known_max),
        pages: parts.pages,
        segments: parts.segments,
        rights: parts.rights,
        audit,
        staging: parts.staging,
        outcomes: parts.outcomes,
        votes: Votes::default(),
        joints: Joints::default(),
        receipts: OtherReceipts::default(),
        usage: parts.usage,
        saved: parts.saved,
        segment_locks: parts.segment_locks,
        next,
    };
    recover_votes(&mut tables, store, now)?;
    recover_joints(&mut tables.joints, store)?;
    let mut first_ops = first_ops(config, known.as_ref(), &tables);
    first_ops.append(&mut parts.lost_locks);
    if known.is_some_and(|known| known.format < FORMAT_OF_JOINTS) {
        // An earlier program remembered none.
        let since = Stamp {
            clock: promised,
            home: HomeId(u32::MAX),
        };
        first_ops.push(tables.joints.begin_at(since));
    }
    let clock = Clock::new(config.home, clock_from(ceiling, last_stamp, now));
    Ok(Recovered {
        log: Log::new(clock, history, tip, config.pending_bytes_max),
        receipts: recover_receipts(store)?,
        granted: parts.granted,
        granted_to_read: parts.granted_to_read,
        first_ops,
        tables,
        installed,
    })
}

/// From this version of the records on, a home remembers transactions over several homes.
const FORMAT_OF_JOINTS: u32 = 5;

fn first_ops(config: &HomeConfig, known: Option<&HomeRecord>, tables: &Tables) -> Vec<Op> {
    let mut ops = Vec::new();
    // From now on there may be records that an earlier program would not see.
    if known.is_none_or(|known| known.format < FORMAT_VERSION) {
        let record = HomeRecord {
            format: FORMAT_VERSION,
            home: config.home,
            name: config.name.clone(),
        };
        ops.push(records::put(
            Table::Meta,
            records::HOME_KEY.to_vec(),
            &record,
        ));
    }
    ops.push(tables.put_next());
    ops
}

/// Votes come back with their locks, after the segments whose extents they may raise.
fn recover_votes(tables: &mut Tables, store: &dyn Reader, now: Now) -> Result<(), StorageError> {
    let (from, to) = records::vote_range();
    let mut votes = Vec::new();
    scan(store, Table::Meta, &from, &to, |_, record: VoteRecord| {
        votes.push(record);
    })?;
    for record in votes {
        let locks = tables.locks_of(&record.request.part);
        tables.votes.recover(record, locks, now.mono);
    }
    Ok(())
}

/// Transactions over several homes come back, with how far back they reach.
fn recover_joints(joints: &mut Joints, store: &dyn Reader) -> Result<(), StorageError> {
    let (from, to) = records::joint_range();
    scan(store, Table::Meta, &from, &to, |key, record| {
        if let Some(commit) = records::joint_of(key) {
            joints.recover(commit, record);
        }
    })?;
    let (from, to) = records::below_range();
    scan(store, Table::Meta, &from, &to, |key, record| {
        if let Some(name) = records::below_of(key) {
            joints.recover_below(name, record);
        }
    })?;
    if let Some(since) = read(store, records::JOINTS_KEY)? {
        joints.recover_since(since);
    }
    Ok(())
}

fn recover_receipts(store: &dyn Reader) -> Result<Vec<(String, Receipt)>, StorageError> {
    let (from, to) = records::receipt_range();
    let mut receipts = Vec::new();
    scan(
        store,
        Table::Meta,
        &from,
        &to,
        |key, record: ReceiptRecord| {
            if let Some(name) = records::receipt_of(key) {
                receipts.push((String::from(name), record.receipt));
            }
        },
    )?;
    Ok(receipts)
}

/// Rule 12: the clock starts above all that was promised or given.
fn clock_from(ceiling: u64, last_stamp: Stamp, now: Now) -> u64 {
    if planted::is(Bug::CeilingForgotten) {
        Stamp::clock_of(now.wall)
    } else {
        ceiling.max(last_stamp.clock)
    }
}

/// What the tables of a store hold.
struct Parts {
    pages: Pages,
    outcomes: Outcomes,
    segments: Segments,
    rights: Rights,
    staging: Staging,
    usage: Usage,
    saved: Saved,
    granted: BTreeMap<SegmentId, u32>,
    granted_to_read: BTreeMap<SegmentId, u32>,
    segment_locks: SegmentLocks,
    /// What ends the locks of an earlier incarnation.
    lost_locks: Vec<Op>,
}

impl Parts {
    /// The locks that were granted in this incarnation. A history that is lost may have ended the others (rule R9).
    fn recover_locks(
        &mut self,
        store: &dyn Reader,
        now: Now,
        incarnation: Incarnation,
    ) -> Result<(), StorageError> {
        let last = read::<Fence>(store, records::FENCE_KEY)?;
        self.segment_locks.recover_last(last.unwrap_or_default());
        let (from, to) = records::lock_range();
        scan(store, Table::Meta, &from, &to, |key, lock: Lock| {
            let Some(fence) = records::lock_of(key) else {
                return;
            };
            match lock.incarnation == incarnation {
                true => self.segment_locks.recover(fence, lock, now.mono),
                false => {
                    let over = records::delete(Table::Meta, records::lock_key(fence));
                    self.lost_locks.push(over);
                }
            }
        })
    }

    fn recover(&mut self, store: &dyn Reader, now: Now) -> Result<(), StorageError> {
        let (from, to) = records::segment_range();
        scan(
            store,
            Table::Meta,
            &from,
            &to,
            |key, record: SegmentRecord| {
                if let Some(id) = records::segment_of(key) {
                    self.segments.insert(id, record);
                }
            },
        )?;
        let (from, to) = records::system_range();
        scan(
            store,
            Table::Meta,
            &from,
            &to,
            |key, record: SystemRecord| {
                if let Some(segment) = records::system_of(key) {
                    self.segments.recover_system(segment, &record);
                }
            },
        )?;
        let (from, to) = records::usage_range();
        scan(
            store,
            Table::Meta,
            &from,
            &to,
            |key, record: UsageRecord| {
                if let Some(segment) = records::usage_of(key) {
                    self.rights.made(segment, record.maker);
                    self.usage.recover(segment, record);
                }
            },
        )?;
        let (from, to) = records::made_range();
        scan(store, Table::Meta, &from, &to, |key, record: MadeRecord| {
            if let Some(name) = records::made_by(key) {
                self.usage.recover_made(name, record);
            }
        })?;
        let (from, to) = records::rights_range();
        scan(
            store,
            Table::Meta,
            &from,
            &to,
            |key, record: RightsRecord| {
                if let Some(segment) = records::rights_of(key) {
                    self.rights.recover(&self.segments, segment, &record);
                }
            },
        )?;
        let (from, to) = records::quarantine_range();
        scan(
            store,
            Table::Meta,
            &from,
            &to,
            |key, record: QuarantineRecord| {
                if let Some(page) = records::quarantine_of(key) {
                    self.pages.quarantine.recover(page, record);
                }
            },
        )?;
        let (from, to) = records::member_range();
        scan(
            store,
            Table::Meta,
            &from,
            &to,
            |key, record: MemberRecord| {
                if let Some(registration) = records::member_of(key) {
                    self.outcomes.recover(registration, record.member);
                }
            },
        )?;
        let (from, to) = records::carrier_range();
        scan(
            store,
            Table::Meta,
            &from,
            &to,
            |key, record: CarrierRecord| {
                if let Some(registration) = records::carried_of(key) {
                    self.outcomes.recover_carrier(registration, record.carrier);
                }
            },
        )?;
        let (from, to) = records::delegation_range();
        scan(
            store,
            Table::Meta,
            &from,
            &to,
            |key, record: DelegationRecord| {
                if let Some(registration) = records::delegation_of(key) {
                    self.outcomes
                        .recover_delegation(registration, record.number);
                }
            },
        )?;
        let (from, to) = records::saved_range();
        scan(
            store,
            Table::Meta,
            &from,
            &to,
            |key, record: SavedRecord| {
                if let Some(of) = records::saved_of(key) {
                    self.saved.recover(of, record);
                }
            },
        )?;
        let (from, to) = records::lease_range();
        scan(
            store,
            Table::Meta,
            &from,
            &to,
            |key, record: LeaseRecord| {
                if let Some(segment) = records::lease_of(key) {
                    self.granted.insert(segment, record.lease_ms);
                }
            },
        )?;
        let (from, to) = records::read_lease_range();
        scan(
            store,
            Table::Meta,
            &from,
            &to,
            |key, record: LeaseRecord| {
                if let Some(segment) = records::read_lease_of(key) {
                    self.granted_to_read.insert(segment, record.lease_ms);
                }
            },
        )?;
        scan(store, Table::Outcomes, &[], &[], |key, r: OutcomeRecord| {
            if let Some((registration, sequence)) = records::pair_of(key) {
                self.outcomes
                    .recover_outcome(registration, sequence, r.outcome);
            }
        })?;
        scan(store, Table::Staged, &[], &[], |key, r: StagedRecord| {
            if let Some((registration, token)) = records::pair_of(key) {
                let name = self.outcomes.name_of(registration);
                self.staging.insert((registration, name), token, r, now);
            }
        })
    }

    /// Takes the changes of the log; returns its last position and the highest stamp in it.
    fn recover_log(
        &mut self,
        store: &dyn Reader,
        installed: Position,
    ) -> Result<(Position, Stamp), StorageError> {
        let from = records::log_key(installed.next());
        let (mut tip, mut last_stamp) = (installed, Stamp::default());
        let mut gap = None;
        scan(store, Table::Log, &from, &[], |key, record: LogRecord| {
            if record.position != tip.next() && gap.is_none() {
                gap = Some(key.to_vec());
            }
            tip = record.position;
            last_stamp = last_stamp.max(record.stamp);
            for change in record.changes {
                if self.segments.get(change.page.segment).is_some() {
                    self.pages.recover(change, record.position, record.stamp);
                }
            }
        })?;
        match gap {
            Some(key) => {
                let detail = "the log has a gap before it";
                Err(records::damaged(Table::Log, &key, detail))
            }
            None => Ok((tip, last_stamp)),
        }
    }
}

fn check_identity(known: Option<&HomeRecord>, config: &HomeConfig) -> Result<(), StorageError> {
    let Some(known) = known else {
        return Ok(());
    };
    let wrong = |detail: String| records::damaged(Table::Meta, records::HOME_KEY, &detail);
    if !records::is_known_format(known.format) {
        return Err(wrong(format!(
            "records of format {}, this program knows 1 to {FORMAT_VERSION}",
            known.format
        )));
    }
    if known.home != config.home || known.name != config.name {
        return Err(wrong(format!(
            "the store of home \"{}\" (id {}), not of \"{}\" (id {})",
            known.name, known.home, config.name, config.home
        )));
    }
    Ok(())
}

fn read<T: DeserializeOwned>(store: &dyn Reader, key: &[u8]) -> Result<Option<T>, StorageError> {
    match store.get(Table::Meta, key)? {
        Some(value) => records::decode(Table::Meta, key, &value).map(Some),
        None => Ok(None),
    }
}

fn scan<T: DeserializeOwned>(
    store: &dyn Reader,
    table: Table,
    from: &[u8],
    to: &[u8],
    mut take: impl FnMut(&[u8], T),
) -> Result<(), StorageError> {
    let mut failure = None;
    store.scan(
        table,
        from,
        to,
        &mut |key, value| match records::decode(table, key, value) {
            Ok(record) => {
                take(key, record);
                Scan::Go
            }
            Err(error) => {
                failure = Some(error);
                Scan::Stop
            }
        },
    )?;
    failure.map_or(Ok(()), Err)
}
