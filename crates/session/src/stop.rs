//! Why a transaction does not go on.

use std::fmt;
use thorp_cache::{Doomed, ReadError};
use thorp_model::{HomeId, NotRun, Place, Reference};

/// Why a transaction does not go on. After all but [`Stop::Miss`] it has no
/// effect and has to begin anew, if its program wants that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// This page is not in the cache: have it fetched, and look again.
    Miss(Place),
    /// What it read has changed, or its evidence is not known any more.
    Doomed(Doomed),
    /// The object is not the one meant: deleted, or deleted and created anew.
    Gone(Reference),
    /// A part of a large object is gone: the object was changed meanwhile.
    Torn(Reference),
    /// A procedure of this transaction does not run on the object as it is now.
    NotRun(Reference, NotRun),
    /// It takes in more homes than a transaction may.
    TooManyHomes,
    /// What was read is older than the session allows, and the cache does not follow it any more (rule 2).
    ReadsTooOld {
        /// The home of what was read.
        home: HomeId,
        /// Milliseconds since that was current.
        silent_ms: u64,
    },
    /// The home was not heard of for longer than the session allows (foundation 9).
    HomeSilent {
        /// The home that is silent.
        home: HomeId,
        /// Milliseconds since it was heard of.
        silent_ms: u64,
    },
}

impl From<Doomed> for Stop {
    fn from(doomed: Doomed) -> Self {
        Stop::Doomed(doomed)
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Miss(place) => Stop::Miss(place),
            ReadError::Doomed(doomed) => Stop::Doomed(doomed),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Miss(place) => write!(f, "page {place:?} is not cached"),
            Stop::Doomed(doomed) => doomed.fmt(f),
            Stop::Gone(object) => write!(f, "object {object:?} is gone"),
            Stop::Torn(object) => {
                write!(f, "large object {object:?} was changed while it was read")
            }
            Stop::NotRun(object, why) => {
                write!(f, "a procedure cannot run on {object:?}: {why}")
            }
            Stop::TooManyHomes => f.write_str("the transaction takes in too many homes"),
            Stop::ReadsTooOld { silent_ms, .. } => {
                write!(f, "what was read {silent_ms} ms ago is no longer followed")
            }
            Stop::HomeSilent { home, silent_ms } => {
                write!(f, "home {home} was not heard of for {silent_ms} ms")
            }
        }
    }
}

impl std::error::Error for Stop {}
