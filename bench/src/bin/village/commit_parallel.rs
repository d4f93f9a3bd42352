//! How many commits a second sixteen members get through one home, against the bare engine that it stands on.
//!
//! Each commit writes four objects of 200 bytes. The home is another process; its members are threads of this one, each
//! joined at the home over a socket of its own, each with one commit under way. On the other side sixteen threads bring the same
//! records to the committing thread of a store of their own, each waiting until they are durable. In turn, on one volume.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use thorp_bench::Result;
use thorp_bench::figure::{Figure, median};
use thorp_bench::village::{HOME, Village};
use thorp_client::{Member, Reference};
use thorp_model::limits::OUTCOMES_PER_MEMBER;
use thorp_model::records::{LogRecord, OutcomeRecord};
use thorp_model::{
    Batch, CommitId, Generation, Mark, MemberId, Op, Outcome, PageChange, PageId, PageSlots,
    Position, Purpose, Registration, Slot, SlotChange, Stamp, Table, records,
};
use thorp_store::{Committer, Options, Store};

const MEMBERS: u64 = 16;
const OBJECTS: u16 = 4;
const OBJECT_BYTES: usize = 200;
const ROUNDS: usize = 7;
const SECONDS: u32 = 3;
const TARGET: f64 = 0.7;

/// Commits in a second, and the processor time of each, by process.
#[derive(Default)]
struct Rates {
    commits: Vec<f64>,
    here_us: Vec<f64>,
    home_us: Vec<f64>,
}

/// A member with objects that only it writes.
struct Writer {
    member: Member,
    objects: Vec<Reference>,
}

/// The engine and its committing thread.
struct Engine {
    committer: Committer,
    next: Mutex<u64>,
    durable: Arc<Durable>,
}

#[derive(Default)]
struct Durable {
    mark: Mutex<u64>,
    changed: Condvar,
}

/// With so many seconds in a round.
pub(crate) fn measure(seconds: Option<u32>) -> Result<()> {
    let round = Duration::from_secs(seconds.unwrap_or(SECONDS).into());
    let village = Village::new(&[])?;
    let home = village.home_process();
    let writers = (0..MEMBERS).map(|number| Writer::new(&village, number));
    let writers = writers.collect::<Result<Vec<_>>>()?;
    let engine = Engine::open(&village)?;
    let (mut whole, mut bare) = (Rates::default(), Rates::default());
    for _ in 0..ROUNDS {
        bare.push(round, home, |number, count| engine.commit(number, count))?;
        whole.push(round, home, |number, count| {
            writers[number as usize].commit(count as u8)
        })?;
    }
    let ratios = whole.commits.iter().zip(&bare.commits);
    let ratio = median(ratios.map(|(whole, bare)| whole / bare).collect());
    Figure::new("commit_parallel")
        .with(
            "figure",
            "commits of sixteen members against the bare engine",
        )
        .with("commits_per_second", median(whole.commits).round())
        .with("engine_per_second", median(bare.commits).round())
        .with("members_processor_us", median(whole.here_us))
        .with("home_processor_us", median(whole.home_us))
        .with("engine_processor_us", median(bare.here_us))
        .at_least("ratio", ratio, TARGET);
    Ok(())
}

impl Rates {
    /// Lets all of them commit for a round. `commit` gets whose it is, and which.
    fn push(
        &mut self,
        round: Duration,
        home: u32,
        commit: impl Fn(u64, u64) -> Result<()> + Sync,
    ) -> Result<()> {
        let (over, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let before = (processor_us(std::process::id())?, processor_us(home)?);
        let begun = Instant::now();
        let work = |number| {
            let mut count = 0;
            while !over.load(Ordering::Relaxed) {
                count += 1;
                commit(number, count)?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<(), thorp_bench::Error>(())
        };
        let work = &work;
        thread::scope(|scope| {
            let threads = (0..MEMBERS).map(|number| scope.spawn(move || work(number)));
            let threads: Vec<_> = threads.collect();
            thread::sleep(round);
            over.store(true, Ordering::Relaxed);
            let mut ended = threads.into_iter();
            ended.try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
        })?;
        let commits = done.into_inner() as f64;
        let after = (processor_us(std::process::id())?, processor_us(home)?);
        self.commits.push(commits / begun.elapsed().as_secs_f64());
        self.here_us.push((after.0 - before.0) / commits);
        self.home_us.push((after.1 - before.1) / commits);
        Ok(())
    }
}

/// The processor time that a process has spent.
fn processor_us(process: u32) -> Result<f64> {
    let mut nanos = 0;
    for task in std::fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may end while it is looked at.
        let Ok(stat) = std::fs::read_to_string(task?.path().join("schedstat")) else {
            continue;
        };
        let first = stat.split_whitespace().next().unwrap_or_default();
        nanos += first.parse::<u64>()?;
    }
    Ok(nanos as f64 / 1e3)
}

impl Writer {
    fn new(village: &Village, number: u64) -> Result<Self> {
        let name = format!("writer-{number}");
        let member = village.member(HOME, &name)?;
        let segment = member.create(&format!("thorp://alps/{name}"))?;
        let objects = member.transact(|tx| {
            let objects = (0..OBJECTS).map(|_| tx.create(&segment, [0; OBJECT_BYTES]));
            objects.collect()
        })?;
        Ok(Writer { member, objects })
    }

    fn commit(&self, value: u8) -> Result<()> {
        let mut tx = self.member.begin(self.member.session());
        for object in &self.objects {
            tx.write(object, [value; OBJECT_BYTES])?;
        }
        tx.commit()?;
        Ok(())
    }
}

impl Engine {
    fn open(village: &Village) -> Result<Self> {
        let store = Arc::new(Store::open(village.path("engine"), Options::default())?);
        let durable = Arc::<Durable>::default();
        let tell = Arc::clone(&durable);
        let committer = Committer::start(store, move |done| match done {
            Ok(mark) => {
                *tell.mark.lock().unwrap_or_else(PoisonError::into_inner) = mark.0;
                tell.changed.notify_all();
            }
            Err(error) => panic!("the engine: {error}"),
        })?;
        Ok(Engine {
            committer,
            next: Mutex::default(),
            durable,
        })
    }

    /// Brings what a home appends for such a commit, and waits until it is durable.
    fn commit(&self, member: u64, sequence: u64) -> Result<()> {
        let mark = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            *next += 1;
            let mark = Mark(*next);
            let ops = ops(Position(*next), member, sequence);
            self.committer.submit(Batch {
                mark,
                purpose: Purpose::NewData,
                ops,
            })?;
            mark
        };
        let mut durable = lock(&self.durable.mark);
        while *durable < mark.0 {
            let waited = self.durable.changed.wait(durable);
            durable = waited.unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ops(position: Position, member: u64, sequence: u64) -> Vec<Op> {
    let stamp = Stamp::default();
    let slots = (0..OBJECTS).map(|slot| {
        let change = SlotChange::Value {
            generation: Generation(1),
            bytes: vec![sequence as u8; OBJECT_BYTES].into(),
        };
        (Slot(slot), change)
    });
    let record = LogRecord {
        position,
        stamp,
        commit: Some(CommitId {
            member: MemberId(u128::from(member)),
            sequence,
        }),
        changes: vec![PageChange {
            page: PageId::new(member as u32, 1),
            slots: PageSlots::Some(slots.collect()),
        }],
    };
    let outcome = OutcomeRecord {
        outcome: Outcome::Committed { position, stamp },
    };
    let key = |sequence| records::pair_key(Registration(member), sequence);
    let mut ops = vec![
        records::put(Table::Log, records::log_key(position), &record),
        records::put(Table::Outcomes, key(sequence), &outcome),
    ];
    if let Some(forgotten) = sequence.checked_sub(OUTCOMES_PER_MEMBER) {
        ops.push(records::delete(Table::Outcomes, key(forgotten)));
    }
    ops
}
