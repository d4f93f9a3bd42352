//! From child to parent: a struct for each message.

use super::{CallId, CallRequest, CommitRequest, Decision, Keep, Kept, PeerImage};
use crate::limits::{PROOF_BYTES_MAX, REPORTED_NAME_BYTES_MAX};
use crate::{
    Attempt, AuthorText, Authorship, Claim, CommitId, CustodyText, EntryNo, Epoch, HomeId, LogHead,
    MemberId, PageId, Position, Privilege, Proof, Registration, ReportNo, SegmentId, Update,
    UpdateId,
};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// What a child sends to its parent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Up {
    /// Send me a page.
    Fetch(Fetch),
    /// I no longer hold a page, nor does anybody below me (rule 2).
    Evict(Evict),
    /// Everything below me has applied the stream so far (rule 7).
    Ack(Ack),
    /// A helper's answer to [`Down::Redirect`](crate::Down::Redirect).
    Peer(PeerImage),
    /// Commit a transaction, or vote for its part of one over several homes.
    Commit(CommitRequest),
    /// What the votes for a transaction over several homes came to (rule 10).
    Decide(Decide),
    /// Every home has heard how it ended: what was kept for them may go.
    Settled(Settled),
    /// Something of a home that is not a page or a commit.
    Call(Call),
    /// Tell me (no longer) of every change in a segment.
    Watch(Watch),
    /// I hold these pages from an earlier stream: which have changed since (rule 13)?
    Report(Report),
    /// A node below me wanted to read what it may not (rule R8).
    Denied(Denied),
    /// What does the home say of the claim of a node below me (rule R9)?
    Judge(Judge),
    /// Execute an update that a log keeps, once (rule C7).
    Save(Box<Save>),
    /// Show an update to your children that follow its segment. It does not go to the home (rule C6).
    Update(Told),
    /// The answer to [`Down::Get`](crate::Down::Get): how far the logs below me are (rule C3).
    Heads(Heads),
    /// I hold no lease there any more, and its home has executed what I have answered under it (rule C4). A site says so only
    /// after a [`Down::Recall`](crate::Down::Recall), when nobody below it holds one.
    GiveBack(GiveBack),
    /// What I show, and what all below me show that hold read leases, has come so far (rule C2).
    Seen(Seen),
    /// Keep an update of mine in your log (rule C6).
    Keep(Box<Keep>),
    /// What has become of the update of a neighbour. It goes to that neighbour.
    Kept(Kept),
}

impl Up {
    /// The home that it is for.
    pub fn home(&self) -> HomeId {
        match self {
            Up::Commit(request) => request.home(),
            Up::Peer(peer) => peer.home,
            Up::Fetch(fetch) => fetch.home,
            Up::Evict(evict) => evict.home,
            Up::Ack(ack) => ack.home,
            Up::Decide(decide) => decide.home,
            Up::Settled(settled) => settled.home,
            Up::Call(call) => call.home,
            Up::Report(report) => report.home,
            Up::Watch(watch) => watch.home,
            Up::Denied(denied) => denied.home,
            Up::Judge(judge) => judge.claim.receipt.home,
            Up::Save(save) => save.request.home(),
            Up::Update(told) => told.update.home,
            Up::Heads(heads) => heads.home,
            Up::GiveBack(back) => back.home,
            Up::Seen(seen) => seen.home,
            Up::Keep(keep) => keep.home,
            Up::Kept(kept) => kept.home,
        }
    }

    /// The epoch of the stream that it belongs to; commits and calls belong to none.
    pub fn epoch(&self) -> Option<Epoch> {
        match self {
            Up::Fetch(fetch) => Some(fetch.epoch),
            Up::Evict(evict) => Some(evict.epoch),
            Up::Ack(ack) => Some(ack.epoch),
            Up::Report(report) => Some(report.epoch),
            Up::Watch(watch) => Some(watch.epoch),
            Up::Judge(judge) => Some(judge.epoch),
            // A helper's image belongs to a stream of its requester.
            Up::Peer(_)
            | Up::Save(_)
            | Up::Update(_)
            | Up::Heads(_)
            | Up::GiveBack(_)
            | Up::Seen(_)
            | Up::Keep(_)
            | Up::Kept(_)
            | Up::Commit(_)
            | Up::Decide(_)
            | Up::Settled(_)
            | Up::Call(_)
            | Up::Denied(_) => None,
        }
    }

    /// The member in whose name it is sent, where it is one member's (rule R2).
    pub fn member(&self) -> Option<MemberId> {
        match self {
            Up::Commit(request) => Some(request.id.member),
            Up::Save(save) => Some(save.request.id.member),
            Up::Decide(Decide { commit, .. }) | Up::Settled(Settled { commit, .. }) => {
                Some(commit.member)
            }
            Up::Call(call) => Some(call.call.member),
            Up::Keep(keep) => Some(keep.author.by.member),
            _ => None,
        }
    }

    /// Whether a member says it for itself: the commits and calls that it names are its own. A site passes on what others say.
    pub fn is_own(&self, member: MemberId) -> bool {
        let asks_for_own = match self {
            Up::Call(Call {
                request: CallRequest::Outcome { commit, .. },
                ..
            }) => commit.member == member,
            _ => true,
        };
        asks_for_own && self.member().is_none_or(|own| own == member)
    }
}

/// A log's update goes to its home as a commit that has read nothing. The home executes each number of a log once (rule C7).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Save {
    /// The commit. Its id is new each time that the update is sent; the update's own name is what counts.
    pub request: CommitRequest,
    /// The update.
    pub update: UpdateId,
    /// The log knows what has become of its updates in this segment up to here.
    pub confirmed: u64,
    /// The signature of the [`CustodyText`] by the member whose log it is. A home believes the edge of that member without one.
    pub custody: Proof,
    /// Who has written it, if that is another member. Then the rights of that one count.
    pub author: Option<Authorship>,
}

impl Save {
    /// Whether it has a proof that is larger than any can be.
    pub fn has_large_proof(&self) -> bool {
        let of_author = self
            .author
            .as_ref()
            .map_or(0, |author| author.proof.bytes());
        self.custody.bytes().max(of_author) > PROOF_BYTES_MAX
    }

    /// What the log has signed.
    pub fn text(&self) -> CustodyText<'_> {
        CustodyText {
            version: crate::AUTHORSHIP_VERSION,
            home: self.request.home(),
            update: self.update,
            author: self.author.as_ref(),
            confirmed: self.confirmed,
            writes: &self.request.part.writes,
        }
    }

    /// What its author has signed.
    pub fn author_text(&self, author: &Authorship) -> AuthorText<'_> {
        AuthorText {
            version: crate::AUTHORSHIP_VERSION,
            home: self.request.home(),
            segment: self.update.segment,
            log: self.update.log.name(),
            by: author.by,
            writes: &self.request.part.writes,
        }
    }
}

/// An update that its home may not have executed (rule C6).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Told {
    /// The update.
    pub update: Update,
    /// Up to here its log has followed the home, which had not executed the update by then. Whoever follows the segment
    /// from a later position takes no notice.
    pub since: Position,
    /// Who has written it, if that is not the log's own member.
    pub author: Option<MemberId>,
}

/// How far logs are (rule C3).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Heads {
    /// The home that pulls.
    pub home: HomeId,
    /// The question, as the parent counts them.
    pub pull: u64,
    /// The logs that have updates in the segments of the pull. At most [`crate::limits::PULL_HEADS_MAX`].
    pub heads: Vec<LogHead>,
}

/// A child gives leases back (rule C4).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GiveBack {
    /// The home of the segments.
    pub home: HomeId,
    /// The segments.
    pub segments: Vec<SegmentId>,
    /// Which of its privileges there; of a read lease the bound does not count.
    pub privilege: Privilege,
}

/// What a child shows of that about which its parent has asked (rule C2). The answer to [`Down::SeenWanted`](crate::Down::SeenWanted).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// The home of the stream.
    pub home: HomeId,
    /// It shows what it was asked about behind this position. A site does not wait here for those that read something else.
    pub after: Position,
    /// Up to this one.
    pub position: Position,
}

/// A node below the child wanted to read a segment that it may not read (rule R8).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Denied {
    /// The home of the segment.
    pub home: HomeId,
    /// The name of that node.
    pub name: String,
    /// The segment.
    pub segment: SegmentId,
    /// How often, since the child reported this last.
    pub count: u64,
    /// The site below the child that says so. None: the child has denied it itself.
    pub site: Option<String>,
}

impl Denied {
    /// Whether certificates can have such names: operators read them in a terminal.
    pub fn is_right(&self) -> bool {
        let is_name = |name: &String| {
            let is_short = name.len() <= REPORTED_NAME_BYTES_MAX;
            is_short && name.bytes().all(|byte| byte.is_ascii_graphic())
        };
        is_name(&self.name) && self.site.as_ref().is_none_or(is_name)
    }
}

/// A site passes a claim up that it cannot judge itself (rule R9).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Judge {
    /// The stream that the verdict comes in.
    pub epoch: Epoch,
    /// Names the verdict.
    pub question: u64,
    /// What a node below the site holds.
    pub claim: Claim,
}

/// The child asks for a page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fetch {
    /// The home of the page.
    pub home: HomeId,
    /// The stream that it is for.
    pub epoch: Epoch,
    /// The page that the child asks for.
    pub page: PageId,
    /// The number of this try.
    pub attempt: Attempt,
    /// Whether the answer may come beside the stream: a neighbour's, or the home's own (rule 9).
    pub peers: bool,
    /// Whether nobody waits for it yet: who waits is served, where there is no room for both.
    pub ahead: bool,
    /// Of how many of its next changes the new values are wanted, too (rule 8).
    pub updates: u8,
}

/// Neither the child nor anybody below it holds a page any more (rule 2).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Evict {
    /// The home of the page.
    pub home: HomeId,
    /// The stream that told its changes.
    pub epoch: Epoch,
    /// The page that was given up.
    pub page: PageId,
    /// The number of the copy given up, raised by the numbers of images that were dropped meanwhile.
    pub entry: EntryNo,
}

/// The child and everybody below it have applied the stream up to a position (rule 7).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ack {
    /// The home of the stream.
    pub home: HomeId,
    /// The life of the stream.
    pub epoch: Epoch,
    /// The last position that all of them have applied.
    pub position: Position,
}

/// What the votes for a transaction over several homes came to (rule 10).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Decide {
    /// The home that the decision is sent to.
    pub home: HomeId,
    /// The commit id of the transaction at all its homes.
    pub commit: CommitId,
    /// The member's registration at that home.
    pub registration: Registration,
    /// Commit or abort.
    pub decision: Decision,
}

/// Every home has heard how a transaction ended: the home may forget what it kept for them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Settled {
    /// The home that may forget what it kept.
    pub home: HomeId,
    /// The commit id of the transaction that has ended.
    pub commit: CommitId,
    /// The member's registration at that home.
    pub registration: Registration,
}

/// A call asks a home for something that is neither a page nor a commit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Call {
    /// Names the answer.
    pub call: CallId,
    /// The home that is called.
    pub home: HomeId,
    /// What the member asks the home for.
    pub request: CallRequest,
}

/// The child wants to hear, or no longer, of every change in a segment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Watch {
    /// The home of the segment.
    pub home: HomeId,
    /// The stream that is to tell it.
    pub epoch: Epoch,
    /// The segment whose changes the child wants to hear.
    pub segment: SegmentId,
    /// Whether to begin or to end.
    pub on: bool,
}

/// The child holds pages from an earlier stream, and asks which have changed since (rule 13).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The home of the pages.
    pub home: HomeId,
    /// The stream that is to tell their changes from now on.
    pub epoch: Epoch,
    /// Names the answer.
    pub report: ReportNo,
    /// At most [`crate::limits::REPORT_PAGES_MAX`].
    pub pages: Vec<Reported>,
}

/// A page that a child holds from an earlier stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reported {
    /// The page of which the child has a copy.
    pub page: PageId,
    /// Where the copy is right: the child had heard everything up to there. Never below the
    /// copy's version, and so says more.
    pub as_of: Position,
    /// Whether the copy has no holes.
    pub complete: bool,
}
