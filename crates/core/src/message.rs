//! What travels on an edge: [`Up`] from child to parent, [`Down`] from parent
//! to child. The protocol is the same at every depth.

use crate::change::{Blob, PageChange, SlotSet, WriteOp};
use crate::ids::{
    Attempt, CommitId, EntryNo, Epoch, Generation, HomeId, MemberId, ObjectId, PageId, PageNo,
    Position, Registration, SegmentId, Slot, Stamp,
};
use crate::image::{Image, Overflow};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A message on an edge.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// To the parent.
    Up(Up),
    /// To the child.
    Down(Down),
}

/// From child to parent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Up {
    /// Send me a page.
    Fetch {
        /// Whose page.
        home: HomeId,
        /// The stream that it is for.
        epoch: Epoch,
        /// The page.
        page: PageId,
        /// Which try this is.
        attempt: Attempt,
        /// Whether a neighbour may answer, beside the stream (rule 9).
        peers: bool,
    },
    /// I no longer hold a page, nor does anybody below me (rule 2).
    Evict {
        /// Whose page.
        home: HomeId,
        /// The stream that told its changes.
        epoch: Epoch,
        /// The page.
        page: PageId,
        /// The highest entry number received for it.
        entry: EntryNo,
    },
    /// Everything below me has applied the stream so far (rule 7).
    Ack {
        /// Whose stream.
        home: HomeId,
        /// Which life of it.
        epoch: Epoch,
        /// How far.
        position: Position,
    },
    /// A helper's answer to [`Down::Redirect`].
    Peer(PeerImage),
    /// Commit a transaction.
    Commit(CommitRequest),
    /// Something of a home that is not a page or a commit.
    Call {
        /// Names the answer.
        call: CallId,
        /// Which home.
        home: HomeId,
        /// What is asked.
        request: Request,
    },
    /// Tell me (no longer) of every change in a segment.
    Watch {
        /// Whose segment.
        home: HomeId,
        /// The stream that is to tell it.
        epoch: Epoch,
        /// The segment.
        segment: SegmentId,
        /// Whether to begin or to end.
        on: bool,
    },
}

/// From parent to child. All but [`Down::Peer`] are the stream of their home
/// and are in its order (rule 1).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Down {
    /// A stream begins: forget what another epoch told.
    Begin {
        /// Whose stream.
        home: HomeId,
        /// The home's name.
        name: String,
        /// Which life of the stream.
        epoch: Epoch,
        /// Where it begins.
        position: Position,
        /// What is promised there.
        watermark: Stamp,
    },
    /// The stream ends: the home is out of reach for now.
    End {
        /// Whose stream.
        home: HomeId,
    },
    /// One position, whole.
    Step(Step),
    /// The answer to [`Up::Fetch`].
    Image {
        /// Whose page.
        home: HomeId,
        /// The page.
        page: PageId,
        /// The try it answers.
        attempt: Attempt,
        /// The entering it carries (rule 2).
        entry: EntryNo,
        /// As of where; the stream is complete up to there.
        position: Position,
        /// The page, or why not.
        answer: FetchAnswer,
    },
    /// Send your image of a page to a neighbour (rule 9).
    Redirect {
        /// Whose page.
        home: HomeId,
        /// The page.
        page: PageId,
        /// Who asked.
        requester: MemberId,
        /// The requester's epoch.
        epoch: Epoch,
        /// The requester's try.
        attempt: Attempt,
        /// The requester's entering.
        entry: EntryNo,
    },
    /// A helper's answer on its way to the requester: beside the stream.
    Peer(PeerImage),
    /// A commit was refused.
    Refused {
        /// By whom.
        home: HomeId,
        /// Which.
        commit: CommitId,
        /// Why.
        refusal: Refusal,
    },
    /// The outcome of a commit that wrote nothing, or one that was remembered:
    /// it is forwarded, never applied (rule 11).
    Told {
        /// By whom.
        home: HomeId,
        /// Which.
        commit: CommitId,
        /// Where it stands in the home's order.
        position: Position,
        /// Its stamp.
        stamp: Stamp,
    },
    /// Nothing happened to your pages up to here.
    Heartbeat {
        /// Whose stream.
        home: HomeId,
        /// Complete up to here.
        position: Position,
        /// All commits stamped at or below it were delivered (rule 5).
        watermark: Stamp,
    },
    /// The answer to [`Up::Call`].
    Answer {
        /// By whom.
        home: HomeId,
        /// Which call.
        call: CallId,
        /// The answer.
        result: Result<Response, CallError>,
    },
}

impl Down {
    /// Whose stream it belongs to.
    pub fn home(&self) -> HomeId {
        match self {
            Down::Step(step) => step.home,
            Down::Peer(peer) => peer.home,
            Down::Begin { home, .. }
            | Down::End { home }
            | Down::Image { home, .. }
            | Down::Redirect { home, .. }
            | Down::Refused { home, .. }
            | Down::Told { home, .. }
            | Down::Heartbeat { home, .. }
            | Down::Answer { home, .. } => *home,
        }
    }
}

/// Everything of one position that concerns a child: applied as one (rule 1).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Whose position.
    pub home: HomeId,
    /// Complete up to here.
    pub position: Position,
    /// The commit's stamp.
    pub stamp: Stamp,
    /// The commit, if it came up this edge: its reply.
    pub commit: Option<CommitId>,
    /// What happened to pages that the child holds or watches. Values that the
    /// child kept of its own commit are left out.
    pub changes: Vec<PageChange>,
}

/// A parent's answer to a fetch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FetchAnswer {
    /// The page; one that was never written is empty, and entered like any other.
    Image(Image),
    /// The page cannot be had.
    Refused(FetchRefusal),
}

/// Why a page cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FetchRefusal {
    /// There is no such segment, or no object has reached this overflow page
    /// yet; nothing was entered.
    NoSuchSegment,
    /// What is on disk is damaged; `thorp check` at the home tells more.
    Damaged,
    /// Too many requests at once; ask again.
    Busy,
}

/// A helper's answer: an image with the label that brings it under the
/// requester's stream (rule 9).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PeerImage {
    /// Whose page.
    pub home: HomeId,
    /// The page.
    pub page: PageId,
    /// Who asked.
    pub requester: MemberId,
    /// In which epoch.
    pub epoch: Epoch,
    /// In which try.
    pub attempt: Attempt,
    /// Under which entry number.
    pub entry: EntryNo,
    /// The image is as of here.
    pub position: Position,
    /// The image, or that the helper has no complete one.
    pub image: Option<Image>,
}

/// A transaction's request to commit (rule 6).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommitRequest {
    /// Its id, used once.
    pub id: CommitId,
    /// The member's registration at the coordinating home.
    pub registration: Registration,
    /// What concerns each home; the first is the coordinating one.
    pub parts: Vec<Part>,
    /// The transactions it builds on (rule 14).
    pub builds_on: Vec<CommitId>,
}

/// What a transaction did at one home.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The home.
    pub home: HomeId,
    /// The position at which all of its reads there are current (rule 4).
    pub evidence: Position,
    /// What it read.
    pub reads: Vec<(PageId, SlotSet)>,
    /// What it wrote, pages and slots ascending, each once.
    pub writes: Vec<PageWrites>,
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
    /// Bytes of values and slots, for limits.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(Part::bytes).sum()
    }

    /// The part of a home.
    pub fn part(&self, home: HomeId) -> Option<&Part> {
        self.parts.iter().find(|part| part.home == home)
    }

    /// The home that answers: a fixed function of the request (rule 11).
    pub fn coordinator(&self) -> Option<HomeId> {
        self.parts.first().map(|part| part.home)
    }
}

impl Part {
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
        self.reads.len() * 48 + writes
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

/// Which kind of refusal (rule 6). *Busy* and *full* leave the id usable;
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
    Full,
    /// It builds on a transaction that was refused. Run both again.
    BuiltOnRefused,
    /// The home did not know this id when it was asked for it, and now never will
    /// execute it. Run the transaction again.
    Unknown,
    /// The member may not write there.
    NoRight,
    /// The request cannot be right; running it again does not help.
    Invalid {
        /// What is wrong with it.
        reason: InvalidCommit,
    },
    /// The home remembers nothing of this id any more: it will not execute it,
    /// and cannot tell whether it did (rule 11).
    Forgotten,
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
    /// Several homes in one transaction are not supported yet.
    SeveralHomes,
}

impl Refusal {
    /// The refusal's kind, for counts and messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Refusal::Conflict { .. } => "conflict",
            Refusal::InDoubt => "in doubt",
            Refusal::Busy { .. } => "busy",
            Refusal::Full => "full",
            Refusal::BuiltOnRefused => "built on a refused one",
            Refusal::Unknown => "unknown",
            Refusal::NoRight => "no right",
            Refusal::Invalid { .. } => "invalid",
            Refusal::Forgotten => "forgotten",
        }
    }

    /// Whether the id may be sent again as it is (rule 11).
    pub fn leaves_id_usable(&self) -> bool {
        matches!(self, Refusal::Busy { .. } | Refusal::Full)
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
            Refusal::Full => write!(
                f,
                "the home's store is full: commits are refused until there is room; reads go on"
            ),
            Refusal::BuiltOnRefused => write!(f, "a transaction that it builds on was refused"),
            Refusal::Unknown => write!(
                f,
                "the home never got it before it was asked for the outcome: run it again"
            ),
            Refusal::NoRight => write!(f, "no right to write there"),
            Refusal::Invalid { reason } => write!(f, "{reason}"),
            Refusal::Forgotten => write!(
                f,
                "the home no longer remembers whether it committed this: look at the objects"
            ),
        }
    }
}

impl fmt::Display for InvalidCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidCommit::NoSuchSegment => write!(f, "the segment does not exist (any more)"),
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
            InvalidCommit::SeveralHomes => {
                write!(f, "a transaction over several homes is not supported yet")
            }
        }
    }
}

/// Names a call: unique in the life of a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct CallId {
    /// Who calls.
    pub member: MemberId,
    /// Counts its calls.
    pub number: u64,
}

/// What a member asks of a home beside pages and commits. Every request may be
/// sent again: the second time it changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Remember my commits (rule 11).
    Register,
    /// A segment by its path.
    Open {
        /// The path in the home.
        path: String,
        /// Whether to make it if there is none.
        create: bool,
    },
    /// The segments whose paths begin so.
    List {
        /// The beginning.
        prefix: String,
        /// Only paths after this one: the last of the page before.
        after: String,
    },
    /// Remove a segment and reclaim its space.
    Remove {
        /// Which: not by its path, which may name another one by the time that
        /// the request is sent again.
        segment: SegmentId,
    },
    /// Fresh pages to create objects in (decision 2).
    Reserve {
        /// Where.
        segment: SegmentId,
    },
    /// Overflow pages of a large value, ahead of its commit (decision 3).
    Stage {
        /// Where.
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
        /// Which value.
        token: u64,
    },
    /// How a commit ended. One that the home does not know is refused for ever.
    Outcome {
        /// Which.
        commit: CommitId,
        /// The member's registration.
        registration: Registration,
    },
}

impl Request {
    /// The registration that the member fills in when it sends the request;
    /// that of an outcome is the one its commit was sent under.
    pub(crate) fn registration_mut(&mut self) -> Option<&mut Registration> {
        match self {
            Request::Stage { registration, .. } | Request::Unstage { registration, .. } => {
                Some(registration)
            }
            _ => None,
        }
    }
}

/// A home's answer to a [`Request`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Response {
    /// The member's registration.
    Registered(Registration),
    /// The segment.
    Segment(SegmentInfo),
    /// Some segments in the order of their paths; more if `more`.
    Segments {
        /// The segments.
        segments: Vec<SegmentInfo>,
        /// Whether there are more after the last.
        more: bool,
    },
    /// It is gone.
    Removed,
    /// Fresh pages.
    Extent {
        /// The first.
        first: PageNo,
        /// How many.
        pages: u32,
    },
    /// The chunks are in stable storage.
    Staged(Overflow),
    /// The staged value is forgotten.
    Unstaged,
    /// How the commit ended.
    Outcome(Outcome),
}

/// A segment as a home lists it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SegmentInfo {
    /// Its id.
    pub id: SegmentId,
    /// Its path.
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
    Full,
    /// The request cannot be right.
    Invalid,
    /// The home does not know this registration (any more): register again.
    NotRegistered,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallError::NoSuchSegment => "there is no such segment",
            CallError::BadPath => {
                "a segment's path has 1 to 512 bytes, none of them a control character"
            }
            CallError::TooMany => "a limit of the home is reached",
            CallError::Busy => "the home is busy: try again in a moment",
            CallError::Full => "the home's store is full",
            CallError::Invalid => "the request cannot be right",
            CallError::NotRegistered => "the home has forgotten this member: join again",
        })
    }
}
