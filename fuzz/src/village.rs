//! The machines of all roles, between peers that keep to no rule.
//!
//! ```text
//!                 other home 3,4
//!                      │
//!  member 1, site 2 ── home 0 ── redirector 1 ── member 1, site 2       what is named by a number only is hostile
//!                      │
//!                   member 2 ── site 3, home 4
//! ```

use crate::disk::Disk;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use thorp_model::codec::encode;
use thorp_model::{
    Action, Blob, CallRequest, Certified, Direction, Down, EdgeId, Epoch, Event, Generation,
    HomeId, Image, MemberId, Message, Millis, NameId, NewValue, NodeKind, Now, Outbox, PageId,
    PageWrites, Part, Peer, Place, Position, Principal, Proof, Reader, RequestId, SegmentId,
    SignedText, Slot, Stamp, StateMachine, Table, Verifier, WriteOp,
};
use thorp_protocol::{
    Home, HomeAction, HomeCommand, HomeConfig, LoadResult, Member, MemberCommand, MemberConfig,
    Redirector, RedirectorConfig, Request,
};

/// The id of the home: that of the samples in `crates/model/tests/golden`.
pub(crate) const HOME: HomeId = HomeId(3);
/// The home, the redirector and the member, in this order.
pub const NODES: usize = 3;
const AT_HOME: usize = 0;
const AT_SITE: usize = 1;
const AT_MEMBER: usize = 2;
/// Edges that lead from one of the three to another. All others lead to hostile peers.
const LINKS: [((usize, u64), (usize, u64)); 2] =
    [((AT_HOME, 5), (AT_SITE, 6)), ((AT_HOME, 6), (AT_MEMBER, 5))];
/// What the three say to each other for one thing that a hostile peer says. More is lost, as on a slow link.
const HOPS_MAX: usize = 2_000;
const MS_BETWEEN_EVENTS: u64 = 100;

/// Every delegation counts: hostile sites speak for whomever they name.
#[derive(Debug)]
struct Believing;

impl Verifier for Believing {
    fn verify(&self, text: &dyn SignedText, _: &Proof, _: Millis) -> Option<Certified> {
        let name = text.by();
        Some(Certified {
            name: format!("{name:?}"),
            who: Principal {
                name,
                is_operator: false,
            },
        })
    }
}

/// The three, and who is connected to them.
pub struct Village {
    home: Home,
    redirector: Redirector,
    member: Member,
    disk: Disk,
    now: u64,
    /// A closed home is heard no more.
    is_closed: bool,
    /// What the three have sent to each other.
    under_way: VecDeque<(usize, EdgeId, Message)>,
    /// The epoch of the last stream that each edge was sent.
    epochs: BTreeMap<(usize, EdgeId), Epoch>,
}

impl Village {
    /// All edges are there, and nobody has said anything.
    pub fn new() -> Self {
        let mut config = HomeConfig::new(HOME, "h".into(), node(7));
        config.mob_bytes_high = 1;
        config.other_homes = vec!["o".into()];
        config.verifier = Arc::new(Believing);
        let (disk, mut outbox) = (Disk::default(), Outbox::new());
        let home = Home::open(config, &disk, Now::default(), &mut outbox).expect("an empty disk");
        let mut village = Village {
            home,
            redirector: Redirector::new(RedirectorConfig::new(node(8), "r".into())),
            member: Member::new(MemberConfig::new(node(9), "m".into())),
            disk,
            now: 0,
            is_closed: false,
            under_way: VecDeque::new(),
            epochs: BTreeMap::new(),
        };
        village.work(outbox);
        for at in 0..NODES {
            village.connect(at, 1, Direction::Down, NodeKind::Member, 1);
            village.connect(at, 2, Direction::Down, NodeKind::Redirector, 2);
            village.connect(at, 3, Direction::Up, NodeKind::Redirector, 3);
            village.connect(at, 4, Direction::Up, NodeKind::Home, 4);
        }
        village.connect(AT_HOME, 5, Direction::Down, NodeKind::Redirector, 8);
        village.connect(AT_HOME, 6, Direction::Down, NodeKind::Member, 9);
        village.connect(AT_SITE, 6, Direction::Up, NodeKind::Home, 7);
        village.connect(AT_MEMBER, 5, Direction::Up, NodeKind::Home, 7);
        village
    }

    /// All children have claimed and got their streams. The member has made an object, and holds its page.
    pub fn greeted() -> Self {
        let mut village = Self::new();
        for (at, edge) in [(AT_HOME, 1), (AT_HOME, 2), (AT_SITE, 1), (AT_SITE, 2)] {
            village.tell(at, EdgeId(edge), Message::Claims(Vec::new()));
        }
        let segment = SegmentId(1);
        let page = PageId::new(segment.0, 1);
        let path = "s".to_owned();
        village.ask(Request::Call {
            home: HOME,
            request: CallRequest::Open { path, create: true },
        });
        village.ask(Request::Call {
            home: HOME,
            request: CallRequest::Reserve { segment, pages: 32 },
        });
        village.ask(Request::Fetch(Place { home: HOME, page }));
        village.ask(creation(page));
        village.ask(Request::Watch {
            home: HOME,
            segment,
            on: true,
        });
        village.demand_greeted();
        village
    }

    /// Else a fuzzer would look at closed doors.
    fn demand_greeted(&self) {
        for (at, edge) in [(AT_HOME, 1), (AT_HOME, 2), (AT_SITE, 1), (AT_SITE, 2)] {
            assert!(self.epoch(at, EdgeId(edge)).is_some(), "a stream begins");
        }
        let held = self.member.images(HOME);
        let (_, image) = held.first().expect("the member holds the page");
        assert_eq!(image.version(), Position(2), "its object is committed");
    }

    fn connect(&mut self, at: usize, edge: u64, direction: Direction, kind: NodeKind, who: u64) {
        let peer = Peer {
            kind,
            node: node(who),
            name: String::new(),
            is_operator: false,
            is_carried: false,
        };
        let edge = EdgeId(edge);
        self.handle(
            at,
            Event::Connected {
                edge,
                direction,
                peer,
            },
        );
    }

    /// The member's program asks for something.
    fn ask(&mut self, request: Request) {
        let id = RequestId(self.now);
        let event = Event::Command(MemberCommand::Request { id, request });
        let now = self.after_a_while();
        let outbox = run(&mut self.member, now, event);
        self.send_all(AT_MEMBER, outbox);
        self.deliver();
    }

    /// A peer says something to one of the three. Then these come to rest.
    pub fn tell(&mut self, at: usize, edge: EdgeId, message: Message) {
        self.handle(at, Event::Received { edge, message });
    }

    /// Time goes on at one of the three.
    pub fn tick(&mut self, at: usize) {
        self.handle(at, Event::Tick);
    }

    /// The epoch of the last stream that an edge was sent: without it, most of what a child says is late.
    pub fn epoch(&self, at: usize, edge: EdgeId) -> Option<Epoch> {
        self.epochs.get(&(at, edge)).copied()
    }

    fn handle(&mut self, at: usize, event: Event<Infallible>) {
        self.hand(at, event);
        self.deliver();
    }

    fn deliver(&mut self) {
        for _ in 0..HOPS_MAX {
            let Some((at, edge, message)) = self.under_way.pop_front() else {
                return;
            };
            self.hand(at, Event::Received { edge, message });
        }
        self.under_way.clear();
    }

    fn hand(&mut self, at: usize, event: Event<Infallible>) {
        if at == AT_HOME {
            return self.hand_to_home(event.for_role());
        }
        let now = self.after_a_while();
        match at {
            AT_SITE => {
                let outbox = run(&mut self.redirector, now, event);
                self.send_all(at, outbox);
            }
            _ => {
                let outbox = run(&mut self.member, now, event.for_role());
                self.send_all(at, outbox);
            }
        }
    }

    fn after_a_while(&mut self) -> Now {
        self.now += MS_BETWEEN_EVENTS;
        Now {
            mono: Millis(self.now),
            wall: Millis(self.now),
        }
    }

    fn hand_to_home(&mut self, event: Event<HomeCommand>) {
        if self.is_closed {
            return;
        }
        let now = self.after_a_while();
        let outbox = run(&mut self.home, now, event);
        self.work(outbox);
    }

    fn work(&mut self, outbox: Outbox<HomeAction>) {
        for action in outbox.actions {
            match action {
                Action::Role(HomeAction::Append(batch)) => {
                    batch.ops.into_iter().for_each(|op| self.disk.write(op));
                    self.hand_to_home(Event::Command(HomeCommand::Durable(batch.mark)));
                }
                Action::Role(HomeAction::Load(page)) => self.load(page),
                Action::Role(HomeAction::Close(_)) => self.is_closed = true,
                other => self.send(AT_HOME, other),
            }
        }
    }

    fn load(&mut self, page: PageId) {
        let result = LoadResult::Found(self.stored(page));
        self.hand_to_home(Event::Command(HomeCommand::Loaded { page, result }));
    }

    fn stored(&self, page: PageId) -> Option<Image> {
        let key = thorp_model::records::page_key(page);
        let value = self.disk.get(Table::Pages, &key).expect("it cannot fail")?;
        Some(thorp_model::records::decode_page(&key, &value).expect("the home wrote it"))
    }

    fn send_all<A>(&mut self, from: usize, outbox: Outbox<A>) {
        for action in outbox.actions {
            self.send(from, action);
        }
    }

    /// What is sent can be encoded. What one of the three sends to another is under way.
    fn send<A>(&mut self, from: usize, action: Action<A>) {
        let Action::Send(edge, message) = action else {
            return;
        };
        encode(&message).expect("what is sent can be encoded");
        if let Message::Down(Down::Begin(begin)) = &message {
            self.epochs.insert((from, edge), begin.epoch);
        }
        if let Some((at, edge)) = linked(from, edge) {
            self.under_way.push_back((at, edge, message));
        }
    }
}

impl Default for Village {
    fn default() -> Self {
        Self::new()
    }
}

/// Where an edge leads, if to one of the three.
fn linked(from: usize, edge: EdgeId) -> Option<(usize, EdgeId)> {
    let here = (from, edge.0);
    let ends = LINKS.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
    let mut ends = ends.filter(|(end, _)| *end == here);
    ends.next().map(|(_, (at, edge))| (at, EdgeId(edge)))
}

fn node(number: u64) -> MemberId {
    MemberId::new(NameId(number), number)
}

/// Makes an object.
fn creation(page: PageId) -> Request {
    let create = WriteOp::Create {
        generation: Generation(1),
        value: NewValue::Inline(Blob::from(&b"value"[..])),
    };
    let writes = PageWrites {
        page,
        slots: vec![(Slot(1), create)],
    };
    let part = Part {
        home: HOME,
        evidence: Position(0),
        reads: Vec::new(),
        writes: vec![writes],
        under: None,
    };
    Request::Commit {
        parts: vec![part],
        histories: Vec::new(),
        depends_on: Vec::new(),
        after: Stamp::default(),
        early: false,
    }
}

fn run<M: StateMachine>(machine: &mut M, now: Now, event: Event<M::Command>) -> Outbox<M::Action> {
    let mut outbox = Outbox::new();
    machine.handle(now, event, &mut outbox);
    outbox
}
