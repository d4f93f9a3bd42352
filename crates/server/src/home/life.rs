//! One core over one open store.

use std::sync::Arc;

use thorp_model::{Event, HomeId, Mark, MemberId, Outbox, StateMachine, StorageError, Verifier};
use thorp_net::driver::{Handle, now};
use thorp_protocol::{Home, HomeAction, HomeCommand, HomeConfig, HomeHistory, Reopen};

use super::disk::Disk;
use super::history;
use super::view::Shared;
use super::volume;
use super::web_table::{ProcessTable, WebTable};
use super::world::HomeWorld;
use crate::config::HomeConfigFile;
use crate::error::ServerError;

/// A state machine, its world, and the outbox with which it came.
pub(super) struct Life {
    core: Home,
    world: HomeWorld,
    first: Outbox<HomeAction>,
}

/// What is the same in all lives of a home in one process.
pub(super) struct Who {
    pub(super) home: HomeId,
    pub(super) node: MemberId,
    /// Checks who has signed (rule R2).
    pub(super) verifier: Arc<dyn Verifier>,
    /// For web caches.
    pub(super) table: ProcessTable,
}

/// What is left of a life.
pub(super) struct EndedLife {
    /// The store; nobody else has it any more.
    pub(super) disk: Arc<Disk>,
    /// Why it ended; none if it was only told to.
    pub(super) why: Option<StorageError>,
    /// How an operator has opened the home, for the next life.
    pub(super) reopen: Option<Reopen>,
    /// Bytes of the first batch that was not written.
    pub(super) first_bytes_left: u64,
}

impl Life {
    /// Opens the home in a store and starts the threads of its disk.
    pub(super) fn open(
        config: &HomeConfigFile,
        who: &Who,
        disk: Arc<Disk>,
        handle: &Handle<Home>,
        shared: &Arc<Shared>,
    ) -> Result<Self, ServerError> {
        let mut first = Outbox::new();
        let mob_bytes_high = volume::mob_bytes(config, disk.store().volume());
        let core_config = HomeConfig {
            mob_bytes_high,
            install_pages_max: volume::install_pages(mob_bytes_high),
            ..core_config(config, who, history::of(disk.store())?)?
        };
        let dir = config.store_dir()?;
        if let Some(limit) = shared.limit() {
            disk.store().set_limit(limit);
        }
        disk.room().begin();
        disk.look(|_| {});
        let opened = Home::open(core_config, &*disk, now(), &mut first);
        let failed = |error| ServerError::Records {
            dir: dir.clone(),
            error,
        };
        let mut core = opened.map_err(failed)?;
        // Before anybody hears of this life (rule R9, trap R25).
        let (begun, end_of_last) = core.life();
        disk.store()
            .begin_life(begun, end_of_last)
            .map_err(failed)?;
        // First of all: the home writes nothing that does not fit.
        if let Some(lack) = disk.room().lack() {
            let lacks = HomeCommand::Lacks(Some(lack));
            core.handle(now(), Event::Command(lacks), &mut first);
        }
        // Its first batch is on its way, and small.
        core.handle(
            now(),
            Event::Command(disk.left(Mark::default())),
            &mut first,
        );
        let store = (disk.store(), dir.as_path());
        let table = who.table.as_ref();
        let table = table.map(|table| WebTable::begin(table, store, core.durable()));
        let pending_bytes_max = config.limits.pending.size();
        let world = HomeWorld::start(
            Arc::clone(&disk),
            handle.clone(),
            Arc::clone(shared),
            (pending_bytes_max, table.transpose()?),
        );
        let world = world.map_err(|error| ServerError::System {
            wanted: "thread",
            error,
        })?;
        shared.running(&disk);
        Ok(Self { core, world, first })
    }

    /// Segments that have no rights list.
    pub(super) fn segments_without_rights(&self) -> usize {
        self.core.segments_without_rights()
    }

    /// The outbox with which it came; empty the second time.
    pub(super) fn first(&mut self) -> Outbox<HomeAction> {
        std::mem::take(&mut self.first)
    }

    pub(super) fn parts(&mut self) -> (&mut Home, &mut HomeWorld) {
        (&mut self.core, &mut self.world)
    }

    /// Something that makes as if the engine had broken.
    #[cfg(test)]
    pub(super) fn breaker(&self) -> impl Fn() + use<> {
        self.world.breaker()
    }

    /// Ends the threads. What is on its way to the disk gets there, if it can.
    pub(super) fn end(self) -> EndedLife {
        self.world.end()
    }
}

fn core_config(
    config: &HomeConfigFile,
    who: &Who,
    history: HomeHistory,
) -> Result<HomeConfig, ServerError> {
    let limits = &config.limits;
    let others = config.other_home.iter();
    Ok(HomeConfig {
        other_homes: others.map(|other| other.name.clone()).collect(),
        begins_closed: config.closed,
        changes_known_max: limits.changes_known_max,
        cache_bytes: limits.cache.size(),
        pending_bytes_max: limits.pending.size(),
        parked_max: limits.parked_max,
        parked_bytes_max: limits.parked.size(),
        registrations_max: limits.registrations_max,
        outcomes_per_member: limits.outcomes_per_member,
        lease_ms: limits.lease_ms,
        per_name: config.shares.limits(),
        alive: Some(config.link.alive()),
        verifier: Arc::clone(&who.verifier),
        history,
        ..HomeConfig::new(who.home, config.name()?.to_owned(), who.node)
    })
}
