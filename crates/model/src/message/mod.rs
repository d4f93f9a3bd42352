//! What travels on an edge: [`Up`] from child to parent, [`Down`] from parent
//! to child. The protocol is the same at every depth.

mod call;
mod commit;
mod reads;

pub use crate::message::call::{CallError, CallId, CallRequest, CallResponse, SegmentInfo};
pub use crate::message::commit::{
    CommitRequest, Decision, InvalidCommit, Outcome, PageWrites, Part, Participant, Refusal,
};

use crate::change::PageChange;
use crate::ids::{
    Attempt, CommitId, EntryNo, Epoch, HomeId, MemberId, PageId, Position, Registration, ReportNo,
    SegmentId, Stamp,
};
use crate::image::Image;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A message on an edge.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// To the parent.
    Up(Up),
    /// To the child.
    Down(Down),
    /// To either: I am there (rule 13).
    Alive,
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
        /// Whether the answer may come beside the stream: a neighbour's, or the home's own (rule 9).
        peers: bool,
        /// Whether nobody waits for it yet: who waits is served, where there is no room for both.
        ahead: bool,
        /// Of how many of its next changes the new values are wanted, too (rule 8).
        updates: u8,
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
    /// Commit a transaction, or vote for its part of one over several homes.
    Commit(CommitRequest),
    /// What the votes for a transaction over several homes came to (rule 10).
    Decide {
        /// The home that is told.
        home: HomeId,
        /// Which transaction.
        commit: CommitId,
        /// The member's registration at that home.
        registration: Registration,
        /// How it ends.
        decision: Decision,
    },
    /// Every home has heard how it ended: what was kept for them may go.
    Settled {
        /// The home that is told.
        home: HomeId,
        /// Which transaction.
        commit: CommitId,
        /// The member's registration at that home.
        registration: Registration,
    },
    /// Something of a home that is not a page or a commit.
    Call {
        /// Names the answer.
        call: CallId,
        /// Which home.
        home: HomeId,
        /// What is asked.
        request: CallRequest,
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
    /// I hold these pages from an earlier stream: which have changed since (rule 13)?
    Report {
        /// Whose pages.
        home: HomeId,
        /// The stream that is to tell their changes from now on.
        epoch: Epoch,
        /// Names the answer.
        report: ReportNo,
        /// At most [`crate::limits::REPORT_PAGES_MAX`].
        pages: Vec<Reported>,
    },
}

/// A page that a child holds from an earlier stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reported {
    /// The page.
    pub page: PageId,
    /// Where the copy is right: the child had heard everything up to there. Never below the
    /// copy's version, and so says more.
    pub as_of: Position,
    /// Whether the copy has no holes.
    pub complete: bool,
}

impl Up {
    /// Which home it is for.
    pub fn home(&self) -> HomeId {
        match self {
            Up::Commit(request) => request.home(),
            Up::Peer(peer) => peer.home,
            Up::Fetch { home, .. }
            | Up::Evict { home, .. }
            | Up::Ack { home, .. }
            | Up::Decide { home, .. }
            | Up::Settled { home, .. }
            | Up::Call { home, .. }
            | Up::Report { home, .. }
            | Up::Watch { home, .. } => *home,
        }
    }

    /// Whether a member says it for itself: the commits and calls that it names are its own. A site passes on what others say.
    pub fn is_own(&self, member: MemberId) -> bool {
        match self {
            Up::Commit(request) => request.id.member == member,
            Up::Decide { commit, .. } | Up::Settled { commit, .. } => commit.member == member,
            Up::Call { call, request, .. } => {
                let asks_for_own = match request {
                    CallRequest::Outcome { commit, .. } => commit.member == member,
                    _ => true,
                };
                call.member == member && asks_for_own
            }
            _ => true,
        }
    }
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
        /// How long ago the parent itself last heard of the home, in milliseconds:
        /// zero from the home. At most so much; longer is told as the most.
        silent_ms: u32,
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
        /// What is promised there (rule 5).
        watermark: Stamp,
        /// The page, or why not.
        answer: FetchResult,
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
    /// The home logged a vote for its part of a commit (rule 10).
    Voted {
        /// By whom.
        home: HomeId,
        /// Which.
        commit: CommitId,
        /// The stamp that it votes for.
        stamp: Stamp,
    },
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
        result: Result<CallResponse, CallError>,
    },
    /// A limit is reached: changes in this segment are not told, or no longer,
    /// until the child asks again (rule 15).
    Unwatched {
        /// Whose segment.
        home: HomeId,
        /// The segment.
        segment: SegmentId,
    },
    /// What is likely to be wanted after a page that was asked for: it promises nothing, and may be
    /// lost (rule 9).
    Hint {
        /// Whose pages.
        home: HomeId,
        /// The page that was asked for.
        page: PageId,
        /// The likeliest first; at most [`crate::limits::HINT_PAGES_MAX`].
        next: Vec<PageId>,
    },
    /// A page that the child asked for, and nobody there waits for, was on its way already: a
    /// neighbour gets it, too. It changes nothing, and may be lost (rule 9).
    Joined {
        /// Whose page.
        home: HomeId,
        /// The page.
        page: PageId,
    },
    /// The answer to [`Up::Report`]: as of this place in the stream the pages
    /// reported are as they were, but for these. All of them are entered, as far as there is room in the directory:
    /// what there is none for is among these.
    Resynchronised {
        /// Whose pages.
        home: HomeId,
        /// Which piece of the report.
        report: ReportNo,
        /// The entering of every page of the piece that is entered (rule 2).
        entry: EntryNo,
        /// As of where; the stream is complete up to there.
        position: Position,
        /// The pages that may have changed: the child's copies are worth nothing.
        changed: Vec<PageId>,
        /// The pages that this says nothing of: another answer will.
        open: Vec<PageId>,
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
            | Down::Voted { home, .. }
            | Down::Refused { home, .. }
            | Down::Told { home, .. }
            | Down::Heartbeat { home, .. }
            | Down::Answer { home, .. }
            | Down::Unwatched { home, .. }
            | Down::Hint { home, .. }
            | Down::Joined { home, .. }
            | Down::Resynchronised { home, .. } => *home,
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
    /// What is promised here: mostly that very stamp, and less while a commit in doubt
    /// may still get a lower one (rule 5).
    pub watermark: Stamp,
    /// The commit, if it came up this edge: its reply.
    pub commit: Option<CommitId>,
    /// What happened to pages that the child holds or watches. Values that the
    /// child kept of its own commit are left out.
    pub changes: Vec<PageChange>,
}

/// A parent's answer to a fetch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FetchResult {
    /// The page; one that was never written is empty, and entered like any other.
    Image(Image),
    /// The page cannot be had.
    Refused(FetchRefusal),
}

/// Why a page cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FetchRefusal {
    /// There is no such segment, or no object has reached this overflow page
    /// yet; nothing was entered for this request.
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
