//! What a member knows of its homes and its site.

use crate::OutOfReach;
use std::time::{Duration, SystemTime};
use thorp_model::{HomeId, Position};
use thorp_protocol::InLog;

/// A home as this member sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HomeStatus {
    /// Its id.
    pub id: HomeId,
    /// Its name, as in `thorp://NAME/..`.
    pub name: String,
    /// Whether its stream is live.
    pub reachable: bool,
    /// How far down the stream the cache is.
    pub position: Position,
    /// The time since the last heartbeat of the home.
    pub silent: Duration,
    /// What the home's hybrid clock said with that heartbeat: what it promised, as a time. It lags while a commit is open
    /// at the home, and it runs ahead for some seconds after the home has started. None before the first heartbeat.
    pub clock: Option<SystemTime>,
    /// How often an operator has opened it as one that has gone back in time.
    pub incarnation: u16,
    /// When this member heard of the last of them, if it was a member before that.
    pub reopened: Option<SystemTime>,
}

/// Where a member has joined, and what it carries for its neighbours.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SiteStatus {
    /// The name of the site or home where it has joined (of several homes, of the first); none while no one answers.
    pub name: Option<String>,
    /// Its address, as it was reached.
    pub address: Option<String>,
    /// Whether that is the redirector which this member carries itself.
    pub is_own: bool,
    /// How many members have joined at the redirector that this member carries, itself included. Zero: another one is
    /// the site.
    pub carried: usize,
    /// Pages that the redirector of this member has requested from the homes.
    pub asked_homes: u64,
    /// The sites and homes of this member that are out of reach, and why. While it carries the redirector, these are
    /// also the homes of the redirector.
    pub out_of_reach: Vec<OutOfReach>,
}

/// What is in the log of a member ([`JoinConfig::log`](crate::JoinConfig::log)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogStatus {
    /// Updates that are *tentative*: their homes have neither executed nor refused them, as far as the member knows.
    pub tentative: usize,
    /// Of those, the ones that an earlier start of the program has written.
    pub of_earlier_starts: usize,
    /// How old the oldest of the others is: so long it has been durable in the log.
    pub oldest: Option<Duration>,
    /// Updates that their homes have refused. `thorp updates` lists them when the member has ended.
    pub rejected: usize,
    /// Bytes of all of them.
    pub bytes: usize,
}

impl From<InLog> for LogStatus {
    fn from(log: InLog) -> Self {
        LogStatus {
            tentative: log.tentative,
            of_earlier_starts: log.of_earlier_starts,
            oldest: log.oldest_ms.map(Duration::from_millis),
            rejected: log.rejected,
            bytes: log.bytes,
        }
    }
}
