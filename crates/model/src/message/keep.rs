//! A member without a log gives an update to the log of its site (rules C6 and C7).

use super::PageWrites;
use crate::lack::Lack;
use crate::{Author, AuthorText, Authorship, HomeId, NameId, SegmentId, Update, UpdateId};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Keep an update until its home has it. A member sends it to its site, and the site to the member that keeps its log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Keep {
    /// The home of the segment.
    pub home: HomeId,
    /// Whose log is to keep it. The site names it, where the member does not know it.
    pub log: NameId,
    /// Who has written it. It names the answer, too.
    pub author: Authorship,
    /// What it writes, as in an [`Update`].
    pub writes: Vec<PageWrites>,
    /// How long the answer may wait for a lease, in milliseconds (rule C10).
    pub patience_ms: u32,
}

/// The answer to [`Keep`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// The home of the segment.
    pub home: HomeId,
    /// Whose update it is.
    pub by: Author,
    /// What has become of it.
    pub result: Result<InCustody, NotKept>,
}

/// A log keeps an update: it is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InCustody {
    /// Its name from now on.
    pub id: UpdateId,
    /// Whether readers with hard bounds find it (rule C10).
    pub is_leased: bool,
}

/// Why an update was not taken. It does not exist then, if nothing else is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum NotKept {
    /// Neither the member nor its site has a log: nobody would keep the update if the member ended.
    NoLog,
    /// The log has as many updates, or bytes, as it may have; or as many of this name.
    LogFull,
    /// The disk under the log is full.
    DiskFull(Lack),
    /// The disk under the log is broken.
    Broken,
    /// It writes nothing, to several segments, or too much.
    Invalid,
    /// The log of the site is that of this name. The member signs for it, and sends the update again.
    OtherLog(NameId),
    /// The signature is not that of the member that brings the update (rule C7).
    NotProven,
    /// The site was gone before it had answered, or did not answer in time: the update may exist.
    InDoubt,
}

impl Keep {
    /// What its author has signed.
    pub fn text(&self, segment: SegmentId) -> AuthorText<'_> {
        AuthorText {
            version: crate::AUTHORSHIP_VERSION,
            home: self.home,
            segment,
            log: self.log,
            by: self.author.by,
            writes: &self.writes,
        }
    }

    /// The segment that it writes to, if it writes at all.
    pub fn segment(&self) -> Option<SegmentId> {
        Some(self.writes.first()?.page.segment)
    }

    /// Its bytes, for limits, with those of the proof.
    pub fn bytes(&self) -> usize {
        Update::bytes_of(&self.writes) + self.author.proof.bytes()
    }
}
