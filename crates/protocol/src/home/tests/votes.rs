//! What a home keeps of its votes, and for how long (rules 10 and 15).

use crate::edge::liveness::AliveLimits;
use crate::home::HomeCommand;
use crate::home::tests::decisions::{
    MEMBER, TO_OTHER, asked_for, asked_with, commit_at, decide, other_answers, voted, voted_for,
    world,
};
use crate::home::tests::world::{
    HOME, OTHER, SITE, World, create, inline, on, page, register, write,
};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use thorp_model::limits::{
    DECIDED_AHEAD_MS_MAX, HEARTBEAT_MS, IN_DOUBT_MS, IN_DOUBT_RETRY_MS, STAGED_SILENT_MS_MAX,
    UNSETTLED_MS,
};
use thorp_model::{
    Blob, CallError, CallId, CallRequest, CallResponse, Decision, Direction, Down, EdgeId, Event,
    HomeId, InvalidCommit, Lack, MemberId, Message, NodeKind, Note, Outcome, Participant, Refusal,
    Registration, SegmentId, Stamp, Table, Up, message,
};

/// Bytes of the vote records on the disk.
fn stored(world: &World) -> usize {
    let votes = world
        .stored(Table::Meta)
        .filter(|(key, _)| key.starts_with(b"vote/"));
    votes.map(|(_, record)| record.len()).sum()
}

#[test]
fn a_vote_whose_end_was_asked_for_is_forgotten() {
    let mut world = world();
    world.other_home(OTHER, TO_OTHER);
    voted(&mut world, 1);
    assert!(stored(&world) > 0);
    world.wait(IN_DOUBT_MS);
    other_answers(
        &mut world,
        CallResponse::Outcome(Outcome::Refused(Refusal::Unknown)),
    );
    assert_eq!((world.size("in_doubt"), world.size("votes")), (0, 1));
    // Its member is gone, and the other home knew before.
    world.wait(UNSETTLED_MS);
    world.sync();
    assert_eq!((world.size("votes"), stored(&world)), (0, 0));
}

/// The first vote that a name leaves to the homes costs nothing, and each further one doubles its wait (rule R7).
#[test]
fn a_name_that_leaves_its_votes_to_the_homes_waits() {
    let mut world = world();
    world.other_home(OTHER, TO_OTHER);
    for _ in 0..2 {
        voted(&mut world, 1);
        world.wait(IN_DOUBT_MS);
        other_answers(
            &mut world,
            CallResponse::Outcome(Outcome::Refused(Refusal::Unknown)),
        );
        assert_eq!(world.size("in_doubt"), 0);
    }
    let id = asked_for(&mut world, Vec::new());
    let Some(Err(Refusal::Busy { retry_after_ms })) = world.outcome(id) else {
        panic!("{:?}", world.outcome(id));
    };
    assert!((200..=250).contains(&retry_after_ms), "{retry_after_ms}");
    world.wait(u64::from(retry_after_ms));
    let id = asked_for(&mut world, Vec::new());
    world.sync();
    assert!(world.vote(id).is_some());
}

#[test]
fn of_what_has_ended_only_the_end_is_kept() {
    let mut world = World::new(|config| config.votes_bytes_max = 20_000);
    let first = (1..=20).map(|number| on(page(number), vec![create(0, inline(8))]));
    world.commit(Vec::new(), first.collect());
    world.sync();
    let large = (1..=20).map(|number| on(page(number), vec![write(0, 1_500)]));
    // One alone may be larger than all.
    let (id, stamp) = voted_for(&mut world, large.collect());
    assert!(world.size("in_doubt_bytes") > 20_000 && stored(&world) > 20_000);
    let beside = || vec![on(page(21), vec![create(0, inline(8))])];
    let refused = asked_for(&mut world, beside());
    let refused = world.outcome(refused);
    assert!(
        matches!(refused, Some(Err(Refusal::Busy { .. }))),
        "{refused:?}"
    );
    commit_at(&mut world, id, stamp);
    world.sync();
    assert_eq!((world.size("votes"), world.size("in_doubt_bytes")), (1, 0));
    assert!(stored(&world) < 200, "{}", stored(&world));
    voted_for(&mut world, beside());
}

/// It could log neither the vote nor its end, and what was read would stay locked.
#[test]
fn a_full_home_votes_for_nothing() {
    let mut world = world();
    world.handle(Event::Command(HomeCommand::Lacks(Some(Lack::OF_ALL))));
    let id = asked_for(&mut world, Vec::new());
    assert_eq!(world.outcome(id), Some(Err(Refusal::Full(Lack::OF_ALL))));
    assert_eq!(world.size("votes"), 0);
    world.handle(Event::Command(HomeCommand::Lacks(None)));
    voted_for(&mut world, Vec::new());
}

#[test]
fn a_member_speaks_for_itself() {
    let mut world = world();
    let (id, stamp) = voted(&mut world, 1);
    let registration = world.registration;
    let call = |member, request| {
        Up::Call(message::Call {
            call: CallId { member, number: 77 },
            home: HOME,
            request,
        })
    };
    let outcome = CallRequest::Outcome {
        commit: id,
        registration,
    };
    let says = [
        decide(&world, id, Decision::Abort),
        Up::Settled(message::Settled {
            home: HOME,
            commit: id,
            registration,
        }),
        call(MemberId(9), outcome),
        call(id.member, CallRequest::Register(None)),
    ];
    for says in says {
        world.connect(MEMBER, Direction::Down, NodeKind::Member, MemberId(9));
        world.receive_on(MEMBER, Message::Up(says));
        assert_eq!(core::mem::take(&mut world.closed), [MEMBER]);
        world.handle(Event::Disconnected { edge: MEMBER });
    }
    assert_eq!(world.size("in_doubt"), 1);
    commit_at(&mut world, id, stamp);
    world.sync();
    assert_eq!(world.outcome(id), Some(Ok(())));
}

/// Nobody says it again, and there is no way to the other home.
#[test]
fn a_decision_that_a_wrong_clock_did_not_believe_is_carried_out_when_it_is_right() {
    let mut world = world();
    world.clock_ms = -60_000;
    let (id, vote) = voted(&mut world, 1);
    let clock = vote.clock + ((DECIDED_AHEAD_MS_MAX + 60_000) << 16);
    commit_at(&mut world, id, Stamp { clock, home: OTHER });
    world.wait(IN_DOUBT_RETRY_MS);
    assert_eq!(world.size("in_doubt"), 1);
    world.clock_ms = 60_000;
    world.wait(IN_DOUBT_RETRY_MS);
    world.sync();
    assert_eq!(world.outcome(id), Some(Ok(())));
}

fn stage(registration: Registration, token: u64) -> CallRequest {
    CallRequest::Stage {
        segment: SegmentId(1),
        registration,
        token,
        bytes: 100,
        index: 0,
        chunks: [Blob::from(vec![b's'; 100])].into(),
    }
}

fn call_of(
    world: &mut World,
    member: MemberId,
    request: CallRequest,
) -> Result<CallResponse, CallError> {
    let number = world.sent.len() as u64;
    let call = CallId { member, number };
    world.receive(Up::Call(message::Call {
        call,
        home: HOME,
        request,
    }));
    world.sync();
    world.answer(call).expect("an answer")
}

#[test]
fn a_vote_in_doubt_keeps_its_own_members_values_and_nobody_elses() {
    let mut world = world();
    let own = stage(world.registration, 1);
    world.called(own).expect("space");
    let other = MemberId(8);
    let registered = call_of(&mut world, other, register(other, 1));
    let Ok(CallResponse::Registered(registration)) = registered else {
        panic!("it is not registered");
    };
    let not_its_own = stage(world.registration, 2);
    let refused = call_of(&mut world, other, not_its_own);
    assert_eq!(refused, Err(CallError::NotRegistered));
    call_of(&mut world, other, stage(registration, 1)).expect("space");
    assert_eq!(world.size("staged"), 2);
    voted(&mut world, 1);
    world.wait(2 * STAGED_SILENT_MS_MAX);
    world.wait(IN_DOUBT_RETRY_MS);
    world.sync();
    assert_eq!(world.size("staged"), 1);
}

/// Farther away than it waits before it would ask again, each answer would come too late.
#[test]
fn another_home_is_asked_once_and_has_all_the_time_to_answer() {
    let mut world = world();
    world.other_home(OTHER, TO_OTHER);
    voted(&mut world, 1);
    world.wait(IN_DOUBT_MS);
    for _ in 0..3 {
        world.wait(IN_DOUBT_RETRY_MS);
    }
    assert_eq!(world.asked.len(), 1);
    // The way is gone, and the answer with it.
    world.handle(Event::Disconnected { edge: TO_OTHER });
    world.wait(IN_DOUBT_RETRY_MS);
    world.asked.clear();
    world.other_home(OTHER, TO_OTHER);
    world.wait(IN_DOUBT_RETRY_MS);
    world.wait(IN_DOUBT_RETRY_MS);
    assert_eq!(world.asked.len(), 1);
    let refused = Outcome::Refused(Refusal::Unknown);
    other_answers(&mut world, CallResponse::Outcome(refused));
    assert_eq!(world.size("in_doubt"), 0);
}

#[test]
fn a_part_that_is_sent_again_and_again_is_voted_on_once() {
    let mut world = world();
    let evidence = world.home.durable();
    let mut request = world.request(evidence, Vec::new(), vec![on(page(1), vec![write(0, 8)])]);
    let registration = world.registration;
    request.with = Vec::from([HOME, OTHER].map(|home| Participant { home, registration }));
    for _ in 0..5 {
        world.send(request.clone());
    }
    world.sync();
    let votes = |world: &World| {
        let told = world.sent.iter();
        told.filter(|down| matches!(down, Down::Voted(_))).count()
    };
    assert_eq!(votes(&world), 1);
    // Who asks when it was told is told again.
    world.send(request);
    assert_eq!(votes(&world), 2);
}

/// A member that has turned to another site leaves copies of its calls on the old way.
#[test]
fn a_piece_that_comes_late_begins_no_value() {
    let mut world = world();
    let registration = world.registration;
    let unstage = |token| CallRequest::Unstage {
        registration,
        token,
    };
    world.called(stage(registration, 1)).expect("space");
    world
        .called(stage(registration, 1))
        .expect("it is the same");
    world.called(unstage(1)).expect("it is there");
    // This one overtakes what it gives up.
    world.called(unstage(2)).expect("nothing to do");
    for token in [1, 2] {
        let late = world.called(stage(registration, token));
        assert_eq!(late, Err(CallError::Invalid));
    }
    assert_eq!(world.size("staged"), 0);
    world.called(stage(registration, 3)).expect("space");
}

/// Its question was taken by a system whose program does nothing any more.
#[test]
fn another_home_that_says_nothing_is_asked_by_another_way() {
    let mut world = World::new(|config| {
        config.alive = Some(AliveLimits {
            every_ms: 100,
            missed_max: 3,
        });
    });
    world.other_home(OTHER, TO_OTHER);
    for _ in 0..3 {
        world.wait(100);
        world.receive_on(TO_OTHER, Message::Alive);
        world.receive_on(SITE, Message::Alive);
    }
    assert_eq!(world.closed, []);
    for _ in 0..4 {
        world.wait(100);
        world.receive_on(SITE, Message::Alive);
    }
    assert_eq!(world.closed, [TO_OTHER]);
}

#[test]
fn only_who_was_asked_is_heard() {
    const WRONG: EdgeId = EdgeId(9);
    let mut world = world();
    world.other_home(OTHER, TO_OTHER);
    world.other_home(HomeId(3), WRONG);
    voted(&mut world, 1);
    world.wait(IN_DOUBT_MS);
    let Some(Up::Call(message::Call { call, .. })) = world.asked.last().cloned() else {
        panic!("it is not asked");
    };
    world.receive_on(
        WRONG,
        Message::Down(Down::CallResult(message::CallResult {
            home: OTHER,
            call,
            result: Ok(CallResponse::Outcome(Outcome::Refused(Refusal::Unknown))),
        })),
    );
    assert_eq!(world.size("in_doubt"), 1);
}

/// A member that only reads locks what it read. Another home that nobody can ask never ends that (rule R7).
#[test]
fn a_vote_names_only_homes_that_are_configured() {
    let mut world = world();
    let unknown = HomeId(u32::MAX);
    let id = asked_with(&mut world, unknown, Vec::new());
    let reason = InvalidCommit::UnknownHome { home: unknown };
    let refused = Err(Refusal::Invalid { reason });
    assert_eq!(world.outcome(id), Some(refused));
    assert_eq!((world.size("votes"), stored(&world)), (0, 0));
    voted(&mut world, 1);
}

/// The home that is named may be the one that has not come yet: the member asks again.
#[test]
fn while_a_configured_home_was_not_heard_the_home_is_busy() {
    let mut world = World::new(|config| config.other_homes.push(String::from("isle")));
    let busy = |world: &World, id| matches!(world.outcome(id), Some(Err(Refusal::Busy { .. })));
    let id = asked_with(&mut world, HomeId(3), Vec::new());
    assert!(busy(&world, id) && world.size("votes") == 0);
    // It is looked for, again and again.
    let wanted = |world: &World| {
        let notes = world.notes.iter();
        notes.filter(|n| **n == Note::OtherHomeWanted).count()
    };
    let before = wanted(&world);
    world.wait(HEARTBEAT_MS);
    world.wait(HEARTBEAT_MS);
    assert_eq!(wanted(&world), before + 2);
    world.other_home_named(HomeId(3), "isle", TO_OTHER);
    let before = wanted(&world);
    world.wait(HEARTBEAT_MS);
    assert_eq!(wanted(&world), before);
    let id = asked_with(&mut world, HomeId(3), Vec::new());
    assert!(world.vote(id).is_some());
}
