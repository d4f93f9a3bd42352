//! The committer: groups, bounds, errors, and a clean end.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{batch, open, put};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use thorp_model::{Batch, Engine, Mark, Reader, Scan, StorageError, Table};
use thorp_store::{Committer, CommitterLimits, Why};

/// An engine whose every commit waits for the test, and does what it says.
struct Slow {
    begun: Mutex<Sender<Vec<u64>>>,
    go: Mutex<Receiver<Result<(), StorageError>>>,
}

impl Reader for Slow {
    fn get(&self, _: Table, _: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        Ok(None)
    }

    fn scan(
        &self,
        _: Table,
        _: &[u8],
        _: &[u8],
        _: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError> {
        Ok(())
    }
}

impl Engine for Slow {
    fn commit(&self, batches: &[Batch]) -> Result<(), StorageError> {
        let marks = batches.iter().map(|batch| batch.mark.0).collect();
        self.begun.lock().unwrap().send(marks).unwrap();
        self.go.lock().unwrap().recv().unwrap()
    }
}

struct World {
    committer: Committer,
    begun: Receiver<Vec<u64>>,
    go: Sender<Result<(), StorageError>>,
    done: Receiver<Result<Mark, StorageError>>,
}

fn world(limits: CommitterLimits) -> World {
    let (begun_in, begun) = channel();
    let (go, go_out) = channel();
    let (done_in, done) = channel();
    let engine = Arc::new(Slow {
        begun: Mutex::new(begun_in),
        go: Mutex::new(go_out),
    });
    let on_done = move |result| done_in.send(result).unwrap();
    let committer = Committer::start_with(engine, limits, on_done).unwrap();
    World {
        committer,
        begun,
        go,
        done,
    }
}

fn small(mark: u64) -> Batch {
    batch(mark, vec![put(Table::Log, &format!("{mark:04}"), "value")])
}

fn full() -> Result<(), StorageError> {
    Err(StorageError::Full {
        detail: "test".to_string(),
    })
}

#[test]
fn what_gathers_is_committed_together() {
    let world = world(CommitterLimits::default());
    world.committer.submit(small(1)).unwrap();
    assert_eq!(world.begun.recv().unwrap(), [1]);
    (2..=10).for_each(|mark| world.committer.submit(small(mark)).unwrap());
    assert_eq!(world.committer.stats().queued_batches, 9);
    world.go.send(Ok(())).unwrap();
    assert_eq!(world.done.recv().unwrap(), Ok(Mark(1)));
    assert_eq!(world.begun.recv().unwrap(), (2..=10).collect::<Vec<_>>());
    world.go.send(Ok(())).unwrap();
    assert_eq!(world.done.recv().unwrap(), Ok(Mark(10)));
    let stats = world.committer.stats();
    assert_eq!((stats.batches, stats.groups, stats.bytes), (10, 2, 90));
    assert!(world.committer.finish().is_empty());
}

#[test]
fn a_full_queue_gives_the_batch_back() {
    let limits = CommitterLimits {
        queue_batches_max: 3,
        queue_bytes_max: 30,
        group_bytes_max: 20,
    };
    let world = world(limits);
    world.committer.submit(small(1)).unwrap();
    assert_eq!(world.begun.recv().unwrap(), [1]);
    (2..=4).for_each(|mark| world.committer.submit(small(mark)).unwrap());
    let refused = world.committer.submit(small(5)).unwrap_err();
    assert_eq!((refused.batch.mark, refused.why), (Mark(5), Why::QueueFull));
    (0..3).for_each(|_| world.go.send(Ok(())).unwrap());
    // A group has a bound as well.
    assert_eq!(world.begun.recv().unwrap(), [2, 3]);
    assert_eq!(world.begun.recv().unwrap(), [4]);
    assert!(world.committer.finish().is_empty());
    let done: Vec<_> = world.done.iter().collect();
    assert_eq!(done, [Ok(Mark(1)), Ok(Mark(3)), Ok(Mark(4))]);
}

#[test]
fn an_error_is_told_once_and_ends_it() {
    let world = world(CommitterLimits::default());
    world.committer.submit(small(1)).unwrap();
    assert_eq!(world.begun.recv().unwrap(), [1]);
    (2..=3).for_each(|mark| world.committer.submit(small(mark)).unwrap());
    let broken = StorageError::Broken {
        detail: "test".to_string(),
    };
    world.go.send(Err(broken.clone())).unwrap();
    let done: Vec<_> = world.done.iter().collect();
    assert_eq!(done, [Err(broken)]);
    while world.committer.submit(small(4)).is_ok() {}
    assert_eq!(
        world.committer.submit(small(5)).unwrap_err().why,
        Why::Stopped
    );
    let left: Vec<u64> = world
        .committer
        .finish()
        .iter()
        .map(|batch| batch.mark.0)
        .collect();
    assert_eq!(left[..3], [1, 2, 3]);
    assert!(
        world.begun.try_recv().is_err(),
        "nothing more was committed"
    );
}

#[test]
fn in_a_full_store_what_fits_is_committed() {
    let world = world(CommitterLimits::default());
    world.committer.submit(small(1)).unwrap();
    assert_eq!(world.begun.recv().unwrap(), [1]);
    (2..=4).for_each(|mark| world.committer.submit(small(mark)).unwrap());
    for answer in [Ok(()), full(), Ok(()), full()] {
        world.go.send(answer).unwrap();
    }
    let done: Vec<_> = world.done.iter().collect();
    assert_eq!(done, [Ok(Mark(1)), Ok(Mark(2)), full().map(|()| Mark(0))]);
    assert_eq!(
        world.begun.iter().collect::<Vec<_>>(),
        [vec![2, 3, 4], vec![2], vec![3]]
    );
    let left: Vec<u64> = world
        .committer
        .finish()
        .iter()
        .map(|batch| batch.mark.0)
        .collect();
    assert_eq!(left, [3, 4]);
}

#[test]
fn a_panic_of_the_engine_is_an_error() {
    let world = world(CommitterLimits::default());
    world.committer.submit(small(1)).unwrap();
    drop(world.go);
    assert!(matches!(
        world.done.recv().unwrap(),
        Err(StorageError::Broken { .. })
    ));
}

#[test]
fn finishing_writes_what_waits() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    let highest = Arc::new(Mutex::new(Mark(0)));
    let seen = highest.clone();
    let on_done = move |result: Result<Mark, StorageError>| *seen.lock().unwrap() = result.unwrap();
    let committer = Committer::start(store.clone(), on_done).unwrap();
    (1..=500).for_each(|mark| committer.submit(small(mark)).unwrap());
    assert!(committer.finish().is_empty());
    assert_eq!(*highest.lock().unwrap(), Mark(500));
    assert_eq!(store.usage().table(Table::Log).records, 500);
    assert!(
        store.usage().groups < 500,
        "{} groups",
        store.usage().groups
    );
}
