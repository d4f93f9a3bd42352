//! What a member asks of a home beside pages and commits, and the answers.

use crate::blob::Blob;
use crate::delegation::{Delegation, NotDelegated};
use crate::history::{Incarnation, KnownHistory};
use crate::ids::{CommitId, HomeId, MemberId, PageNo, Position, Registration, SegmentId, Stamp};
use crate::image::Overflow;
use crate::lack::Lack;
use crate::lock::{Fence, LockMode};
use crate::message::{JointAnswer, JointQuestion, Outcome};
use crate::privilege::Privilege;
use crate::rights::Right;
use crate::share::Share;
use crate::update::{LogId, LogState};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Names a call: unique in the life of a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct CallId {
    /// The member that calls.
    pub member: MemberId,
    /// Counts its calls.
    pub number: u64,
}

/// What a member asks of a home beside pages and commits. Every request may be
/// sent again: the second time it changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CallRequest {
    /// Remember my commits (rule 11), and take my requests by the sites that I name (rule R2). Without
    /// a delegation it names none anew: so a program asks for the registration of its member.
    Register(Option<Delegation>),
    /// A segment by its path.
    Open {
        /// The path in the home.
        path: String,
        /// Whether to make it if there is none.
        create: bool,
    },
    /// The segments whose paths begin so.
    List {
        /// What their paths begin with.
        prefix: String,
        /// Only paths after this one: the last of the page before.
        after: String,
    },
    /// Remove a segment and reclaim its space.
    Remove {
        /// The id of the segment: its path may name another one by the time that
        /// the member sends the request again.
        segment: SegmentId,
    },
    /// Fresh pages to create objects in (foundation 2).
    Reserve {
        /// The segment that gets them.
        segment: SegmentId,
        /// How many are wanted; the home grants one at least, and [`EXTENT_PAGES`](crate::limits::EXTENT_PAGES) at most.
        pages: u32,
    },
    /// Overflow pages of a large value, ahead of its commit (foundation 3).
    Stage {
        /// The segment that the value is for.
        segment: SegmentId,
        /// The member's registration.
        registration: Registration,
        /// Names the value among those of the member.
        token: u64,
        /// Bytes of the whole value.
        bytes: u64,
        /// The first of these chunks, counted from zero.
        index: u32,
        /// Chunks of [`crate::limits::OVERFLOW_CHUNK_BYTES`], the last one shorter.
        chunks: Vec<Blob>,
    },
    /// Forget a staged value.
    Unstage {
        /// The member's registration.
        registration: Registration,
        /// The member's name for the value.
        token: u64,
    },
    /// Promise as much as this, if nothing is in doubt below it: the clock is moved up,
    /// within a drift (rule 5, trap 15). A heartbeat tells the promise before the answer does.
    Watermark {
        /// The stamp that a transaction wants to stand at.
        at_least: Stamp,
    },
    /// How a commit ended. One that the home does not know is refused for ever.
    Outcome {
        /// The commit that is asked about.
        commit: CommitId,
        /// The member's registration.
        registration: Registration,
    },
    /// The votes in doubt, the oldest first. Only an operator on an edge of its own gets them (rule R7).
    Doubts {
        /// Only those after this one: the last of the page before.
        after: Option<(Stamp, CommitId)>,
    },
    /// End a vote in doubt. Only an operator on an edge of its own may do so (rule R7).
    Settle {
        /// The commit of the vote.
        commit: CommitId,
        /// How it ends.
        ruling: Ruling,
    },
    /// What the home knows of its own history. Only an operator on an edge of its own gets it (rule R9).
    History,
    /// Open a closed home with the next incarnation. Only an operator on an edge of its own may do so (rule R9).
    Confirm {
        /// The incarnation that the operator has seen: a home that is above it was opened meanwhile, and answers so.
        seen: Incarnation,
        /// It is a copy for a test: it gets a key of its own.
        apart: bool,
    },
    /// A question about transactions over several homes. Only an operator on an edge of its own asks it, or another home
    /// that is configured (rule R9).
    Joint {
        /// The home that is asked: another one passes the question on. Only an operator has it passed on.
        at: HomeId,
        /// The question.
        question: JointQuestion,
    },
    /// Tell me of each update that is saved in this segment, from the answer on (rule C6), and how far these logs are.
    Follow {
        /// The segment.
        segment: SegmentId,
        /// At most [`crate::limits::FOLLOWED_LOGS_MAX`].
        logs: Vec<LogId>,
    },
    /// Grant me a privilege in these segments, for a while (rules C1 and C4). With *write*, ask me when somebody pulls. With
    /// *read*, answer no change before I have seen it (rule C2).
    Lease {
        /// At most [`crate::limits::LEASED_SEGMENTS_MAX`].
        segments: Vec<SegmentId>,
        /// Which privilege.
        privilege: Privilege,
    },
    /// Answer when every change of these segments is here that was answered before this left (rule C3).
    Pull {
        /// At most [`crate::limits::PULL_SEGMENTS_MAX`].
        segments: Vec<SegmentId>,
        /// Answer after so long in any case, and say whom you await.
        patience_ms: u32,
    },
    /// Grant a lock on these segments when its turn comes (rule C5).
    Lock {
        /// At most [`crate::limits::LOCK_SEGMENTS_MAX`], ascending.
        segments: Vec<SegmentId>,
        /// What the holder may do.
        mode: LockMode,
        /// Answer after so long in any case, and say whom you await.
        patience_ms: u32,
    },
    /// Give a lock more time (rule C4).
    KeepLock {
        /// The lock.
        fence: Fence,
    },
    /// The session needs the lock no more.
    Unlock {
        /// The lock.
        fence: Fence,
    },
}

/// How an operator ends a vote in doubt (rule R7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Ruling {
    /// The part gets a position, at the highest stamp among the votes that the home knows.
    Commit,
    /// The part is refused.
    Abort,
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ruling::Commit => "commit",
            Ruling::Abort => "abort",
        })
    }
}

impl CallRequest {
    /// Bytes of the chunks that it stages, for limits; none of other requests.
    pub fn staged_bytes(&self) -> usize {
        match self {
            CallRequest::Stage { chunks, .. } => chunks.iter().map(|c| 16 + c.bytes().len()).sum(),
            _ => 0,
        }
    }

    /// The registration that the member fills in when it sends the request;
    /// that of an outcome is the one its commit was sent under.
    pub fn registration_mut(&mut self) -> Option<&mut Registration> {
        match self {
            CallRequest::Stage { registration, .. } | CallRequest::Unstage { registration, .. } => {
                Some(registration)
            }
            _ => None,
        }
    }
}

/// A home's answer to a [`CallRequest`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CallResponse {
    /// The member's registration.
    Registered(Registration),
    /// The segment.
    Segment(SegmentInfo),
    /// Some segments in the order of their paths; more if `more`.
    Segments {
        /// The segments of this answer.
        segments: Vec<SegmentInfo>,
        /// Whether there are more after the last.
        more: bool,
    },
    /// The segment is gone.
    Removed,
    /// The pages that the member may create objects in.
    Extent {
        /// The number of the first page.
        first: PageNo,
        /// How many pages follow each other.
        pages: u32,
    },
    /// The chunks are in stable storage.
    Staged(Overflow),
    /// The staged value is forgotten.
    Unstaged,
    /// What is promised now: less than was asked for, if something is in doubt, or the clock
    /// would have to be moved too far.
    Watermark(Stamp),
    /// How the commit ended.
    Outcome(Outcome),
    /// The home logged a vote for it, and does not know how it ended (rule 10).
    Voted(Stamp),
    /// Some votes in doubt, the oldest first; more if `more`.
    Doubts {
        /// At most [`crate::limits::DOUBTS_LISTED_MAX`].
        doubts: Vec<Doubt>,
        /// Whether there are more after the last.
        more: bool,
    },
    /// How the vote has ended at this home: as the operator said, or so before.
    Settled(Outcome),
    /// What the home knows of its own history.
    History(KnownHistory),
    /// The home was opened, and is in this incarnation now.
    Opened(Incarnation),
    /// What the home that was asked remembers of transactions over several homes (rule R9).
    Joint(JointAnswer),
    /// From here on each update that is saved in the segment is told (rule C6).
    Following {
        /// The stream is complete up to here.
        position: Position,
        /// How far the logs are, as of here (rule C7).
        logs: Vec<LogState>,
    },
    /// The lease counts for so many milliseconds from now on; for the child from sending its request (rule C4).
    Leased {
        /// So long.
        lease_ms: u32,
    },
    /// Everything is here that was answered before the pull left (rule C3).
    Pulled,
    /// The lock counts for so many milliseconds from now on; for the member from sending its request (rule C4). Everything is here
    /// that was answered before it was granted.
    Locked {
        /// Its number. What is written under it names that.
        fence: Fence,
        /// So long.
        lease_ms: u32,
    },
    /// The lock is over.
    Unlocked,
}

/// A vote in doubt as a home lists it (rule R7).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Doubt {
    /// The commit of the vote.
    pub commit: CommitId,
    /// The name of the member, if the home knows it.
    pub name: Option<String>,
    /// The stamp that the home voted for. The list is in this order.
    pub stamp: Stamp,
    /// How long it has been in doubt, in milliseconds; since the start of the home, if it is from before.
    pub age_ms: u64,
    /// The other homes of the transaction.
    pub others: Vec<DoubtHome>,
}

/// Another home of a transaction in doubt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DoubtHome {
    /// The id of the home.
    pub home: HomeId,
    /// Its name, if it is configured and has been heard in this life of the home that lists it.
    pub name: Option<String>,
    /// Whether there is a way to it.
    pub is_reached: bool,
    /// The stamp that it voted for, if it has said so.
    pub vote: Option<Stamp>,
}

/// A segment as a home lists it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SegmentInfo {
    /// The id of the segment.
    pub id: SegmentId,
    /// The path in the home.
    pub path: String,
    /// Pages below this number may hold objects.
    pub extent: PageNo,
}

/// Why a call failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CallError {
    /// There is no such segment.
    NoSuchSegment,
    /// A path is empty, too long, or has bytes that paths may not have.
    BadPath,
    /// A limit of the home is reached.
    TooMany,
    /// The home has too much to do; call again after a while.
    Busy,
    /// The home has no room.
    Full(Lack),
    /// The request cannot be right.
    Invalid,
    /// The home does not know this registration (any more): register again.
    NotRegistered,
    /// The member lacks a right (rule R4).
    NoRight {
        /// The right that it would need.
        right: Right,
    },
    /// The member has not signed that it may come this way (rule R2).
    NotDelegated(NotDelegated),
    /// To another home: how this ended may be in a history that is lost. It is no answer (rule R9).
    Lost,
    /// The home keeps no vote for this commit, and no outcome of it.
    NoSuchVote,
    /// The member's name has its share of a table (rule R7).
    Share(Share),
    /// The home is not closed: there is nothing to confirm (rule R9).
    NotClosed,
    /// A node may have answered updates that the home has not seen, and it does not answer (rule C10).
    Awaits {
        /// The name of a node; empty: the home has started again, and does not know yet who that may be.
        name: String,
        /// So long its lease lasts, in milliseconds.
        ends_ms: u32,
    },
    /// Others hold a privilege that speaks against this one (rule C1).
    Privileged,
    /// The lock could not be granted in time (rule C5).
    Locked {
        /// The name of one that holds what stands against it; empty: it is being given back, or stands behind others.
        name: String,
    },
    /// The lock is over (rule C5).
    LockLost,
    /// A transaction over several homes may have been answered, and this home does not know yet how it has ended (rule C2).
    InDoubt(CommitId),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallError::NotDelegated(why) => return write!(f, "{why}"),
            CallError::Lost => "the home has gone back in time, and may have lost this",
            CallError::Share(share) => return write!(f, "{share}"),
            CallError::NoSuchSegment => "there is no such segment, or this node may not read it",
            CallError::NoRight { right } => {
                return write!(
                    f,
                    "no right to do this: it needs {right}; an admin of the segment can grant that"
                );
            }
            CallError::BadPath => {
                "a segment's path has 1 to 512 bytes, no control character, and nothing empty before, between or after its slashes"
            }
            CallError::TooMany => "a limit of the home is reached",
            CallError::Busy => "the home is busy: try again in a moment",
            CallError::Full(lack) => return write!(f, "the home's store is full: {lack}"),
            CallError::Invalid => "the request cannot be right",
            CallError::NotRegistered => {
                "the home has forgotten this member, which registers again: try again"
            }
            CallError::NoSuchVote => "the home has no vote for this commit",
            CallError::NotClosed => "the home is not closed, and goes on as it is",
            CallError::LockLost => {
                "the lock is over, or is one to read: others may have written since; take it again, to write, and read again"
            }
            CallError::Locked { name } if name.is_empty() => {
                "the lock was not free in time: others wait for it, or write what their logs keep; try again, or wait longer"
            }
            CallError::Locked { name } => {
                return write!(
                    f,
                    "node {name} holds a lock that stands against this one: try again when it is over, or wait longer"
                );
            }
            CallError::InDoubt(commit) => {
                return write!(
                    f,
                    "the home waits for the outcome of transaction {commit} over several homes, which writes there: try again later, or see `thorp doubt`"
                );
            }
            CallError::Privileged => "others hold a privilege there that speaks against this one",
            CallError::Awaits { name, ends_ms } if name.is_empty() => {
                return write!(
                    f,
                    "the home has started again, and knows in {ends_ms} ms who may have written what it has not seen: try again then"
                );
            }
            CallError::Awaits { name, ends_ms } => {
                return write!(
                    f,
                    "node {name} may have written what its home has not seen, and does not answer: its lease ends in {ends_ms} ms; try again then, or take failures=optimistic"
                );
            }
        })
    }
}
