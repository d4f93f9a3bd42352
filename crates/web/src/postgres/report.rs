//! What a keeper says of itself.

use crate::clock;
use crate::journal::Journal;
use std::time::Duration;

/// For so long after a commit that did not wait, the source counts as not coherent.
const NOT_COHERENT_MS: u64 = 60_000;

/// How a keeper is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Health {
    /// It is not live yet, or not any more: why. There are no hits.
    Away(String),
    /// The database waits for it.
    Live,
}

/// How a keeper is doing, and what it has counted since it started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Whether it is live.
    pub health: Health,
    /// The sessions whose transactions it awaits before it goes live.
    pub awaits: Vec<String>,
    /// Updates that are open: noted, and not yet known to be visible.
    pub open: usize,
    /// Commits that it has decoded, and that change something; or unsafe requests.
    pub commits: u64,
    /// Those of them that end all answers, because nobody can say what they change (rule W9).
    pub unknown: u64,
    /// Those that were visible before it had acknowledged them: they did not wait for it.
    pub not_waited: u64,
    /// When it saw the last of those, in milliseconds since the machine started.
    pub not_waited_ms: Option<u64>,
    /// Those of them that have waited for it.
    pub waits: u64,
    /// How long they have waited together: from when it had each one until it acknowledged it.
    pub waited: Duration,
    /// The longest of these.
    pub waited_max: Duration,
    /// Its last updates, and how often keys have changed.
    pub journal: Journal,
}

impl Report {
    /// A keeper that starts.
    pub fn new() -> Self {
        Report {
            health: Health::Away(String::from("it starts")),
            awaits: Vec::new(),
            open: 0,
            commits: 0,
            unknown: 0,
            not_waited: 0,
            not_waited_ms: None,
            waits: 0,
            waited: Duration::ZERO,
            waited_max: Duration::ZERO,
            journal: Journal::default(),
        }
    }

    /// Whether all commits of the last minute have waited for the keeper. Others may have been seen before their answers ended.
    pub fn is_coherent(&self) -> bool {
        let age = |at_ms| clock::now_ms().saturating_sub(at_ms);
        self.not_waited_ms
            .is_none_or(|at_ms| age(at_ms) > NOT_COHERENT_MS)
    }

    /// Updates were acknowledged that have waited for so long each.
    pub(crate) fn waited(&mut self, waits: &[Duration]) {
        self.waits += waits.len() as u64;
        self.waited += waits.iter().sum::<Duration>();
        self.waited_max = waits.iter().copied().fold(self.waited_max, Duration::max);
    }

    /// So many commits did not wait.
    pub(super) fn not_waited(&mut self, count: usize) {
        self.not_waited += count as u64;
        self.not_waited_ms = Some(clock::now_ms());
    }
}

impl Default for Report {
    fn default() -> Self {
        Report::new()
    }
}
