//! The one door of every core, and the tray on which its results lie.

use crate::change::SlotSet;
use crate::ids::{
    CommitId, EdgeId, HomeId, Millis, Now, PageId, Peer, Place, Position, RequestId, SegmentId,
    Stamp,
};
use crate::image::Image;
use crate::message::{
    CallError, CallRequest, CallResponse, Down, FetchRefusal, Message, Outcome, Part, Up,
};
use crate::note::Note;
use crate::storage::{Batch, Mark};
use alloc::vec::Vec;

/// A state machine: home, redirector or member. Nothing happens in it but in
/// [`StateMachine::handle`], and what happens depends on the inputs alone.
pub trait StateMachine {
    /// Takes an input and puts what follows from it on the tray, in order.
    fn handle(&mut self, now: Now, input: Event, out: &mut Outbox);

    /// When [`Event::Tick`] is wanted next, on the monotone clock.
    fn deadline(&self) -> Option<Millis>;
}

/// Which end of an edge a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The peer is the parent.
    Up,
    /// The peer is a child.
    Down,
}

/// What the world tells a core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// An edge is there. Edge ids are never used twice.
    Connected {
        /// Its name.
        edge: EdgeId,
        /// Which end the peer is.
        direction: Direction,
        /// Who the peer is.
        peer: Peer,
    },
    /// An edge is gone; nothing more comes from it.
    Disconnected {
        /// Which.
        edge: EdgeId,
    },
    /// A message came.
    Received {
        /// From where.
        edge: EdgeId,
        /// What.
        message: Message,
    },
    /// The deadline has come.
    Tick,
    /// All batches up to this one are in stable storage (home).
    Durable(Mark),
    /// The answer to [`Action::Load`] (home).
    Loaded {
        /// Which page.
        page: PageId,
        /// What is stored for it.
        result: LoadResult,
    },
    /// Whether the store has room for commits (home).
    Room(bool),
    /// How much the store could still take (home).
    Left {
        /// Bytes that could be brought.
        free: u64,
        /// When all batches up to this one were in it.
        as_of: Mark,
    },
    /// The program asks its member.
    Asked {
        /// Names the answer.
        ticket: RequestId,
        /// What.
        ask: Request,
    },
    /// The page cache is to give up these pages (member).
    Evict(Vec<Place>),
}

/// What was found for a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadResult {
    /// Its installed image, or nothing was ever installed.
    Found(Option<Image>),
    /// What is stored is damaged.
    Damaged,
}

/// What a program asks its member for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Have a page in the cache. Answer: [`Response::Fetched`]; look again: it may have holes from what was changed meanwhile.
    Fetch(Place),
    /// Have it there soon, if there is room for another request. No answer.
    Prefetch(Place),
    /// Commit a transaction. Answer: [`Response::Outcome`].
    Commit {
        /// What it did at each home; not empty.
        parts: Vec<Part>,
        /// Commits whose values it read before they were delivered, each with the home where it
        /// did: they are its evidence for these (rules 4 and 14).
        depends_on: Vec<(HomeId, CommitId)>,
        /// Where its session has been, and the highest stamp that it saw: it stands above that
        /// (rule 5). One that only reads and is told this very stamp stands there.
        after: Stamp,
        /// Whether the program goes on before it is answered (rule 14): its values are shown then at once, if they can be,
        /// and [`Response::Shown`] says so; the outcome follows under the same ticket.
        early: bool,
    },
    /// Something else of a home. Answer: [`Response::Called`].
    Call {
        /// Which home.
        home: HomeId,
        /// What.
        request: CallRequest,
    },
    /// Hear of all changes in a segment, or no longer. The changes are in what
    /// is published; the only answer, at any time, is [`Response::Unwatched`].
    Watch {
        /// Whose segment.
        home: HomeId,
        /// The segment.
        segment: SegmentId,
        /// Whether to begin or to end.
        on: bool,
    },
    /// The answer to this ticket is wanted no more. A commit goes on.
    Forget(RequestId),
}

/// A member's answer to its program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Response {
    /// The page is in the cache.
    Fetched,
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
    /// What the home answered.
    Called(Result<CallResponse, CallError>),
    /// Too much is under way: ask again a little later.
    Busy,
    /// Here or above a limit of watches is reached: from now on changes in this
    /// segment are not told.
    Unwatched {
        /// Whose segment.
        home: HomeId,
        /// The segment.
        segment: SegmentId,
    },
}

/// What a core wants done. Drivers do it in the order of the tray.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Send a message on an edge; if the edge is gone, forget it.
    Send(EdgeId, Message),
    /// Close an edge; [`Event::Disconnected`] follows.
    Close(EdgeId, &'static str),
    /// Make a batch durable, after all earlier ones.
    Append(Batch),
    /// Read an installed page.
    Load(PageId),
    /// Change the member's page cache.
    Publish(Publish),
    /// Answer the program.
    Respond(RequestId, Response),
    /// Tell the program what it is likely to read next, and has not: it may ask for it
    /// ([`Request::Prefetch`]), or not (member).
    Hint(Vec<Place>),
    /// Tell the program that a page that it asked for ahead is fetched for a neighbour, too
    /// (member).
    Joined(Place),
    /// Count or log something.
    Note(Note),
}

/// One change of a member's page cache. The cache takes it in this order:
/// `touched`, `evicted` and `missed`, then `images`, then `position`; so a
/// reader that saw the position finds all of the rest (rules 1 and 4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Publish {
    /// Whose pages.
    pub home: HomeId,
    /// What is shown of this member's own commits before they are delivered.
    pub overlay: OverlayUpdate,
    /// Slots changed by the commit at `position`, also of pages that are only watched.
    pub touched: Vec<(PageId, SlotSet)>,
    /// Pages given up at `position`: of what was read there, nothing later will be heard.
    pub evicted: Vec<PageId>,
    /// New images, or that a page is dropped.
    pub images: Vec<(PageId, Option<Image>)>,
    /// Where the member now stands.
    pub position: Position,
    /// What is promised there.
    pub watermark: Stamp,
    /// When the stream was last heard of, on the monotone clock.
    pub heard: Millis,
    /// The stream was broken before this, and is resynchronised up to `position`
    /// (rule 13): the pages that changed meanwhile, it is not told how. Of pages
    /// that are not cached nothing is known: whoever watches has missed something.
    pub missed: Option<Vec<PageId>>,
}

/// Own values that are shown before they are delivered: the vcache of rule 3.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OverlayUpdate {
    /// Slots that show such a value from now on, also on pages that are not cached: whoever
    /// has read another value there is doomed.
    pub shown: Vec<(PageId, SlotSet)>,
    /// Of the slots in `touched` those that were shown so, and are delivered now: whoever has
    /// read them has read what they hold.
    pub delivered: Vec<(PageId, SlotSet)>,
    /// Of the new images the slots that show such a value, and whose it is: who reads one
    /// names that commit ([`Request::Commit`]).
    pub values: Vec<(PageId, SlotSet, CommitId)>,
}

/// The tray.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outbox {
    /// What is to be done, in order.
    pub effects: Vec<Action>,
}

impl Outbox {
    /// An empty tray.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends to a child.
    pub fn down(&mut self, edge: EdgeId, message: Down) {
        self.effects
            .push(Action::Send(edge, Message::Down(message)));
    }

    /// Sends to a parent.
    pub fn up(&mut self, edge: EdgeId, message: Up) {
        self.effects.push(Action::Send(edge, Message::Up(message)));
    }

    /// Tells a neighbour that this node is there.
    pub fn alive(&mut self, edge: EdgeId) {
        self.effects.push(Action::Send(edge, Message::Alive));
    }

    /// Closes an edge, and says why.
    pub fn close(&mut self, edge: EdgeId, why: &'static str) {
        self.effects.push(Action::Close(edge, why));
    }

    /// Appends a batch.
    pub fn append(&mut self, batch: Batch) {
        self.effects.push(Action::Append(batch));
    }

    /// Loads a page.
    pub fn load(&mut self, page: PageId) {
        self.effects.push(Action::Load(page));
    }

    /// Changes the page cache.
    pub fn publish(&mut self, publish: Publish) {
        self.effects.push(Action::Publish(publish));
    }

    /// Answers the program.
    pub fn answer(&mut self, ticket: RequestId, answer: Response) {
        self.effects.push(Action::Respond(ticket, answer));
    }

    /// Tells the program what it is likely to read next.
    pub fn hint(&mut self, likely: Vec<Place>) {
        self.effects.push(Action::Hint(likely));
    }

    /// Tells the program that a neighbour gets a page, too, that it asked for ahead.
    pub fn joined(&mut self, place: Place) {
        self.effects.push(Action::Joined(place));
    }

    /// Notes something.
    pub fn note(&mut self, note: Note) {
        self.effects.push(Action::Note(note));
    }
}
