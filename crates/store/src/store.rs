//! The store: an engine in a directory, behind the storage interface of [`thorp_model`].

use crate::access::Access;
use crate::ballast::Ballast;
use crate::dir::Locked;
use crate::engine::{self, Opened};
use crate::error::OpenError;
use crate::history::{self, Evidence, History, Reopening};
use crate::note::{self, Note};
use crate::opening::{inspect_files, is_reopened, opened_history, reopened, settled};
use crate::options::Options;
use crate::origin::Origin;
use crate::plan::Plan;
use crate::slot::Slot;
use crate::space::{Demand, Held, Space};
use crate::upkeep::Upkeep;
use crate::usage::{self, Usage};
use crate::volume::Volume;
use crate::{marker, record};
use fjall::Readable as _;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use thorp_model::records;
use thorp_model::{
    Batch, Closed, Engine, HowOpened, Incarnation, Lack, LifeEnd, LifeId, Mark, Purpose, Reader,
    Scan, SpaceBound, StorageError, Table,
};

/// The durable tables of one home, in a directory that this process alone uses.
///
/// Reads may come from any thread at any time. They see what is durable, a
/// scan as of one moment.
pub struct Store {
    engine: Slot,
    writing: Mutex<Writing>,
    /// What others see of it meanwhile.
    shown: Mutex<Shown>,
    space: Space,
    upkeep: Upkeep,
    ballast: Ballast,
    access: Access,
    // Last, so that the directory is free only when the engine is closed.
    locked: Locked,
}

impl Store {
    /// Opens the store in a directory, or makes one there.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Store, OpenError> {
        let dir = dir.as_ref();
        let locked = match options.create {
            true => Locked::existing_or_new(dir)?,
            false => Locked::existing(dir)?,
        };
        let access = Access::close(dir).map_err(|error| OpenError::io(dir, error))?;
        let noted = note::read(dir).map_err(|error| OpenError::io(dir, error))?;
        inspect_files(&locked, noted.unwrap_or_default())?;
        let space = Space::new(dir, &options);
        let ballast = Ballast::of(dir);
        ballast.give_up_on(space.volume());
        let opened = Upkeep::open(&locked.engine_dir(), options.cache_bytes, space.volume())?;
        let damaged = |detail| OpenError::damaged(dir, detail);
        let usage = read_usage(&opened).map_err(damaged)?;
        ask_complete(usage, noted.unwrap_or_default()).map_err(damaged)?;
        let known = history::read(&opened).map_err(damaged)?;
        let failed = |error| OpenError::io(dir, error);
        // From here on there may be records that an earlier build would not understand.
        marker::write_if_older(dir)?;
        if known.is_none() && usage.groups == 0 {
            // A new store: its note is there before anything else.
            Note::open_or_made(dir, 0).map_err(failed)?;
        }
        let evidence = Evidence {
            has_note: note::read(dir).map_err(failed)?.is_some(),
            origin: Origin::of(dir).map_err(failed)?,
            origin_counts: options.origin_proof,
        };
        let history = opened_history(dir, known.as_ref(), &evidence, options.opening)?;
        let store = Store {
            engine: Slot::new(opened),
            writing: Mutex::new(Writing {
                usage,
                note: None,
                broken: None,
            }),
            shown: Mutex::new(Shown {
                usage,
                history: history.clone(),
            }),
            space,
            ballast,
            upkeep: Upkeep::new(locked.engine_dir(), options.cache_bytes),
            access,
            locked,
        };
        if known.as_ref() != Some(&history) {
            let met_clock =
                is_reopened(options.opening).then(|| known.as_ref().map_or(0, History::met_clock));
            store
                .write_history(history, met_clock)
                .map_err(|error| OpenError::damaged(dir, error.to_string()))?;
        }
        store.take_note(dir).map_err(failed)?;
        store.ballast.make(store.space.volume());
        Ok(store)
    }

    /// The note comes last: that the store is closed is durable before there is a note again.
    fn take_note(&self, dir: &Path) -> std::io::Result<()> {
        let mut writing = self.writing();
        writing.note = Some(Note::open_or_made(dir, writing.usage.groups)?);
        Ok(())
    }

    /// The history of the store.
    pub fn history(&self) -> History {
        self.shown().history.clone()
    }

    /// Goes on from the history of another store, from which it was copied as far as that could be read. It is closed.
    pub(crate) fn continue_salvaged(&self, from: History) -> Result<(), StorageError> {
        let history = History {
            closed: Some(Closed::Salvaged),
            origin: self.history().origin,
            ..from
        };
        self.write_history(history, None)
    }

    /// The home has met another history: it is closed, over restarts, until an operator opens it. That is durable when
    /// this returns.
    ///
    /// # Errors
    ///
    /// [`StorageError`]: the engine cannot write.
    pub fn close(&self, why: Closed) -> Result<(), StorageError> {
        let mut history = self.history();
        history.close(why);
        self.write_history(history, None)
    }

    /// A life of the home begins: it is durable when this returns. The one before has ended there.
    ///
    /// # Errors
    ///
    /// [`StorageError`]: the engine cannot write.
    pub fn begin_life(&self, life: LifeId, end_of_last: LifeEnd) -> Result<(), StorageError> {
        let mut history = self.history();
        history.begin_life(life, end_of_last);
        self.write_history(history, None)
    }

    /// An operator opens it as what it is, while no home runs on it. The new incarnation is durable when this returns.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: there are no more incarnations, or the engine cannot write. Nothing has changed.
    pub fn reopen(&self, reopening: Reopening) -> Result<Incarnation, OpenError> {
        let dir = self.locked.path();
        let before = self.history();
        let history = reopened(dir, before.clone(), (HowOpened::Confirmed, reopening))?;
        let history = settled(dir, history)?;
        let incarnation = history.incarnation();
        self.write_history(history, Some(before.met_clock()))
            .map_err(|error| OpenError::damaged(dir, error.to_string()))?;
        Ok(incarnation)
    }

    /// Writes the history as a group of its own. With a new incarnation it also writes the numbers that are never given
    /// twice: they lie above all that the lost history gave. `met_clock` is the highest clock of a history that was met.
    fn write_history(&self, history: History, met_clock: Option<u64>) -> Result<(), StorageError> {
        let raised = match met_clock {
            None => None,
            Some(met_clock) => self.raised_numbers(history.incarnation(), met_clock)?,
        };
        self.ballast.give_up_on(self.space.volume());
        let mut writing = self.writing();
        writing.ask_whole()?;
        let batches: Vec<Batch> = raised.into_iter().collect();
        let mut plan = Plan::of(&*self.engine.borrow()?, writing.usage, &batches)?;
        if history.lives().last() != self.history().lives().last() {
            // The new life counts its batches from 1.
            plan.after.mark = Mark::default();
        } else {
            plan.after.mark = writing.usage.mark;
        }
        plan.history = Some(history.encode());
        self.write_group(&mut writing, &plan)?;
        self.shown().history = history;
        Ok(())
    }

    fn raised_numbers(
        &self,
        incarnation: Incarnation,
        met_clock: u64,
    ) -> Result<Option<Batch>, StorageError> {
        let ops = records::reopened(self, incarnation, met_clock)?;
        Ok((!ops.is_empty()).then_some(Batch {
            mark: Mark::default(),
            purpose: Purpose::Housekeeping,
            ops,
        }))
    }

    /// Whether others could read the store's files when it was opened.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// What the store holds, as of the last commit. It waits for no commit, and for no compaction.
    pub fn usage(&self) -> Usage {
        self.shown().usage
    }

    /// The most that the store may hold, in bytes, as in [`Options::limit_bytes`].
    pub fn limit(&self) -> Option<u64> {
        self.space.limit()
    }

    /// Changes the limit, from the next commit on. A limit below what the store
    /// holds refuses what would make it bigger.
    pub fn set_limit(&self, limit_bytes: Option<u64>) {
        self.space.set_limit(limit_bytes);
    }

    /// Whether a commit that brings so many bytes would be taken now, by the
    /// limit and by the volume. Nothing is written.
    ///
    /// # Errors
    ///
    /// [`Lack`] if not: what is free and what is needed.
    pub fn ask_space(&self, bytes: u64) -> Result<(), Lack> {
        let held = self.held(self.usage());
        let demand = Demand {
            purposes: &[Purpose::NewData],
            after: held.content.saturating_add(bytes),
            brought: bytes,
        };
        self.ask(demand, held)
    }

    /// Bytes that could be brought now for a purpose, and what bounds them.
    pub fn space_left(&self, purpose: Purpose) -> (u64, SpaceBound) {
        let held = self.held(self.usage());
        let left = self.space.left(purpose, held);
        if left.1 == SpaceBound::Limit || left.0 > engine::MERGES_MAX {
            return left;
        }
        let held = self.measured(held);
        let left = self.space.left(purpose, held);
        let is_little = |volume: Volume| left.0 < volume.share();
        match left.1 == SpaceBound::Volume && self.space.volume().is_some_and(is_little) {
            true => self.space.left(purpose, self.without_written(held)),
            false => left,
        }
    }

    /// The volume that the store lies on, if it minds what is free there (see [`Options::disk_reserve_bytes`]).
    pub fn volume(&self) -> Option<Volume> {
        self.space.volume()
    }

    /// Whether the engine does nothing by itself, because its work did not fit on the volume. [`Store::reclaim`] lets it go on
    /// when it fits.
    pub fn is_idle(&self) -> bool {
        self.engine.borrow().is_ok_and(|engine| engine.is_idle())
    }

    /// Gives the room of deleted and overwritten records back to the volume. Reads go on meanwhile, but for moments. So do
    /// commits, unless the engine is idle: then they wait until it is done. Tells whether there was something to give back:
    /// room for commits may be there now.
    ///
    /// # Errors
    ///
    /// [`StorageError`]: the engine cannot write.
    pub fn reclaim(&self) -> Result<bool, StorageError> {
        let Some(volume) = self.space.volume() else {
            return Ok(false);
        };
        // One at a time: room is kept for one compaction beside the engine's own.
        let _alone = self.upkeep.begin();
        let usage = self.usage();
        let is_idle = self.engine.borrow()?.is_idle();
        let held = is_idle.then(|| self.writing());
        let compacted = self.upkeep.compact(&self.engine, volume, &usage)?;
        let writing = held.unwrap_or_else(|| self.writing());
        writing.ask_whole()?;
        let emptied = match is_idle && compacted {
            true => self.upkeep.empty_journals(&self.engine)?,
            false => self.upkeep.empty_journals_if_worth(&self.engine, volume)?,
        };
        let goes_on = self.upkeep.settle(&self.engine, volume)?;
        self.ballast.make(self.space.volume());
        Ok(compacted || emptied || goes_on)
    }

    /// Refuses a group that does not fit. Nothing is measured while there is plenty of room.
    fn ask(&self, demand: Demand<'_>, held: Held) -> Result<(), Lack> {
        let is_of_volume = |lack: &Lack| lack.of == SpaceBound::Volume;
        let asked = self.space.ask(demand, held);
        if !asked.as_ref().is_err_and(is_of_volume) {
            return asked;
        }
        let measured = self.measured(held);
        let asked = self.space.ask(demand, measured);
        if !asked.as_ref().is_err_and(is_of_volume) {
            return asked;
        }
        if demand.first_refused() > Purpose::NewData {
            self.ballast.give_up_on(self.space.volume());
        }
        // What a compaction writes between a look at its files and one at the volume seems to be lacking. So it is looked again.
        let look = || {
            self.space
                .ask(demand, self.without_written(self.measured(held)))
        };
        let mut asked = look();
        for _ in 1..LOOKS {
            if asked.is_ok() {
                break;
            }
            asked = look();
        }
        asked
    }

    /// The same with what compactions may write of the tables that there are. It takes some time where these are many.
    fn measured(&self, held: Held) -> Held {
        let merges = self.engine.borrow().map_or(0, |engine| engine.merges());
        Held { merges, ..held }
    }

    /// The same without what compactions have written already: that is not free any more. To find out takes some time.
    fn without_written(&self, held: Held) -> Held {
        let written = self.engine.borrow().map_or(0, |engine| {
            if engine.beside_tables() > 0 {
                // What lingers is no part of a compaction under way.
                let _ = engine.drop_old_files();
            }
            engine.beside_tables()
        });
        Held {
            merges: held.merges.saturating_sub(written),
            ..held
        }
    }

    /// What the store has, as its volume and its limit see it.
    fn held(&self, usage: Usage) -> Held {
        let content = usage.bytes();
        match self.engine.borrow() {
            Ok(engine) => Held {
                content,
                to_install: usage.table(Table::Log).bytes,
                waiting: engine.waiting(),
                merges: engine::MERGES_MAX,
                is_idle: engine.is_idle(),
            },
            // The next that is written says so.
            Err(_) => Held {
                content,
                ..Held::default()
            },
        }
    }

    /// The engine, for a test that looks past the store.
    #[cfg(test)]
    pub(crate) fn engine(&self) -> std::sync::Arc<Opened> {
        self.engine.borrow().unwrap()
    }

    /// The place of the engine, for a test.
    #[cfg(test)]
    pub(crate) fn slot(&self) -> &Slot {
        &self.engine
    }

    /// Where the engine's files are, for a test.
    #[cfg(test)]
    pub(crate) fn engine_dir(&self) -> std::path::PathBuf {
        self.locked.engine_dir()
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        // What a panic left behind is marked broken, not locked for ever.
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Held for moments only.
    fn shown(&self) -> MutexGuard<'_, Shown> {
        // Nothing panics half-way through a change.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_group(&self, writing: &mut Writing, plan: &Plan<'_>) -> Result<(), StorageError> {
        let engine = self.engine.borrow()?;
        // Until the engine says otherwise: it might panic.
        writing.broken = Some("a commit did not end".to_string());
        if let Err(error) = plan.write(&engine) {
            writing.broken = Some(error.to_string());
            return Err(engine::broken(&error));
        }
        writing.broken = None;
        writing.usage = plan.after;
        self.shown().usage = plan.after;
        self.upkeep.count(&plan.traces);
        if let Some(note) = &writing.note {
            // The group is durable. Without the note it is only guarded less well.
            let _ = note.write(plan.after.groups);
        }
        Ok(())
    }
}

impl Reader for Store {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let engine = self.engine.borrow()?;
        let read = engine::unpanicked(|| engine.table(table).get(key))
            .map_err(|words| damaged(table, key, words))?
            .map_err(|error| engine::read_error(table, key, &error))?;
        read.map(|stored| value_of(table, key, &stored).map(<[u8]>::to_vec))
            .transpose()
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError> {
        if !to.is_empty() && from >= to {
            return Ok(());
        }
        let end = if to.is_empty() {
            Bound::Unbounded
        } else {
            Bound::Excluded(to)
        };
        let range = (Bound::Included(from), end);
        let engine = self.engine.borrow()?;
        let snapshot = engine.database.snapshot();
        let mut records = snapshot.range::<&[u8], _>(engine.table(table), range);
        // An error has no key: name where the scan had come.
        let mut reached = from.to_vec();
        loop {
            let next = engine::unpanicked(|| records.next().map(fjall::Guard::into_inner))
                .map_err(|words| damaged(table, &reached, words))?;
            let Some(read) = next else {
                return Ok(());
            };
            let (key, stored) =
                read.map_err(|error| engine::read_error(table, &reached, &error))?;
            if visit(&key, value_of(table, &key, &stored)?) == Scan::Stop {
                return Ok(());
            }
            reached.clear();
            reached.extend_from_slice(&key);
        }
    }
}

impl Engine for Store {
    fn commit(&self, group: &[Batch]) -> Result<(), StorageError> {
        let mut writing = self.writing();
        writing.ask_whole()?;
        let before = writing.usage;
        let engine = self.engine.borrow()?;
        let plan = Plan::of(&engine, before, group)?;
        if plan.is_empty() {
            return Ok(());
        }
        let purposes: Vec<Purpose> = group.iter().map(|batch| batch.purpose).collect();
        let demand = Demand {
            purposes: &purposes,
            after: plan.after.bytes(),
            brought: plan.traces.journaled,
        };
        if engine.is_stuffed() {
            return Err(StorageError::Full {
                detail: "too much was written since room for the engine's own work ended"
                    .to_string(),
            });
        }
        // It is opened anew only when nobody holds it.
        drop(engine);
        let asked = self.ask(demand, self.held(before));
        asked.map_err(|lack| StorageError::Full {
            detail: lack.to_string(),
        })?;
        self.write_group(&mut writing, &plan)?;
        if let Some(volume) = self.space.volume()
            && let Err(error) = self.upkeep.tend(&self.engine, volume)
        {
            // The group is durable. The next one is not written.
            writing.broken = Some(error.to_string());
        }
        Ok(())
    }
}

/// How often it is looked, before a group is refused, what compactions have written already.
const LOOKS: usize = 5;

/// What whoever writes knows. A compaction may hold it for long.
struct Writing {
    usage: Usage,
    /// None while the store is being opened.
    note: Option<Note>,
    /// Why no more is written.
    broken: Option<String>,
}

/// What the store shows of itself, as of the last group.
struct Shown {
    usage: Usage,
    history: History,
}

impl Writing {
    fn ask_whole(&self) -> Result<(), StorageError> {
        match &self.broken {
            Some(detail) => Err(StorageError::Broken {
                detail: detail.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// The store's usage, or what is wrong with it.
pub(crate) fn read_usage(opened: &Opened) -> Result<Usage, String> {
    let stored = engine::unpanicked(|| opened.own.get(usage::KEY))?;
    match stored.map_err(|error| error.to_string())? {
        Some(stored) => {
            Usage::decode(&stored).map_err(|detail| format!("the usage record: {detail}"))
        }
        None => Ok(Usage::default()),
    }
}

/// Refuses a store that has not come as far as was acknowledged.
pub(crate) fn ask_complete(usage: Usage, noted: u64) -> Result<(), String> {
    if usage.groups >= noted {
        return Ok(());
    }
    Err(format!(
        "it ends with group {}, group {noted} was acknowledged",
        usage.groups
    ))
}

/// The value in a stored record.
pub(crate) fn value_of<'a>(
    table: Table,
    key: &[u8],
    stored: &'a [u8],
) -> Result<&'a [u8], StorageError> {
    record::open(table.name(), key, stored).map_err(|detail| damaged(table, key, detail))
}

fn damaged(table: Table, key: &[u8], detail: String) -> StorageError {
    StorageError::Damaged {
        table,
        key: key.to_vec(),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Damage, check};
    use thorp_model::{Mark, Op, Purpose};

    fn put(key: &[u8], value: &[u8]) -> Batch {
        let op = Op::Put {
            table: Table::Pages,
            key: key.to_vec(),
            value: value.to_vec(),
        };
        Batch {
            mark: Mark(1),
            purpose: Purpose::Housekeeping,
            ops: vec![op],
        }
    }

    #[test]
    fn a_record_that_is_not_what_was_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default()).unwrap();
        store
            .commit(&[put(b"a", b"one"), put(b"b", b"two"), put(b"c", b"three")])
            .unwrap();
        // Past the engine's own checksums: a's record under the key b.
        let engine = store.engine();
        let moved = engine.table(Table::Pages).get(b"a").unwrap().unwrap();
        engine.table(Table::Pages).insert(b"b", moved).unwrap();
        drop(engine);
        let is_b = |error: &StorageError| matches!(error, StorageError::Damaged { table: Table::Pages, key, .. } if key == b"b");
        assert!(is_b(&store.get(Table::Pages, b"b").unwrap_err()));
        assert_eq!(
            store.get(Table::Pages, b"c").unwrap(),
            Some(b"three".to_vec())
        );
        let mut seen = 0;
        let mut visit = |_: &[u8], _: &[u8]| {
            seen += 1;
            Scan::Go
        };
        let error = store.scan(Table::Pages, b"", b"", &mut visit).unwrap_err();
        assert!(is_b(&error) && seen == 1);
        drop(store);
        let report = check(dir.path()).unwrap();
        assert_eq!(report.damage_count, 1, "{report}");
        assert!(matches!(&report.damage[0], Damage::Record(error) if is_b(error)));
        // It can be written over.
        let store = Store::open(dir.path(), Options::default()).unwrap();
        store.commit(&[put(b"b", b"2.0")]).unwrap();
        assert_eq!(
            store.get(Table::Pages, b"b").unwrap(),
            Some(b"2.0".to_vec())
        );
    }

    /// `thorp status` asks, and the loop of the home.
    #[test]
    fn what_it_shows_waits_for_no_compaction() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default()).unwrap();
        store.commit(&[put(b"a", b"one")]).unwrap();
        // So does whoever reclaims with an idle engine.
        let compacting = store.writing();
        let (send, seen) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let left = store.space_left(Purpose::NewData).0;
                let closed = store.history().closed();
                send.send((store.usage(), closed, left > 0)).unwrap();
            });
            let seen = seen.recv_timeout(std::time::Duration::from_secs(20));
            drop(compacting);
            let (usage, closed, has_space) = seen.expect("it waits");
            assert_eq!(usage.table(Table::Pages).records, 1);
            assert!(closed.is_none() && has_space);
        });
    }
}
