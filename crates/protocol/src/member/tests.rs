//! What a member sends at once never fills the queue to its parent (rule 15).

use crate::fixture;
use crate::member::{Member, MemberAction, MemberCommand, MemberConfig, Outbox, Request, Response};
use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::limits::{
    COMMIT_BYTES_MAX, INLINE_VALUE_BYTES_MAX, OVERFLOW_CHUNK_BYTES, SEND_WINDOW_BYTES_MAX,
    STAGE_PAGES_MAX, STAGED_PER_MEMBER_MAX, WAITING_PER_PAGE_MAX,
};
use thorp_model::{
    Action, CallError, CallId, CallRequest, CallResponse, CommitId, Direction, Down, EdgeId, Event,
    Generation, HomeId, MemberId, Message, Millis, NewValue, NodeKind, Now, Outcome, PageId,
    PageWrites, Part, Peer, Place, Position, Refusal, Registration, RequestId, SegmentId, Slot,
    Stamp, StateMachine, Up, Verdict, WriteOp, codec, message,
};

const HOME: HomeId = HomeId(1);
const THERE: HomeId = HomeId(2);
/// What may wait to be sent on an edge, if not told otherwise.
const QUEUE_BYTES: usize = 64 << 20;

struct Village {
    member: Member,
    edge: EdgeId,
    /// Sent and not answered.
    sent: Vec<Up>,
    answers: Vec<(RequestId, Response)>,
    /// Which streams began and ended, in order.
    streams: Vec<(HomeId, bool)>,
}

impl Village {
    fn new() -> Self {
        let mut village = Village {
            member: Member::new(MemberConfig::new(MemberId(1), String::from("m"))),
            edge: EdgeId(0),
            sent: Vec::new(),
            answers: Vec::new(),
            streams: Vec::new(),
        };
        village.begin();
        village
    }

    /// Both have registered this member. And the edge to the second.
    fn of_two_homes() -> (Self, EdgeId) {
        let (mut village, there) = (Village::new(), EdgeId(100));
        village.begin_at(THERE, there);
        village.answer_there(THERE, there);
        // The registration at the first.
        village.answer();
        (village, there)
    }

    /// A new edge and a stream on it; what was sent on the old one is lost.
    fn begin(&mut self) {
        self.sent.clear();
        self.tell(Event::Disconnected { edge: self.edge });
        self.edge = self.edge.next();
        self.begin_at(HOME, self.edge);
    }

    fn begin_at(&mut self, home: HomeId, edge: EdgeId) {
        self.connect(edge);
        self.stream_on(home, edge);
    }

    fn connect(&mut self, edge: EdgeId) {
        self.tell(Event::Connected {
            edge,
            direction: Direction::Up,
            peer: Peer {
                kind: NodeKind::Redirector,
                node: MemberId(2),
                name: String::from("r"),
                is_operator: false,
                is_carried: false,
            },
        });
    }

    fn stream_on(&mut self, home: HomeId, edge: EdgeId) {
        let begin = Down::Begin(fixture::begin(home, "h", edge.0, 1));
        self.down_on(edge, begin);
    }

    fn tell(&mut self, event: Event<MemberCommand>) {
        let mut outbox = Outbox::new();
        let now = Now {
            mono: Millis(0),
            wall: Millis(0),
        };
        self.member.handle(now, event, &mut outbox);
        for effect in outbox.actions {
            match effect {
                Action::Send(edge, Message::Up(up)) if edge == self.edge => self.sent.push(up),
                Action::Role(MemberAction::Respond(request_id, answer)) => {
                    self.answers.push((request_id, answer))
                }
                Action::Role(MemberAction::StreamBegan { home, .. }) => {
                    self.streams.push((home, true));
                }
                Action::Role(MemberAction::StreamEnded(home)) => self.streams.push((home, false)),
                Action::Close(..) => panic!("it closes an edge"),
                _ => {}
            }
        }
        assert!(self.queued() <= QUEUE_BYTES / 2 + (1 << 20));
    }

    /// All that was sent, as if nothing of it were written.
    fn queued(&self) -> usize {
        let frames = self.sent.iter().cloned().map(|up| {
            let frame = codec::encode(&Message::Up(up));
            frame.expect("a frame").len()
        });
        frames.sum()
    }

    fn down(&mut self, message: Down) {
        self.down_on(self.edge, message);
    }

    fn down_on(&mut self, edge: EdgeId, message: Down) {
        let message = Message::Down(message);
        self.tell(Event::Received { edge, message });
    }

    /// Another home registers this member: the second that was asked.
    fn answer_there(&mut self, home: HomeId, edge: EdgeId) {
        let call = CallId {
            member: MemberId(1),
            number: 2,
        };
        let result = Ok(CallResponse::Registered(Registration(1)));
        self.down_on(
            edge,
            Down::CallResult(message::CallResult { home, call, result }),
        );
    }

    /// Another home tells a commit.
    fn told_there(&mut self, home: HomeId, edge: EdgeId, sequence: u64) {
        let commit = CommitId {
            member: MemberId(1),
            sequence,
        };
        let (position, stamp) = (Position(1), Stamp::default());
        let told = Down::Committed(message::Committed {
            home,
            commit,
            position,
            stamp,
        });
        self.down_on(edge, told);
    }

    /// A home votes for its part of a commit.
    fn voted_at(&mut self, home: HomeId, edge: EdgeId, sequence: u64) {
        let commit = CommitId {
            member: MemberId(1),
            sequence,
        };
        let stamp = Stamp::default();
        let voted = Down::Voted(message::Voted {
            home,
            commit,
            stamp,
        });
        self.down_on(edge, voted);
    }

    fn commit(&mut self, number: u64, bytes: usize) {
        self.commit_at(number, &[(HOME, bytes)]);
    }

    fn commit_at(&mut self, number: u64, at: &[(HomeId, usize)]) {
        let parts = at.iter().map(|(home, bytes)| Part {
            home: *home,
            ..part(*bytes)
        });
        let ask = Request::Commit {
            parts: parts.collect(),
            histories: alloc::vec![0; at.len()],
            depends_on: Vec::new(),
            after: Stamp::default(),
            early: false,
        };
        self.ask(number, ask);
    }

    fn stage(&mut self, number: u64) {
        let chunk = alloc::vec![7; OVERFLOW_CHUNK_BYTES];
        let request = CallRequest::Stage {
            segment: SegmentId(1),
            registration: Registration::default(),
            token: number,
            bytes: 1 << 20,
            index: 0,
            chunks: (0..STAGE_PAGES_MAX).map(|_| chunk[..].into()).collect(),
        };
        self.ask(
            number,
            Request::Call {
                home: HOME,
                request,
            },
        );
    }

    fn ask(&mut self, number: u64, request: Request) {
        let id = RequestId(number);
        self.tell(Event::Command(MemberCommand::Request { id, request }));
    }

    /// Answers the first thing that was sent.
    fn answer(&mut self) {
        match self.sent.remove(0) {
            Up::Commit(request) => self.down(Down::Committed(message::Committed {
                home: HOME,
                commit: request.id,
                position: Position(1),
                stamp: Stamp::default(),
            })),
            Up::Call(message::Call { call, request, .. }) => self.answer_call(call, &request),
            other => panic!("{other:?} is not answered"),
        }
    }

    /// The home does not do the first call that was sent.
    fn fail_first(&mut self, failure: CallError) -> CallRequest {
        let Up::Call(message::Call { call, request, .. }) = self.sent.remove(0) else {
            panic!("no call was sent first");
        };
        let (home, result) = (HOME, Err(failure));
        self.down(Down::CallResult(message::CallResult { home, call, result }));
        request
    }

    fn answer_call(&mut self, call: CallId, request: &CallRequest) {
        let response = match request {
            CallRequest::Register(_) => CallResponse::Registered(Registration(1)),
            CallRequest::Outcome { .. } => {
                CallResponse::Outcome(Outcome::Refused(Refusal::Unknown))
            }
            _ => CallResponse::Unstaged,
        };
        self.down(Down::CallResult(message::CallResult {
            home: HOME,
            call,
            result: Ok(response),
        }));
    }

    fn size(&self, table: &str) -> usize {
        let sizes = self.member.sizes().into_iter();
        let of = sizes.filter(|(name, _)| *name == table);
        of.map(|(_, size)| size).sum()
    }

    fn commits_sent(&self) -> usize {
        let commits = self.sent.iter().filter(|up| matches!(up, Up::Commit(_)));
        commits.count()
    }

    fn answer_all(&mut self) {
        while !self.sent.is_empty() {
            self.answer();
        }
    }
}

fn part(bytes: usize) -> Part {
    let value = alloc::vec![7; INLINE_VALUE_BYTES_MAX];
    let pages = bytes / (INLINE_VALUE_BYTES_MAX + 64);
    let write = || WriteOp::Write {
        generation: Generation(1),
        value: NewValue::Inline(value[..].into()),
    };
    let writes = (0..pages.max(1) as u32).map(|page| PageWrites {
        page: PageId::new(1, page),
        slots: Vec::from([(Slot(0), write())]),
    });
    Part {
        home: HOME,
        evidence: Position(1),
        reads: Vec::new(),
        writes: writes.collect(),
        under: None,
    }
}

#[test]
fn large_commits_at_once_wait_for_each_other_and_all_end() {
    let mut village = Village::new();
    for number in 0..6 {
        village.commit(number, COMMIT_BYTES_MAX);
    }
    village.answer();
    assert_eq!(village.commits_sent(), 1);
    // The edge is lost: what was sent is asked for, what waited goes on waiting.
    village.begin();
    assert_eq!(village.commits_sent(), 0);
    village.answer_all();
    assert_eq!(village.answers.len(), 6);
    assert!(village.member.sizes().contains(&("commits", 0)));
}

#[test]
fn small_commits_go_together_and_wait_behind_a_large_one() {
    let mut village = Village::new();
    village.commit(0, 1);
    village.answer_all();
    for number in 1..9 {
        village.commit(number, 1 << 20);
    }
    assert_eq!(village.commits_sent(), 8);
    village.commit(9, COMMIT_BYTES_MAX);
    village.commit(10, 1);
    assert_eq!(village.commits_sent(), 8);
    village.answer_all();
    let told: Vec<u64> = village
        .answers
        .iter()
        .map(|(request_id, _)| request_id.0)
        .collect();
    assert_eq!(told, Vec::from_iter(0..11));
}

#[test]
fn what_waits_for_space_on_another_edge_holds_up_nothing_here() {
    let (mut village, there) = Village::of_two_homes();
    // The way there is full.
    village.commit_at(1, &[(THERE, COMMIT_BYTES_MAX)]);
    village.commit_at(2, &[(HOME, 1)]);
    village.answer_all();
    village.commit_at(3, &[(HOME, 1), (THERE, 6 << 20)]);
    assert_eq!(village.commits_sent(), 0);
    village.commit_at(4, &[(HOME, 1)]);
    assert_eq!(village.commits_sent(), 1);
    village.answer_all();
    let told: Vec<u64> = village
        .answers
        .iter()
        .map(|(request_id, _)| request_id.0)
        .collect();
    assert_eq!(told, [2, 4]);
    // Room comes there, and what waited goes.
    village.told_there(THERE, there, 1);
    assert_eq!(village.commits_sent(), 1);
}

#[test]
fn what_is_voted_on_has_come_and_leaves_space_for_the_next() {
    let (mut village, there) = Village::of_two_homes();
    village.commit_at(1, &[(HOME, COMMIT_BYTES_MAX), (THERE, 1)]);
    village.commit_at(2, &[(HOME, COMMIT_BYTES_MAX), (THERE, 1)]);
    assert_eq!(village.commits_sent(), 1);
    village.voted_at(HOME, village.edge, 1);
    assert_eq!(village.commits_sent(), 2);
    village.voted_at(THERE, there, 1);
    assert_eq!(village.commits_sent(), 2);
}

#[test]
fn what_was_on_its_way_to_a_home_that_is_gone_leaves_space_on_the_edge() {
    let mut village = Village::new();
    let edge = village.edge;
    village.stream_on(THERE, edge);
    village.answer_there(THERE, edge);
    village.answer();
    village.commit_at(1, &[(THERE, COMMIT_BYTES_MAX)]);
    village.commit_at(2, &[(HOME, COMMIT_BYTES_MAX)]);
    assert_eq!(village.commits_sent(), 1);
    village.down(Down::End(message::End { home: THERE }));
    assert_eq!(village.commits_sent(), 2);
}

/// One home votes and says that its answer follows, and the other one refuses. There is nothing for readers to see.
#[test]
fn a_refusal_waits_for_no_home_that_keeps_its_answer_back() {
    let (mut village, there) = Village::of_two_homes();
    village.commit_at(1, &[(HOME, 1), (THERE, 1)]);
    let commit = CommitId {
        member: MemberId(1),
        sequence: 1,
    };
    let withheld = message::Withheld { home: HOME, commit };
    village.down(Down::Withheld(withheld));
    village.voted_at(HOME, village.edge, 1);
    let refused = |home, refusal| {
        Down::Refused(message::Refused {
            home,
            commit,
            refusal,
        })
    };
    village.down_on(there, refused(THERE, Refusal::Unknown));
    let [(request_id, Response::Outcome(id, outcome, home))] = &village.answers[..] else {
        panic!("{:?}", village.answers);
    };
    assert_eq!(
        (*request_id, *id, *home),
        (RequestId(1), commit, Some(THERE))
    );
    assert_eq!(*outcome, Outcome::Refused(Refusal::Unknown));
    village.down(refused(HOME, Refusal::Elsewhere));
    assert_eq!((village.answers.len(), village.size("withheld")), (1, 0));
}

/// The votes came to a commit, and one home has no longer what it was asked to remember. That changes nothing.
#[test]
fn what_all_have_voted_for_is_committed_whatever_a_home_forgets() {
    let (mut village, there) = Village::of_two_homes();
    village.commit_at(1, &[(HOME, 1), (THERE, 1)]);
    village.voted_at(HOME, village.edge, 1);
    // What it voted is not shown before its place any more.
    village.begin();
    village.voted_at(THERE, there, 1);
    assert_eq!(village.answers, [], "it is not delivered yet");
    let commit = CommitId {
        member: MemberId(1),
        sequence: 1,
    };
    village.down(Down::Refused(message::Refused {
        home: HOME,
        commit,
        refusal: Refusal::Forgotten,
    }));
    village.told_there(THERE, there, 1);
    let [(request_id, Response::Outcome(id, outcome, _))] = &village.answers[..] else {
        panic!("{:?}", village.answers);
    };
    assert_eq!((*request_id, *id), (RequestId(1), commit));
    assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
}

#[test]
fn a_home_that_has_forgotten_the_member_registers_it_for_what_waits() {
    let mut village = Village::new();
    village.commit(0, COMMIT_BYTES_MAX);
    village.commit(1, COMMIT_BYTES_MAX);
    village.answer();
    let Some(Up::Commit(first)) = village.sent.pop() else {
        panic!("the first commit is sent");
    };
    village.down(Down::Refused(message::Refused {
        home: HOME,
        commit: first.id,
        refusal: Refusal::Forgotten,
    }));
    village.answer_all();
    assert_eq!(village.answers.len(), 2);
}

#[test]
fn stagings_at_once_wait_also_after_a_new_beginning() {
    let mut village = Village::new();
    for number in 0..130 {
        village.stage(number);
    }
    // The registration.
    village.answer();
    let staged = village.queued();
    assert!(staged <= SEND_WINDOW_BYTES_MAX && staged > SEND_WINDOW_BYTES_MAX / 2);
    village.begin();
    assert!(village.queued() <= SEND_WINDOW_BYTES_MAX);
    // Small calls overtake them.
    let prefix = String::new();
    let after = String::new();
    let request = CallRequest::List { prefix, after };
    village.ask(
        1000,
        Request::Call {
            home: HOME,
            request,
        },
    );
    assert!(matches!(
        village.sent.last(),
        Some(Up::Call(message::Call {
            request: CallRequest::List { .. },
            ..
        }))
    ));
    // What is wanted no more keeps its room until it is answered.
    let before = village.sent.len();
    village.tell(Event::Command(MemberCommand::Request {
        id: RequestId(0),
        request: Request::Forget(RequestId(0)),
    }));
    assert_eq!(village.sent.len(), before);
    village.answer_all();
    assert_eq!(village.answers.len(), 130);
    assert!(village.member.sizes().contains(&("calls", 0)));
}

#[test]
fn a_busy_home_is_asked_again_to_give_up_a_staged_value() {
    let mut village = Village::new();
    // The registration.
    village.answer();
    village.ask(1, unstage(5));
    let asked = village.fail_first(CallError::Busy);
    assert_eq!((village.sent.len(), village.answers.len()), (0, 0));
    village.tell(Event::Tick);
    let [Up::Call(again)] = &village.sent[..] else {
        panic!("{:?} was sent", village.sent);
    };
    assert_eq!(again.request, asked);
    village.answer();
    let unstaged = Response::Called(Ok(CallResponse::Unstaged));
    assert_eq!(village.answers, [(RequestId(1), unstaged)]);
    village.tell(Event::Tick);
    assert!(village.sent.is_empty());
}

#[test]
fn a_staged_value_is_given_up_also_where_the_home_was_too_busy_to_register_its_member() {
    let mut village = Village::new();
    village.ask(1, unstage(5));
    village.fail_first(CallError::Busy);
    assert!(village.answers.is_empty());
    village.tell(Event::Tick);
    // The registration, and then what waited for it.
    village.answer();
    village.answer();
    let unstaged = Response::Called(Ok(CallResponse::Unstaged));
    assert_eq!(village.answers, [(RequestId(1), unstaged)]);
}

#[test]
fn a_staged_value_is_given_up_also_after_the_home_has_forgotten_its_member() {
    let mut village = Village::new();
    // The registration.
    village.answer();
    village.ask(1, unstage(5));
    village.ask(2, unstage(6));
    // It is busy for one of both, and for the other it finds that it does not know the member.
    village.fail_first(CallError::Busy);
    village.fail_first(CallError::NotRegistered);
    village.answers.clear();
    village.tell(Event::Tick);
    village.answer_all();
    let unstaged = Response::Called(Ok(CallResponse::Unstaged));
    assert_eq!(village.answers, [(RequestId(1), unstaged)]);
    assert!(village.member.sizes().contains(&("calls", 0)));
}

#[test]
fn a_home_that_is_always_busy_makes_no_more_wait_than_it_may_keep() {
    let mut village = Village::new();
    // The registration.
    village.answer();
    let max = STAGED_PER_MEMBER_MAX as u64;
    for number in 0..=max {
        village.ask(number, unstage(number));
    }
    for _ in 0..=max {
        village.fail_first(CallError::Busy);
    }
    assert_eq!(village.size("unstaging"), STAGED_PER_MEMBER_MAX);
    let busy = Response::Called(Err(CallError::Busy));
    assert_eq!(village.answers, [(RequestId(0), busy)], "the oldest");
}

fn unstage(token: u64) -> Request {
    Request::Call {
        home: HOME,
        request: CallRequest::Unstage {
            registration: Registration(0),
            token,
        },
    }
}

#[test]
fn a_second_parent_does_not_make_a_home_unreachable() {
    let mut village = Village::new();
    let second = EdgeId(50);
    village.begin_at(HOME, second);
    village.down_on(second, Down::End(message::End { home: HOME }));
    village.tell(Event::Disconnected { edge: second });
    assert_eq!(village.streams, [(HOME, true)]);
    let third = EdgeId(51);
    village.begin_at(HOME, third);
    village.tell(Event::Disconnected { edge: third });
    assert_eq!(village.streams, [(HOME, true)]);
    village.tell(Event::Disconnected { edge: village.edge });
    assert_eq!(village.streams, [(HOME, true), (HOME, false)]);
}

#[test]
fn requests_that_wait_for_a_page_are_bounded_and_asking_ahead_is_not_waiting() {
    let mut village = Village::new();
    // The registration.
    village.sent.clear();
    let place = Place {
        home: HOME,
        page: PageId::new(3, 1),
    };
    for number in 0..1000 {
        village.ask(number, Request::Prefetch(place));
    }
    assert_eq!((village.sent.len(), village.size("waiting")), (1, 0));
    let max = WAITING_PER_PAGE_MAX as u64;
    for number in 0..max {
        village.ask(number, Request::Fetch(place));
    }
    assert_eq!(village.sent.len(), 1);
    assert!(village.answers.is_empty());
    village.ask(max, Request::Fetch(place));
    assert_eq!(village.answers, [(RequestId(max), Response::Busy)]);
    assert_eq!(village.size("waiting"), WAITING_PER_PAGE_MAX);
}

/// Rule R9, trap R20: a program thread sends a commit while the member learns that the home has gone back.
#[test]
fn what_was_read_in_a_history_that_is_left_is_not_sent() {
    let mut village = Village::new();
    let left = |number| Request::Commit {
        parts: Vec::from([part(9)]),
        histories: Vec::from([number]),
        depends_on: Vec::new(),
        after: Stamp::default(),
        early: false,
    };
    village.sent.clear();
    village.tell(Event::Disconnected { edge: village.edge });
    village.edge = village.edge.next();
    village.connect(village.edge);
    let mut begin = fixture::begin(HOME, "h", 9, 1);
    begin.verdict = Verdict::Forget;
    village.down(Down::Begin(begin));
    village.ask(2, left(0));
    village.answer();
    assert_eq!(village.commits_sent(), 0);
    let went_back = |(id, answer): &(RequestId, Response)| {
        let refused = Outcome::Refused(Refusal::WentBack);
        *id == RequestId(2)
            && matches!(answer, Response::Outcome(_, outcome, _) if *outcome == refused)
    };
    assert!(
        village.answers.iter().any(went_back),
        "{:?}",
        village.answers
    );
    village.ask(3, left(1));
    assert_eq!(village.commits_sent(), 1);
}
