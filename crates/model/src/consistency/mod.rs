//! What a session asks of the copies that it reads, and of the changes that it makes (rules C1 to C12).
//!
//! The options are those of table 1 of the Swarm paper. One that nobody names is as in the caption of its table 2: time 0,
//! no bound in updates, soft, no dependencies, total order, pessimistic, visibility and isolation by session.

mod contradiction;
mod options;

pub use contradiction::{Contradiction, NoConsistency};
pub use options::{AccessMode, Failures, Moment, UpdateOrder};

use crate::limits::{
    CONSISTENCY_CUTOFF_MAX, CONSISTENCY_MODS_MAX, CONSISTENCY_TEXT_BYTES_MAX, CONSISTENCY_TIME_MAX,
};
use alloc::string::ToString;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use options::{OPTIMISTIC, PESSIMISTIC, Time, all_words, of_word};

/// What a session is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SessionKind {
    /// A transaction: it is serializable.
    Serializable,
    /// A transaction that also comes after all that was answered before it began.
    Strict,
    /// A visit: it has the options.
    Visit,
}

/// One value with every option. It reads and prints as text: `mode=wr,time=10ms,mods=5,hard,order=total`.
///
/// The setters take anything. [`Consistency::check`] refuses what contradicts itself; whatever opens a session calls it.
///
/// ```
/// use thorp_model::{Consistency, AccessMode};
/// let text = "bounded,time=100ms,hard";
/// let read: Consistency = text.parse()?;
/// assert_eq!(read.to_string(), "mode=wr,time=100ms,hard");
/// assert!("mode=wrlk,soft".parse::<Consistency>().is_err());
/// # Ok::<(), thorp_model::NoConsistency>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Consistency {
    kind: SessionKind,
    mode: AccessMode,
    time: Option<Duration>,
    mods: Option<u32>,
    hard: bool,
    since_sync: bool,
    causal: bool,
    atomic: bool,
    order: UpdateOrder,
    failures: Failures,
    visibility: Moment,
    isolation: Moment,
}

impl Default for Consistency {
    /// [`Consistency::SERIALIZABLE`].
    fn default() -> Self {
        Consistency::SERIALIZABLE
    }
}

impl Consistency {
    /// What no preset names.
    const PLAIN: Consistency = Consistency {
        kind: SessionKind::Visit,
        mode: AccessMode::Write,
        time: Some(Duration::ZERO),
        mods: None,
        hard: false,
        since_sync: false,
        causal: false,
        atomic: false,
        order: UpdateOrder::Total,
        failures: Failures::Pessimistic,
        visibility: Moment::Session,
        isolation: Moment::Session,
    };

    /// A transaction, as everything is that nobody chooses otherwise.
    pub const SERIALIZABLE: Consistency = Consistency {
        kind: SessionKind::Serializable,
        ..Consistency::LOCKING
    };
    /// A transaction that comes after all that was answered before it began.
    pub const STRICT: Consistency = Consistency {
        kind: SessionKind::Strict,
        ..Consistency::LOCKING
    };
    /// Nobody else writes meanwhile, and all that was written is seen.
    pub const LOCKING: Consistency = Consistency {
        mode: AccessMode::WriteLock,
        mods: Some(0),
        hard: true,
        order: UpdateOrder::Serial,
        ..Consistency::PLAIN
    };
    /// Each write goes to the home and is answered from there; reads are what is near.
    pub const MASTER_SLAVE: Consistency = Consistency {
        order: UpdateOrder::Serial,
        ..Consistency::PLAIN
    };
    /// A session sees at its opening all that was answered before, and gives out its own updates at its close.
    pub const CLOSE_TO_OPEN: Consistency = Consistency {
        hard: true,
        ..Consistency::PLAIN
    };
    /// A bound in time, in updates, or in both. Somebody has to name one.
    pub const BOUNDED: Consistency = Consistency {
        time: None,
        ..Consistency::PLAIN
    };
    /// What is near counts, also while the home is away. All see the same in the end.
    pub const EVENTUAL: Consistency = Consistency {
        failures: Failures::Optimistic { cutoff: None },
        ..Consistency::PLAIN
    };
    /// The state of one moment.
    pub const SNAPSHOT: Consistency = Consistency::PLAIN;
    /// Each update is seen as soon as it comes, and leaves at once.
    pub const STREAM: Consistency = Consistency {
        visibility: Moment::Access,
        isolation: Moment::Access,
        ..Consistency::PLAIN
    };

    /// The presets with their words.
    pub const PRESETS: [(&'static str, Consistency); 9] = [
        ("serializable", Consistency::SERIALIZABLE),
        ("strict", Consistency::STRICT),
        ("locking", Consistency::LOCKING),
        ("master-slave", Consistency::MASTER_SLAVE),
        ("close-to-open", Consistency::CLOSE_TO_OPEN),
        (BOUNDED, Consistency::BOUNDED),
        ("eventual", Consistency::EVENTUAL),
        ("snapshot", Consistency::SNAPSHOT),
        ("stream", Consistency::STREAM),
    ];

    /// What a session of it is.
    pub fn kind(&self) -> SessionKind {
        self.kind
    }

    /// Which accesses of others may run beside it.
    pub fn mode(&self) -> AccessMode {
        self.mode
    }

    /// How old a copy that it reads may be; none: as old as it happens to be.
    pub fn time(&self) -> Option<Duration> {
        self.time
    }

    /// How many answered updates it may miss; none: any number.
    pub fn mods(&self) -> Option<u32> {
        self.mods
    }

    /// Whether its bounds are never exceeded: it asks the others, or they wait.
    pub fn is_hard(&self) -> bool {
        self.hard
    }

    /// Whether a copy's age counts from the answer of the parent, as in the paper, and not from when it was asked (rule C3.4).
    pub fn counts_since_sync(&self) -> bool {
        self.since_sync
    }

    /// Whether its updates are seen only together with those that it had seen (rule C9).
    pub fn is_causal(&self) -> bool {
        self.causal
    }

    /// Whether its updates are seen all or none (rule C9).
    pub fn is_atomic(&self) -> bool {
        self.atomic
    }

    /// In which order others see its updates.
    pub fn order(&self) -> UpdateOrder {
        self.order
    }

    /// What it does about nodes that it does not reach.
    pub fn failures(&self) -> Failures {
        self.failures
    }

    /// Moment its updates leave.
    pub fn visibility(&self) -> Moment {
        self.visibility
    }

    /// Moment its view moves on.
    pub fn isolation(&self) -> Moment {
        self.isolation
    }

    /// With another mode. A lock brings what it implies: hard, most current, serial order, visibility and isolation by session.
    #[must_use]
    pub fn with_mode(self, mode: AccessMode) -> Self {
        let base = match mode.is_lock() {
            true => Consistency {
                kind: self.kind,
                since_sync: self.since_sync,
                causal: self.causal,
                atomic: self.atomic,
                failures: self.failures,
                ..Consistency::LOCKING
            },
            false => self,
        };
        Consistency { mode, ..base }
    }

    /// With another bound in time, or none.
    #[must_use]
    pub fn with_time(self, time: impl Into<Option<Duration>>) -> Self {
        let time = time.into();
        Consistency { time, ..self }
    }

    /// With another bound in updates, or none.
    #[must_use]
    pub fn with_mods(self, mods: impl Into<Option<u32>>) -> Self {
        let mods = mods.into();
        Consistency { mods, ..self }
    }

    /// Its bounds are never exceeded.
    #[must_use]
    pub fn hard(self) -> Self {
        Consistency { hard: true, ..self }
    }

    /// Its bounds are best effort: nobody waits.
    #[must_use]
    pub fn soft(self) -> Self {
        Consistency {
            hard: false,
            ..self
        }
    }

    /// Age counts from the answer, as in the paper.
    #[must_use]
    pub fn since_sync(self) -> Self {
        Consistency {
            since_sync: true,
            ..self
        }
    }

    /// Its updates come after those that it had seen.
    #[must_use]
    pub fn causal(self) -> Self {
        Consistency {
            causal: true,
            ..self
        }
    }

    /// Its updates are one group.
    #[must_use]
    pub fn atomic(self) -> Self {
        Consistency {
            atomic: true,
            ..self
        }
    }

    /// With another order.
    #[must_use]
    pub fn with_order(self, order: UpdateOrder) -> Self {
        Consistency { order, ..self }
    }

    /// With another answer to failures.
    #[must_use]
    pub fn with_failures(self, failures: Failures) -> Self {
        Consistency { failures, ..self }
    }

    /// Its updates leave at other times.
    #[must_use]
    pub fn with_visibility(self, visibility: Moment) -> Self {
        Consistency { visibility, ..self }
    }

    /// Its view moves on at other times.
    #[must_use]
    pub fn with_isolation(self, isolation: Moment) -> Self {
        Consistency { isolation, ..self }
    }

    /// The same for a session that only reads.
    #[must_use]
    pub fn for_reading(self) -> Self {
        let mode = match self.mode {
            AccessMode::Read | AccessMode::Write => AccessMode::Read,
            AccessMode::ReadLock | AccessMode::WriteLock => AccessMode::ReadLock,
        };
        Consistency { mode, ..self }
    }

    /// The same, if it does not contradict itself.
    ///
    /// # Errors
    ///
    /// [`Contradiction`], with what does not go together.
    pub fn check(self) -> Result<Self, Contradiction> {
        match self.contradiction() {
            Some(contradiction) => Err(contradiction),
            None => Ok(self),
        }
    }

    fn contradiction(&self) -> Option<Contradiction> {
        if self.kind != SessionKind::Visit {
            let kind = self.kind;
            let plain = Consistency {
                kind,
                ..Consistency::LOCKING
            };
            return (*self != plain).then_some(Contradiction::TransactionWithOptions);
        }
        let is_long = |time: Option<Duration>, max| time.is_some_and(|time| time > max);
        if is_long(self.time, CONSISTENCY_TIME_MAX) {
            return Some(Contradiction::TimeTooLong);
        }
        if self.mods.is_some_and(|mods| mods > CONSISTENCY_MODS_MAX) {
            return Some(Contradiction::TooManyMods);
        }
        if let Failures::Optimistic { cutoff } = self.failures
            && is_long(cutoff, CONSISTENCY_CUTOFF_MAX)
        {
            return Some(Contradiction::CutoffTooLong);
        }
        if self.mode.is_lock() {
            return self.against_lock();
        }
        let has_bound = self.time.is_some() || self.mods.is_some();
        if self.hard && !has_bound {
            return Some(Contradiction::HardWithoutBound);
        }
        if self.since_sync && self.time.is_none() {
            return Some(Contradiction::SinceSyncWithoutTime);
        }
        if !self.mode.writes() {
            return None;
        }
        if self.order == UpdateOrder::Serial && self.failures != Failures::Pessimistic {
            return Some(Contradiction::SerialWithoutHome);
        }
        if self.atomic && self.visibility == Moment::Access {
            return Some(Contradiction::GroupInParts);
        }
        None
    }

    /// What does not go with a lock.
    fn against_lock(&self) -> Option<Contradiction> {
        let (mode, implied) = (self.mode, Consistency::LOCKING);
        let says = |option| Some(Contradiction::AgainstLock { mode, option });
        if !self.hard {
            return says("soft");
        }
        if (self.time, self.mods) != (implied.time, implied.mods) {
            return says("another bound than time=0 and mods=0");
        }
        if self.order != implied.order {
            return says("another order than serial");
        }
        if self.visibility != implied.visibility {
            return says("another visibility than session");
        }
        if self.isolation != implied.isolation {
            return says("another isolation than session");
        }
        None
    }

    /// With one option, as it is written.
    fn with_written(self, item: &str) -> Result<Self, NoConsistency> {
        let (name, value) = match item.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (item, None),
        };
        let bad = |allowed: &str| NoConsistency::BadValue {
            option: name.to_string(),
            value: value.unwrap_or_default().to_string(),
            allowed: allowed.to_string(),
        };
        let of_words = |words| bad(&all_words(words));
        let of_whens = || bad(&all_words(Moment::WORDS));
        match (name, value) {
            ("hard", None) => Ok(self.hard()),
            ("soft", None) => Ok(self.soft()),
            ("since_sync", None) => Ok(self.since_sync()),
            ("causal", None) => Ok(self.causal()),
            ("atomic", None) => Ok(self.atomic()),
            ("mode", Some(value)) => {
                let mode = of_word(AccessMode::WORDS, value);
                Ok(self.with_mode(mode.ok_or_else(|| of_words(AccessMode::WORDS))?))
            }
            ("time", Some(NONE)) => Ok(self.with_time(None)),
            ("time", Some(value)) => {
                let time = Time::of_text(value).ok_or_else(|| bad(TIMES))?;
                Ok(self.with_time(time.0))
            }
            ("mods", Some(NONE)) => Ok(self.with_mods(None)),
            ("mods", Some(value)) => {
                let mods: u32 = value.parse().map_err(|_| bad(COUNTS))?;
                Ok(self.with_mods(mods))
            }
            ("order", Some(value)) => {
                let order = of_word(UpdateOrder::WORDS, value);
                Ok(self.with_order(order.ok_or_else(|| bad(&all_words(UpdateOrder::WORDS)))?))
            }
            ("visibility", Some(value)) => {
                let when = of_word(Moment::WORDS, value);
                Ok(self.with_visibility(when.ok_or_else(of_whens)?))
            }
            ("isolation", Some(value)) => {
                let when = of_word(Moment::WORDS, value);
                Ok(self.with_isolation(when.ok_or_else(of_whens)?))
            }
            ("failures", Some(PESSIMISTIC)) => Ok(self.with_failures(Failures::Pessimistic)),
            ("failures", Some(OPTIMISTIC)) => {
                Ok(self.with_failures(Failures::Optimistic { cutoff: None }))
            }
            ("failures", Some(value)) => {
                let cutoff = value.strip_prefix(OPTIMISTIC);
                let cutoff = cutoff.and_then(|rest| Time::of_text(rest.strip_prefix(':')?));
                let cutoff = cutoff.ok_or_else(|| bad(FAILURES))?.0;
                Ok(self.with_failures(Failures::Optimistic {
                    cutoff: Some(cutoff),
                }))
            }
            _ => Err(NoConsistency::Unknown {
                option: item.to_string(),
            }),
        }
    }

    fn preset(word: &str) -> Option<Consistency> {
        of_word(&Self::PRESETS, word)
    }
}

impl FromStr for Consistency {
    type Err = NoConsistency;

    /// A preset, options with commas between them, or a preset and what is otherwise. The mode comes first, wherever it stands.
    fn from_str(text: &str) -> Result<Self, NoConsistency> {
        if text.len() > CONSISTENCY_TEXT_BYTES_MAX {
            return Err(NoConsistency::TooLong);
        }
        let items = || text.split(',').map(str::trim);
        let first = items().next().unwrap_or_default();
        let preset = Self::preset(first);
        let options = || items().skip(usize::from(preset.is_some()));
        let name = |item: &str| {
            item.split('=')
                .next()
                .unwrap_or_default()
                .trim()
                .to_string()
        };
        if items().any(str::is_empty) {
            return Err(NoConsistency::Empty);
        }
        for (at, item) in options().enumerate() {
            let other = |word: &str| options().take(at).any(|item| name(item) == word);
            if Self::preset(item).is_some() {
                let preset = item.to_string();
                return Err(NoConsistency::PresetNotFirst { preset });
            }
            if other(&name(item)) {
                return Err(NoConsistency::Twice { option: name(item) });
            }
            if (item == "hard" && other("soft")) || (item == "soft" && other("hard")) {
                return Err(NoConsistency::HardAndSoft);
            }
        }
        let mut read = preset.unwrap_or(Consistency::PLAIN);
        // A lock implies others, which may be said otherwise only to be refused.
        let (modes, others): (alloc::vec::Vec<&str>, _) =
            options().partition(|item| name(item) == "mode");
        for item in modes.into_iter().chain(others) {
            read = read.with_written(item)?;
        }
        if first == BOUNDED && read.time.is_none() && read.mods.is_none() {
            return Err(NoConsistency::BoundedWithoutBound);
        }
        if read.kind != SessionKind::Visit && options().next().is_some() {
            return Err(Contradiction::TransactionWithOptions.into());
        }
        Ok(read.check()?)
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            SessionKind::Serializable => return f.write_str("serializable"),
            SessionKind::Strict => return f.write_str("strict"),
            SessionKind::Visit => write!(f, "mode={}", self.mode)?,
        }
        let implied = Consistency::PLAIN.with_mode(self.mode);
        if self.time != implied.time {
            match self.time {
                Some(time) => write!(f, ",time={}", Time(time))?,
                None => write!(f, ",time={NONE}")?,
            }
        }
        if self.mods != implied.mods {
            match self.mods {
                Some(mods) => write!(f, ",mods={mods}")?,
                None => write!(f, ",mods={NONE}")?,
            }
        }
        if self.hard != implied.hard {
            f.write_str(if self.hard { ",hard" } else { ",soft" })?;
        }
        let flags = [
            (self.since_sync, ",since_sync"),
            (self.causal, ",causal"),
            (self.atomic, ",atomic"),
        ];
        for (_, word) in flags.into_iter().filter(|(is_set, _)| *is_set) {
            f.write_str(word)?;
        }
        if self.order != implied.order {
            write!(f, ",order={}", self.order)?;
        }
        if self.failures != implied.failures {
            write!(f, ",failures={}", self.failures)?;
        }
        if self.visibility != implied.visibility {
            write!(f, ",visibility={}", self.visibility)?;
        }
        if self.isolation != implied.isolation {
            write!(f, ",isolation={}", self.isolation)?;
        }
        Ok(())
    }
}

const BOUNDED: &str = "bounded";
const NONE: &str = "none";
const TIMES: &str = "a whole number with us, ms, s, min or h, as 100ms; or none";
const COUNTS: &str = "a whole number of updates, or none";
const FAILURES: &str = "pessimistic, optimistic, or optimistic:TIME, as optimistic:50ms";

#[cfg(test)]
mod tests;
