//! Weak sessions: visits that append to the lists of the transactions, beside them.
//!
//! Each append is a transaction of its own in the history, as nobody promises an order between the visits of a session. What
//! such a visit reads is not in the history: nobody promises that it is serializable. Snapshots go to a judge of their own.

use crate::Outcome;
use crate::append::Append;
use crate::lists::{HOMES, Lists, SLOTS, decode, segment};
use crate::outcome::{is_certain, learn, patiently};
use crate::saved::Saved;
use crate::saying::{PROCESSES_MAX, VALUES_OF_A_PROCESS, nanoseconds, say};
use crate::snapshots::SNAPSHOT;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use thorp_client::{Consistency, Member, Procedure, Reference, Result, Segment, Visit};
use thorp_model::Xoshiro256;

/// What all weak sessions of a worker share.
pub(crate) struct Ground<'a> {
    member: &'a Member,
    keys: &'a [Reference],
    /// By slot.
    segments: Vec<Segment>,
    saved: Saved,
}

/// One visit after the other.
pub(crate) struct WeakSession<'a> {
    ground: &'a Ground<'a>,
    /// Its number. Its appends have higher ones.
    session: u64,
    process: u64,
    dice: Xoshiro256,
    lists: Lists,
}

impl<'a> Ground<'a> {
    /// Opens all segments; again while a home is away.
    pub(crate) fn open(member: &'a Member, keys: &'a [Reference]) -> Outcome<Self> {
        let open = |slot: usize| patiently(|| member.open(&segment(slot)));
        Ok(Ground {
            member,
            keys,
            segments: (0..SLOTS).map(open).collect::<Result<_>>()?,
            saved: Saved::default(),
        })
    }
}

/// Runs so many sessions until it is over, and until the log is empty then.
pub(crate) fn run(
    ground: &Ground<'_>,
    (first, sessions): (u64, u64),
    seed: u64,
    over: &AtomicBool,
) -> Outcome<()> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let ended = &ended;
        let is_over = || ended.load(Ordering::Relaxed);
        let follower = scope.spawn(move || ground.saved.follow(ground.member, is_over));
        thread::scope(|scope| {
            for number in 0..sessions {
                let session = WeakSession::new(ground, first + number, seed.wrapping_add(number));
                scope.spawn(|| session.run_until(over));
            }
        });
        ended.store(true, Ordering::Relaxed);
        let panicked = |_| Err("the thread that follows the log has panicked".into());
        follower.join().unwrap_or_else(panicked)
    })
}

impl<'a> WeakSession<'a> {
    fn new(ground: &'a Ground<'a>, session: u64, seed: u64) -> Self {
        WeakSession {
            ground,
            session,
            process: session,
            dice: Xoshiro256::new(seed),
            lists: Lists::new(ground.keys.len()),
        }
    }

    fn run_until(mut self, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            match self.dice.percent(SNAPSHOT_PERCENT) {
                true => self.snapshot(),
                false => self.append(),
            }
            thread::sleep(Duration::from_millis(self.dice.below(THINK_MS_MAX)));
        }
    }

    fn append(&mut self) {
        let kinds = kinds();
        let (preset, consistency) = kinds[self.dice.index(kinds.len())];
        self.process += PROCESSES_MAX;
        let append = Append {
            preset,
            session: self.session,
            process: self.process,
            key: self.lists.key(self.dice.index(SLOTS)),
            value: (self.process * VALUES_OF_A_PROCESS) as i64,
        };
        append.tell("invoke");
        let done = self.visit(consistency, append);
        let member = self.ground.member;
        match done.or_else(|error| learn(member, error).map(drop)) {
            // Its home executes it later.
            Ok(()) if consistency == Consistency::EVENTUAL => self.ground.saved.add(append),
            Ok(()) => append.tell("ok"),
            Err(error) if is_certain(&error) => append.tell("fail"),
            Err(error) => {
                eprintln!("{preset}, {}: {:?}: {error}", self.session, error.kind());
                append.tell("info");
            }
        }
    }

    /// Looks at the list, so that it notices when it is long, and appends.
    fn visit(&mut self, consistency: Consistency, append: Append) -> Result<()> {
        let Ground {
            member,
            keys,
            segments,
            ..
        } = self.ground;
        let (key, segment) = (&keys[append.key], &segments[append.key % SLOTS]);
        let mut visit = Visit::open(member, consistency, &[segment])?;
        let list = decode(&visit.read(key)?);
        self.lists.note_length(append.key, list.len());
        let bytes = append.value.to_le_bytes().to_vec();
        visit.apply(key, Procedure::Append(bytes.into()))?;
        visit.close()
    }

    /// Reads lists of one home, as of one moment. One that fails says nothing.
    fn snapshot(&mut self) {
        let home = self.dice.index(HOMES.len());
        let mut slots: Vec<usize> = (0..SLOTS)
            .filter(|slot| slot % HOMES.len() == home)
            .collect();
        while slots.len() > KEYS_OF_A_SNAPSHOT {
            slots.swap_remove(self.dice.index(slots.len()));
        }
        let keys: Vec<usize> = slots.iter().map(|slot| self.lists.key(*slot)).collect();
        let began = nanoseconds();
        if let Ok((first, lists)) = self.look(&keys) {
            say(&json!({
                "type": SNAPSHOT,
                "session": self.session,
                "began": began,
                "first": first,
                "value": lists,
            }));
        }
    }

    /// When the first list was read, and all lists.
    fn look(&mut self, keys: &[usize]) -> Result<(u64, Value)> {
        let ground = self.ground;
        let segments = keys.iter().map(|key| &ground.segments[key % SLOTS]);
        let segments: Vec<&Segment> = segments.collect();
        let consistency = Consistency::SNAPSHOT.for_reading();
        let mut visit = Visit::open(ground.member, consistency, &segments)?;
        let (mut first, mut lists) = (None, Vec::new());
        for key in keys {
            let list = decode(&visit.read(&ground.keys[*key])?);
            first.get_or_insert_with(nanoseconds);
            self.lists.note_length(*key, list.len());
            lists.push(json!([key, list]));
        }
        visit.close()?;
        Ok((first.unwrap_or_default(), Value::from(lists)))
    }
}

/// Visits that append, by the word of their preset.
pub(crate) fn kinds() -> [(&'static str, Consistency); 5] {
    [
        ("close-to-open", Consistency::CLOSE_TO_OPEN),
        ("bounded", Consistency::BOUNDED.with_mods(MODS).hard()),
        ("master-slave", Consistency::MASTER_SLAVE),
        ("eventual", Consistency::EVENTUAL),
        ("stream", Consistency::STREAM),
    ]
}

const SNAPSHOT_PERCENT: u64 = 50;
const KEYS_OF_A_SNAPSHOT: usize = 6;
const THINK_MS_MAX: u64 = 100;
/// What bounded visits may miss.
const MODS: u32 = 5;
