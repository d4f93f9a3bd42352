//! What a program asks of its member, and what the member answers and does to
//! the page cache.

use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::{
    Batch, CallError, CallRequest, CallResponse, Command, CommitId, EdgeId, Fence, FetchRefusal,
    HomeId, HomeNames, Incarnation, Lack, Mark, Millis, NotKept, Outcome, PageWrites, Part, Place,
    Publish, Refusal, RequestId, SegmentId, Stamp, Update, UpdateId,
};

/// What a member's program and page cache hand in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberCommand {
    /// The program asks its member.
    Request {
        /// Names the response.
        id: RequestId,
        /// What it asks for.
        request: Request,
    },
    /// The page cache is to give up these pages.
    Evict(Vec<Place>),
    /// All batches of the log up to this one are in stable storage (rule C6).
    Kept(Mark),
    /// The log did not take a batch: what the disk lacks, or none if it is broken.
    NotKept(Mark, Option<Lack>),
}

impl Command for MemberCommand {
    /// A request that gives something up is always taken, or it would be had for
    /// ever; there are as many as of those that got it.
    fn is_bounded(&self) -> bool {
        match self {
            MemberCommand::Request { request, .. } => !matches!(
                request,
                Request::Forget(_)
                    | Request::Resolve { .. }
                    | Request::Watch { on: false, .. }
                    | Request::Follow { on: false, .. }
                    | Request::Call {
                        request: CallRequest::Unstage { .. } | CallRequest::Unlock { .. },
                        ..
                    }
            ),
            MemberCommand::Evict(_) | MemberCommand::Kept(_) | MemberCommand::NotKept(..) => false,
        }
    }
}

/// What a program asks its member for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Have a page in the cache. Response: [`Response::Fetched`]. The program looks again: the page may have holes from
    /// what was changed meanwhile.
    Fetch(Place),
    /// Have it there soon, if there is space for another request. No response.
    Prefetch(Place),
    /// Commit a transaction. Response: [`Response::Outcome`].
    Commit {
        /// What it did at each home; not empty.
        parts: Vec<Part>,
        /// In which history of its home each part was read, as in [`Publish::history`](thorp_model::Publish::history). A
        /// home that has gone back since is sent nothing (rule R9).
        histories: Vec<u64>,
        /// Commits whose values it read before they were delivered, each with the home where it
        /// did: they are its evidence for these (rules 4 and 14).
        depends_on: Vec<(HomeId, CommitId)>,
        /// Where its session has been, and the highest stamp that it saw: it stands above that
        /// (rule 5). One that only reads and is told this very stamp stands there.
        after: Stamp,
        /// Whether the program goes on before it gets the outcome (rule 14). Then the member shows the values at once, if
        /// it can, and responds with [`Response::Shown`]. The outcome follows under the same id.
        early: bool,
    },
    /// Something else of a home. Response: [`Response::Called`].
    Call {
        /// The home that is asked.
        home: HomeId,
        /// What the program asks it for.
        request: CallRequest,
    },
    /// Be as fresh as a hard bound demands: all changes of these segments that were answered before are shown, but for so many (rules C2
    /// and C3). Response: [`Response::Called`], with `Pulled`. Repeated reads need no message.
    Pull {
        /// The home of the segments.
        home: HomeId,
        /// At most [`PULL_SEGMENTS_MAX`](thorp_model::limits::PULL_SEGMENTS_MAX).
        segments: Vec<SegmentId>,
        /// Whoever is awaited for longer is named in the answer.
        patience_ms: u32,
        /// Answered changes that may be missed in each segment.
        mods: u32,
    },
    /// Hear of all changes in a segment, or no longer. The changes are in what
    /// is published; the only response, at any time, is [`Response::Unwatched`].
    Watch {
        /// The home of the segment.
        home: HomeId,
        /// The segment whose changes the program wants to hear.
        segment: SegmentId,
        /// Whether to begin or to end.
        on: bool,
    },
    /// Write without waiting for the home (rule C6). Response: [`Response::Kept`] or [`Response::NotKept`].
    Update {
        /// The home of the segment.
        home: HomeId,
        /// What is written, all of one segment: pages and slots ascending, each once.
        writes: Vec<PageWrites>,
        /// The response waits so long for a lease: with one, whoever reads with a hard bound finds the update.
        patience_ms: u32,
    },
    /// Show updates of neighbours in a segment before their home has them, or no longer (rule C6). Response, to the beginning:
    /// [`Response::Following`].
    Follow {
        /// The home of the segment.
        home: HomeId,
        /// The segment.
        segment: SegmentId,
        /// Whether to begin or to end.
        on: bool,
    },
    /// Do with a refused update what the routine of the program has decided, once (rule C6). No response.
    Resolve {
        /// The home of the update.
        home: HomeId,
        /// The update.
        id: UpdateId,
        /// What becomes of it.
        resolution: Resolution,
    },
    /// List the updates in the log. Response: [`Response::Updates`].
    ListUpdates,
    /// The program leaves: leases under which nothing is kept are given back (rule C4). No response.
    Leave,
    /// The program no longer wants the response to this request. A commit goes on.
    Forget(RequestId),
}

/// What becomes of an update that its home has refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// It stays on the list of rejected ones, for a person.
    List,
    /// It leaves the log, which notes its number.
    Drop,
    /// It leaves the log, and a new update of the same segment comes into the log, in one durable step. After
    /// [`CONFLICT_ATTEMPTS_MAX`](thorp_model::limits::CONFLICT_ATTEMPTS_MAX) such steps it is as [`Resolution::List`].
    Again(Vec<PageWrites>),
}

/// An update in the log of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpdateInfo {
    /// The update.
    pub update: Update,
    /// Why its home has refused it; none: its home has not said.
    pub rejected: Option<Refusal>,
}

/// What is in the log of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InLog {
    /// Updates that their homes have neither executed nor refused, as far as the member knows.
    pub tentative: usize,
    /// Of those, the ones that an earlier start of the member has written.
    pub of_earlier_starts: usize,
    /// How long the oldest of the others has been durable here, in milliseconds.
    pub oldest_ms: Option<u64>,
    /// Updates that their homes have refused.
    pub rejected: usize,
    /// Bytes of all of them.
    pub bytes: usize,
}

/// Where a page came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The home: the member is joined to it without a site.
    Home,
    /// The site: its memory, or the home behind it. The protocol does not tell which.
    Site,
    /// Another member of the site.
    Peer,
}

/// A member's answer to its program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Response {
    /// The page is in the cache: where it came from, or none if the member held it already.
    Fetched(Option<Source>),
    /// The page cannot be had.
    NotFetched(FetchRefusal),
    /// How the commit ended: over several homes as soon as that is known, if its values can be
    /// shown before they are delivered (rule 3); its position is zero, for each home gives it one
    /// of its own. And the home that refused it, or the only one that has
    /// it: none if the member itself refused, or where each of several homes has a
    /// position of its own.
    Outcome(CommitId, Outcome, Option<HomeId>),
    /// The commit is on its way to the only home that it takes in, and what it wrote is shown to the program: until it is
    /// refused, or the stream ends, or what it rests on is changed. Its outcome is told later (rule 14).
    Shown(CommitId),
    /// An update is durable in the log, and shown (rule C6).
    Kept {
        /// Its name.
        id: UpdateId,
        /// Whether readers with hard bounds find it (rule C10).
        is_leased: bool,
    },
    /// An update was not taken.
    NotKept(NotKept),
    /// Updates of neighbours are shown from now on, as far as the home can be reached.
    Following,
    /// What is in the log.
    Updates(Vec<UpdateInfo>),
    /// What the home answered.
    Called(Result<CallResponse, CallError>),
    /// Too much is under way: ask again a little later.
    Busy,
    /// Here or above a limit of watches is reached: from now on changes in this
    /// segment are not told.
    Unwatched {
        /// The home of the segment.
        home: HomeId,
        /// The segment whose changes are not told.
        segment: SegmentId,
    },
}

/// What a member wants of its page cache and its program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberAction {
    /// Change the page cache.
    Publish(Publish),
    /// Answer the program.
    Respond(RequestId, Response),
    /// Name to the program what it is likely to read next, and has not: it may ask for it
    /// ([`Request::Prefetch`]), or not.
    Hint(Vec<Place>),
    /// A page that the program asked for ahead is fetched for a neighbour, too.
    Joined(Place),
    /// A commit has got its id. It is not answered yet.
    Named(RequestId, CommitId),
    /// The next [`MemberAction::Publish`] shows what this commit wrote, which is not answered
    /// (rule 14). [`Response::Shown`] follows.
    Showing(CommitId),
    /// A page that was on its way has come; it is published. Requests that wait for it are
    /// answered next.
    Arrived(Place, Source),
    /// [`MemberCommand::Evict`] is done.
    Evicted,
    /// A home can be reached: its stream has begun.
    StreamBegan {
        /// The home whose stream it is.
        home: HomeId,
        /// The home's name, as its certificate and `thorp://` names have it.
        name: String,
        /// The edge that the stream comes down on.
        edge: EdgeId,
        /// New objects have a generation of this one (rule R9).
        incarnation: Incarnation,
    },
    /// A home is out of reach: its stream has ended.
    StreamEnded(HomeId),
    /// A site has told which homes it is to reach. Those whose streams have not begun are out of its reach (rule 1).
    HomesTold {
        /// The edge that it has told this on.
        edge: EdgeId,
        /// What it has told.
        homes: HomeNames,
    },
    /// A home has gone back in time: what the program has of it may be lost. The next [`MemberAction::Publish`] begins its
    /// cache anew. Pages that the home has granted may be granted to others (rule R9).
    WentBack(HomeId),
    /// Make a batch of the log durable, after all earlier ones; [`MemberCommand::Kept`] or [`MemberCommand::NotKept`] follows.
    Keep(Batch),
    /// The program may believe in this lock until then, by the monotone clock (rule C5). Without more time it is over.
    Locked {
        /// The home that has granted it.
        home: HomeId,
        /// The lock.
        fence: Fence,
        /// So long.
        until: Millis,
    },
    /// The lock is over now.
    LockLost {
        /// The home that had granted it.
        home: HomeId,
        /// The lock.
        fence: Fence,
    },
    /// A home has refused an update for good. It stays in the log, on the list of rejected ones (rule C6).
    Rejected(Update, Refusal),
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{LogId, MemberId, PageId, Registration};

    const HOME: HomeId = HomeId(1);
    const SEGMENT: SegmentId = SegmentId(1);

    fn is_bounded(request: Request) -> bool {
        let id = RequestId(1);
        MemberCommand::Request { id, request }.is_bounded()
    }

    fn call(request: CallRequest) -> Request {
        Request::Call {
            home: HOME,
            request,
        }
    }

    fn watch(on: bool) -> Request {
        let (home, segment) = (HOME, SEGMENT);
        Request::Watch { home, segment, on }
    }

    #[test]
    fn what_a_program_asks_for_is_bounded() {
        let place = Place {
            home: HOME,
            page: PageId::new(1, 1),
        };
        let commit = Request::Commit {
            parts: vec![],
            histories: vec![],
            depends_on: vec![],
            after: Stamp::default(),
            early: false,
        };
        for request in [
            Request::Fetch(place),
            Request::Prefetch(place),
            commit,
            call(CallRequest::Register(None)),
            watch(true),
        ] {
            assert!(is_bounded(request.clone()), "{request:?}");
        }
    }

    #[test]
    fn what_gives_something_up_is_always_taken() {
        let unstage = CallRequest::Unstage {
            registration: Registration(1),
            token: 1,
        };
        let resolve = Request::Resolve {
            home: HOME,
            id: UpdateId {
                log: LogId(MemberId(1)),
                segment: SEGMENT,
                number: 1,
            },
            resolution: Resolution::Drop,
        };
        let forget = Request::Forget(RequestId(1));
        for request in [forget, call(unstage), watch(false), resolve] {
            assert!(!is_bounded(request.clone()), "{request:?}");
        }
        assert!(!MemberCommand::Evict(vec![]).is_bounded());
    }
}
