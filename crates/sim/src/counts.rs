//! What a campaign counts, to show that every branch was reached.

use crate::faults::kinds::Kind;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use thorp_model::{FetchRefusal, InvalidCommit, Note, Refusal};

/// How often each of several things was seen, by its name.
pub type Tally = BTreeMap<Cow<'static, str>, u64>;

/// Counts of one run, or of many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    pub refusals: Tally,
    /// Other answers to programs, by kind.
    pub answers: Tally,
    /// Faults, by kind.
    pub faults: Tally,
    /// Branches of rules, as the cores told them.
    pub notes: Tally,
}

/// The kinds of refusals that a campaign has to see: all but *no right*, which is not built yet,
/// and those that no village is large enough for.
pub const REFUSALS: &[&str] = &[
    "conflict",
    "in doubt",
    "refused at another home",
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
    "page: NotCarried",
    "page: Damaged",
    "page: Busy",
];

/// A transaction over several homes that asks them to commit.
pub const OVER_HOMES: &str = "transactions over several homes";

/// One that has read at several homes and commits without a message.
pub const READ_OVER_HOMES: &str = "readings of several homes";

/// One that several homes have validated, each what was read there.
pub const VALIDATED: &str = "readings that several homes validated";

/// One that has read on behind a change, and commits as of then.
pub const READ_BEHIND: &str = "readings behind a change";

/// What programs do that a campaign has to see beside refusals, faults and notes.
pub const READINGS: &[&str] = &[OVER_HOMES, READ_OVER_HOMES, VALIDATED, READ_BEHIND];

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
        InvalidCommit::BadRights => "invalid: BadRights",
        InvalidCommit::RightsOfSeveral => "invalid: RightsOfSeveral",
        InvalidCommit::UnknownHome { .. } => "invalid: UnknownHome",
        InvalidCommit::Procedure { .. } => "invalid: Procedure",
        InvalidCommit::ProcedureOfSeveral => "invalid: ProcedureOfSeveral",
        InvalidCommit::NotProven => "invalid: NotProven",
    }
}

/// Why a page was refused.
pub fn kind_of_fetch(refusal: FetchRefusal) -> &'static str {
    match refusal {
        FetchRefusal::NoSuchSegment => "page: NoSuchSegment",
        FetchRefusal::Damaged => "page: Damaged",
        FetchRefusal::Busy => "page: Busy",
        FetchRefusal::NotCarried => "page: NotCarried",
    }
}

impl Counts {
    /// Counts a refusal.
    pub fn refused(&mut self, kind: &'static str) {
        see(&mut self.refusals, kind);
    }

    /// Counts an answer.
    pub fn answered(&mut self, kind: &'static str) {
        see(&mut self.answers, kind);
    }

    /// Counts a fault.
    pub fn struck(&mut self, kind: Kind) {
        see(&mut self.faults, kind.name());
    }

    /// Counts a branch of a rule.
    pub fn noted(&mut self, note: Note) {
        see(&mut self.notes, note.name());
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
        let notes = Note::ALL.iter().filter(|note| !STORIES_ONLY.contains(note));
        missing(&self.notes, notes.map(|note| note.name()))
    }

    /// Kinds of refusals that never occurred.
    pub fn refusals_missing(&self) -> Vec<&'static str> {
        missing(&self.refusals, REFUSALS.iter().copied())
    }

    /// Kinds of faults that never struck.
    pub fn faults_missing(&self) -> Vec<&'static str> {
        missing(&self.faults, Kind::ALL.iter().map(|kind| kind.name()))
    }

    /// Kinds of readings that never occurred.
    pub fn readings_missing(&self) -> Vec<&'static str> {
        missing(&self.answers, READINGS.iter().copied())
    }

    /// Of these answers those that never occurred.
    pub fn answers_missing(&self, names: &[&'static str]) -> Vec<&'static str> {
        missing(&self.answers, names.iter().copied())
    }

    /// Everything that never occurred and should have.
    pub fn missing(&self) -> Vec<&'static str> {
        let missing = [
            self.faults_missing(),
            self.notes_missing(),
            self.refusals_missing(),
            self.readings_missing(),
        ];
        missing.concat()
    }
}

/// Branches that stories reach, and villages do not have to. No operator of a village ends a vote in doubt: what an operator
/// ends may be right at one home only, and the checkers demand that it is right at all. Without one, only a rogue decides
/// otherwise than its vote ended, and few do. No disk of these villages goes back: others are for that (`back`).
const STORIES_ONLY: &[Note] = &[
    Note::DoubtSettled,
    Note::EndedOtherwise,
    Note::OtherHistoryMet,
    Note::Forgot,
    Note::Confirmed,
];

fn see(tally: &mut Tally, name: &'static str) {
    *tally.entry(Cow::Borrowed(name)).or_default() += 1;
}

fn add_all(to: &mut Tally, from: &Tally) {
    for (name, count) in from {
        *to.entry(name.clone()).or_default() += count;
    }
}

fn missing(tally: &Tally, names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    names.filter(|name| !tally.contains_key(*name)).collect()
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
        write_all(f, "refusals", &self.refusals)?;
        write_all(f, "answers", &self.answers)?;
        write_all(f, "faults", &self.faults)?;
        write_all(f, "notes", &self.notes)?;
        writeln!(f, "refusals never seen: {:?}", self.refusals_missing())?;
        writeln!(f, "faults never seen: {:?}", self.faults_missing())?;
        writeln!(f, "notes never seen: {:?}", self.notes_missing())?;
        writeln!(f, "readings never seen: {:?}", self.readings_missing())
    }
}

fn write_all(f: &mut fmt::Formatter<'_>, title: &str, tally: &Tally) -> fmt::Result {
    write!(f, "{title}:")?;
    for (name, count) in tally {
        write!(f, " {name} {count}")?;
    }
    writeln!(f)
}
