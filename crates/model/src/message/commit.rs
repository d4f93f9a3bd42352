//! A transaction on its way to its homes, and how it ended (rules 6, 10 and 11).

use crate::change::{SlotSet, WriteOp};
use crate::delegation::NotDelegated;
use crate::digest::PartDigest;
use crate::ids::{
    CommitId, Generation, HomeId, ObjectId, PageId, Position, Registration, SegmentId, Slot, Stamp,
};
use crate::lack::Lack;
use crate::limits::{BUSY_RETRY_MS, PAGE_READ_BYTES, PARTICIPANTS_MAX, RIGHTS_BYTES_MAX};
use crate::lock::Fence;
use crate::procedure::NotRun;
use crate::rights::Right;
use crate::share::Share;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A transaction's request to commit (rule 6).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommitRequest {
    /// Its id, used once.
    pub id: CommitId,
    /// The member's registration at the home of the part.
    pub registration: Registration,
    /// What concerns the home that it is sent to.
    pub part: Part,
    /// All homes that take part, this one too, ascending; empty if it is the
    /// only one (rule 10).
    pub with: Vec<Participant>,
    /// The transactions it builds on at that home (rules 4 and 14).
    pub depends_on: Vec<CommitId>,
    /// The home moves its clock past this, within a drift, before it gives a stamp (rule 5).
    pub after: Stamp,
}

/// A home that takes part in a transaction over several (rule 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Participant {
    /// The home.
    pub home: HomeId,
    /// The member's registration there: with the commit's id it names the outcome.
    pub registration: Registration,
}

/// What follows from the votes of all homes (rule 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Decision {
    /// Every home logged a vote: the highest of their stamps is the common one.
    Commit(Stamp),
    /// A home logged a no.
    Abort,
}

/// What a transaction did at one home.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The home.
    pub home: HomeId,
    /// The position at which all of its reads there are current (rule 4).
    pub evidence: Position,
    /// What it read, each page once. They travel ascending.
    #[serde(with = "super::reads")]
    pub reads: Vec<(PageId, SlotSet)>,
    /// What it wrote, pages and slots ascending, each once.
    pub writes: Vec<PageWrites>,
    /// The lock under which it was done, if its session holds one there (rule C5).
    pub under: Option<Fence>,
}

/// What a transaction writes to one page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PageWrites {
    /// The page.
    pub page: PageId,
    /// Its slots, ascending, each once.
    pub slots: Vec<(Slot, WriteOp)>,
}

impl CommitRequest {
    /// Bytes of values, slots and lists, for limits.
    pub fn bytes(&self) -> usize {
        self.part.bytes_in(self.with.len(), self.depends_on.len())
    }

    /// The home that it is sent to.
    pub fn home(&self) -> HomeId {
        self.part.home
    }
}

impl Part {
    /// The digest of what it reads and writes; none if it cannot travel.
    pub fn digest(&self) -> Option<PartDigest> {
        let encoded = postcard::to_allocvec(self).ok()?;
        Some(PartDigest::of(&encoded))
    }

    /// The segments that it writes in.
    pub fn segments_written(&self) -> BTreeSet<SegmentId> {
        let writes = self.writes.iter();
        writes.map(|writes| writes.page.segment).collect()
    }

    /// Bytes of values and slots, for limits.
    pub fn bytes(&self) -> usize {
        let writes: usize = self
            .writes
            .iter()
            .map(|page| {
                16 + page
                    .slots
                    .iter()
                    .map(|(_, op)| 16 + op.bytes())
                    .sum::<usize>()
            })
            .sum();
        self.reads.len() * PAGE_READ_BYTES + writes
    }

    /// Bytes of a request with this part that lists so many homes and commits.
    pub fn bytes_in(&self, with: usize, depends_on: usize) -> usize {
        self.bytes() + with * 16 + depends_on * 24
    }
}

/// How a commit ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// It is durable, at this place in the home's order.
    Committed {
        /// Its position.
        position: Position,
        /// Its stamp.
        stamp: Stamp,
    },
    /// It has and will have no effect.
    Refused(Refusal),
}

/// Which kind of refusal (rule 6). *Busy*, *full*, *share*, *not delegated*, *not yet* and *other log* leave the id usable;
/// every other refusal ends it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Refusal {
    /// An object that was read changed after the evidence. Run the transaction again.
    Conflict {
        /// One such object.
        object: ObjectId,
    },
    /// It conflicts with a commit in doubt. Run it again a little later.
    InDoubt,
    /// The home has too much to do. Send it again after a while.
    Busy {
        /// How long to wait, in milliseconds.
        retry_after_ms: u32,
    },
    /// The home has no room to make it durable. Reads go on; free some room.
    Full(Lack),
    /// It builds on a transaction that was refused. Run both again.
    BuiltOnRefused,
    /// The home did not know this id when it was asked for it, and now never will
    /// execute it. Run the transaction again.
    Unknown,
    /// The member lacks a right (rule R4). The refusal ends the id.
    NoRight {
        /// The right that it would need.
        right: Right,
    },
    /// The request cannot be right; running it again does not help.
    Invalid {
        /// What is wrong with it.
        reason: InvalidCommit,
    },
    /// The home remembers nothing of this id any more: it will not execute it,
    /// and cannot tell whether it did (rule 11).
    Forgotten,
    /// Another home of the transaction refused its part (rule 10). Run it again.
    Elsewhere,
    /// The member has not signed that it may come this way. The home has recorded nothing (rule R2).
    NotDelegated(NotDelegated),
    /// The home has gone back in time, and what the commit rests on may be lost. It was not sent (rule R9).
    WentBack,
    /// The home has gone back in time, and does not know the commit: it may have ended in the history that is lost.
    Lost,
    /// The member's name has its share of a table (rule R7). The id may be sent again when there is more.
    Share(Share),
    /// The home lacks an earlier update of the log, the one with this number: send that first (rule C7).
    NotYet {
        /// The number.
        number: u64,
    },
    /// The update is of the log of another name (rule C7).
    OtherLog,
    /// A session holds a lock on what is written (rule C5). The id may be sent again when that is over.
    Locked {
        /// So long its lease lasts, in milliseconds, if it is not given more time.
        ends_ms: u32,
    },
    /// The lock that it names is over (rule C5). Its session has read what may have changed since.
    LockLost,
}

impl Refusal {
    /// Whoever refuses has too much to do: the member sends it again after [`BUSY_RETRY_MS`].
    pub fn busy() -> Self {
        Refusal::Busy {
            retry_after_ms: BUSY_RETRY_MS,
        }
    }
}

/// What cannot be right in a commit request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum InvalidCommit {
    /// No such segment (any more).
    NoSuchSegment,
    /// The object is not the one meant: deleted, or deleted and created anew.
    Generation {
        /// The object.
        object: ObjectId,
        /// The generation that it has.
        found: Generation,
    },
    /// A patch reaches beyond the end of its object, or into a large one.
    Patch {
        /// The object.
        object: ObjectId,
    },
    /// More bytes than a commit or a value may have.
    TooLarge,
    /// A staged value that was not (wholly) staged by this member.
    NotStaged,
    /// A page that programs may not write to: an overflow page, or the first of a segment.
    ReservedPage,
    /// Pages or slots out of order or twice, or a part of another home.
    Malformed,
    /// A page that it needs is damaged on the home's disk.
    Damaged,
    /// More homes in one transaction than may be, or a list of them that cannot be right.
    Participants,
    /// What is written is no rights list (rule R3).
    BadRights,
    /// A transaction over several homes reads or writes a rights list (rule R5).
    RightsOfSeveral,
    /// A home that takes part and that the refusing home is not configured for (rule R7).
    UnknownHome {
        /// The home that is not known.
        home: HomeId,
    },
    /// A procedure met what it does not work on (rule C8). Nothing of the commit has happened.
    Procedure {
        /// The object.
        object: ObjectId,
        /// What it met.
        why: NotRun,
    },
    /// A transaction over several homes runs a procedure (rule C8): what it would leave is known only when all is decided.
    ProcedureOfSeveral,
    /// The signature of an update's author is not good, or not good any more (rule C7).
    NotProven,
}

impl Refusal {
    /// The refusal's kind, for counts and messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Refusal::Conflict { .. } => "conflict",
            Refusal::InDoubt => "in doubt",
            Refusal::Busy { .. } => "busy",
            Refusal::Full(_) => "full",
            Refusal::BuiltOnRefused => "built on a refused one",
            Refusal::Unknown => "unknown",
            Refusal::NoRight { .. } => "no right",
            Refusal::Invalid { .. } => "invalid",
            Refusal::Forgotten => "forgotten",
            Refusal::Elsewhere => "refused at another home",
            Refusal::NotDelegated(_) => "not delegated",
            Refusal::WentBack => "gone back",
            Refusal::Lost => "lost",
            Refusal::Share(_) => "share",
            Refusal::NotYet { .. } => "not yet",
            Refusal::OtherLog => "other log",
            Refusal::Locked { .. } => "locked",
            Refusal::LockLost => "lock lost",
        }
    }

    /// Whether the id may be sent again as it is (rule 11).
    pub fn leaves_id_usable(&self) -> bool {
        matches!(
            self,
            Refusal::Busy { .. }
                | Refusal::Full(_)
                | Refusal::NotDelegated(_)
                | Refusal::Share(_)
                | Refusal::NotYet { .. }
                | Refusal::OtherLog
                | Refusal::Locked { .. }
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Conflict { object } => {
                write!(
                    f,
                    "object {object} was changed by another transaction: run it again"
                )
            }
            Refusal::InDoubt => write!(f, "a commit in doubt is in the way: run it again"),
            Refusal::Busy { retry_after_ms } => {
                write!(f, "the home is busy: try again after {retry_after_ms} ms")
            }
            Refusal::Full(lack) => write!(
                f,
                "the home's store is full: {lack}; reads and deletes go on"
            ),
            Refusal::NotDelegated(why) => write!(f, "{why}"),
            Refusal::WentBack => write!(
                f,
                "the home has gone back in time, and what was read there may be lost: nothing was sent; read it again"
            ),
            Refusal::Lost => write!(
                f,
                "the home has gone back in time, and does not know whether it had committed this: look at the objects"
            ),
            Refusal::Share(share) => write!(f, "{share}"),
            Refusal::NotYet { number } => write!(
                f,
                "the home lacks update {number} of this log: that one comes first"
            ),
            Refusal::OtherLog => write!(f, "the update is of the log of another name"),
            Refusal::Locked { ends_ms } => write!(
                f,
                "a session holds a lock on what is written: try again when it is over, at the latest in {ends_ms} ms if it gets no more time"
            ),
            Refusal::LockLost => write!(
                f,
                "the lock is over, or is one to read: others may have written since; take it again, to write, and read again"
            ),
            Refusal::BuiltOnRefused => write!(f, "a transaction that it builds on was refused"),
            Refusal::Unknown => write!(
                f,
                "the home never got it before it was asked for the outcome: run it again"
            ),
            Refusal::NoRight { right } => write!(
                f,
                "no right to do this: it needs {right}; an admin of the segment can grant that"
            ),
            Refusal::Invalid { reason } => write!(f, "{reason}"),
            Refusal::Forgotten => write!(
                f,
                "the home no longer remembers whether it committed this: look at the objects"
            ),
            Refusal::Elsewhere => {
                write!(
                    f,
                    "another home of the transaction refused it: run it again"
                )
            }
        }
    }
}

impl fmt::Display for InvalidCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidCommit::NoSuchSegment => write!(
                f,
                "there is no such segment (any more), or this node may not read it"
            ),
            InvalidCommit::Generation { object, found } => write!(
                f,
                "object {object} is not the one meant: its slot is at generation {found}"
            ),
            InvalidCommit::Patch { object } => {
                write!(f, "a patch does not lie within object {object}")
            }
            InvalidCommit::TooLarge => write!(f, "more bytes than one commit may carry"),
            InvalidCommit::NotStaged => write!(f, "a large value was not staged"),
            InvalidCommit::ReservedPage => write!(f, "a page that programs may not write to"),
            InvalidCommit::Malformed => write!(f, "the commit request is malformed"),
            InvalidCommit::Damaged => write!(
                f,
                "a page is damaged on the home's disk: `thorp check` there tells which"
            ),
            InvalidCommit::Participants => write!(
                f,
                "the homes of the transaction are listed wrongly, or are more than {PARTICIPANTS_MAX}"
            ),
            InvalidCommit::BadRights => write!(
                f,
                "this is no rights list: one line for each subject, `RIGHT SUBJECT`, at most {RIGHTS_BYTES_MAX} bytes"
            ),
            InvalidCommit::RightsOfSeveral => write!(
                f,
                "a transaction over several homes may not touch rights: change them in one of their own"
            ),
            InvalidCommit::UnknownHome { home } => write!(
                f,
                "one of its homes is not configured for the other one, home id {home}: start each of them with --other-home for the other, or name it as [[other_home]]"
            ),
            InvalidCommit::Procedure { object, why } => {
                write!(f, "a procedure cannot run on object {object}: {why}")
            }
            InvalidCommit::ProcedureOfSeveral => write!(
                f,
                "a transaction over several homes may run no procedures: run them in one of their own, or read and write"
            ),
            InvalidCommit::NotProven => write!(
                f,
                "the home does not accept the signature of the member that wrote it: its certificate has ended or was revoked, or somebody has changed the update"
            ),
        }
    }
}
