//! The one thread that commits: it takes whatever has gathered while the disk
//! was busy, and makes all of it durable with one sync.

use crate::engine::unpanicked;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};
use thorp_model::{Batch, Engine, Mark, StorageError};

/// Bounds of a committer. A single batch is taken by an empty queue whatever
/// its size.
#[derive(Clone, Copy, Debug)]
pub struct CommitterLimits {
    /// Bytes of batches that wait.
    pub queue_bytes_max: usize,
    /// Batches that wait.
    pub queue_batches_max: usize,
    /// Bytes of batches in one group, so that one sync does not take too long.
    pub group_bytes_max: usize,
}

impl Default for CommitterLimits {
    fn default() -> Self {
        CommitterLimits {
            queue_bytes_max: 64 << 20,
            queue_batches_max: 1 << 16,
            group_bytes_max: 16 << 20,
        }
    }
}

/// A batch that was not taken, given back.
#[derive(Debug)]
pub struct Refused {
    /// The batch.
    pub batch: Batch,
    /// The reason.
    pub why: Why,
}

/// Why a batch was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The queue is at its bound; try again later.
    QueueFull,
    /// A commit failed, which was reported; nothing more is taken.
    Stopped,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::QueueFull => "the queue of batches is full",
            Why::Stopped => "the committer has stopped after an error",
        })
    }
}

impl std::error::Error for Refused {}

/// Counts since the committer was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Batches made durable.
    pub batches: u64,
    /// Commits that made them so.
    pub groups: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Time spent in these commits, syncs above all.
    pub commit_time: Duration,
    /// Batches that wait.
    pub queued_batches: usize,
    /// Bytes of batches that wait.
    pub queued_bytes: usize,
}

/// The thread that commits to an engine, and the queue before it.
///
/// Dropping it writes what waits, as [`Committer::finish`] does.
pub struct Committer {
    shared: Arc<Shared>,
    limits: CommitterLimits,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Starts the thread with the default limits. It calls `on_done` after
    /// each commit with the highest mark that is now durable. After an error,
    /// which it reports once and last, it takes no more batches.
    ///
    /// # Errors
    ///
    /// The operating system does not give a thread.
    pub fn start(
        engine: Arc<dyn Engine + Send + Sync>,
        on_done: impl FnMut(Result<Mark, StorageError>) + Send + 'static,
    ) -> io::Result<Committer> {
        Committer::start_with(engine, CommitterLimits::default(), on_done)
    }

    /// [`Committer::start`] with limits.
    ///
    /// # Errors
    ///
    /// The operating system does not give a thread.
    pub fn start_with(
        engine: Arc<dyn Engine + Send + Sync>,
        limits: CommitterLimits,
        on_done: impl FnMut(Result<Mark, StorageError>) + Send + 'static,
    ) -> io::Result<Committer> {
        let shared = Arc::<Shared>::default();
        let mut worker = Worker {
            shared: shared.clone(),
            engine,
            group_bytes_max: limits.group_bytes_max,
            on_done,
        };
        let thread = thread::Builder::new()
            .name("thorp-commit".to_string())
            .spawn(move || worker.run())?;
        Ok(Committer {
            shared,
            limits,
            thread: Some(thread),
        })
    }

    /// Puts a batch in the queue. Never waits.
    ///
    /// # Errors
    ///
    /// The queue is full, or a commit has failed: then the batch comes back.
    pub fn submit(&self, batch: Batch) -> Result<(), Refused> {
        let mut batches = VecDeque::from([batch]);
        let taken = self.submit_all(&mut batches);
        match (taken, batches.pop_front()) {
            (Err(why), Some(batch)) => Err(Refused { batch, why }),
            _ => Ok(()),
        }
    }

    /// Puts batches in the queue, all at once, so that a thread that waits
    /// finds them together. Never waits. What was not taken is left.
    ///
    /// # Errors
    ///
    /// The queue is full, or a commit has failed.
    pub fn submit_all(&self, batches: &mut VecDeque<Batch>) -> Result<(), Why> {
        let mut queue = self.shared.queue();
        let mut taken = Ok(());
        while let Some(batch) = batches.pop_front() {
            if let Err(why) = queue.has_room_for(&batch, &self.limits) {
                batches.push_front(batch);
                taken = Err(why);
                break;
            }
            queue.bytes += batch.bytes();
            queue.batches.push_back(batch);
        }
        let is_waited_for = queue.idle && !queue.batches.is_empty();
        drop(queue);
        if is_waited_for {
            self.shared.work.notify_one();
        }
        taken
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        let queue = self.shared.queue();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            batches: count(&self.shared.batches),
            groups: count(&self.shared.groups),
            bytes: count(&self.shared.bytes),
            commit_time: Duration::from_nanos(count(&self.shared.commit_nanos)),
            queued_batches: queue.batches.len(),
            queued_bytes: queue.bytes,
        }
    }

    /// Writes what waits and ends the thread. Gives back what could not be
    /// written after an error, in order: empty if there was none. After a
    /// [`StorageError::Broken`] the first of it may be durable nevertheless.
    pub fn finish(mut self) -> Vec<Batch> {
        self.end();
        let mut queue = self.shared.queue();
        queue.bytes = 0;
        queue.batches.drain(..).collect()
    }

    fn end(&mut self) {
        self.shared.queue().finishing = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // It fails only if `on_done` panicked, which has been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Committer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committer")
            .field("stats", &self.stats())
            .finish()
    }
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    batches: AtomicU64,
    groups: AtomicU64,
    bytes: AtomicU64,
    commit_nanos: AtomicU64,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Queue {
    batches: VecDeque<Batch>,
    bytes: usize,
    finishing: bool,
    stopped: bool,
    /// The thread waits: waking one that does not is a system call for nothing.
    idle: bool,
}

impl Queue {
    fn has_room_for(&self, batch: &Batch, limits: &CommitterLimits) -> Result<(), Why> {
        if self.stopped {
            return Err(Why::Stopped);
        }
        let too_many = self.batches.len() >= limits.queue_batches_max
            || self.bytes.saturating_add(batch.bytes()) > limits.queue_bytes_max;
        if too_many && !self.batches.is_empty() {
            return Err(Why::QueueFull);
        }
        Ok(())
    }
}

struct Worker<F> {
    shared: Arc<Shared>,
    engine: Arc<dyn Engine + Send + Sync>,
    group_bytes_max: usize,
    on_done: F,
}

impl<F: FnMut(Result<Mark, StorageError>)> Worker<F> {
    fn run(&mut self) {
        // If `on_done` panics, batches must be refused, not kept for nobody.
        let _stop = StopOnExit(self.shared.clone());
        while let Some(group) = self.next_group() {
            if let Err(error) = self.commit(group) {
                (self.on_done)(Err(error));
                return;
            }
        }
    }

    /// Waits for batches and takes what fits in a group; `None` at the end.
    fn next_group(&self) -> Option<Vec<Batch>> {
        let mut queue = self.shared.queue();
        while queue.batches.is_empty() {
            if queue.finishing {
                return None;
            }
            queue.idle = true;
            queue = self
                .shared
                .work
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        queue.idle = false;
        let mut group = Vec::new();
        let mut bytes = 0;
        while let Some(batch) = queue.batches.pop_front() {
            bytes += batch.bytes();
            if bytes > self.group_bytes_max && !group.is_empty() {
                queue.batches.push_front(batch);
                break;
            }
            queue.bytes -= batch.bytes();
            group.push(batch);
        }
        Some(group)
    }

    fn commit(&mut self, group: Vec<Batch>) -> Result<(), StorageError> {
        let error = match self.commit_once(&group) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        // A group is refused as a whole. If it did not fit, what comes before
        // the batch that is too much still may.
        let alone = matches!(error, StorageError::Full { .. }) && group.len() > 1;
        let mut left = VecDeque::from(group);
        let mut result = Err(error);
        while let (true, Some(batch)) = (alone, left.front()) {
            result = self.commit_once(std::slice::from_ref(batch));
            if result.is_err() {
                break;
            }
            left.pop_front();
        }
        self.put_back(left);
        result
    }

    fn commit_once(&mut self, group: &[Batch]) -> Result<(), StorageError> {
        let begin = Instant::now();
        unpanicked(|| self.engine.commit(group))
            .unwrap_or_else(|detail| Err(StorageError::Broken { detail }))?;
        let add = |counter: &AtomicU64, count: u64| counter.fetch_add(count, Ordering::Relaxed);
        let nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        add(&self.shared.commit_nanos, nanos);
        add(&self.shared.groups, 1);
        add(&self.shared.batches, group.len() as u64);
        add(
            &self.shared.bytes,
            group.iter().map(|batch| batch.bytes() as u64).sum(),
        );
        if let Some(last) = group.last() {
            (self.on_done)(Ok(last.mark));
        }
        Ok(())
    }

    fn put_back(&self, left: VecDeque<Batch>) {
        let mut queue = self.shared.queue();
        for batch in left.into_iter().rev() {
            queue.bytes += batch.bytes();
            queue.batches.push_front(batch);
        }
    }
}

struct StopOnExit(Arc<Shared>);

impl Drop for StopOnExit {
    fn drop(&mut self) {
        self.0.queue().stopped = true;
    }
}
