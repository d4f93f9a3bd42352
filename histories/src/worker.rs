//! A member as a process of its own: some sessions run transactions, one after the other each, and say on standard output what
//! they began and how it ended.

use crate::lists::{Lists, SLOTS, decode};
use crate::outcome::{is_certain, learn, patiently};
use crate::place::Ways;
use crate::saying::{CARRIES, PROCESSES_MAX, TURNED, VALUES_OF_A_PROCESS, nanoseconds, say};
use crate::weak::{self, Ground};
use crate::{Outcome, Workload, planted};
use clap::Args;
use serde_json::{Value, json};
use std::io::{BufRead, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use thorp_client::{Error, Member, Reference, Result, Session, Stamp, Transaction};
use thorp_model::Xoshiro256;

/// What a worker is told. Its keys come on standard input, in one line; when that ends, it comes to an end.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    ways: Ways,
    #[arg(long, value_enum)]
    workload: Workload,
    /// The number of its first session
    #[arg(long)]
    process: u64,
    #[arg(long)]
    sessions: u64,
    /// So many weak sessions beside them
    #[arg(long, default_value_t = 0, requires = "log")]
    weak: u64,
    #[arg(long)]
    seed: u64,
    /// Of a hundred transactions, those that are strict
    #[arg(long)]
    strict: u64,
    /// Writes nothing
    #[arg(long)]
    reads_only: bool,
    /// Reads every key once, strictly, and ends
    #[arg(long)]
    last: bool,
    /// Plants this bug
    #[arg(long)]
    bug: Option<String>,
}

/// Readers hinder nobody, so they may be long.
const KEYS_OF_A_READER_MAX: u64 = 24;
const KEYS_OF_A_WRITER_MAX: u64 = 4;
const READ_ONLY_PERCENT: u64 = 40;
const THINK_MS_MAX: u64 = 3;
/// So impatient that outcomes have to be asked for.
const IMPATIENCE: Duration = Duration::from_millis(400);
/// At where it is joined.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) fn run(options: &Options) -> Outcome<()> {
    if let Some(bug) = &options.bug {
        planted::plant(bug)?;
    }
    let member = options.ways.join(format!("worker-{}", options.process))?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let names: Vec<String> = serde_json::from_str(&line)?;
    let keys = names.iter();
    let keys = keys.map(|name| patiently(|| member.parse(name)));
    let keys: Vec<Reference> = keys.collect::<Result<_>>()?;
    let ground = match options.weak {
        0 => None,
        _ => Some(Ground::open(&member, &keys)?),
    };
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let weak = ground.as_ref().map(|ground| {
            let numbers = (options.process + options.sessions, options.weak);
            let over = &over;
            scope.spawn(move || weak::run(ground, numbers, !options.seed, over))
        });
        for number in 0..options.sessions {
            let process = options.process + number;
            let program = Program {
                member: &member,
                keys: &keys,
                process,
                values: process * VALUES_OF_A_PROCESS,
                dice: Xoshiro256::new(options.seed.wrapping_add(number)),
                options,
                lists: Lists::new(keys.len()),
            };
            let over = &over;
            scope.spawn(move || match options.last {
                true => program.read_all(),
                false => program.run_until(over),
            });
        }
        if options.ways.place.has_neighbours() {
            scope.spawn(|| tell_turns(&member, &over));
        }
        if !options.last {
            // However it ends, it is an end.
            let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
            over.store(true, Ordering::Relaxed);
        }
        let panicked = |_| Err("a weak session has panicked".into());
        weak.map_or(Ok(()), |weak| weak.join().unwrap_or_else(panicked))
    })
}

/// Says when the member turns to another redirector, and when it begins to carry one for others.
fn tell_turns(member: &Member, over: &AtomicBool) {
    let (mut at, mut carries) = (member.site().address, false);
    while !over.load(Ordering::Relaxed) {
        thread::sleep(LOOK_EVERY);
        let site = member.site();
        if site.address.is_some() && site.address != at {
            say(&json!({"type": TURNED}));
            at = site.address;
        }
        // It is joined there itself.
        let now_carries = site.carried > 1;
        if now_carries && !carries {
            say(&json!({"type": CARRIES}));
        }
        carries = now_carries;
    }
}

/// One session after the other.
struct Program<'a> {
    member: &'a Member,
    keys: &'a [Reference],
    process: u64,
    values: u64,
    dice: Xoshiro256,
    options: &'a Options,
    lists: Lists,
}

/// One read or write.
#[derive(Clone, Debug)]
enum Step {
    Read(usize, Option<Vec<i64>>),
    Write(usize, i64),
    Append(usize, i64),
}

impl Program<'_> {
    fn run_until(mut self, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            let steps = self.plan();
            let strict = self.dice.percent(self.options.strict);
            self.transaction(steps, strict);
            thread::sleep(Duration::from_millis(self.dice.below(THINK_MS_MAX)));
        }
    }

    /// Reads all keys, some at a time; each until it succeeds.
    fn read_all(mut self) {
        let all: Vec<usize> = (0..self.keys.len()).collect();
        for keys in all.chunks(SLOTS) {
            let reads = || keys.iter().map(|key| Step::Read(*key, None)).collect();
            while !self.transaction(reads(), true) {
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn plan(&mut self) -> Vec<Step> {
        let mut slots = Vec::new();
        let only_reads = self.options.reads_only || self.dice.percent(READ_ONLY_PERCENT);
        let keys_max = match only_reads {
            true => KEYS_OF_A_READER_MAX,
            false => KEYS_OF_A_WRITER_MAX,
        };
        for _ in 0..=self.dice.below(keys_max) {
            let slot = self.dice.index(SLOTS);
            if !slots.contains(&slot) {
                slots.push(slot);
            }
        }
        let mut steps = Vec::new();
        for slot in slots {
            let key = self.lists.key(slot);
            match self.dice.below(3) {
                _ if only_reads => steps.push(Step::Read(key, None)),
                0 => steps.push(Step::Read(key, None)),
                1 => {
                    steps.push(Step::Read(key, None));
                    steps.push(self.write(key));
                }
                _ => steps.push(self.write(key)),
            }
        }
        steps
    }

    fn write(&mut self, key: usize) -> Step {
        self.values += 1;
        let value = self.values as i64;
        match self.options.workload {
            Workload::Lists => Step::Append(key, value),
            Workload::Registers => Step::Write(key, value),
        }
    }

    /// Runs a transaction once, and tells how it ended. Whether it committed.
    fn transaction(&mut self, mut steps: Vec<Step>, strict: bool) -> bool {
        self.tell("invoke", &steps, None);
        let session = Session::new()
            .strict(strict)
            .fetch_timeout(Duration::from_secs(5))
            .commit_timeout(IMPATIENCE);
        let mut tx = self.member.begin(session);
        let done = self.run_steps(&mut tx, &mut steps);
        let ended = match done.and_then(|()| tx.commit()) {
            Ok(committed) => Ok(committed.stamp),
            Err(error) => learn(self.member, error),
        };
        let is_done = ended.is_ok();
        match ended {
            Ok(stamp) => self.tell("ok", &steps, stamp),
            Err(error) if is_certain(&error) => self.tell("fail", &steps, None),
            Err(error) => self.unknown(&steps, &error),
        }
        is_done
    }

    fn run_steps(&mut self, tx: &mut Transaction, steps: &mut [Step]) -> Result<()> {
        for step in steps {
            match step {
                Step::Read(key, seen) => {
                    let values = decode(tx.read(&self.keys[*key])?);
                    self.lists.note_length(*key, values.len());
                    *seen = Some(values);
                }
                Step::Write(key, value) => tx.write(&self.keys[*key], value.to_le_bytes())?,
                Step::Append(key, value) => {
                    let mut bytes = tx.read(&self.keys[*key])?.to_vec();
                    bytes.extend(value.to_le_bytes());
                    self.lists.note_length(*key, bytes.len() / 8);
                    tx.write(&self.keys[*key], bytes)?;
                }
            }
        }
        Ok(())
    }

    /// It may have happened. Nothing else of this process is to follow: it goes on as another one.
    fn unknown(&mut self, steps: &[Step], error: &Error) {
        eprintln!("worker {}: {:?}: {error}", self.process, error.kind());
        self.tell("info", steps, None);
        self.process += PROCESSES_MAX;
        self.values = self.process * VALUES_OF_A_PROCESS;
    }

    fn tell(&self, what: &str, steps: &[Step], stamp: Option<Stamp>) {
        let is_done = what == "ok";
        let steps: Vec<Value> = steps.iter().map(|step| self.step(step, is_done)).collect();
        let stamp = stamp.map(|stamp| json!([stamp.clock, stamp.home.0]));
        let line = json!({
            "time": nanoseconds(),
            "type": what,
            "process": self.process,
            "place": self.options.ways.place.name(),
            "value": steps,
            "stamp": stamp,
            "last": self.options.last,
        });
        say(&line);
    }

    fn step(&self, step: &Step, is_done: bool) -> Value {
        match step {
            Step::Write(key, value) => json!(["w", key, value]),
            Step::Append(key, value) => json!(["append", key, value]),
            Step::Read(key, seen) => {
                let seen = seen.as_ref().filter(|_| is_done);
                let seen = seen.map(|values| match self.options.workload {
                    Workload::Lists => json!(values),
                    Workload::Registers => json!(values.first()),
                });
                json!(["r", key, seen])
            }
        }
    }
}
