//! A home with a disk that is synced by hand, and one site below it.

use crate::fixture;
use crate::home::{Home, HomeAction, HomeCommand, HomeConfig, LoadResult, Outbox};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use thorp_model::limits::EXTENT_PAGES;
use thorp_model::records::{decode_page, page_key};
use thorp_model::{
    Action, Attempt, Batch, Blob, CallError, CallId, CallRequest, CallResponse, Certified,
    CommitId, CommitRequest, DELEGATION_VERSION, Delegation, DelegationNo, DelegationText,
    Direction, Down, EdgeId, Epoch, Event, FetchResult, Generation, HomeId, Mark, MemberId,
    Message, Millis, NameId, NewValue, NodeKind, Note, Now, Op, PageId, PageWrites, Part, Peer,
    Position, Principal, Proof, Reader, Refusal, Registration, Scan, SegmentId, SignedText, Slot,
    SlotSet, Stamp, StateMachine, StorageError, Table, Up, Verifier, WriteOp, message,
};

pub(super) const HOME: HomeId = HomeId(1);
pub(super) const SITE: EdgeId = EdgeId(1);
/// The other home that is configured.
pub(super) const OTHER: HomeId = HomeId(2);
const HEARD_BY: EdgeId = EdgeId(6);

/// A verifier that takes the certificate for the name, and believes everything.
#[derive(Debug)]
struct Names;

impl Verifier for Names {
    fn verify(&self, _: &dyn SignedText, proof: &Proof, _: Millis) -> Option<Certified> {
        let name = <[u8; 8]>::try_from(proof.certificate.bytes()).ok()?;
        Some(Certified {
            name: String::from("somebody"),
            who: Principal {
                name: NameId(u64::from_be_bytes(name)),
                is_operator: false,
            },
        })
    }
}

#[derive(Default)]
struct Disk(BTreeMap<(Table, Vec<u8>), Vec<u8>>);

impl Reader for Disk {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        Ok(self.0.get(&(table, key.to_vec())).cloned())
    }

    fn scan(
        &self,
        _: Table,
        _: &[u8],
        _: &[u8],
        _: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError> {
        Ok(())
    }
}

pub(super) struct World {
    pub(super) home: Home,
    disk: Disk,
    unsynced: Vec<Batch>,
    /// What the site was sent and was not looked at.
    pub(super) sent: Vec<Down>,
    /// What others were sent.
    pub(super) told: Vec<(EdgeId, Down)>,
    pub(super) notes: Vec<Note>,
    /// What other homes were asked.
    pub(super) asked: Vec<Up>,
    /// Edges that the home has closed.
    pub(super) closed: Vec<EdgeId>,
    /// Pages that are asked of the disk, if it is to answer later.
    pub(super) held: Option<Vec<PageId>>,
    epoch: Epoch,
    pub(super) registration: Registration,
    now: u64,
    /// How far its clock is wrong.
    pub(super) clock_ms: i64,
    last: u64,
}

impl World {
    /// A home with a segment of 32 pages beside its first one, all durable.
    pub(super) fn new(limit: impl FnOnce(&mut HomeConfig)) -> Self {
        let mut config = HomeConfig::new(HOME, String::from("h"), MemberId(1));
        config.verifier = Arc::new(Names);
        config.other_homes = Vec::from([String::from(name_of(OTHER))]);
        limit(&mut config);
        let (disk, mut outbox) = (Disk::default(), Outbox::new());
        let home = Home::open(config, &disk, now(0), &mut outbox).expect("an empty disk");
        let mut world = World {
            home,
            disk,
            unsynced: Vec::new(),
            sent: Vec::new(),
            told: Vec::new(),
            notes: Vec::new(),
            asked: Vec::new(),
            closed: Vec::new(),
            held: None,
            epoch: Epoch(0),
            registration: Registration(0),
            now: 0,
            clock_ms: 0,
            last: 0,
        };
        world.work(outbox);
        world.sync();
        world.connect(SITE, Direction::Down, NodeKind::Redirector, site());
        let begun = world.sent.iter().find_map(|down| match down {
            Down::Begin(message::Begin { epoch, .. }) => Some(*epoch),
            _ => None,
        });
        world.epoch = begun.expect("a stream");
        // It was there when this life began.
        world.other_home(OTHER, HEARD_BY);
        world.handle(Event::Disconnected { edge: HEARD_BY });
        match world.called(register(anna(), 1)) {
            Ok(CallResponse::Registered(registration)) => world.registration = registration,
            other => panic!("{other:?}"),
        }
        let path = String::from("s");
        world
            .called(CallRequest::Open { path, create: true })
            .expect("a segment");
        let segment = SegmentId(1);
        world
            .called(CallRequest::Reserve {
                segment,
                pages: EXTENT_PAGES,
            })
            .expect("pages");
        world
    }

    pub(super) fn handle(&mut self, event: Event<HomeCommand>) {
        self.now += 1;
        let mut outbox = Outbox::new();
        let mut now = now(self.now);
        now.wall.0 = now.wall.0.saturating_add_signed(self.clock_ms);
        self.home.handle(now, event, &mut outbox);
        self.work(outbox);
    }

    fn work(&mut self, outbox: Outbox) {
        for effect in outbox.actions {
            match effect {
                Action::Send(SITE, Message::Down(down)) => self.sent.push(down),
                Action::Send(edge, Message::Down(down)) => self.told.push((edge, down)),
                Action::Send(_, Message::Up(up)) => self.asked.push(up),
                Action::Close(edge, _) => self.closed.push(edge),
                Action::Role(HomeAction::Append(batch)) => self.unsynced.push(batch),
                Action::Role(HomeAction::Load(page)) if self.held.is_some() => {
                    self.held.iter_mut().for_each(|held| held.push(page))
                }
                Action::Role(HomeAction::Load(page)) => self.load(page),
                Action::Note(note) => self.notes.push(note),
                _ => {}
            }
        }
    }

    /// The disk answers: what is durable of a page.
    pub(super) fn load(&mut self, page: PageId) {
        let key = page_key(page);
        let stored = self.disk.0.get(&(Table::Pages, key.clone()));
        let image = stored.map(|bytes| decode_page(&key, bytes).expect("an image"));
        let result = LoadResult::Found(image);
        self.handle(Event::Command(HomeCommand::Loaded { page, result }));
    }

    /// The oldest batch becomes durable; false if there is none.
    pub(super) fn sync_one(&mut self) -> bool {
        if self.unsynced.is_empty() {
            return false;
        }
        let batch = self.unsynced.remove(0);
        for op in batch.ops {
            match op {
                Op::Put { table, key, value } => self.disk.0.insert((table, key), value),
                Op::Delete { table, key } => self.disk.0.remove(&(table, key)),
            };
        }
        self.durable(batch.mark);
        true
    }

    fn durable(&mut self, mark: Mark) {
        self.handle(Event::Command(HomeCommand::Durable(mark)));
    }

    /// All that was written becomes durable, and what follows from it.
    pub(super) fn sync(&mut self) {
        while self.sync_one() {}
    }

    /// Keys and values of a table, as they are durable.
    pub(super) fn stored(&self, table: Table) -> impl Iterator<Item = (&[u8], &[u8])> {
        let all = self.disk.0.iter().filter(move |((of, _), _)| *of == table);
        all.map(|((_, key), value)| (key.as_slice(), value.as_slice()))
    }

    pub(super) fn size(&self, table: &str) -> usize {
        let sizes = self.home.sizes();
        let found = sizes.iter().find(|(name, _)| *name == table);
        found.expect("a table").1
    }

    /// What the disk writes next.
    pub(super) fn next_batch(&self) -> Option<&Batch> {
        self.unsynced.first()
    }

    /// Bytes that the disk has to write.
    pub(super) fn unsynced_bytes(&self) -> usize {
        self.unsynced.iter().map(Batch::bytes).sum()
    }

    pub(super) fn call(&mut self, request: CallRequest) -> CallId {
        self.call_on(SITE, anna(), request)
    }

    /// Calls by an edge.
    fn call_on(&mut self, edge: EdgeId, member: MemberId, request: CallRequest) -> CallId {
        self.last += 1;
        let number = self.last;
        let (call, home) = (CallId { member, number }, HOME);
        let call_up = message::Call {
            call,
            home,
            request,
        };
        self.receive_on(edge, Message::Up(Up::Call(call_up)));
        call
    }

    /// Calls by an edge that is not the site's, and waits for the answer. None: nobody answers.
    pub(super) fn called_on(
        &mut self,
        edge: EdgeId,
        member: MemberId,
        request: CallRequest,
    ) -> Option<Result<CallResponse, CallError>> {
        let asked = self.call_on(edge, member, request);
        self.sync();
        let answers = self.told.iter().filter(|(to, _)| *to == edge);
        answers.map(|(_, down)| down).find_map(|down| match down {
            Down::CallResult(message::CallResult { call, result, .. }) if *call == asked => {
                Some(result.clone())
            }
            _ => None,
        })
    }

    /// Calls, and waits for the answer.
    pub(super) fn called(&mut self, request: CallRequest) -> Result<CallResponse, CallError> {
        let call = self.call(request);
        self.sync();
        self.answer(call).expect("an answer")
    }

    pub(super) fn answer(&self, call: CallId) -> Option<Result<CallResponse, CallError>> {
        self.sent.iter().find_map(|down| match down {
            Down::CallResult(message::CallResult {
                call: c, result, ..
            }) if *c == call => Some(result.clone()),
            _ => None,
        })
    }

    /// Sends a commit at the home's durable position.
    pub(super) fn commit(
        &mut self,
        reads: Vec<(PageId, SlotSet)>,
        writes: Vec<PageWrites>,
    ) -> CommitId {
        let evidence = self.home.durable();
        let request = self.request(evidence, reads, writes);
        self.send(request)
    }

    pub(super) fn send(&mut self, request: CommitRequest) -> CommitId {
        let id = request.id;
        self.receive(Up::Commit(request));
        id
    }

    pub(super) fn request(
        &mut self,
        evidence: Position,
        reads: Vec<(PageId, SlotSet)>,
        writes: Vec<PageWrites>,
    ) -> CommitRequest {
        self.last += 1;
        let part = Part {
            home: HOME,
            evidence,
            reads,
            writes,
            under: None,
        };
        CommitRequest {
            id: CommitId {
                member: anna(),
                sequence: self.last,
            },
            registration: self.registration,
            part,
            with: Vec::new(),
            depends_on: Vec::new(),
            after: Stamp::default(),
        }
    }

    /// How a commit ended, as far as it was told.
    pub(super) fn outcome(&self, id: CommitId) -> Option<Result<(), Refusal>> {
        self.sent.iter().find_map(|down| match down {
            Down::Refused(message::Refused {
                commit, refusal, ..
            }) if *commit == id => Some(Err(refusal.clone())),
            Down::Committed(message::Committed { commit, .. }) if *commit == id => Some(Ok(())),
            Down::Step(step) if step.commit == Some(id) => Some(Ok(())),
            _ => None,
        })
    }

    pub(super) fn fetch(&mut self, page: PageId) -> Attempt {
        self.last += 1;
        let attempt = Attempt(self.last);
        self.receive(Up::Fetch(message::Fetch {
            home: HOME,
            epoch: self.epoch,
            page,
            attempt,
            peers: false,
            ahead: false,
            updates: 0,
        }));
        attempt
    }

    pub(super) fn fetched(&self, asked: Attempt) -> Option<FetchResult> {
        self.sent.iter().find_map(|down| match down {
            Down::Image(message::FetchResponse {
                attempt,
                result: answer,
                ..
            }) if *attempt == asked => Some(answer.clone()),
            _ => None,
        })
    }

    pub(super) fn receive(&mut self, up: Up) {
        self.receive_on(SITE, Message::Up(up));
    }

    pub(super) fn receive_on(&mut self, edge: EdgeId, message: Message) {
        self.handle(Event::Received { edge, message });
    }

    /// Time passes, and the home is told.
    pub(super) fn wait(&mut self, ms: u64) {
        self.now += ms;
        self.handle(Event::Tick);
    }

    /// A way to another home, whose stream begins.
    pub(super) fn other_home(&mut self, home: HomeId, edge: EdgeId) {
        self.other_home_named(home, name_of(home), edge);
    }

    /// The same, under this name.
    pub(super) fn other_home_named(&mut self, home: HomeId, name: &str, edge: EdgeId) {
        self.connect(edge, Direction::Up, NodeKind::Home, MemberId(5));
        let begin = Down::Begin(fixture::begin(home, name, 0, 0));
        self.receive_on(edge, Message::Down(begin));
    }

    pub(super) fn connect(
        &mut self,
        edge: EdgeId,
        direction: Direction,
        kind: NodeKind,
        node: MemberId,
    ) {
        let peer = Peer {
            kind,
            node,
            name: String::from("n"),
            is_operator: false,
            is_carried: false,
        };
        self.connect_peer(edge, direction, peer);
    }

    pub(super) fn connect_peer(&mut self, edge: EdgeId, direction: Direction, peer: Peer) {
        self.handle(Event::Connected {
            edge,
            direction,
            peer,
        });
        if direction == Direction::Down {
            // It holds nothing.
            self.receive_on(edge, Message::Claims(Vec::new()));
        }
    }

    /// The stamp that the home voted for, if it was told.
    pub(super) fn vote(&self, id: CommitId) -> Option<Stamp> {
        self.sent.iter().find_map(|down| match down {
            Down::Voted(message::Voted { commit, stamp, .. }) if *commit == id => Some(*stamp),
            _ => None,
        })
    }
}

/// The member that the site brings.
pub(super) fn anna() -> MemberId {
    MemberId(3)
}

/// The site.
pub(super) fn site() -> MemberId {
    MemberId::new(NameId(100), 2)
}

/// A delegation of a member to the site.
pub(super) fn register(member: MemberId, number: u64) -> CallRequest {
    register_until(member, number, Millis(200_000))
}

/// A delegation of a member to the site, until a time.
pub(super) fn register_until(member: MemberId, number: u64, ends: Millis) -> CallRequest {
    let text = DelegationText {
        version: DELEGATION_VERSION,
        home: HOME,
        member,
        number: DelegationNo(number),
        ends,
        sites: Vec::from([site().name()]),
    };
    let proof = Proof {
        certificate: Vec::from(member.name().0.to_be_bytes()).into(),
        ..Proof::none()
    };
    CallRequest::Register(Some(Delegation { text, proof }))
}

fn name_of(home: HomeId) -> &'static str {
    match home {
        OTHER => "other",
        _ => "a stranger",
    }
}

fn now(ms: u64) -> Now {
    Now {
        mono: Millis(1_000 + ms),
        wall: Millis(100_000 + ms),
    }
}

pub(super) fn page(number: u32) -> PageId {
    PageId::new(1, number)
}

pub(super) fn create(slot: u16, value: NewValue) -> (Slot, WriteOp) {
    let generation = Generation(1);
    (Slot(slot), WriteOp::Create { generation, value })
}

pub(super) fn write(slot: u16, bytes: usize) -> (Slot, WriteOp) {
    let (generation, value) = (Generation(1), inline(bytes));
    (Slot(slot), WriteOp::Write { generation, value })
}

pub(super) fn inline(bytes: usize) -> NewValue {
    NewValue::Inline(Blob::from(alloc::vec![b'a'; bytes]))
}

pub(super) fn on(page: PageId, slots: Vec<(Slot, WriteOp)>) -> PageWrites {
    PageWrites { page, slots }
}
