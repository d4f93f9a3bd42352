//! What a member of the village may try with an ordinary certificate, over real sockets and real stores.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not their helpers"
)]

mod common;

use std::convert::Infallible;
use std::future::pending;
use std::time::{Duration, Instant};

use common::{Village, is_committed};
use thorp_model::limits::{OVERFLOW_CHUNK_BYTES, STAGE_PAGES_MAX};
use thorp_model::{
    Blob, CallError, CallId, CallRequest, CallResponse, CommitId, CommitRequest, Down, Event,
    Generation, HomeId, InvalidCommit, MemberId, Message, Millis, NewValue, Now, Outbox, Outcome,
    PageId, Part, Participant, Peer, Position, Refusal, Registration, SegmentId, Share, Slot,
    SlotSet, Stamp, StateMachine, Up, WriteOp, message,
};
use thorp_net::driver::{Driver, DriverConfig, Handle, ParentConfig, World};
use thorp_net::{Address, Identity};
use thorp_server::Bytes;
use thorp_testing::{MemberNode, create};

/// Registers, and asks the home to vote for a part that only reads. The second home of the
/// transaction is not there.
struct Locker {
    member: MemberId,
    page: PageId,
    evidence: Position,
    answer: Option<Result<Stamp, Refusal>>,
}

impl Locker {
    fn part(&self, home: HomeId, registration: Registration) -> CommitRequest {
        let with = [home, NOBODYS].map(|home| Participant { home, registration });
        CommitRequest {
            id: CommitId {
                member: self.member,
                sequence: 1,
            },
            registration,
            part: Part {
                home,
                evidence: self.evidence,
                reads: vec![(self.page, SlotSet::of(Slot(0)))],
                writes: Vec::new(),
            },
            with: Vec::from(with),
            depends_on: Vec::new(),
            after: Stamp::default(),
        }
    }
}

/// A home that is not there.
const NOBODYS: HomeId = HomeId(u32::MAX);

impl StateMachine for Locker {
    type Command = Infallible;
    type Action = Infallible;

    fn handle(&mut self, _: Now, event: Event<Infallible>, outbox: &mut Outbox<Infallible>) {
        let Event::Received {
            edge,
            message: Message::Down(message),
        } = event
        else {
            return;
        };
        match message {
            Down::Begin(begin) => {
                self.evidence = begin.position;
                let call = CallId {
                    member: self.member,
                    number: 1,
                };
                let (home, request) = (begin.home, CallRequest::Register(None));
                let call = message::Call {
                    call,
                    home,
                    request,
                };
                outbox.up(edge, Up::Call(call));
            }
            Down::CallResult(message::CallResult {
                home,
                result: Ok(CallResponse::Registered(registration)),
                ..
            }) => outbox.up(edge, Up::Commit(self.part(home, registration))),
            Down::Voted(voted) => self.answer = Some(Ok(voted.stamp)),
            Down::Refused(refused) => self.answer = Some(Err(refused.refusal)),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Millis> {
        None
    }
}

struct Nothing;

impl World<Infallible> for Nothing {
    fn act(&mut self, action: Infallible) {
        match action {}
    }
}

/// Joins a machine to a parent, as an ordinary member.
fn join<M>(identity: Identity, hello: Peer, parent: &Address, mut machine: M) -> Handle<M>
where
    M: StateMachine<Command = Infallible, Action = Infallible> + Send + 'static,
{
    let mut config = DriverConfig::new(identity, hello);
    config.parents.push(ParentConfig::new(vec![parent.clone()]));
    let (mut driver, handle) = Driver::new(config);
    tokio::spawn(async move {
        let (mut world, first) = (Nothing, Outbox::new());
        driver.run(&mut machine, &mut world, first, pending()).await;
    });
    handle
}

/// Waits until the machine has found something.
async fn found<M, R>(handle: &Handle<M>, look: fn(&M) -> Option<R>) -> R
where
    M: StateMachine + 'static,
    R: Send + 'static,
{
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = handle.inspect(look).await.flatten() {
            return found;
        }
        assert!(Instant::now() < until, "it finds nothing in time");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn write(value: &[u8]) -> WriteOp {
    WriteOp::Write {
        generation: Generation(1),
        value: NewValue::Inline(Blob::from(value)),
    }
}

/// If the home voted, no node could ever find out how that ended: what was read would be locked for
/// ever, also over restarts (rule R7).
#[tokio::test]
async fn a_vote_with_a_home_that_is_not_there_locks_nothing() {
    let village = Village::new();
    let first = village.home().await;
    let anna = village.member(&first.address, first.home, 1).await;
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    let (_, made) = anna.commit(page, Slot(0), create(b"dear bert")).await;
    assert!(is_committed(&made), "{made:?}");

    let identity = village.identity("mallory");
    let hello = identity.greeting(66);
    let locker = Locker {
        member: hello.node,
        page,
        evidence: Position(0),
        answer: None,
    };
    let locker = join(identity, hello, &first.address, locker);
    let answer = found(&locker, |locker: &Locker| locker.answer.clone()).await;
    let reason = InvalidCommit::UnknownHome { home: NOBODYS };
    assert_eq!(answer, Err(Refusal::Invalid { reason }));
    let words = Refusal::Invalid { reason }.to_string();
    assert!(words.contains("--other-home"), "{words}");

    let (_, changed) = anna.commit(page, Slot(0), write(b"dear carl")).await;
    assert!(is_committed(&changed), "{changed:?}");
    let (home, address) = (first.home, first.address.clone());
    first.stop().await;
    let mut config = village.home_config();
    config.listen = vec![address];
    let second = village.home_with(config).await.unwrap();
    assert_eq!(second.home, home);
    anna.until(|seen| seen.streams() == 2).await;
    let (_, again) = anna.commit(page, Slot(0), write(b"dear dora")).await;
    assert!(matches!(again, Outcome::Committed { .. }), "{again:?}");
    let removed = anna.call(CallRequest::Remove { segment }).await;
    assert_eq!(removed, Ok(CallResponse::Removed));
    second.stop().await;
}

/// Makes segments until the home refuses. Tells how many, and why no more.
async fn make_segments(member: &MemberNode, prefix: &str) -> (usize, CallError) {
    for made in 0..100 {
        let path = format!("{prefix}{made}");
        let request = CallRequest::Open { path, create: true };
        if let Err(refused) = member.call(request).await {
            return (made, refused);
        }
    }
    panic!("it makes any number of segments");
}

/// Stages one piece of this many pages.
async fn stage(
    member: &MemberNode,
    segment: SegmentId,
    token: u64,
) -> Result<CallResponse, CallError> {
    let chunk = || Blob::from(vec![token as u8; OVERFLOW_CHUNK_BYTES]);
    let request = CallRequest::Stage {
        segment,
        registration: Registration::default(),
        token,
        bytes: (STAGE_PAGES_MAX * OVERFLOW_CHUNK_BYTES) as u64,
        index: 0,
        chunks: (0..STAGE_PAGES_MAX).map(|_| chunk()).collect(),
    };
    member.call(request).await
}

/// Stages values until the home refuses. Tells how many, and why no more.
async fn fill(member: &MemberNode, segment: SegmentId) -> (u64, CallError) {
    for token in 1..60 {
        if let Err(refused) = stage(member, segment, token).await {
            return (token - 1, refused);
        }
    }
    panic!("it fills the whole store");
}

/// One certificate took all segments, and the whole store. Now it has its share, with all of its processes, also after the
/// home has started again. Anna makes segments and commits meanwhile (rule R7, threat 18).
#[tokio::test]
async fn one_name_takes_its_share_of_segments_and_space_and_no_more() {
    let village = Village::new();
    let mut config = village.home_config();
    config.store.limit = Some(Bytes(8 << 20));
    config.shares.segments_max = 8;
    let first = village.home_with(config.clone()).await.unwrap();
    let anna = village.member(&first.address, first.home, 1).await;
    let (home, address) = (first.home, first.address.clone());
    let mallory = |process| {
        let identity = village.identity("mallory");
        MemberNode::start_here(identity, &address, home, process)
    };
    let (one, other) = (mallory(2).await, mallory(3).await);

    let made = make_segments(&one, "one").await;
    assert_eq!(made, (8, CallError::Share(Share::Segments)));
    let words = made.1.to_string();
    assert!(words.contains("segments_max") && words.contains("[shares]"));
    let made = make_segments(&other, "other").await;
    assert_eq!(made, (0, CallError::Share(Share::Segments)));
    let segment = anna.open_or_create("letters").await;

    let (staged, refused) = fill(&one, segment).await;
    assert_eq!(refused, CallError::Share(Share::Space));
    // Half of the store, and not all of what is said to be free.
    assert!((4..=8).contains(&staged), "{staged} values of half a MiB");
    let again = stage(&other, segment, 1).await;
    assert_eq!(again, Err(CallError::Share(Share::Space)));
    assert!(stage(&anna, segment, 1).await.is_ok());
    let page = anna.fresh_page(segment).await;
    let (_, written) = anna.commit(page, Slot(0), create(b"dear bert")).await;
    assert!(is_committed(&written), "{written:?}");

    first.stop().await;
    config.listen = vec![address.clone()];
    let second = village.home_with(config).await.unwrap();
    one.until(|seen| seen.streams() == 2).await;
    anna.until(|seen| seen.streams() == 2).await;
    let made = make_segments(&one, "again").await;
    assert_eq!(made, (0, CallError::Share(Share::Segments)));
    let again = stage(&one, segment, 100).await;
    assert_eq!(again, Err(CallError::Share(Share::Space)));
    anna.open_or_create("more letters").await;
    let (_, written) = anna.commit(page, Slot(1), create(b"dear carl")).await;
    assert!(is_committed(&written), "{written:?}");
    second.stop().await;
}
