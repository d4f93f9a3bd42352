//! A member that speaks the protocol by hand.

use crate::attacker::{Attacker, AttackerEdge};
use thorp_model::{
    Attempt, CallId, CallRequest, CallResponse, CommitId, CommitRequest, Down, Epoch, HomeId,
    MemberId, Message, ObjectId, Outcome, PageId, PageWrites, Part, Position, Registration,
    SlotSet, Stamp, Up, WriteOp, message,
};

/// An attacker on an edge, in the middle of a stream of a home.
pub struct Intruder {
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
    /// Joins as an ordinary member with the certificate in a directory, and waits for the beginning of a stream.
    pub fn enter(identity: &str, via: &str) -> Self {
        let attacker = Attacker::at(identity);
        let hello = attacker.greeting();
        let mut edge = attacker.call(via, &hello).unwrap();
        loop {
            if let Some(Message::Down(Down::Begin(begin))) = edge.receive() {
                let readers = begin.readers;
                assert!(
                    readers.is_empty(),
                    "a member is told of no others: {readers:?}"
                );
                return Intruder {
                    edge,
                    member: hello.node,
                    home: begin.home,
                    epoch: begin.epoch,
                    position: begin.position,
                };
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
                Some(Message::Alive) => {}
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
        match self.call(CallRequest::Register(None)) {
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
