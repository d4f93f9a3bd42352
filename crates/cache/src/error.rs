//! Why a read gives nothing.

use std::fmt;
use thorp_model::{HomeId, Place};

/// Why a transaction cannot commit any more, whatever else it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doomed {
    /// A slot that it read on this page was changed by another commit (rule 4).
    Changed(Place),
    /// This page is newer than the position at which the transaction's evidence
    /// froze, because a page that it read was evicted (rule 2).
    Newer(Place),
    /// It has read on as of before a change to what it read on this page, as one that only reads
    /// may: it cannot write any more (rule 5).
    Behind(Place),
    /// More was changed since its last read than is remembered (foundation 7).
    Outrun(HomeId),
    /// The home has gone back in time: what was read there may be lost (rule R9).
    WentBack(HomeId),
}

impl fmt::Display for Doomed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doomed::Changed(place) => write!(f, "what was read on page {place:?} has changed"),
            Doomed::Newer(place) => {
                write!(
                    f,
                    "page {place:?} is newer than an evicted page read before"
                )
            }
            Doomed::Behind(place) => {
                write!(
                    f,
                    "what was read on page {place:?} has changed, so it is too late to write"
                )
            }
            Doomed::WentBack(home) => {
                write!(
                    f,
                    "home {home} has gone back in time, and what was read there may be lost"
                )
            }
            Doomed::Outrun(home) => {
                write!(f, "too much changed at home {home} since the last read")
            }
        }
    }
}

impl std::error::Error for Doomed {}

/// Why a slot could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// The page is not cached, or the slot is a hole: have the member fetch the
    /// page, then read again. Nothing was recorded.
    Miss(Place),
    /// The transaction is doomed: begin it anew.
    Doomed(Doomed),
}

impl From<Doomed> for ReadError {
    fn from(doomed: Doomed) -> Self {
        ReadError::Doomed(doomed)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Miss(place) => write!(f, "page {place:?} is not cached"),
            ReadError::Doomed(doomed) => doomed.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}
