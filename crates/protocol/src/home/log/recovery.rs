//! How a home starts: from nothing, or from what its store holds.

use crate::edge::downstream::{ChildLimits, Children};
use crate::edge::liveness::{AliveLimits, Neighbours};
use crate::home::clock::Clock;
use crate::home::commit::changes::Changes;
use crate::home::commit::parking::Parking;
use crate::home::log::Log;
use crate::home::log::queue::OnDurable;
use crate::home::once::outcomes::Outcomes;
use crate::home::pages::store::Pages;
use crate::home::pages::waiters::Waiters;
use crate::home::segments::Segments;
use crate::home::staging::Staging;
use crate::home::tables::Tables;
use crate::home::two_phase::votes::Votes;
use crate::home::{Home, Outbox};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::de::DeserializeOwned;
use thorp_model::planted::Bug;
use thorp_model::records::{
    FORMAT_VERSION, HomeRecord, LogRecord, MemberRecord, NextRecord, OutcomeRecord,
    QuarantineRecord, SegmentRecord, StagedRecord, VoteRecord,
};
use thorp_model::{
    Epoch, HomeId, MemberId, Millis, Now, Op, Position, Purpose, Reader, Scan, Stamp, StorageError,
    Table, limits, planted, records,
};

/// What a home is told when it starts.
#[derive(Clone, Debug)]
pub struct HomeConfig {
    /// Its id, fixed when its store is made.
    pub home: HomeId,
    /// Its name.
    pub name: String,
    /// This process start.
    pub node: MemberId,
    /// Objects of which the last change is known.
    pub changes_known_max: usize,
    /// Bytes of modified objects before installation begins.
    pub mob_bytes_high: usize,
    /// Records in the log before installation, however little is modified.
    pub log_records_high: usize,
    /// Bytes of page images in memory.
    pub cache_bytes: usize,
    /// Bytes of commits accepted and not yet durable.
    pub pending_bytes_max: usize,
    /// Commits that wait for pages from disk.
    pub parked_max: usize,
    /// Bytes of such commits and of the pages that they keep in memory.
    pub parked_bytes_max: usize,
    /// Bytes of parts that were voted for and may still become commits.
    pub votes_bytes_max: usize,
    /// Members whose outcomes are remembered.
    pub registrations_max: usize,
    /// Outcomes remembered of each, at least [`limits::COMMITS_IN_FLIGHT_MAX`].
    pub outcomes_per_member: u64,
    /// How long the values that a member has staged are kept when it is not heard
    /// of, in milliseconds.
    pub staged_silent_ms_max: u64,
    /// How much is kept for each child.
    pub per_child: ChildLimits,
    /// When a child is silent; none waits for ever.
    pub alive: Option<AliveLimits>,
    /// Log records trimmed by one batch, at least one.
    pub log_trim_max: u64,
    /// Pages of a removed segment deleted by one batch, at least one.
    pub pages_removed_max: u32,
}

impl HomeConfig {
    /// The usual limits.
    pub fn new(home: HomeId, name: String, node: MemberId) -> Self {
        HomeConfig {
            home,
            name,
            node,
            changes_known_max: limits::CHANGES_KNOWN_MAX,
            mob_bytes_high: limits::MOB_BYTES_HIGH,
            log_records_high: limits::LOG_RECORDS_HIGH,
            cache_bytes: limits::HOME_CACHE_BYTES,
            pending_bytes_max: limits::PENDING_BYTES_MAX,
            parked_max: limits::PARKED_MAX,
            parked_bytes_max: limits::PARKED_BYTES_MAX,
            votes_bytes_max: limits::VOTES_BYTES_MAX,
            registrations_max: limits::REGISTRATIONS_MAX,
            outcomes_per_member: limits::OUTCOMES_PER_MEMBER,
            staged_silent_ms_max: limits::STAGED_SILENT_MS_MAX,
            per_child: ChildLimits::default(),
            alive: Some(AliveLimits::default()),
            log_trim_max: limits::LOG_TRIM_MAX,
            pages_removed_max: limits::PAGES_REMOVED_MAX,
        }
    }
}

impl Home {
    /// Starts a home from its store, empty or not. The first batch, which marks
    /// this life, lies on the tray.
    pub fn open(
        config: HomeConfig,
        store: &dyn Reader,
        now: Now,
        outbox: &mut Outbox,
    ) -> Result<Home, StorageError> {
        let known = read::<HomeRecord>(store, records::HOME_KEY)?;
        check_identity(known.as_ref(), &config)?;
        let mut next = read::<NextRecord>(store, records::NEXT_KEY)?.unwrap_or_default();
        next.life += 1;
        let life = next.life;
        let installed = read::<Position>(store, records::INSTALLED_KEY)?.unwrap_or_default();
        let ceiling = read::<u64>(store, records::CLOCK_KEY)?.unwrap_or_default();
        let mut parts = Parts {
            pages: Pages::new(config.cache_bytes, config.mob_bytes_high),
            outcomes: Outcomes::new(config.outcomes_per_member, config.registrations_max),
            segments: Segments::default(),
            staging: Staging::default(),
        };
        parts.recover(store, now)?;
        let (tip, last_stamp) = parts.recover_log(store, installed)?;
        let Parts {
            pages,
            outcomes,
            segments,
            staging,
        } = parts;
        let removable = segments.removing().collect();
        let clock = Clock::new(config.home, clock_from(ceiling, last_stamp, now));
        let mut home = Home {
            log: Log::new(clock, tip, config.pending_bytes_max),
            tables: Tables {
                changes: Changes::new(tip, config.changes_known_max),
                pages,
                segments,
                staging,
                outcomes,
                votes: Votes::default(),
                next,
            },
            others: BTreeMap::new(),
            askers: BTreeSet::new(),
            asking: BTreeMap::new(),
            questions: 0,
            removable,
            children: Children::new(config.home, Epoch(u64::from(life) << 32), config.per_child),
            parking: Parking::new(config.parked_max, config.parked_bytes_max),
            waiters: Waiters::default(),
            installed,
            installing: None,
            to_install: BTreeSet::new(),
            removing: None,
            next_beat: Millis(0),
            neighbours: Neighbours::new(config.alive),
            config,
        };
        home.recover_votes(store, now)?;
        home.log.append(
            now,
            (Purpose::Housekeeping, home.first_ops(known.as_ref())),
            OnDurable::Nothing,
            outbox,
        );
        Ok(home)
    }

    fn first_ops(&self, known: Option<&HomeRecord>) -> Vec<Op> {
        let mut ops = Vec::new();
        // From now on there may be records that an earlier program would not see.
        if known.is_none_or(|known| known.format < FORMAT_VERSION) {
            let record = HomeRecord {
                format: FORMAT_VERSION,
                home: self.config.home,
                name: self.config.name.clone(),
            };
            ops.push(records::put(
                Table::Meta,
                records::HOME_KEY.to_vec(),
                &record,
            ));
        }
        ops.push(self.tables.put_next());
        ops
    }

    /// Votes come back with their locks, after the segments whose extents they may raise.
    fn recover_votes(&mut self, store: &dyn Reader, now: Now) -> Result<(), StorageError> {
        let (from, to) = records::vote_range();
        let mut votes = Vec::new();
        scan(store, Table::Meta, &from, &to, |_, record: VoteRecord| {
            votes.push(record);
        })?;
        for record in votes {
            let locks = self.tables.locks_of(&record.request.part);
            self.tables.votes.recover(record, locks, now.mono);
        }
        Ok(())
    }
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
    staging: Staging,
}

impl Parts {
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
        scan(store, Table::Outcomes, &[], &[], |key, r: OutcomeRecord| {
            if let Some((registration, sequence)) = records::pair_of(key) {
                self.outcomes
                    .recover_outcome(registration, sequence, r.outcome);
            }
        })?;
        scan(store, Table::Staged, &[], &[], |key, r: StagedRecord| {
            if let Some((registration, token)) = records::pair_of(key) {
                self.staging.insert(registration, token, r, now);
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
