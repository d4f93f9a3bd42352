//! The disk of a home, which a test can hold back or lose.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use thorp_model::records::{decode_page, page_key};
use thorp_model::{Batch, Engine, Mark, Note, Scan, Table};
use thorp_net::driver::{Handle, World};
use thorp_protocol::{Home, HomeAction, HomeCommand, LoadResult};
use thorp_store::{Committer, CommitterLimits, Options, Store};

use crate::memory::Memory;

/// The records of a home, and what a test does to their durability.
///
/// The home hears of each mark that is durable at most once, in order, and of none while the disk is held.
pub(crate) struct Disk {
    engine: Arc<dyn Engine + Send + Sync>,
    /// Its syncs take time: a thread of its own commits to it.
    is_slow: bool,
    state: Mutex<State>,
    /// Bytes of the keys and values that lives of the home have written.
    bytes: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The home does not hear what is durable.
    is_held: bool,
    /// Batches are not even written.
    is_lost: bool,
    /// Marks of which the home has not heard.
    waiting: Vec<Mark>,
    /// The last mark that was written.
    written: Mark,
}

impl Disk {
    /// A disk in memory. Everything is durable at once.
    pub(crate) fn in_memory() -> Self {
        Self::of(Arc::<Memory>::default(), false)
    }

    /// A store in a directory.
    pub(crate) fn in_directory(dir: &Path) -> Self {
        let options = Options {
            // The volume of a test's directory may be nearly full.
            disk_reserve_bytes: Some(0),
            ..Options::default()
        };
        Self::of(Arc::new(Store::open(dir, options).unwrap()), true)
    }

    fn of(engine: Arc<dyn Engine + Send + Sync>, is_slow: bool) -> Self {
        Self {
            engine,
            is_slow,
            state: Mutex::default(),
            bytes: AtomicU64::new(0),
        }
    }

    pub(crate) fn engine(&self) -> &(dyn Engine + Send + Sync) {
        &*self.engine
    }

    pub(crate) fn hold(&self) {
        self.state().is_held = true;
    }

    pub(crate) fn lose(&self) {
        let mut state = self.state();
        (state.is_held, state.is_lost) = (true, true);
    }

    /// The home hears of everything that waits.
    pub(crate) fn release(&self, home: &Handle<Home>) {
        let mut state = self.state();
        state.is_held = false;
        for mark in state.waiting.drain(..) {
            home.command(HomeCommand::Durable(mark)).unwrap();
        }
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.state().waiting.is_empty()
    }

    /// A life of the home has ended: nothing waits, and the next life has a disk that works.
    pub(crate) fn forget(&self) {
        *self.state() = State::default();
    }

    /// How many bytes of keys and values were written.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The last mark of this life that was written.
    pub(crate) fn written(&self) -> Mark {
        self.state().written
    }

    /// How many records a table has.
    pub(crate) fn records(&self, table: Table) -> usize {
        let mut count = 0;
        let mut visit = |_: &[u8], _: &[u8]| {
            count += 1;
            Scan::Go
        };
        self.engine.scan(table, &[], &[], &mut visit).unwrap();
        count
    }

    fn synced(&self, mark: Mark, home: &Handle<Home>) {
        let mut state = self.state();
        if !state.is_lost {
            state.written = mark;
        }
        if state.is_held {
            state.waiting.push(mark);
        } else {
            // Fails only if the home has gone, which nobody minds.
            let _ = home.command(HomeCommand::Durable(mark));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// What one life of a home does to its disk.
pub(crate) struct HomeWorld {
    disk: Arc<Disk>,
    committer: Option<Committer>,
    home: Handle<Home>,
}

impl HomeWorld {
    pub(crate) fn new(disk: Arc<Disk>, home: Handle<Home>) -> Self {
        let committer = disk.is_slow.then(|| {
            let (disk, home) = (Arc::clone(&disk), home.clone());
            let engine = Arc::clone(&disk.engine);
            // The home bounds what it has under way.
            let limits = CommitterLimits {
                queue_bytes_max: usize::MAX,
                queue_batches_max: usize::MAX,
                ..CommitterLimits::default()
            };
            let synced = move |done: Result<Mark, _>| disk.synced(done.unwrap(), &home);
            let committer = Committer::start_with(engine, limits, synced);
            committer.unwrap()
        });
        Self {
            disk,
            committer,
            home,
        }
    }

    fn append(&self, batch: Batch) {
        let mark = batch.mark;
        if self.disk.state().is_lost {
            return self.disk.synced(mark, &self.home);
        }
        self.disk
            .bytes
            .fetch_add(batch.bytes() as u64, Ordering::Relaxed);
        match &self.committer {
            Some(committer) => committer.submit(batch).unwrap(),
            None => {
                self.disk.engine.commit(&[batch]).unwrap();
                self.disk.synced(mark, &self.home);
            }
        }
    }
}

impl World<HomeAction> for HomeWorld {
    fn act(&mut self, action: HomeAction) {
        match action {
            HomeAction::Append(batch) => self.append(batch),
            HomeAction::Load(page) => {
                let key = page_key(page);
                let stored = self.disk.engine.get(Table::Pages, &key).unwrap();
                let image = stored.map(|stored| decode_page(&key, &stored).unwrap());
                let result = LoadResult::Found(image);
                let loaded = HomeCommand::Loaded { page, result };
                self.home.command(loaded).unwrap();
            }
            HomeAction::Close(met) => panic!("its store never goes back: {met:?}"),
            HomeAction::Reopen(reopen) => panic!("it is never closed: {reopen:?}"),
        }
    }

    fn note(&mut self, note: Note) {
        if note == Note::OtherHomeWanted {
            self.home.want_parents();
        }
    }
}
