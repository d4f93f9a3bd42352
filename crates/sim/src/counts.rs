//! What a campaign counts, to show that every branch was reached.

use crate::faults::Kind;
use std::collections::BTreeMap;
use std::fmt;
use thorp_core::message::{FetchRefusal, InvalidCommit, Refusal};
use thorp_core::note::Note;

/// Counts of one run, or of many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Seeds run.
    pub seeds: u64,
    /// Reads and writes of objects by programs, in transactions that committed or not.
    pub operations: u64,
    /// Events of the simulated world.
    pub events: u64,
    /// Messages sent.
    pub messages: u64,
    /// Simulated milliseconds.
    pub simulated_ms: u64,
    /// Transactions begun.
    pub transactions: u64,
    /// Writing transactions in the logs.
    pub commits: u64,
    /// Read-only transactions that committed without a message.
    pub read_only: u64,
    /// Strict read-only transactions that committed.
    pub strict_read_only: u64,
    /// Transactions doomed before they asked to commit.
    pub doomed: u64,
    /// Transactions given up: no page, no news, too many misses, or on purpose.
    pub given_up: u64,
    /// Commits and pages refused, by kind.
    pub refusals: BTreeMap<&'static str, u64>,
    /// Other answers to programs, by kind.
    pub answers: BTreeMap<&'static str, u64>,
    /// Faults, by kind.
    pub faults: BTreeMap<Kind, u64>,
    /// Branches of rules, as the cores told them.
    pub notes: BTreeMap<Note, u64>,
}

/// The kinds of refusals that a campaign has to see: all but those of rules that are not built
/// yet (*in doubt*, *no right*, *several homes*), and those that no village is large enough for.
pub const REFUSALS: &[&str] = &[
    "conflict",
    "busy",
    "full",
    "built on a refused one",
    "unknown",
    "forgotten",
    "invalid: NoSuchSegment",
    "invalid: Generation",
    "invalid: Patch",
    "invalid: NotStaged",
    "invalid: ReservedPage",
    "invalid: Malformed",
    "invalid: Damaged",
    "page: NoSuchSegment",
    "page: Damaged",
    "page: Busy",
];

/// The kind of a refusal, and what is wrong with an invalid request.
pub fn kind_of(refusal: &Refusal) -> &'static str {
    let Refusal::Invalid { reason } = refusal else {
        return refusal.kind();
    };
    match reason {
        InvalidCommit::NoSuchSegment => "invalid: NoSuchSegment",
        InvalidCommit::Generation { .. } => "invalid: Generation",
        InvalidCommit::Patch { .. } => "invalid: Patch",
        InvalidCommit::TooLarge => "invalid: TooLarge",
        InvalidCommit::NotStaged => "invalid: NotStaged",
        InvalidCommit::ReservedPage => "invalid: ReservedPage",
        InvalidCommit::Malformed => "invalid: Malformed",
        InvalidCommit::Damaged => "invalid: Damaged",
        InvalidCommit::Participants => "invalid: Participants",
    }
}

/// Why a page was refused.
pub fn kind_of_fetch(refusal: FetchRefusal) -> &'static str {
    match refusal {
        FetchRefusal::NoSuchSegment => "page: NoSuchSegment",
        FetchRefusal::Damaged => "page: Damaged",
        FetchRefusal::Busy => "page: Busy",
    }
}

impl Counts {
    /// Counts a refusal.
    pub fn refused(&mut self, kind: &'static str) {
        *self.refusals.entry(kind).or_default() += 1;
    }

    /// Counts an answer.
    pub fn answered(&mut self, kind: &'static str) {
        *self.answers.entry(kind).or_default() += 1;
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Counts) {
        for (total, more) in [
            (&mut self.seeds, other.seeds),
            (&mut self.operations, other.operations),
            (&mut self.events, other.events),
            (&mut self.messages, other.messages),
            (&mut self.simulated_ms, other.simulated_ms),
            (&mut self.transactions, other.transactions),
            (&mut self.commits, other.commits),
            (&mut self.read_only, other.read_only),
            (&mut self.strict_read_only, other.strict_read_only),
            (&mut self.doomed, other.doomed),
            (&mut self.given_up, other.given_up),
        ] {
            *total += more;
        }
        add_all(&mut self.refusals, &other.refusals);
        add_all(&mut self.answers, &other.answers);
        add_all(&mut self.faults, &other.faults);
        add_all(&mut self.notes, &other.notes);
    }

    /// Branches that were never reached.
    pub fn notes_missing(&self) -> Vec<&'static str> {
        let missing = Note::ALL.iter().filter(|n| !self.notes.contains_key(n));
        missing.map(|note| note.name()).collect()
    }

    /// Kinds of refusals that never occurred.
    pub fn refusals_missing(&self) -> Vec<&'static str> {
        let missing = REFUSALS.iter().filter(|k| !self.refusals.contains_key(*k));
        missing.copied().collect()
    }

    /// Everything that never occurred and should have.
    pub fn missing(&self) -> Vec<&'static str> {
        let missing = [
            self.faults_missing(),
            self.notes_missing(),
            self.refusals_missing(),
        ];
        missing.concat()
    }

    /// Kinds of faults that never struck.
    pub fn faults_missing(&self) -> Vec<&'static str> {
        let missing = Kind::ALL.iter().filter(|k| !self.faults.contains_key(k));
        missing.map(|kind| kind.name()).collect()
    }
}

fn add_all<K: Ord + Copy>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        *to.entry(*key).or_default() += count;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seeds {}: {} operations (reads and writes of objects by programs), {} events, \
             {} messages, {} simulated seconds",
            self.seeds,
            self.operations,
            self.events,
            self.messages,
            self.simulated_ms / 1000
        )?;
        writeln!(
            f,
            "transactions {}: {} commits, {} read-only, {} strict read-only, {} doomed, {} given up",
            self.transactions,
            self.commits,
            self.read_only,
            self.strict_read_only,
            self.doomed,
            self.given_up
        )?;
        write_all(f, "refusals", self.refusals.iter().map(|(k, n)| (*k, *n)))?;
        write_all(f, "answers", self.answers.iter().map(|(k, n)| (*k, *n)))?;
        let faults = self.faults.iter().map(|(k, n)| (k.name(), *n));
        write_all(f, "faults", faults)?;
        let notes = self.notes.iter().map(|(k, n)| (k.name(), *n));
        write_all(f, "notes", notes)?;
        writeln!(f, "refusals never seen: {:?}", self.refusals_missing())?;
        writeln!(f, "faults never seen: {:?}", self.faults_missing())?;
        writeln!(f, "notes never seen: {:?}", self.notes_missing())
    }
}

fn write_all<'a>(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    counts: impl Iterator<Item = (&'a str, u64)>,
) -> fmt::Result {
    write!(f, "{title}:")?;
    for (name, count) in counts {
        write!(f, " {name} {count}")?;
    }
    writeln!(f)
}
