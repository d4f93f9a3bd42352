//! A program that fills a store, and knows what was acknowledged.

use crate::join;
use std::thread;
use std::time::{Duration, Instant};
use thorp_client::{Error, ErrorKind, Member, Reference, Segment};
use thorp_model::SplitMix64;
use thorp_testing::{HomeProcess, PATIENCE};

const OBJECT_BYTES: usize = 7000;
const OBJECTS_PER_COMMIT: u64 = 20;
/// More than that never fits in what these homes have.
const COMMITS_MAX: usize = 20_000;

/// What was acknowledged.
pub(crate) struct Shop {
    segment: Segment,
    pub(crate) objects: Vec<(Reference, u64)>,
    /// How many were made.
    made: u64,
}

/// The value of an object, which no engine makes smaller.
fn value(number: u64) -> [u8; OBJECT_BYTES] {
    let mut random = SplitMix64::new(number);
    std::array::from_fn(|_| random.bits() as u8)
}

impl Shop {
    /// A home that was full just now takes it when it has room again.
    pub(crate) fn open(member: &Member) -> Self {
        let segment = eventually(|| member.create("thorp://alps/shop"));
        Shop {
            segment,
            objects: Vec::new(),
            made: 0,
        }
    }

    /// The same for a member that has joined since.
    pub(crate) fn again(self, member: &Member) -> Self {
        Shop {
            segment: member.open("thorp://alps/shop").unwrap(),
            ..self
        }
    }

    /// One commit that brings something.
    pub(crate) fn add(&mut self, member: &Member) -> Result<(), Error> {
        let numbers = self.made..self.made + OBJECTS_PER_COMMIT;
        let made = member.transact(|tx| {
            let made = numbers.clone();
            let made = made.map(|number| tx.create(&self.segment, value(number)));
            made.collect::<Result<Vec<_>, _>>()
        })?;
        self.made = numbers.end;
        self.objects.extend(made.into_iter().zip(numbers));
        Ok(())
    }

    pub(crate) fn fill(&mut self, member: &Member, commits: usize) {
        for _ in 0..commits {
            self.add(member).unwrap();
        }
    }

    pub(crate) fn fill_until_refused(&mut self, member: &Member) -> Error {
        let mut refused = (0..COMMITS_MAX).filter_map(|_| self.add(member).err());
        // While it is opened again it cannot be reached.
        let mut refused = refused.by_ref().filter(|error| !is_passing(error));
        refused.next().expect("it is never full")
    }

    /// A full home deletes an object (before, it refused that as full).
    pub(crate) fn delete_one(&mut self, member: &Member) {
        let (object, _) = self.objects.pop().unwrap();
        let end = Instant::now() + PATIENCE;
        while let Err(error) = member.transact(|tx| tx.delete(&object)) {
            assert!(is_passing(&error) && Instant::now() < end, "{error}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// A full home deletes so many, each with a transaction of its own.
    pub(crate) fn delete_some(&mut self, member: &Member, count: usize) {
        (0..count.min(self.objects.len())).for_each(|_| self.delete_one(member));
    }

    pub(crate) fn eventually_takes_more(&mut self, member: &Member) {
        eventually(|| self.add(member));
    }

    /// Everything acknowledged can be read: by who has it in its cache, and by who has nothing.
    pub(crate) fn assert_whole(&self, home: &HomeProcess, member: &Member) {
        for reader in [member, &join(home, "reader")] {
            for (object, number) in &self.objects {
                let read = reader.transact(|tx| Ok(tx.read(object)? == value(*number)));
                assert!(read.unwrap(), "{object:?}");
            }
        }
    }
}

/// Tries until there is room.
fn eventually<T>(mut run: impl FnMut() -> Result<T, Error>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        let error = match run() {
            Ok(done) => return done,
            Err(error) => error,
        };
        let may_pass = error.kind() == ErrorKind::Full || is_passing(&error);
        assert!(may_pass && Instant::now() < end, "it stays so: {error}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn is_passing(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::HomeUnreachable | ErrorKind::Busy { .. } | ErrorKind::Conflict
    )
}
