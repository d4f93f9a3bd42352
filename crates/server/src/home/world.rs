//! The world of a home: a thread that commits, one that reads, and one that looks for space.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use thorp_model::records::{decode_page, page_key};
use thorp_model::{Batch, Mark, Note, PageId, Reader, StorageError, Table, TurnedAway};
use thorp_net::driver::{Handle, World};
use thorp_protocol::{Home, HomeAction, HomeCommand, LoadResult, OtherHistory, Reopen};
use thorp_store::{Committer, CommitterLimits, Why};
use tracing::{error, warn};

use super::disk::Disk;
use super::life::EndedLife;
use super::view::Shared;
use super::web_table::WebTable;

pub(super) struct HomeWorld {
    disk: Arc<Disk>,
    /// Before the committer: dropping that one waits for its thread, which may wait for space.
    stop: StopWaiting,
    committer: Committer,
    loads: mpsc::Sender<PageId>,
    reader: JoinHandle<()>,
    looker: JoinHandle<()>,
    trouble: Arc<Trouble>,
    shared: Arc<Shared>,
    /// Batches of this turn of the loop: they go to the committing thread together.
    gathered: VecDeque<Batch>,
    /// The mark of the last batch that was gathered.
    last: Mark,
    durable: Arc<AtomicU64>,
    /// For web caches.
    table: Option<WebTable>,
}

/// Ends a life, and says why: the first reason is the one.
struct Trouble {
    why: Mutex<Option<StorageError>>,
    /// How an operator has opened the home: the life ends so that the next one begins.
    reopen: Mutex<Option<Reopen>>,
    handle: Handle<Home>,
}

/// What the home may append beyond the commits that it bounds itself: outcomes, staged pages, installations.
const QUEUE_BYTES_BEYOND: usize = 64 << 20;

impl HomeWorld {
    /// Starts the threads.
    pub(super) fn start(
        disk: Arc<Disk>,
        handle: Handle<Home>,
        shared: Arc<Shared>,
        (pending_bytes_max, table): (usize, Option<WebTable>),
    ) -> io::Result<Self> {
        let trouble = Arc::new(Trouble {
            why: Mutex::new(None),
            reopen: Mutex::new(None),
            handle: handle.clone(),
        });
        let durable = Arc::<AtomicU64>::default();
        let limits = CommitterLimits {
            queue_bytes_max: pending_bytes_max.saturating_add(QUEUE_BYTES_BEYOND),
            ..CommitterLimits::default()
        };
        let done = Done {
            disk: Arc::clone(&disk),
            handle: handle.clone(),
            durable: Arc::clone(&durable),
            trouble: Arc::clone(&trouble),
        };
        let committer =
            Committer::start_with(disk.clone(), limits, move |result| done.tell(result))?;
        let (loads, asked) = mpsc::channel();
        let reading = Reading {
            disk: Arc::clone(&disk),
            handle: handle.clone(),
            trouble: Arc::clone(&trouble),
        };
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let reader = named("thorp-read").spawn(move || reading.run(&asked))?;
        let looking = Looking {
            disk: Arc::clone(&disk),
            handle: handle.clone(),
            durable: Arc::clone(&durable),
            trouble: Arc::clone(&trouble),
        };
        let looker = named("thorp-space").spawn(move || looking.run())?;
        Ok(Self {
            stop: StopWaiting(Arc::clone(&disk)),
            disk,
            committer,
            loads,
            reader,
            looker,
            trouble,
            shared,
            gathered: VecDeque::new(),
            last: Mark::default(),
            durable,
            table,
        })
    }

    #[cfg(test)]
    pub(super) fn breaker(&self) -> impl Fn() + use<> {
        let trouble = Arc::clone(&self.trouble);
        move || {
            let detail = "a test".to_owned();
            trouble.report(StorageError::Broken { detail });
        }
    }

    pub(super) fn end(mut self) -> EndedLife {
        self.submit();
        drop(self.stop);
        let mut left = VecDeque::from(self.committer.finish());
        left.append(&mut self.gathered);
        drop(self.loads);
        // They fail only if they panicked, which has been printed.
        let _ = self.reader.join();
        let _ = self.looker.join();
        let why = self.trouble.why.lock();
        let why = why.unwrap_or_else(PoisonError::into_inner).take();
        let reopen = self.trouble.reopen.lock();
        let reopen = reopen.unwrap_or_else(PoisonError::into_inner).take();
        EndedLife {
            disk: self.disk,
            why,
            reopen,
            first_bytes_left: left.front().map_or(0, |batch| batch.bytes() as u64),
        }
    }

    /// The home has met another history. That is durable before it answers anybody again.
    fn close(&mut self, met: &OtherHistory) {
        if let Some(table) = &mut self.table {
            table.end();
        }
        let why = met.closes();
        if let Err(error) = self.disk.store().close(why) {
            self.trouble.report(error);
        }
        self.shared.running_closed(&self.disk);
    }

    fn submit(&mut self) {
        if self.gathered.is_empty() {
            return;
        }
        match self.committer.submit_all(&mut self.gathered) {
            // It has told why.
            Ok(()) | Err(Why::Stopped) => {}
            // The core bounds what it has under way; this is the last wall behind that (rule 15).
            Err(Why::QueueFull) => self.trouble.report(StorageError::Full {
                detail: Why::QueueFull.to_string(),
            }),
        }
    }
}

impl World<HomeAction> for HomeWorld {
    fn act(&mut self, action: HomeAction) {
        match action {
            HomeAction::Append(batch) => {
                self.last = batch.mark;
                if let Some(table) = &mut self.table {
                    table.append(&batch);
                }
                self.gathered.push_back(batch);
            }
            // Fails only if the reader panicked, which has been reported.
            HomeAction::Load(page) => drop(self.loads.send(page)),
            HomeAction::Close(met) => self.close(&met),
            HomeAction::Reopen(reopen) => self.trouble.reopen(reopen),
        }
    }

    fn flush(&mut self) {
        self.submit();
        if let Some(table) = &mut self.table {
            table.turned();
        }
    }

    fn note(&mut self, note: Note) {
        if note == Note::OtherHomeWanted {
            self.trouble.handle.want_parents();
        }
    }

    fn turned_away(&mut self, away: TurnedAway) {
        tell(&self.trouble.handle, HomeCommand::TurnedAway(away));
    }

    fn is_busy(&self) -> bool {
        let durable = Mark(self.durable.load(Ordering::Acquire));
        // What waits for space could wait for ever.
        durable < self.last && self.disk.has_space()
    }
}

struct StopWaiting(Arc<Disk>);

impl Drop for StopWaiting {
    fn drop(&mut self) {
        self.0.room().stop();
    }
}

/// What the committing thread does after each group.
struct Done {
    disk: Arc<Disk>,
    handle: Handle<Home>,
    durable: Arc<AtomicU64>,
    trouble: Arc<Trouble>,
}

impl Done {
    fn tell(&self, result: Result<Mark, StorageError>) {
        match result {
            Ok(mark) => {
                let done = self.disk.after_commit(mark, |command| {
                    let is_acknowledged = matches!(command, HomeCommand::Durable(_));
                    tell(&self.handle, command);
                    if is_acknowledged {
                        self.durable.store(mark.0, Ordering::Release);
                    }
                });
                if let Err(error) = done {
                    self.trouble.report(error);
                }
            }
            Err(error) => self.trouble.report(error),
        }
    }
}

/// The thread that looks for space now and then, for somebody may have freed some, or taken it. It reclaims what the store can
/// give back to the volume when that is short.
struct Looking {
    disk: Arc<Disk>,
    handle: Handle<Home>,
    durable: Arc<AtomicU64>,
    trouble: Arc<Trouble>,
}

impl Looking {
    fn run(self) {
        // The life has looked when it began.
        while let Some(is_short) = self.disk.room().rest() {
            let is_short = is_short || self.disk.store().is_idle();
            if is_short && let Err(error) = self.disk.store().reclaim() {
                return self.trouble.report(error);
            }
            // What is made durable meanwhile only makes it too low.
            let as_of = Mark(self.durable.load(Ordering::Acquire));
            self.disk
                .look(|lack| tell(&self.handle, HomeCommand::Lacks(lack)));
            tell(&self.handle, self.disk.left(as_of));
        }
    }
}

/// The thread that reads pages, so that a slow disk does not hold up the loop: one at a time, in the order of asking.
struct Reading {
    disk: Arc<Disk>,
    handle: Handle<Home>,
    trouble: Arc<Trouble>,
}

impl Reading {
    fn run(&self, asked: &mpsc::Receiver<PageId>) {
        for page in asked {
            match self.load(page) {
                Ok(result) => tell(&self.handle, HomeCommand::Loaded { page, result }),
                Err(error) => return self.trouble.report(error),
            }
        }
    }

    fn load(&self, page: PageId) -> Result<LoadResult, StorageError> {
        let key = page_key(page);
        let stored = self.disk.get(Table::Pages, &key);
        let image = stored.and_then(|stored| {
            let decoded = stored.map(|bytes| decode_page(&key, &bytes));
            decoded.transpose()
        });
        match image {
            Ok(image) => Ok(LoadResult::Found(image)),
            Err(damaged @ StorageError::Damaged { .. }) => {
                error!(%page, "{damaged}");
                Ok(LoadResult::Damaged)
            }
            // The disk does not answer: that says nothing about the page.
            Err(other) => Err(other),
        }
    }
}

impl Trouble {
    /// An operator opens the home. What it has appended before that gets to the disk first (rule R9).
    fn reopen(&self, reopen: Reopen) {
        let mut wanted = self.reopen.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.get_or_insert(reopen);
        self.handle.halt();
    }

    fn report(&self, error: StorageError) {
        warn!("the disk: {error}");
        let mut why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        why.get_or_insert(error);
        self.handle.halt();
    }
}

fn tell(handle: &Handle<Home>, command: HomeCommand) {
    // Fails only if the home has ended, and nobody wants to know.
    let _ = handle.command(command);
}
