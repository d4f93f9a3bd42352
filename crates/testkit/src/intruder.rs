//! A member that speaks the protocol by hand.

use crate::attacker::{Attacker, AttackerEdge};
use std::time::{SystemTime, UNIX_EPOCH};
use thorp_model::limits::DELEGATION_MS;
use thorp_model::{
    Attempt, CallId, CallRequest, CallResponse, CommitId, CommitRequest, DELEGATION_VERSION,
    DelegationNo, DelegationText, Down, Epoch, HomeId, MemberId, Message, Millis, NameId, ObjectId,
    Outcome, PageId, PageWrites, Part, Position, Registration, SlotSet, Stamp, Up, WriteOp,
    message,
};

/// An attacker on an edge, in the middle of a stream of a home.
pub struct Intruder {
    attacker: Attacker,
    /// The sites on the way to the home, for which it signs like any member.
    sites: Vec<NameId>,
    signed: DelegationNo,
    /// Its edge.
    pub edge: AttackerEdge,
    /// Its process id.
    pub member: MemberId,
    /// The home of the stream.
    pub home: HomeId,
    /// The life of the stream.
    pub epoch: Epoch,
    /// How far the stream has come.
    pub position: Position,
}

impl Intruder {
    /// Joins as an ordinary member with the certificate in a directory, and registers once a stream has begun.
    pub fn enter(identity: &str, via: &str) -> Self {
        let (mut intruder, begin) = Self::begin(identity, via);
        let readers = begin.readers;
        assert!(
            readers.is_empty(),
            "a member is told of no others: {readers:?}"
        );
        intruder.register();
        intruder
    }

    /// Joins as a site with the certificate in a directory, which a member may carry. It speaks for nobody.
    pub fn enter_as_site(identity: &str, via: &str) -> Self {
        Self::begin(identity, via).0
    }

    fn begin(identity: &str, via: &str) -> (Self, message::Begin) {
        let attacker = Attacker::at(identity);
        let hello = attacker.greeting();
        let mut edge = attacker.call(via, &hello).unwrap();
        loop {
            if let Some(Message::Down(Down::Begin(begin))) = edge.receive() {
                let intruder = Intruder {
                    attacker,
                    sites: begin.sites.clone(),
                    signed: DelegationNo(0),
                    edge,
                    member: hello.node,
                    home: begin.home,
                    epoch: begin.epoch,
                    position: begin.position,
                };
                return (intruder, begin);
            }
        }
    }

    /// Sends a message.
    pub fn send(&self, up: Up) {
        self.edge.send(&Message::Up(up));
    }

    /// The next message that is neither a heartbeat nor a sign of life. It follows how far the stream has come.
    pub fn hear(&mut self) -> Down {
        loop {
            match self.edge.receive() {
                Some(Message::Down(Down::Heartbeat(beat))) => self.stands(beat.position),
                Some(Message::Alive | Message::Homes(_) | Message::Down(Down::Receipt(_))) => {}
                Some(Message::Down(down)) => {
                    match &down {
                        Down::Step(step) => self.stands(step.position),
                        Down::Image(response) => self.stands(response.position),
                        _ => {}
                    }
                    return down;
                }
                other => panic!("{other:?} comes instead of an answer"),
            }
        }
    }

    fn stands(&mut self, position: Position) {
        self.position = self.position.max(position);
    }

    /// Asks for a page by its number, as a guess.
    pub fn fetch(&mut self, page: PageId, peers: bool) -> Down {
        self.send(Up::Fetch(message::Fetch {
            home: self.home,
            epoch: self.epoch,
            page,
            attempt: Attempt(1),
            peers,
            ahead: false,
            updates: 0,
        }));
        self.hear()
    }

    /// Calls the home; the answer, or whatever comes first.
    pub fn call(&mut self, request: CallRequest) -> Down {
        let call = CallId {
            member: self.member,
            number: 1,
        };
        self.send(Up::Call(message::Call {
            call,
            home: self.home,
            request,
        }));
        self.hear()
    }

    /// Registers.
    pub fn register(&mut self) -> Registration {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = Millis(u64::try_from(since.as_millis()).unwrap());
        // It comes more than once under one process id.
        self.signed = self.signed.next().max(DelegationNo(now.0));
        let delegation = self.attacker.sign(DelegationText {
            version: DELEGATION_VERSION,
            home: self.home,
            member: self.member,
            number: self.signed,
            ends: now.plus(DELEGATION_MS),
            sites: self.sites.clone(),
        });
        match self.call(CallRequest::Register(Some(delegation))) {
            Down::CallResult(message::CallResult {
                result: Ok(CallResponse::Registered(registration)),
                ..
            }) => registration,
            other => panic!("{other:?}"),
        }
    }

    /// Commits a write, or only a read, of an object.
    pub fn commit(&mut self, sequence: u64, object: ObjectId, write: Option<WriteOp>) -> Outcome {
        let registration = self.register();
        let reads = match write {
            Some(_) => Vec::new(),
            None => vec![(object.page, SlotSet::of(object.slot))],
        };
        let writes = write.map(|op| PageWrites {
            page: object.page,
            slots: vec![(object.slot, op)],
        });
        self.send(Up::Commit(CommitRequest {
            id: CommitId {
                member: self.member,
                sequence,
            },
            registration,
            part: Part {
                home: self.home,
                evidence: self.position,
                reads,
                writes: writes.into_iter().collect(),
                under: None,
            },
            with: Vec::new(),
            depends_on: Vec::new(),
            after: Stamp::default(),
        }));
        match self.hear() {
            Down::Refused(refused) => Outcome::Refused(refused.refusal),
            other => panic!("{other:?} is no refusal"),
        }
    }
}
