//! What a member asks for, and what it gets.

use std::fmt;
use thorp_client::{Error, ErrorKind};

/// What a member asks for in a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// Opens the segment by its path: a call.
    Open,
    /// Reads an object that it knows: a page, from the cache, a site or the home.
    Read,
    /// Overwrites an object of its own without reading it: a commit.
    Write,
    /// Sets the list that the segment has: a commit that only an admin may make.
    SetList,
}

/// What it got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// What it asked for.
    Given,
    /// A right is missing, and it may know that the segment is there.
    NoRight,
    /// To it, there is no such thing (rule R5).
    Hidden,
    /// Anything else is wrong in any case.
    Strange(String),
}

impl Request {
    /// All of them.
    pub(crate) const ALL: [Request; 4] = [
        Request::Open,
        Request::Read,
        Request::Write,
        Request::SetList,
    ];

    /// The right that it needs, as a word of a list.
    pub(crate) fn needs(self) -> &'static str {
        match self {
            Request::Open | Request::Read => "read",
            Request::Write => "write",
            Request::SetList => "admin",
        }
    }
}

impl Answer {
    /// What a call of the client library came to.
    pub(crate) fn of<T>(result: Result<T, Error>) -> Self {
        match result {
            Ok(_) => Answer::Given,
            Err(error) => match error.kind() {
                ErrorKind::NoRight => Answer::NoRight,
                ErrorKind::NotFound => Answer::Hidden,
                _ => Answer::Strange(error.to_string()),
            },
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Given => f.write_str("given"),
            Answer::NoRight => f.write_str("refused, no right"),
            Answer::Hidden => f.write_str("refused, as if it were not there"),
            Answer::Strange(words) => f.write_str(words),
        }
    }
}
