//! The state machines of a home, sites and members, joined by queues in one thread: what is measured is
//! their own work; the home's store works between the measurements.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use thorp_bench::Result;
use thorp_model::limits::EXTENT_PAGES;
use thorp_model::records::{decode_page, page_key};
use thorp_model::{
    Action, CallRequest, CallResponse, Direction, EdgeId, Engine, Event, Generation, HomeId,
    MemberId, Millis, NewValue, NodeKind, Now, Outbox, Outcome, PageId, PageNo, PageWrites, Part,
    Peer, Place, Position, Reader, RequestId, SegmentId, Slot, Stamp, StateMachine, Table, WriteOp,
};
use thorp_protocol::{
    Home, HomeAction, HomeCommand, HomeConfig, LoadResult, Member, MemberAction, MemberCommand,
    MemberConfig, Redirector, RedirectorConfig, Request, Response,
};
use thorp_store::{Options, Store};

const HOME: HomeId = HomeId(1);
/// Believes whatever a member says: nobody is hostile here, and what is measured are no signatures.
#[derive(Debug)]
struct Believes;

impl thorp_model::Verifier for Believes {
    fn verify(
        &self,
        text: &dyn thorp_model::SignedText,
        _: &thorp_model::Proof,
        _: thorp_model::Millis,
    ) -> Option<thorp_model::Certified> {
        Some(thorp_model::Certified {
            name: String::from("member"),
            who: thorp_model::Principal {
                name: text.by(),
                is_operator: false,
            },
        })
    }
}

/// So that nothing has to do with the clock unless a time is passed.
const WALL_MS_FIRST: u64 = 1_000_000;
/// Of every object.
const FIRST: Generation = Generation(1);

fn value() -> NewValue {
    NewValue::Inline(vec![7; 100].into())
}

/// A node's place.
pub(crate) type No = usize;

/// How large a village is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) sites: usize,
    pub(crate) members_a_site: usize,
}

enum Machine {
    Home(Box<Home>),
    Site(Box<Redirector>),
    Member(Box<Member>),
    /// It was dropped, to see what it held.
    Gone,
}

/// What a node is given.
enum Given {
    Event(Event<Infallible>),
    Home(HomeCommand),
    Member(MemberCommand),
}

/// What a node wants beside messages.
enum Wanted {
    Home(HomeAction),
    Member(MemberAction),
}

impl Machine {
    fn handle(&mut self, now: Now, given: Given) -> Vec<Action<Wanted>> {
        match (self, given) {
            (Machine::Home(home), Given::Event(event)) => {
                run(&mut **home, now, event.for_role(), Wanted::Home)
            }
            (Machine::Home(home), Given::Home(command)) => {
                run(&mut **home, now, Event::Command(command), Wanted::Home)
            }
            (Machine::Site(site), Given::Event(event)) => {
                run(&mut **site, now, event, |never| match never {})
            }
            (Machine::Member(member), Given::Event(event)) => {
                run(&mut **member, now, event.for_role(), Wanted::Member)
            }
            (Machine::Member(member), Given::Member(command)) => {
                run(&mut **member, now, Event::Command(command), Wanted::Member)
            }
            // A node that is gone; no other command is ever given.
            _ => Vec::new(),
        }
    }

    fn deadline(&self) -> Option<Millis> {
        match self {
            Machine::Home(home) => home.deadline(),
            Machine::Site(site) => site.deadline(),
            Machine::Member(member) => member.deadline(),
            Machine::Gone => None,
        }
    }
}

fn run<M: StateMachine>(
    machine: &mut M,
    now: Now,
    event: Event<M::Command>,
    wrap: impl Fn(M::Action) -> Wanted,
) -> Vec<Action<Wanted>> {
    let mut outbox = Outbox::new();
    machine.handle(now, event, &mut outbox);
    let actions = outbox.actions.into_iter();
    actions.map(|action| action.map(&wrap)).collect()
}

struct Node {
    machine: Machine,
    kind: NodeKind,
    spent: Duration,
}

/// What the home and the sites did for some operations.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) home: Duration,
    pub(crate) sites: Duration,
}

/// A village without a world.
pub(crate) struct StillVillage {
    nodes: Vec<Node>,
    /// Parent and child of each edge.
    edges: BTreeMap<EdgeId, (No, No)>,
    inputs: VecDeque<(No, Given)>,
    answers: BTreeMap<(No, RequestId), Response>,
    store: Store,
    ms: u64,
    tickets: u64,
    segment: SegmentId,
    /// Pages that were given to programs.
    given: VecDeque<u32>,
    /// The store's; last, so that it goes when the store is closed.
    _directory: TempDir,
}

impl StillVillage {
    /// A village whose streams stand, with one segment.
    pub(crate) fn new(size: Size) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut village = StillVillage {
            nodes: Vec::new(),
            edges: BTreeMap::new(),
            inputs: VecDeque::new(),
            answers: BTreeMap::new(),
            store: Store::open(directory.path(), Options::default())?,
            ms: 0,
            tickets: 0,
            segment: SegmentId(0),
            given: VecDeque::new(),
            _directory: directory,
        };
        village.found_home()?;
        for _ in 0..size.sites {
            let site = village.add_site();
            village.join(0, site)?;
            for _ in 0..size.members_a_site {
                let member = village.add_member();
                village.join(site, member)?;
            }
        }
        village.settle()?;
        let request = CallRequest::Open {
            path: "plans".into(),
            create: true,
        };
        match village.call(village.ends().0, request)? {
            CallResponse::Segment(info) => village.segment = info.id,
            other => return Err(format!("opening answered {other:?}").into()),
        }
        Ok(village)
    }

    fn found_home(&mut self) -> Result<()> {
        let config = HomeConfig {
            alive: None,
            verifier: Arc::new(Believes),
            ..HomeConfig::new(HOME, "home".into(), MemberId(1))
        };
        let mut first = Outbox::new();
        let home = Home::open(config, &self.store, self.now(), &mut first)?;
        self.add(NodeKind::Home, Machine::Home(Box::new(home)));
        let first = first.actions.into_iter();
        self.do_all(0, first.map(|action| action.map(Wanted::Home)).collect())
    }

    fn add_site(&mut self) -> No {
        let config = RedirectorConfig {
            // What a neighbour has, the neighbour is asked for.
            cache_bytes: 0,
            alive: None,
            ..RedirectorConfig::new(self.next_id(), "site".into())
        };
        let site = Redirector::new(config);
        self.add(NodeKind::Redirector, Machine::Site(Box::new(site)))
    }

    fn add_member(&mut self) -> No {
        let config = MemberConfig {
            alive: None,
            ..MemberConfig::new(self.next_id(), "member".into())
        };
        let member = Member::new(config);
        self.add(NodeKind::Member, Machine::Member(Box::new(member)))
    }

    fn next_id(&self) -> MemberId {
        MemberId(self.nodes.len() as u128 + 1)
    }

    fn add(&mut self, kind: NodeKind, machine: Machine) -> No {
        self.nodes.push(Node {
            machine,
            kind,
            spent: Duration::ZERO,
        });
        self.nodes.len() - 1
    }

    /// All members.
    pub(crate) fn members(&self) -> Vec<No> {
        let nodes = self.nodes.iter().enumerate();
        let members = nodes.filter(|(_, node)| node.kind == NodeKind::Member);
        members.map(|(no, _)| no).collect()
    }

    /// The first member and the last one.
    pub(crate) fn ends(&self) -> (No, No) {
        let members = self.members();
        (members[0], members[members.len() - 1])
    }

    fn join(&mut self, parent: No, child: No) -> Result<()> {
        let edge = EdgeId(self.edges.len() as u64 + 1);
        self.edges.insert(edge, (parent, child));
        for (no, direction, peer) in [
            (parent, Direction::Down, child),
            (child, Direction::Up, parent),
        ] {
            let peer = Peer {
                kind: self.nodes[peer].kind,
                node: MemberId(peer as u128 + 1),
                name: String::new(),
                is_operator: false,
                is_carried: false,
            };
            let connected = Event::Connected {
                edge,
                direction,
                peer,
            };
            self.inputs.push_back((no, Given::Event(connected)));
        }
        self.settle()
    }

    fn now(&self) -> Now {
        Now {
            mono: Millis(self.ms),
            wall: Millis(WALL_MS_FIRST + self.ms),
        }
    }

    /// Does everything that there is to do.
    fn settle(&mut self) -> Result<()> {
        while let Some((no, input)) = self.inputs.pop_front() {
            self.handle(no, input)?;
        }
        Ok(())
    }

    fn handle(&mut self, no: No, given: Given) -> Result<()> {
        let now = self.now();
        let node = &mut self.nodes[no];
        let begun = Instant::now();
        let wanted = node.machine.handle(now, given);
        node.spent += begun.elapsed();
        self.do_all(no, wanted)
    }

    fn do_all(&mut self, no: No, wanted: Vec<Action<Wanted>>) -> Result<()> {
        for action in wanted {
            match action {
                Action::Send(edge, message) => {
                    let (parent, child) = self.edges[&edge];
                    let to = if no == parent { child } else { parent };
                    self.inputs
                        .push_back((to, Given::Event(Event::Received { edge, message })));
                }
                Action::Role(Wanted::Home(HomeAction::Append(batch))) => {
                    let mark = batch.mark;
                    self.store.commit(&[batch])?;
                    self.inputs
                        .push_back((no, Given::Home(HomeCommand::Durable(mark))));
                }
                Action::Role(Wanted::Home(HomeAction::Load(page))) => {
                    let result = self.load(page)?;
                    self.inputs
                        .push_back((no, Given::Home(HomeCommand::Loaded { page, result })));
                }
                Action::Role(Wanted::Member(MemberAction::Respond(ticket, answer))) => {
                    self.answers.insert((no, ticket), answer);
                }
                // Nothing goes wrong here, and the members' page caches are not what is measured.
                Action::Role(
                    Wanted::Member(_) | Wanted::Home(HomeAction::Close(_) | HomeAction::Reopen(_)),
                )
                | Action::Close(..)
                | Action::Note(_) => {}
            }
        }
        Ok(())
    }

    fn load(&self, page: PageId) -> Result<LoadResult> {
        let key = page_key(page);
        let stored = self.store.get(Table::Pages, &key)?;
        let image = stored.map(|stored| decode_page(&key, &stored));
        Ok(LoadResult::Found(image.transpose()?))
    }

    /// Some time passes: heartbeats, acknowledgements.
    pub(crate) fn wait(&mut self, ms: u64) -> Result<()> {
        self.ms += ms;
        let due = Millis(self.ms);
        for (no, node) in self.nodes.iter().enumerate() {
            let deadline = node.machine.deadline();
            if deadline.is_some_and(|deadline| deadline <= due) {
                self.inputs.push_back((no, Given::Event(Event::Tick)));
            }
        }
        self.settle()
    }

    fn ask(&mut self, no: No, ask: Request) -> Result<Response> {
        self.tickets += 1;
        let ticket = RequestId(self.tickets);
        let command = MemberCommand::Request {
            id: ticket,
            request: ask,
        };
        self.inputs.push_back((no, Given::Member(command)));
        self.settle()?;
        let answer = self.answers.remove(&(no, ticket));
        answer.ok_or_else(|| "a member does not answer".into())
    }

    fn call(&mut self, no: No, request: CallRequest) -> Result<CallResponse> {
        match self.ask(
            no,
            Request::Call {
                home: HOME,
                request,
            },
        )? {
            Response::Called(Ok(response)) => Ok(response),
            other => Err(format!("a call was answered {other:?}").into()),
        }
    }

    /// A page that nobody has used.
    pub(crate) fn fresh(&mut self) -> Result<PageId> {
        if self.given.is_empty() {
            let segment = self.segment;
            match self.call(
                self.ends().0,
                CallRequest::Reserve {
                    segment,
                    pages: EXTENT_PAGES,
                },
            )? {
                CallResponse::Extent { first, pages } => {
                    self.given.extend(first.0..first.0 + pages);
                }
                other => return Err(format!("reserving was answered {other:?}").into()),
            }
        }
        let number = self.given.pop_front().ok_or("no page was given")?;
        Ok(PageId {
            segment: self.segment,
            page: PageNo(number),
        })
    }

    /// A member gets a page.
    pub(crate) fn fetch(&mut self, no: No, page: PageId) -> Result<()> {
        match self.ask(no, Request::Fetch(Place { home: HOME, page }))? {
            Response::Fetched(_) => Ok(()),
            other => Err(format!("a fetch was answered {other:?}").into()),
        }
    }

    /// A page with an object that a member made, and has.
    pub(crate) fn made_by(&mut self, no: No) -> Result<PageId> {
        let page = self.fresh()?;
        let (generation, value) = (FIRST, value());
        self.commit(no, page, WriteOp::Create { generation, value })?;
        self.fetch(no, page)?;
        Ok(page)
    }

    /// A member changes the object of a page.
    pub(crate) fn write(&mut self, no: No, page: PageId) -> Result<()> {
        let (generation, value) = (FIRST, value());
        self.commit(no, page, WriteOp::Write { generation, value })
    }

    fn commit(&mut self, no: No, page: PageId, op: WriteOp) -> Result<()> {
        let evidence = match &self.nodes[no].machine {
            Machine::Member(member) => member.position(HOME).unwrap_or_default(),
            _ => Position::default(),
        };
        let parts = vec![Part {
            home: HOME,
            evidence,
            reads: Vec::new(),
            writes: vec![PageWrites {
                page,
                slots: vec![(Slot(0), op)],
            }],
            under: None,
        }];
        let ask = Request::Commit {
            parts,
            histories: vec![0],
            depends_on: Vec::new(),
            after: Stamp::default(),
            early: false,
        };
        match self.ask(no, ask)? {
            Response::Outcome(_, Outcome::Committed { .. }, _) => Ok(()),
            other => Err(format!("a commit was answered {other:?}").into()),
        }
    }

    /// What the home and the sites do for this.
    pub(crate) fn timed(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) -> Result<Spent> {
        self.take_spent();
        act(self)?;
        Ok(self.take_spent())
    }

    fn take_spent(&mut self) -> Spent {
        let mut spent = Spent::default();
        for node in &mut self.nodes {
            let own = std::mem::take(&mut node.spent);
            match node.kind {
                NodeKind::Home => spent.home += own,
                NodeKind::Redirector => spent.sites += own,
                NodeKind::Member => {}
            }
        }
        spent
    }

    /// Drops the nodes of a kind.
    pub(crate) fn forget(&mut self, kind: NodeKind) {
        for node in self.nodes.iter_mut().filter(|node| node.kind == kind) {
            node.machine = Machine::Gone;
        }
    }
}
