//! A process that keeps no rules: it asks for more than any member may, and
//! says what no child says. Nobody may grow or go wrong by it (rule 15).

use crate::forger::Forger;
use crate::made_up::MADE_UP_NAMES;
use crate::time::WALL_MS_FIRST;
use std::convert::Infallible;
use thorp_model::limits::{
    CALLS_PER_CHILD_MAX, COMMITS_IN_FLIGHT_MAX, DELEGATION_MS, FETCHES_PER_CHILD_MAX,
};
use thorp_model::{
    Attempt, CallId, CallRequest, CallResponse, Claim, CommitId, CommitRequest, DELEGATION_VERSION,
    Decision, Delegation, DelegationNo, DelegationText, Direction, Down, EdgeId, EntryNo, Epoch,
    Event, HomeId, Incarnation, LifeId, Mark, MemberId, Message, Millis, NameId, Now, Outbox,
    PageId, Part, Participant, Point, Position, Proof, Receipt, ReceiptKey, Registration,
    SegmentId, Stamp, StateMachine, Up, Xoshiro256, message,
};

/// A home that is not there. No vote may wait for it (rule R7).
const NOBODYS: HomeId = HomeId(u32::MAX);

/// What a rogue fills.
type ToParent = Outbox<Infallible>;

/// Members that a rogue makes up at a time.
const MADE_UP_MEMBERS: u64 = 60;

/// The rogue.
pub struct Byzantine {
    prng: Xoshiro256,
    member: MemberId,
    /// A member that it would like to be.
    other: MemberId,
    /// Children of its parent: limits are for each of them.
    neighbours: usize,
    homes: Vec<HomeId>,
    /// It says that it is a site, and speaks for members that it makes up, and for others (rule R2).
    is_site: bool,
    forger: Forger,
}

impl Byzantine {
    /// A rogue of this name, and another member's; among so many other children, and what homes there are.
    pub fn new(
        prng: Xoshiro256,
        [member, other]: [MemberId; 2],
        neighbours: usize,
        homes: Vec<HomeId>,
        is_site: bool,
    ) -> Self {
        Byzantine {
            homes,
            is_site,
            forger: Forger::default(),
            member,
            other,
            neighbours: neighbours + 5,
            prng,
        }
    }

    /// When a stream begins it does its worst; else it is silent. Where its help is wanted it sends what it was given,
    /// mostly forged.
    fn provoked(&mut self, now: Now, event: &Event<Infallible>, outbox: &mut ToParent) {
        let Event::Received {
            edge,
            message: Message::Down(message),
        } = event
        else {
            return;
        };
        self.forger.hear(message);
        if let Down::Redirect(redirect) = message
            && let Some(peer) = self.forger.forge(redirect, &mut self.prng)
        {
            return outbox.up(*edge, Up::Peer(peer));
        }
        if self.is_site {
            if let Down::Begin(message::Begin { home, .. }) = message {
                self.register_made_up(now, *edge, *home, outbox);
                self.speak_for_another(*edge, *home, outbox);
                self.commit_for(self.other, (*edge, *home), outbox);
            }
            return;
        }
        if let Down::CallResult(message::CallResult {
            home,
            result: Ok(CallResponse::Registered(registration)),
            ..
        }) = message
        {
            return self.decide_all(*edge, *home, *registration, outbox);
        }
        let Down::Begin(message::Begin { home, epoch, .. }) = message else {
            return;
        };
        match self.prng.below(8) {
            6 => self.speak_for_another(*edge, *home, outbox),
            5 => self.register(*edge, *home, outbox),
            0 => self.fetch_all(*edge, *home, *epoch, outbox),
            1 => self.call_all(*edge, *home, outbox),
            2 => self.commit_all(*edge, *home, outbox),
            3 => watch_all(*edge, *home, *epoch, outbox),
            4 => self.talk_nonsense(*edge, *home, *epoch, outbox),
            _ => outbox.down(
                *edge,
                Down::Heartbeat(message::Heartbeat {
                    home: *home,
                    position: Position(0),
                    watermark: Stamp::default(),
                }),
            ),
        }
    }

    fn fetch_all(
        &mut self,
        edge: EdgeId,
        home: HomeId,
        epoch: Epoch,
        outbox: &mut Outbox<Infallible>,
    ) {
        let most = (self.neighbours + 1) * FETCHES_PER_CHILD_MAX;
        for number in 1..=most as u32 {
            outbox.up(
                edge,
                Up::Fetch(message::Fetch {
                    home,
                    epoch,
                    page: PageId::new(1, number),
                    attempt: Attempt(u64::from(number)),
                    peers: self.prng.percent(50),
                    ahead: number.is_multiple_of(3),
                    updates: number as u8,
                }),
            );
        }
    }

    fn call_all(&mut self, edge: EdgeId, home: HomeId, outbox: &mut Outbox<Infallible>) {
        let most = (self.neighbours + 1) * CALLS_PER_CHILD_MAX;
        for number in 1..=most as u64 {
            let call = CallId {
                member: self.member,
                number,
            };
            let request = CallRequest::List {
                prefix: String::new(),
                after: String::new(),
            };
            outbox.up(
                edge,
                Up::Call(message::Call {
                    call,
                    home,
                    request,
                }),
            );
        }
    }

    /// Signs itself what only a member can sign, for members that it makes up and for another one. Half
    /// of those that it makes up have a name of their own, the others have one that comes again and again.
    fn register_made_up(&mut self, now: Now, edge: EdgeId, home: HomeId, outbox: &mut ToParent) {
        for number in 0..MADE_UP_MEMBERS {
            let name = match number % 2 {
                0 => NameId(0),
                _ => NameId(self.prng.below(MADE_UP_NAMES)),
            };
            let member = match number {
                0 => self.other,
                _ => MemberId::new(name, self.prng.bits()),
            };
            let text = DelegationText {
                version: DELEGATION_VERSION,
                home,
                member,
                number: DelegationNo(self.prng.below(1_000)),
                ends: now.wall.plus(DELEGATION_MS),
                sites: Vec::from([self.member.name()]),
            };
            let proof = Proof::none();
            let delegation = (number % 8 != 7).then_some(Delegation { text, proof });
            let call = message::Call {
                call: CallId { member, number },
                home,
                request: CallRequest::Register(delegation),
            };
            outbox.up(edge, Up::Call(call));
        }
    }

    /// It goes on when it is registered.
    fn register(&mut self, edge: EdgeId, home: HomeId, outbox: &mut Outbox<Infallible>) {
        let call = CallId {
            member: self.member,
            number: 0,
        };
        let request = CallRequest::Register(None);
        outbox.up(
            edge,
            Up::Call(message::Call {
                call,
                home,
                request,
            }),
        );
    }

    /// Takes part in transactions with another home, which knows nothing of them, or with one that
    /// is not there, and says that they ended as no votes can have.
    fn decide_all(
        &mut self,
        edge: EdgeId,
        home: HomeId,
        registration: Registration,
        outbox: &mut Outbox<Infallible>,
    ) {
        let others = self.homes.iter().copied().filter(|other| *other != home);
        let others: Vec<HomeId> = others.chain([NOBODYS]).collect();
        for sequence in 1..=20 {
            let other = others[self.prng.index(others.len())];
            let commit = CommitId {
                member: self.member,
                sequence,
            };
            let mut request = nothing(commit, registration, home);
            let homes = [home.min(other), home.max(other)];
            let with = homes.map(|home| Participant { home, registration });
            request.with = Vec::from(with);
            outbox.up(edge, Up::Commit(request));
            let clock = match self.prng.below(4) {
                0 => 0,
                1 => u64::MAX,
                2 => self.prng.bits(),
                // Below the votes of this home, and above those of long ago.
                _ => self.prng.below(WALL_MS_FIRST) << 16,
            };
            let home_of_stamp = [home, other, HomeId(99)][self.prng.index(3)];
            let stamp = Stamp {
                clock,
                home: home_of_stamp,
            };
            for decision in [Decision::Commit(stamp), Decision::Abort] {
                if decision == Decision::Abort && self.prng.percent(50) {
                    continue; // The homes find outbox.
                }
                outbox.up(
                    edge,
                    Up::Decide(message::Decide {
                        home,
                        commit,
                        registration,
                        decision,
                    }),
                );
            }
            if self.prng.percent(50) {
                outbox.up(
                    edge,
                    Up::Settled(message::Settled {
                        home,
                        commit,
                        registration,
                    }),
                );
            }
        }
    }

    /// Ends what another member has begun, or may begin.
    fn speak_for_another(&mut self, edge: EdgeId, home: HomeId, outbox: &mut Outbox<Infallible>) {
        let registration = Registration(self.prng.below(5));
        for sequence in 1..=20 {
            let commit = CommitId {
                member: self.other,
                sequence,
            };
            let call = CallId {
                member: self.other,
                number: sequence,
            };
            outbox.up(
                edge,
                match self.prng.below(3) {
                    0 => Up::Settled(message::Settled {
                        home,
                        commit,
                        registration,
                    }),
                    1 => Up::Call(message::Call {
                        call,
                        home,
                        request: CallRequest::Outcome {
                            commit,
                            registration,
                        },
                    }),
                    _ => Up::Decide(message::Decide {
                        home,
                        commit,
                        registration,
                        decision: Decision::Abort,
                    }),
                },
            );
        }
    }

    /// It claims nothing, or what it has made up, or what it was given and has altered (trap R23).
    fn claim(&mut self, edge: EdgeId, outbox: &mut ToParent) {
        let claimed = self.prng.percent(60);
        let homes: Vec<HomeId> = self.homes.iter().copied().filter(|_| claimed).collect();
        let claims = homes.into_iter().map(|home| (home, self.made_up(home)));
        let claims: Vec<(HomeId, Claim)> = claims.collect();
        outbox.claim(edge, claims);
    }

    fn made_up(&mut self, home: HomeId) -> Claim {
        let point = Point {
            life: LifeId {
                counter: self.prng.below(9) as u32,
                random: self.prng.bits(),
            },
            mark: Mark(self.prng.below(500)),
            position: Position(self.prng.below(500)),
            clock: self.prng.bits(),
        };
        let key = ReceiptKey::new([200; 32]);
        Claim {
            receipt: Receipt::new(home, Incarnation::default(), point, &key),
            position: point.position,
            clock: point.clock,
        }
    }

    /// Commits under registrations that are not its own.
    fn commit_all(&mut self, edge: EdgeId, home: HomeId, outbox: &mut ToParent) {
        self.commit_for(self.member, (edge, home), outbox);
    }

    fn commit_for(
        &mut self,
        member: MemberId,
        (edge, home): (EdgeId, HomeId),
        outbox: &mut ToParent,
    ) {
        let most = (self.neighbours + 1) * COMMITS_IN_FLIGHT_MAX;
        for sequence in 1..=most as u64 {
            let id = CommitId { member, sequence };
            let registration = Registration(self.prng.below(5));
            outbox.up(edge, Up::Commit(nothing(id, registration, home)));
        }
    }

    fn talk_nonsense(
        &mut self,
        edge: EdgeId,
        home: HomeId,
        epoch: Epoch,
        outbox: &mut Outbox<Infallible>,
    ) {
        for number in 0..50 {
            let page = PageId::new(1, number);
            let epoch = Epoch(epoch.0 + self.prng.below(2));
            outbox.up(
                edge,
                Up::Evict(message::Evict {
                    home,
                    epoch,
                    page,
                    entry: EntryNo(u32::MAX),
                }),
            );
            outbox.up(
                edge,
                Up::Ack(message::Ack {
                    home: HomeId(home.0 + self.prng.below(2) as u32),
                    epoch,
                    position: Position(self.prng.below(1_000)),
                }),
            );
        }
    }
}

/// A commit that neither reads nor writes.
impl StateMachine for Byzantine {
    type Command = Infallible;
    type Action = Infallible;

    fn handle(&mut self, now: Now, event: Event<Infallible>, outbox: &mut Outbox<Infallible>) {
        if let Event::Connected {
            edge,
            direction: Direction::Up,
            ..
        } = event
        {
            return self.claim(edge, outbox);
        }
        self.provoked(now, &event, outbox);
    }

    fn deadline(&self) -> Option<Millis> {
        None
    }
}

fn nothing(id: CommitId, registration: Registration, home: HomeId) -> CommitRequest {
    let part = Part {
        home,
        evidence: Position(0),
        reads: Vec::new(),
        writes: Vec::new(),
        under: None,
    };
    CommitRequest {
        id,
        registration,
        part,
        with: Vec::new(),
        depends_on: Vec::new(),
        after: Stamp::default(),
    }
}

fn watch_all(edge: EdgeId, home: HomeId, epoch: Epoch, outbox: &mut Outbox<Infallible>) {
    for segment in (1..400).map(SegmentId) {
        let on = true;
        outbox.up(
            edge,
            Up::Watch(message::Watch {
                home,
                epoch,
                segment,
                on,
            }),
        );
    }
}
