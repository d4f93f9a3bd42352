//! What a member of the village may try with an ordinary certificate, over real sockets and real stores.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not their helpers"
)]

mod common;

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Village, is_committed};
use thorp_model::limits::{
    COMMITS_IN_FLIGHT_MAX, COMMITS_PER_NAME_MAX, GROUPS_PER_LIST_MAX, OVERFLOW_CHUNK_BYTES,
    READERS_BYTES_MAX, STAGE_PAGES_MAX, WATCHES_PER_CHILD_MAX,
};
use thorp_model::{
    Blob, CallError, CallId, CallRequest, CallResponse, CommitId, CommitRequest, Down, Event,
    Generation, HomeId, InvalidCommit, MemberId, Message, Millis, NewValue, Now, Outbox, Outcome,
    PageId, PageWrites, Part, Participant, Peer, Position, RIGHTS_SLOT, Refusal, Registration,
    SegmentId, Share, Slot, SlotSet, Stamp, StateMachine, Up, WriteOp, message, rights_page,
};
use thorp_net::driver::{Driver, DriverConfig, Handle, ParentConfig, World};
use thorp_net::{Address, Identity, NodeRole};
use thorp_protocol::{Home, Request, Response};
use thorp_server::Bytes;
use thorp_testing::{HomeNode, HomeOptions, MemberNode, create};

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
                under: None,
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
        if let Event::Connected { edge, .. } = event {
            return outbox.claim(edge, Vec::new());
        }
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

/// Changes the rights list of a segment.
async fn restrict(member: &MemberNode, segment: SegmentId, list: &str) -> Outcome {
    let op = write(list.as_bytes());
    member.commit(rights_page(segment), RIGHTS_SLOT, op).await.1
}

/// A member with many segments took all that a home tells about readers: no other list could be restricted any more. Now it
/// has its share, and anna restricts hers (rule R7, threat 18).
#[tokio::test]
async fn one_name_takes_its_share_of_the_readers_and_no_more() {
    let village = Village::new();
    let home = village.home().await;
    let identity = village.identity_as(NodeRole::Operator, "olga");
    let olga = MemberNode::start_here(identity, &home.address, home.home, 9).await;
    let names: String = (0..200).map(|n| format!("read a{n}\n")).collect();
    let mut list = String::from("admin mallory\n");
    for group in 0..GROUPS_PER_LIST_MAX {
        let segment = olga.open_or_create(&format!(".group/g{group}")).await;
        let made = restrict(&olga, segment, &names).await;
        assert!(is_committed(&made), "{made:?}");
        list.push_str(&format!("read @g{group}\n"));
    }
    let identity = village.identity("mallory");
    let mallory = MemberNode::start_here(identity, &home.address, home.home, 2).await;
    let mut taken = 0;
    let refused = loop {
        let segment = mallory.open_or_create(&format!("m{taken}")).await;
        match restrict(&mallory, segment, &list).await {
            Outcome::Committed { .. } => taken += 1,
            Outcome::Refused(refusal) => break refusal,
        }
        assert!(taken < 1_000, "it takes all of it");
    };
    assert_eq!(refused, Refusal::Share(Share::Readers));
    let each = 8 * 200 * GROUPS_PER_LIST_MAX;
    let half = READERS_BYTES_MAX / 2 / each;
    assert!((half - 2..=half).contains(&taken), "{taken} of {half}");
    let anna = village.member(&home.address, home.home, 1).await;
    let segment = anna.open_or_create("letters").await;
    let mine = list.replace("mallory", "anna");
    let restricted = restrict(&anna, segment, &mine).await;
    assert!(is_committed(&restricted), "{restricted:?}");
    home.stop().await;
}

/// Watches segments as soon as its stream begins, and asks for something behind that.
struct Watcher {
    member: MemberId,
    segments: std::ops::Range<u32>,
    refused: usize,
    is_done: bool,
}

impl StateMachine for Watcher {
    type Command = Infallible;
    type Action = Infallible;

    fn handle(&mut self, _: Now, event: Event<Infallible>, outbox: &mut Outbox<Infallible>) {
        if let Event::Connected { edge, .. } = event {
            return outbox.claim(edge, Vec::new());
        }
        let Event::Received {
            edge,
            message: Message::Down(message),
        } = event
        else {
            return;
        };
        match message {
            Down::Begin(message::Begin { home, epoch, .. }) => {
                for segment in self.segments.clone().map(SegmentId) {
                    let on = true;
                    let watch = message::Watch {
                        home,
                        epoch,
                        segment,
                        on,
                    };
                    outbox.up(edge, Up::Watch(watch));
                }
                let call = CallId {
                    member: self.member,
                    number: 1,
                };
                let request = CallRequest::Watermark {
                    at_least: Stamp::default(),
                };
                let call = message::Call {
                    call,
                    home,
                    request,
                };
                outbox.up(edge, Up::Call(call));
            }
            Down::Unwatched(_) => self.refused += 1,
            Down::CallResult(_) => self.is_done = true,
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Millis> {
        None
    }
}

/// One name took all watches of a site, with a few processes. Now it has half of them, and anna watches what she wants
/// (rule R7, threat 18).
#[tokio::test]
async fn one_name_takes_its_share_of_a_sites_watches_and_no_more() {
    let village = Village::new();
    let home = village.home().await;
    let site = village.site(&home.address).await;
    let most = WATCHES_PER_CHILD_MAX as u32;
    let mut refused = Vec::new();
    // All edges stay while the others watch.
    let mut watchers = Vec::new();
    for (process, name) in ["mallory", "mallory", "mallory", "mallory", "anna"]
        .into_iter()
        .enumerate()
    {
        let identity = village.identity(name);
        let hello = identity.greeting(100 + process as u64);
        let first = 1_000 * (process as u32 + 1);
        let watcher = Watcher {
            member: hello.node,
            segments: first..first + most,
            refused: 0,
            is_done: false,
        };
        let watcher = join(identity, hello, &site.address, watcher);
        let of = |watcher: &Watcher| watcher.is_done.then_some(watcher.refused as u32);
        refused.push(found(&watcher, of).await);
        watchers.push(watcher);
    }
    assert_eq!(refused, [0, 0, most, most, 0]);
    site.stop().await;
    home.stop().await;
}

/// A member that commits writes of one object, without waiting.
fn commits(
    member: &Arc<MemberNode>,
    page: PageId,
    count: usize,
) -> Vec<tokio::task::JoinHandle<Outcome>> {
    let commit = |_| {
        let member = Arc::clone(member);
        tokio::spawn(async move {
            let slots = vec![(Slot(0), write(b"x"))];
            let part = Part {
                home: HomeOptions::default().id,
                evidence: member.position(),
                reads: Vec::new(),
                writes: vec![PageWrites { page, slots }],
                under: None,
            };
            let request = Request::Commit {
                parts: vec![part],
                histories: Vec::new(),
                depends_on: Vec::new(),
                after: Stamp::default(),
                early: false,
            };
            match member.ask(request).await {
                Response::Outcome(_, outcome, _) => outcome,
                other => panic!("{other:?}"),
            }
        })
    };
    (0..count).map(commit).collect()
}

/// Each process of a name had a share of its own of what is under way. Now all of them have one: what is above is *busy*, and
/// anna's commit is taken (rule R7, threat 18).
#[tokio::test]
async fn all_processes_of_a_name_have_one_share_of_what_is_under_way() {
    let village = thorp_testing::Village::new();
    let home = HomeNode::start_here(&village, HomeOptions::default()).await;
    let start = |name: &str, process| {
        let identity = village.identity_of(NodeRole::Member, name);
        MemberNode::start_here(identity, home.address(), home.id(), process)
    };
    let anna = Arc::new(start("ann", 1).await);
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    let (_, made) = anna.commit(page, Slot(0), create(b"x")).await;
    assert!(is_committed(&made), "{made:?}");
    let mut mallory = Vec::new();
    for process in 0..=COMMITS_PER_NAME_MAX / COMMITS_IN_FLIGHT_MAX {
        let member = Arc::new(start("mallory", 10 + process as u64).await);
        let registered = member.call(CallRequest::Register(None)).await;
        assert!(registered.is_ok(), "{registered:?}");
        mallory.push(member);
    }

    home.hold_disk();
    let flood = mallory.iter();
    let flood: Vec<_> = flood
        .flat_map(|member| commits(member, page, COMMITS_IN_FLIGHT_MAX))
        .collect();
    let size = |of: &'static str| {
        let sizes = home.handle().inspect(|home: &Home| home.sizes());
        async move {
            let sizes = sizes.await.unwrap();
            let found = sizes.into_iter().find(|(name, _)| *name == of);
            found.unwrap().1
        }
    };
    let until = Instant::now() + Duration::from_secs(30);
    while size("commits_of_a_name").await < COMMITS_PER_NAME_MAX {
        assert!(Instant::now() < until, "the flood does not come");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let before = size("pending").await;
    let annas = commits(&anna, page, 1).remove(0);
    while size("pending").await <= before {
        assert!(Instant::now() < until, "her commit is not taken");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(size("commits_of_a_name").await, COMMITS_PER_NAME_MAX);
    home.release_disk();
    let annas = annas.await.unwrap();
    assert!(is_committed(&annas), "{annas:?}");
    let mut refused = 0;
    for ended in flood {
        match ended.await.unwrap() {
            Outcome::Committed { .. } => {}
            other => {
                assert_eq!(other, Outcome::Refused(Refusal::busy()));
                refused += 1;
            }
        }
    }
    assert_eq!(refused, COMMITS_IN_FLIGHT_MAX);
}
