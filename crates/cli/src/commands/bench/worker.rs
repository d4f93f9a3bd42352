//! One of the members: a thread that does one operation after the other.

use super::latencies::Latencies;
use super::operation::{Operation, TEN, increment, write_all};
use super::own_segment::{Filled, own_objects, value};
use crate::failure::Failure;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thorp_client::{Error, ErrorKind, JoinConfig, Member, Reference, Stats};
use thorp_model::SplitMix64;

/// What a member has measured of one operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    /// Of those that ended well.
    pub(super) latencies: Latencies,
    /// Given up after all attempts: others were busy there.
    pub(super) failed: u64,
    /// How long those took.
    failed_for: Duration,
    /// Operations that ended well, in each second of all operations.
    pub(super) per_second: f64,
    /// What was counted meanwhile.
    pub(super) counts: Counts,
}

/// What members count, as far as it is of interest here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Page requests, commits that a home had to judge, and those that it refused.
    pub(super) requests: u64,
    pub(super) conflicts: u64,
    pub(super) from_home: u64,
    pub(super) through_site: u64,
    pub(super) from_neighbours: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
}

/// When an operation is not begun any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Until<'a> {
    pub(super) end: Instant,
    pub(super) stop: &'a AtomicBool,
}

#[derive(Debug)]
pub(super) struct Worker<'a> {
    config: JoinConfig,
    segment: &'a str,
    filled: &'a Filled,
    member: Member,
    /// For the first cold reads.
    fresh: Option<Member>,
    own: Vec<Reference>,
    value: Vec<u8>,
    random: SplitMix64,
}

impl<'a> Worker<'a> {
    /// Joins, and makes its own objects.
    pub(super) fn join(
        (config, seed): (&JoinConfig, u64),
        (segment, filled): (&'a str, &'a Filled),
        bytes: usize,
    ) -> Result<Self, Failure> {
        // What is fetched ahead would not be cold any more.
        let config = config.clone().fetch_ahead(0);
        let member = Member::join(config.clone())?;
        let own = own_objects(&member, &member.open(segment)?, (TEN, bytes))?;
        Ok(Worker {
            config,
            segment,
            filled,
            member,
            fresh: None,
            own,
            value: value(bytes),
            random: SplitMix64::new(seed),
        })
    }

    /// What the operation needs, so that the first one is as the others. It is not measured.
    pub(super) fn prepare(&mut self, operation: Operation) -> Result<(), Failure> {
        match operation {
            Operation::ColdRead => self.fresh = Some(self.join_fresh()?),
            Operation::CachedRead => {
                self.member.prefetch(&self.filled.leaders);
                for leader in &self.filled.leaders {
                    read(&self.member, leader)?;
                }
            }
            Operation::CommitOne | Operation::CommitTen | Operation::Counter => {}
        }
        Ok(())
    }

    pub(super) fn run(
        &mut self,
        operation: Operation,
        until: Until<'_>,
    ) -> Result<Measured, Failure> {
        let mut measured = Measured::default();
        if operation == Operation::ColdRead {
            self.read_cold(until, &mut measured)?;
        } else {
            let before = self.member.stats();
            while until.goes_on(&measured) {
                let begun = Instant::now();
                let done = self.once(operation);
                measured.note(begun, done)?;
            }
            measured.counts = Counts::of(&self.member.stats().since(&before));
        }
        measured.end();
        Ok(measured)
    }

    fn once(&mut self, operation: Operation) -> Result<(), Error> {
        let (own, value) = (&self.own, &self.value);
        match operation {
            Operation::ColdRead | Operation::CachedRead => {
                let at = self.random.index(self.filled.leaders.len());
                match self.filled.leaders.get(at) {
                    Some(leader) => read(&self.member, leader),
                    None => Ok(()),
                }
            }
            Operation::CommitOne => {
                let one = self.random.index(own.len());
                let one = own.get(one..=one).unwrap_or_default();
                self.member.transact(|tx| write_all(tx, one, value))
            }
            Operation::CommitTen => self.member.transact(|tx| write_all(tx, own, value)),
            Operation::Counter => {
                let counter = &self.filled.counter;
                self.member.transact(|tx| increment(tx, counter))
            }
        }
    }

    /// Each page is cold once for a member. A new one takes its place then, which is not measured.
    fn read_cold(&mut self, until: Until<'_>, measured: &mut Measured) -> Result<(), Failure> {
        let mut leaders: Vec<&Reference> = self.filled.leaders.iter().collect();
        while until.goes_on(measured) {
            let fresh = match self.fresh.take() {
                Some(fresh) => fresh,
                None => self.join_fresh()?,
            };
            for at in (1..leaders.len()).rev() {
                leaders.swap(at, self.random.index(at + 1));
            }
            let before = fresh.stats();
            for leader in &leaders {
                if !until.goes_on(measured) {
                    break;
                }
                let begun = Instant::now();
                let done = read(&fresh, leader);
                measured.note(begun, done)?;
            }
            let counts = Counts::of(&fresh.stats().since(&before));
            measured.counts.add(counts);
        }
        Ok(())
    }

    /// A member that has no page of the segment.
    fn join_fresh(&self) -> Result<Member, Failure> {
        let fresh = Member::join(self.config.clone())?;
        fresh.open(self.segment)?;
        Ok(fresh)
    }
}

fn read(member: &Member, object: &Reference) -> Result<(), Error> {
    member.transact(|tx| tx.read(object).map(drop))
}

impl Measured {
    fn note(&mut self, begun: Instant, done: Result<(), Error>) -> Result<(), Failure> {
        match done {
            Ok(()) => self.latencies.add(begun.elapsed()),
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Busy { .. }) => {
                self.give_up(begun.elapsed());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn give_up(&mut self, took: Duration) {
        self.failed += 1;
        self.failed_for += took;
    }

    /// All is measured. What was given up took its time, too.
    fn end(&mut self) {
        let busy = (self.latencies.sum() + self.failed_for).as_secs_f64();
        if busy > 0. {
            self.per_second = self.latencies.count() as f64 / busy;
        }
    }

    /// What another member has measured at the same time.
    pub(super) fn add(&mut self, other: &Measured) {
        self.latencies.add_all(&other.latencies);
        self.failed += other.failed;
        self.failed_for += other.failed_for;
        self.per_second += other.per_second;
        self.counts.add(other.counts);
    }
}

impl Counts {
    fn of(stats: &Stats) -> Self {
        let asked = stats.commits.saturating_sub(stats.free_commits);
        let refused = stats.conflicts.saturating_sub(stats.doomed);
        Counts {
            requests: stats.fetches + asked + refused,
            conflicts: stats.conflicts,
            from_home: stats.from_home,
            through_site: stats.through_site,
            from_neighbours: stats.from_peers,
            bytes_sent: stats.traffic.bytes_sent,
            bytes_received: stats.traffic.bytes_received,
        }
    }

    fn add(&mut self, other: Counts) {
        self.requests += other.requests;
        self.conflicts += other.conflicts;
        self.from_home += other.from_home;
        self.through_site += other.through_site;
        self.from_neighbours += other.from_neighbours;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
    }
}

impl Until<'_> {
    /// One is done in any case, unless a signal came.
    fn goes_on(&self, measured: &Measured) -> bool {
        let is_first = measured.latencies.count() + measured.failed == 0;
        !self.stop.load(Ordering::Relaxed) && (is_first || Instant::now() < self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_takes_time_and_makes_nothing_faster() {
        let mut measured = Measured::default();
        measured.latencies.add(Duration::from_millis(100));
        measured.give_up(Duration::from_millis(400));
        measured.end();
        assert_eq!((measured.failed, measured.per_second), (1, 2.));
        let mut both = measured.clone();
        both.add(&measured);
        assert_eq!((both.failed, both.per_second), (2, 4.));
        let mut nothing = Measured::default();
        nothing.give_up(Duration::from_millis(400));
        nothing.end();
        assert_eq!(nothing.per_second, 0.);
    }
}
