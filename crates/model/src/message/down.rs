//! From parent to child: a struct for each message.

use super::{CallError, CallId, CallResponse, Keep, Kept, PeerImage, Refusal, Told};
use crate::{
    Attempt, Audience, CommitId, EntryNo, Epoch, HomeId, Image, MemberId, NameId, Outcome,
    PageChange, PageDigest, PageId, PartDigest, Position, Receipt, ReportNo, SegmentId, Stamp,
    UpdateId, Verdict,
};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// From parent to child. All but [`Down::Peer`] are the stream of their home
/// and are in its order (rule 1).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Down {
    /// A stream begins: forget what another epoch told.
    Begin(Begin),
    /// The stream ends: the home is out of reach for now.
    End(End),
    /// One position, whole.
    Step(Step),
    /// The answer to [`Up::Fetch`](crate::Up::Fetch).
    Image(FetchResponse),
    /// Send your image of a page to a neighbour (rule 9).
    Redirect(Redirect),
    /// A helper's answer on its way to the requester: beside the stream.
    Peer(PeerImage),
    /// The home logged a vote for its part of a commit (rule 10).
    Voted(Voted),
    /// A commit was refused.
    Refused(Refused),
    /// The outcome of a commit that wrote nothing, or one that was remembered:
    /// it is forwarded, never applied (rule 11).
    Committed(Committed),
    /// Nothing happened to your pages up to here.
    Heartbeat(Heartbeat),
    /// The answer to [`Up::Call`](crate::Up::Call).
    CallResult(CallResult),
    /// A limit is reached: changes in this segment are not told, or no longer,
    /// until the child asks again (rule 15).
    Unwatched(Unwatched),
    /// What is likely to be wanted after a page that was asked for: it promises nothing, and may be
    /// lost (rule 9).
    Hint(Hint),
    /// A page that the child asked for, and nobody there waits for, was on its way already: a
    /// neighbour gets it, too. It changes nothing, and may be lost (rule 9).
    Joined(Joined),
    /// The answer to [`Up::Report`](crate::Up::Report): as of this place in the stream the pages
    /// reported are as they were, but for these. All of them are entered, as far as there is room in the directory:
    /// what there is none for is among these.
    Resynchronised(Resynchronised),
    /// How far the home was when it sent this (rule R9). It comes before each answer that rests on more than the last
    /// one said, and before a heartbeat.
    Receipt(Receipt),
    /// The answer to [`Up::Judge`](crate::Up::Judge).
    Judged(Judged),
    /// One position, at which an update was saved (rule C6). It goes to the child that brought the update, and to all that
    /// follow the segment.
    Saved(Box<Saved>),
    /// An update that its home may not have executed. It is beside the stream (rule C6).
    Update(Told),
    /// A pull: how far are the logs below you (rule C3)?
    Get(Get),
    /// A neighbour follows a segment from here on: tell your updates again that are not saved (rule C7).
    Tell(Tell),
    /// The answer to a commit follows: its program waits for it, and its member asks for the outcome (rule C2). This comes before the
    /// step of the commit, its outcome, or its vote.
    Withheld(Withheld),
    /// Say how far you are when you show this position (rule C2).
    SeenWanted(SeenWanted),
    /// Give leases to write back as soon as you can (rule C1).
    Recall(Recall),
    /// Keep an update of a neighbour in your log (rule C6).
    Keep(Box<Keep>),
    /// What has become of an update that was to be kept.
    Kept(Kept),
}

impl Down {
    /// How a commit ended, for a child that waits for nothing else of it.
    pub fn outcome(home: HomeId, commit: CommitId, outcome: Outcome) -> Self {
        match outcome {
            Outcome::Committed { position, stamp } => Down::Committed(Committed {
                home,
                commit,
                position,
                stamp,
            }),
            Outcome::Refused(refusal) => Down::Refused(Refused {
                home,
                commit,
                refusal,
            }),
        }
    }

    /// The home of the stream that it belongs to.
    pub fn home(&self) -> HomeId {
        match self {
            Down::Begin(begin) => begin.home,
            Down::End(end) => end.home,
            Down::Step(step) => step.home,
            Down::Image(response) => response.home,
            Down::Redirect(redirect) => redirect.home,
            Down::Peer(peer) => peer.home,
            Down::Voted(voted) => voted.home,
            Down::Refused(refused) => refused.home,
            Down::Committed(committed) => committed.home,
            Down::Heartbeat(heartbeat) => heartbeat.home,
            Down::CallResult(result) => result.home,
            Down::Unwatched(unwatched) => unwatched.home,
            Down::Hint(hint) => hint.home,
            Down::Joined(joined) => joined.home,
            Down::Resynchronised(resynchronised) => resynchronised.home,
            Down::Receipt(receipt) => receipt.home,
            Down::Judged(judged) => judged.home,
            Down::Saved(saved) => saved.step.home,
            Down::Update(told) => told.update.home,
            Down::Get(get) => get.home,
            Down::Tell(tell) => tell.home,
            Down::Withheld(withheld) => withheld.home,
            Down::SeenWanted(wanted) => wanted.home,
            Down::Recall(recall) => recall.home,
            Down::Keep(keep) => keep.home,
            Down::Kept(kept) => kept.home,
        }
    }
}

/// One position, at which an update was settled (rule C6). Who shows the update applies both at once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Saved {
    /// The update.
    pub update: UpdateId,
    /// Whether the home has executed it. It has refused it otherwise, and the position changes nothing.
    pub is_executed: bool,
    /// The position.
    pub step: Step,
}

/// A pull goes down: how far are the logs below (rule C3)?
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Get {
    /// The home that pulls.
    pub home: HomeId,
    /// The question, as the parent counts them. A pull may ask several times.
    pub pull: u64,
    /// The segments. At most [`crate::limits::PULL_SEGMENTS_MAX`].
    pub segments: Vec<SegmentId>,
    /// Names whose leases there are void, because they have lost the right to write: nobody asks them (rule R5). At most
    /// [`crate::limits::VOID_LEASES_TOLD_MAX`].
    pub void: Vec<(SegmentId, NameId)>,
}

/// A neighbour follows a segment from here on (rule C7).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tell {
    /// The home of the segment.
    pub home: HomeId,
    /// The segment.
    pub segment: SegmentId,
}

/// The answer to a commit follows (rule C2).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Withheld {
    /// The home that keeps it back.
    pub home: HomeId,
    /// The commit.
    pub commit: CommitId,
}

/// An answer waits until a child has seen a position (rule C2).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SeenWanted {
    /// The home of the stream.
    pub home: HomeId,
    /// The position. The child was told it before.
    pub position: Position,
    /// The segments that change there, as far as children hold read leases in them.
    pub segments: Vec<SegmentId>,
}

/// A parent wants leases to write back, because somebody waits for a lock there (rules C1 and C5).
/// [`Up::GiveBack`](crate::Up::GiveBack) answers it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Recall {
    /// The home of the segments.
    pub home: HomeId,
    /// The segments.
    pub segments: Vec<SegmentId>,
}

/// A stream begins: forget what another epoch told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Begin {
    /// The home of the stream.
    pub home: HomeId,
    /// The home's name.
    pub name: String,
    /// The life of the stream.
    pub epoch: Epoch,
    /// Where it begins.
    pub position: Position,
    /// What is promised there.
    pub watermark: Stamp,
    /// How long ago the parent itself last heard of the home, in milliseconds:
    /// zero from the home. At most so much; longer is told as the most.
    pub silent_ms: u32,
    /// To a site: to whom pages may be given of each segment that not every member may read or not
    /// every site may carry, as of the position (rule R4). Empty to a member.
    pub readers: Vec<(SegmentId, Audience)>,
    /// The names of the sites on the way to the home, from the home on (rule R2). None at a child of
    /// the home.
    pub sites: Vec<NameId>,
    /// What the stream rests on (rule R9).
    pub receipt: Receipt,
    /// What was said of the child's claim.
    pub verdict: Verdict,
}

/// What the home says of a claim that came up (rule R9).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Judged {
    /// The home that says so.
    pub home: HomeId,
    /// The question.
    pub question: u64,
    /// What became of the claim.
    pub verdict: Verdict,
}

/// The stream ends: the home is out of reach for now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct End {
    /// The home of the stream.
    pub home: HomeId,
}

/// The answer to [`Up::Fetch`](crate::Up::Fetch).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FetchResponse {
    /// The home of the page.
    pub home: HomeId,
    /// The page that the child asked for.
    pub page: PageId,
    /// The try it answers.
    pub attempt: Attempt,
    /// The entering it carries (rule 2).
    pub entry: EntryNo,
    /// As of where; the stream is complete up to there.
    pub position: Position,
    /// What is promised there (rule 5).
    pub watermark: Stamp,
    /// The page, or why not.
    pub result: FetchResult,
}

/// Send your image of a page to a neighbour (rule 9).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Redirect {
    /// The home of the page.
    pub home: HomeId,
    /// The page whose image the helper is to send.
    pub page: PageId,
    /// The member that asked.
    pub requester: MemberId,
    /// The requester's epoch.
    pub epoch: Epoch,
    /// The requester's try.
    pub attempt: Attempt,
    /// The requester's entering.
    pub entry: EntryNo,
}

/// The home logged a vote for its part of a commit (rule 10).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Voted {
    /// The home that says so.
    pub home: HomeId,
    /// The commit for which the home votes.
    pub commit: CommitId,
    /// The stamp that it votes for.
    pub stamp: Stamp,
}

/// A commit was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// The home that says so.
    pub home: HomeId,
    /// The commit that the home refused.
    pub commit: CommitId,
    /// Why the home refused it.
    pub refusal: Refusal,
}

/// The outcome of a commit that wrote nothing, or one that was remembered:
/// it is forwarded, never applied (rule 11).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Committed {
    /// The home that says so.
    pub home: HomeId,
    /// The commit that has this outcome.
    pub commit: CommitId,
    /// Where it stands in the home's order.
    pub position: Position,
    /// The stamp under which the home committed it.
    pub stamp: Stamp,
}

/// Nothing happened to your pages up to here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The home of the stream.
    pub home: HomeId,
    /// Complete up to here.
    pub position: Position,
    /// All commits stamped at or below it were delivered (rule 5).
    pub watermark: Stamp,
}

/// The answer to [`Up::Call`](crate::Up::Call).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallResult {
    /// The home that says so.
    pub home: HomeId,
    /// The call that the home answers.
    pub call: CallId,
    /// What the home answered.
    pub result: Result<CallResponse, CallError>,
}

/// A limit is reached: changes in this segment are not told, or no longer,
/// until the child asks again (rule 15).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unwatched {
    /// The home of the segment.
    pub home: HomeId,
    /// The segment whose changes the parent does not tell.
    pub segment: SegmentId,
}

/// What is likely to be wanted after a page that was asked for: it promises nothing, and may be
/// lost (rule 9).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hint {
    /// The home of the pages.
    pub home: HomeId,
    /// The page that was asked for.
    pub page: PageId,
    /// The likeliest first; at most [`crate::limits::HINT_PAGES_MAX`].
    pub next: Vec<PageId>,
}

/// A page that the child asked for, and nobody there waits for, was on its way already: a
/// neighbour gets it, too. It changes nothing, and may be lost (rule 9).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Joined {
    /// The home of the page.
    pub home: HomeId,
    /// The page that was on its way already.
    pub page: PageId,
}

/// The answer to [`Up::Report`](crate::Up::Report): as of this place in the stream the pages
/// reported are as they were, but for these. All of them are entered, as far as there is room in the directory:
/// what there is none for is among these.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Resynchronised {
    /// The home of the pages.
    pub home: HomeId,
    /// The piece of the report.
    pub report: ReportNo,
    /// The entering of every page of the piece that is entered (rule 2).
    pub entry: EntryNo,
    /// As of where; the stream is complete up to there.
    pub position: Position,
    /// The pages that may have changed: the child's copies are worth nothing.
    pub changed: Vec<PageId>,
    /// The pages that this says nothing of: another answer will.
    pub open: Vec<PageId>,
    /// To a site: digests of some pages that have not changed (rule R6). Empty to a member.
    pub digests: Vec<(PageId, PageDigest)>,
}

/// Everything of one position that concerns a child: applied as one (rule 1).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The home of the position.
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
    /// The part of that commit that the home executed: only values of this very part belong here
    /// (rule R2).
    pub executed: Option<PartDigest>,
    /// What happened to pages that the child holds or watches. Values that the
    /// child kept of its own commit are left out.
    pub changes: Vec<PageChange>,
    /// To a site: of each page in `changes`, in their order, its digest at this position (rule R6). Empty to a member.
    pub digests: Vec<PageDigest>,
    /// To a site: the segments whose readers or carriers change here (rule R4). Empty to a member.
    pub readers: Vec<(SegmentId, Audience)>,
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
    /// A site on the way may not carry the segment (rule R4). Nobody hears it who may not read the segment (rule R5).
    NotCarried,
}
