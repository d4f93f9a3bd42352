//! What others see of a home, whichever life it is in.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use thorp_model::{HomeId, Position, Table};
use thorp_net::Utc;
use thorp_net::driver::{Gate, Handle, now};
use thorp_protocol::{ClockDrift, Doubts, Home};
use tracing::error;

use super::disk::Disk;
use super::history;
use crate::config::Bytes;
use crate::privileges::PrivilegesStatus;
use crate::status::{
    Acknowledged, AgreementStatus, HistoryStatus, HomeStatus, LOOK_TIME_MAX, LackStatus, Nameplate,
    Opened, Patience, Status, StorageStatus, TableLine, Watched,
};

/// What outlives a life.
pub(super) struct Shared {
    name: String,
    gate: Gate,
    state: Mutex<State>,
}

struct State {
    /// Weak: a look must not keep a broken store from being closed.
    disk: Weak<Disk>,
    limit: Option<Bytes>,
    /// The limit was set since the start.
    limit_set: bool,
    opened: Opened,
    /// What it does instead of serving.
    doing: Option<String>,
    /// It lets in operators only, and why.
    closed: Option<String>,
}

impl Shared {
    pub(super) fn new((name, gate): (&str, Gate), limit: Option<Bytes>) -> Self {
        Self {
            name: name.to_owned(),
            gate,
            state: Mutex::new(State {
                disk: Weak::new(),
                limit,
                limit_set: false,
                opened: Opened::default(),
                doing: Some("starting".to_owned()),
                closed: None,
            }),
        }
    }

    pub(super) fn running(&self, disk: &Arc<Disk>) {
        self.running_closed(disk);
        let mut state = self.lock();
        state.disk = Arc::downgrade(disk);
        state.opened.times += 1;
        state.doing = None;
    }

    /// Lets in whom the store's history lets in.
    pub(super) fn running_closed(&self, disk: &Disk) {
        let closed = disk.store().history().closed();
        let closed = closed.map(|why| history::words(&self.name, &why));
        match &closed {
            Some(words) => {
                error!("{words}");
                self.gate.close(words.clone());
            }
            None => self.gate.open(),
        }
        self.lock().closed = closed;
    }

    /// Why the store's history is closed, without what to do.
    pub(super) fn why_closed(&self) -> Option<String> {
        let disk = self.lock().disk.upgrade()?;
        let why = disk.store().history().closed()?;
        Some(why.to_string())
    }

    pub(super) fn reopening(&self, why: &str) {
        self.lock().opened.why = Some(why.to_owned());
        self.set_doing(&format!("being opened again: {why}"));
    }

    pub(super) fn set_doing(&self, doing: &str) {
        self.lock().doing = Some(doing.to_owned());
    }

    pub(super) fn set_limit(&self, limit_bytes: Option<u64>) {
        let mut state = self.lock();
        state.limit = limit_bytes.map(Bytes);
        state.limit_set = true;
        if let Some(disk) = state.disk.upgrade() {
            disk.store().set_limit(limit_bytes);
        }
    }

    /// The limit for a store that is opened now, if it is not that of the configuration.
    pub(super) fn limit(&self) -> Option<Option<u64>> {
        let state = self.lock();
        state.limit_set.then(|| state.limit.map(|limit| limit.0))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at a home.
pub(super) struct View {
    plate: Nameplate,
    home: HomeId,
    handle: Handle<Home>,
    shared: Arc<Shared>,
    patience: Patience,
}

/// What is looked up in the state machine.
struct Found {
    durable: Position,
    acked: Acknowledged,
    sizes: Vec<(&'static str, usize)>,
    doubts: Doubts,
    writers_waited_ms: u64,
    drift: Option<ClockDrift>,
}

impl View {
    pub(super) fn new(
        plate: Nameplate,
        home: HomeId,
        handle: Handle<Home>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            plate,
            home,
            handle,
            shared,
            patience: Patience::default(),
        }
    }

    fn find(home: HomeId, core: &Home) -> Found {
        let children = core.children().into_iter();
        Found {
            durable: core.durable(),
            acked: children
                .map(|(edge, acked)| (edge, vec![(home, acked)]))
                .collect(),
            sizes: core.sizes(),
            doubts: core.doubts(now().mono),
            writers_waited_ms: core.writers_waited_ms(),
            drift: core.clock_drift(now()),
        }
    }

    /// Why it is closed; none if it is open.
    fn closed(&self) -> Option<String> {
        self.shared.lock().closed.clone()
    }

    fn history(&self) -> Option<HistoryStatus> {
        let disk = self.shared.lock().disk.upgrade()?;
        Some(history::status(disk.store()))
    }

    fn storage(&self) -> (Option<StorageStatus>, Option<String>) {
        let (disk, opened, doing) = {
            let state = self.shared.lock();
            let disk = state.disk.upgrade();
            (disk, state.opened.clone(), state.doing.clone())
        };
        let Some(disk) = disk else {
            return (None, doing);
        };
        let (usage, written) = (disk.store().usage(), disk.written());
        let tables = Table::ALL.map(|table| {
            let usage = usage.table(table);
            let line = TableLine {
                records: usage.records,
                bytes: usage.bytes,
            };
            (table.name(), line)
        });
        let storage = StorageStatus {
            bytes: usage.bytes(),
            limit_bytes: disk.store().limit(),
            room: disk.has_space(),
            lack: disk.room().lack().map(LackStatus::of),
            opened,
            tables: tables.into_iter().collect(),
            batches: written.batches,
            groups: written.groups,
            batch_bytes: written.bytes,
            commit_s: written.time.as_secs_f64(),
        };
        (Some(storage), doing)
    }
}

/// What is wrong with a clock. Nobody knows whose is right.
fn clock_words(own: HomeId, drift: &ClockDrift) -> String {
    let whose = match drift.home == own {
        true => "of its own".to_owned(),
        false => format!("of home id {}", drift.home.0),
    };
    format!(
        "a clock is wrong: it was {} here when a stamp {whose} said {}; set the clocks of all homes right, with NTP for one",
        Utc(Duration::from_millis(drift.clock.0)),
        Utc(Duration::from_millis(drift.stamp.0))
    )
}

impl Watched for Arc<View> {
    async fn look(&self) -> Status {
        let mut status = self.plate.status(&self.handle);
        let (storage, doing) = self.storage();
        let closed = self.closed();
        status.history = self.history();
        let mut wrong: Vec<String> = closed.iter().cloned().collect();
        let home = self.home;
        let looking = self.handle.inspect(move |core| View::find(home, core));
        match tokio::time::timeout(LOOK_TIME_MAX, looking).await {
            Ok(Some(found)) => {
                status.set_sizes(&found.sizes);
                status.privileges =
                    PrivilegesStatus::of_home(&found.sizes, found.writers_waited_ms);
                let agreement = AgreementStatus::of(&found.doubts, &self.handle);
                // A closed home has nobody to ask: that is not what is wrong.
                let trouble = agreement.trouble().into_iter();
                wrong.extend(trouble.filter(|_| closed.is_none()));
                wrong.extend(found.drift.map(|drift| clock_words(home, &drift)));
                status.agreement = Some(agreement);
                status.homes = vec![HomeStatus {
                    home: home.0,
                    name: self.plate.name.clone(),
                    position: found.durable.0,
                    connected: true,
                }];
                status.set_children(&self.handle.edges(), &found.acked, &self.patience);
            }
            Ok(None) if doing.is_some() => {}
            Ok(None) => wrong.push("the home is shutting down".to_owned()),
            Err(_) => wrong.push(format!("the loop did not answer within {LOOK_TIME_MAX:?}")),
        }
        wrong.extend(doing.map(|doing| format!("the home is not serving: {doing}")));
        let lack = self.shared.lock().disk.upgrade();
        let lack = lack.and_then(|disk| disk.room().lack());
        wrong.extend(
            lack.map(|lack| {
                format!("no room: {lack}; commits are refused, reads and deletes go on")
            }),
        );
        status.storage = storage;
        status.set_health(wrong);
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::Millis;

    #[test]
    fn a_wrong_clock_is_told_with_both_times() {
        let drift = ClockDrift {
            home: HomeId(7),
            stamp: Millis(1_795_615_509_000),
            clock: Millis(1_795_525_509_000),
        };
        let words = clock_words(HomeId(1), &drift);
        for part in [
            "2026-11-24 13:05:09 UTC here",
            "a stamp of home id 7 said 2026-11-25 14:05:09 UTC",
        ] {
            assert!(words.contains(part), "{words}");
        }
        assert!(clock_words(HomeId(7), &drift).contains("of its own"));
    }
}
