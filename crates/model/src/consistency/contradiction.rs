//! Why something is no consistency.

use super::options::AccessMode;
use crate::limits::{CONSISTENCY_CUTOFF_MAX, CONSISTENCY_MODS_MAX, CONSISTENCY_TIME_MAX};
use alloc::string::String;
use core::fmt;

/// Options that do not go together. Its text says what to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contradiction {
    /// Serializable and strict sessions have no options.
    TransactionWithOptions,
    /// A lock implies an option that is said otherwise.
    AgainstLock {
        /// The lock.
        mode: AccessMode,
        /// What was said.
        option: &'static str,
    },
    /// Hard is a bound that is never exceeded, and there is no bound.
    HardWithoutBound,
    /// It says from when on age counts, and no age is bounded.
    SinceSyncWithoutTime,
    /// A serial update waits for the home, and the session is to go on without it.
    SerialWithoutHome,
    /// A group leaves as one, and its parts are to leave one by one.
    GroupInParts,
    /// More than [`CONSISTENCY_TIME_MAX`].
    TimeTooLong,
    /// More than [`CONSISTENCY_MODS_MAX`].
    TooManyMods,
    /// More than [`CONSISTENCY_CUTOFF_MAX`].
    CutoffTooLong,
}

/// Why a text is no consistency. Its text says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoConsistency {
    /// No preset and no option has this name.
    Unknown {
        /// As it was written.
        option: String,
    },
    /// Nothing stands between two commas, or at an end.
    Empty,
    /// An option is there twice.
    Twice {
        /// Which one.
        option: String,
    },
    /// Both hard and soft are there.
    HardAndSoft,
    /// A preset that is not the first, or not the only one.
    PresetNotFirst {
        /// As it was written.
        preset: String,
    },
    /// No such value.
    BadValue {
        /// Of this option.
        option: String,
        /// As it was written.
        value: String,
        /// What may stand there.
        allowed: String,
    },
    /// A session is to be bounded, and nothing says how.
    BoundedWithoutBound,
    /// Longer than any that makes sense.
    TooLong,
    /// Its options do not go together.
    Contradiction(Contradiction),
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contradiction::TransactionWithOptions => f.write_str(
                "a serializable or strict session is a transaction, which has no options: leave them out, or take another preset",
            ),
            Contradiction::AgainstLock { mode, option } => write!(
                f,
                "with mode={mode} a session is hard, most current and serial, and its view and updates go by session: {option} does not go with it, so leave it out",
            ),
            Contradiction::HardWithoutBound => {
                f.write_str("hard is a bound that is never exceeded: give one with time= or mods=, or leave hard out")
            }
            Contradiction::SinceSyncWithoutTime => {
                f.write_str("since_sync says how age counts: give a bound with time=, or leave since_sync out")
            }
            Contradiction::SerialWithoutHome => f.write_str(
                "serial order waits for the home, and failures=optimistic goes on without it: choose one of them",
            ),
            Contradiction::GroupInParts => f.write_str(
                "an atomic group leaves as one: take visibility=session or visibility=manual, or leave atomic out",
            ),
            Contradiction::TimeTooLong => write!(
                f,
                "time is at most {} h; without a bound it is time=none",
                CONSISTENCY_TIME_MAX.as_secs() / 3600
            ),
            Contradiction::TooManyMods => write!(
                f,
                "mods is at most {CONSISTENCY_MODS_MAX}; without a bound it is mods=none"
            ),
            Contradiction::CutoffTooLong => write!(
                f,
                "the cutoff is a round trip of at most {} s; without one it is failures=optimistic",
                CONSISTENCY_CUTOFF_MAX.as_secs()
            ),
        }
    }
}

impl fmt::Display for NoConsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoConsistency::Unknown { option } => write!(
                f,
                "{option:?} is no preset and no option of a consistency: `thorp consistency` lists both",
            ),
            NoConsistency::Empty => {
                f.write_str("an option is empty: write options with one comma between two of them")
            }
            NoConsistency::Twice { option } => write!(f, "{option} is said twice"),
            NoConsistency::HardAndSoft => f.write_str("hard and soft are both there: choose one"),
            NoConsistency::PresetNotFirst { preset } => write!(
                f,
                "{preset} is a preset: there may be one, and it comes first",
            ),
            NoConsistency::BadValue {
                option,
                value,
                allowed,
            } => write!(f, "{option}={value} is not one of: {allowed}"),
            NoConsistency::BoundedWithoutBound => {
                f.write_str("bounded has no bound: add time= or mods=, as bounded,time=100ms,hard")
            }
            NoConsistency::TooLong => f.write_str("this text is too long for a consistency"),
            NoConsistency::Contradiction(contradiction) => contradiction.fmt(f),
        }
    }
}

impl From<Contradiction> for NoConsistency {
    fn from(contradiction: Contradiction) -> Self {
        NoConsistency::Contradiction(contradiction)
    }
}

impl core::error::Error for Contradiction {}
impl core::error::Error for NoConsistency {}
