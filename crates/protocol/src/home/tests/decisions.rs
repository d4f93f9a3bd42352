//! What a home believes of the outcome that a member tells it (rule 10): a rogue's word moves
//! neither what was promised nor the clock.

use crate::home::tests::world::{HOME, OTHER, SITE, World, create, inline, on, page, write};
use alloc::vec;
use alloc::vec::Vec;
use thorp_model::limits::{
    COMMITS_IN_FLIGHT_MAX, DECIDED_AHEAD_MS_MAX, HEARTBEAT_MS, OVERFLOW_CHUNK_BYTES,
};
use thorp_model::{
    Blob, CallRequest, CallResponse, CommitId, Decision, Direction, Down, EdgeId, HomeId, Message,
    NewValue, NodeKind, Note, PageWrites, Participant, Position, Refusal, SegmentId, Stamp, Up,
    message,
};

pub(super) const TO_OTHER: EdgeId = EdgeId(7);
pub(super) const MEMBER: EdgeId = EdgeId(8);

/// A home that has voted for a part that writes an object of a page.
pub(super) fn voted(world: &mut World, number: u32) -> (CommitId, Stamp) {
    voted_for(world, vec![on(page(number), vec![write(0, 8)])])
}

pub(super) fn voted_for(world: &mut World, writes: Vec<PageWrites>) -> (CommitId, Stamp) {
    let id = asked_for(world, writes);
    let stamp = world.vote(id).expect("a vote");
    (id, stamp)
}

/// A home that is asked to vote for a part.
pub(super) fn asked_for(world: &mut World, writes: Vec<PageWrites>) -> CommitId {
    asked_with(world, OTHER, writes)
}

/// The same, with this other home.
pub(super) fn asked_with(world: &mut World, other: HomeId, writes: Vec<PageWrites>) -> CommitId {
    let id = ask_with(world, other, writes);
    world.sync();
    id
}

/// The same, and nothing becomes durable.
pub(super) fn ask_with(world: &mut World, other: HomeId, writes: Vec<PageWrites>) -> CommitId {
    let evidence = world.home.durable();
    let mut request = world.request(evidence, Vec::new(), writes);
    let registration = world.registration;
    let with = [HOME, other].map(|home| Participant { home, registration });
    request.with = Vec::from(with);
    world.send(request)
}

pub(super) fn world() -> World {
    let mut world = World::new(|_| {});
    for number in 1..=2 {
        let first = vec![on(page(number), vec![create(0, inline(8))])];
        world.commit(Vec::new(), first);
    }
    world.sync();
    world
}

pub(super) fn decide(world: &World, commit: CommitId, decision: Decision) -> Up {
    Up::Decide(message::Decide {
        home: HOME,
        commit,
        registration: world.registration,
        decision,
    })
}

pub(super) fn commit_at(world: &mut World, id: CommitId, stamp: Stamp) {
    let up = decide(world, id, Decision::Commit(stamp));
    world.receive(up);
}

/// The other home answers what it was asked last.
pub(super) fn other_answers(world: &mut World, response: CallResponse) {
    let Some(Up::Call(message::Call { call, .. })) = world.asked.pop() else {
        panic!("it is not asked");
    };
    let answer = Down::CallResult(message::CallResult {
        home: OTHER,
        call,
        result: Ok(response),
    });
    world.receive_on(TO_OTHER, Message::Down(answer));
    world.sync();
}

fn count(world: &World, note: Note) -> usize {
    world.notes.iter().filter(|n| **n == note).count()
}

/// The highest watermark that was told.
fn promised(world: &World) -> Stamp {
    let watermarks = world.sent.iter().filter_map(|down| match down {
        Down::Heartbeat(message::Heartbeat { watermark, .. }) => Some(*watermark),
        Down::Step(step) => Some(step.watermark),
        _ => None,
    });
    watermarks.max().unwrap_or_default()
}

#[test]
fn votes_come_to_none_of_these_stamps() {
    let mut world = world();
    let (id, vote) = voted(&mut world, 1);
    let at = |clock, home| Stamp { clock, home };
    let impossible = [
        Stamp::default(),
        at(vote.clock - 1, OTHER),
        at(vote.clock - 1, HOME),
        at(vote.clock + 1, HOME),
        at(vote.clock + 1, HomeId(3)),
    ];
    for stamp in impossible {
        commit_at(&mut world, id, stamp);
    }
    assert_eq!(count(&world, Note::DecisionDisbelieved), impossible.len());
    assert_eq!(world.size("in_doubt"), 1);
    assert!(world.closed.is_empty(), "others are below that site");
    commit_at(&mut world, id, at(vote.clock + 1, OTHER));
    world.sync();
    assert_eq!(world.outcome(id), Some(Ok(())));
    assert_eq!(world.size("in_doubt"), 0);
}

#[test]
fn a_member_that_decides_so_is_cut_off() {
    let mut world = world();
    let (id, _) = voted(&mut world, 1);
    world.connect(MEMBER, Direction::Down, NodeKind::Member, id.member);
    let up = decide(&world, id, Decision::Commit(Stamp::default()));
    world.receive_on(MEMBER, Message::Up(up));
    assert_eq!(world.closed, [MEMBER]);
    assert_eq!(world.size("in_doubt"), 1);
}

#[test]
fn a_stamp_far_above_the_time_is_asked_of_the_other_home() {
    let mut world = world();
    let (id, vote) = voted(&mut world, 1);
    let far = DECIDED_AHEAD_MS_MAX << 16;
    for clock in [u64::MAX, vote.clock + 2 * far] {
        commit_at(&mut world, id, Stamp { clock, home: OTHER });
    }
    assert_eq!(count(&world, Note::DecisionDoubted), 2);
    assert_eq!(world.size("in_doubt"), 1);
    world.other_home(OTHER, TO_OTHER);
    world.wait(HEARTBEAT_MS);
    assert_eq!(world.asked.len(), 1);
    // Its clock is as wrong as that: homes are believed.
    let clock = vote.clock + 2 * far;
    other_answers(
        &mut world,
        CallResponse::Voted(Stamp { clock, home: OTHER }),
    );
    assert_eq!(world.outcome(id), Some(Ok(())));
}

#[test]
fn a_rogue_moves_a_clock_only_so_far() {
    let mut world = world();
    let most = DECIDED_AHEAD_MS_MAX << 16;
    let (_, first) = voted(&mut world, 2);
    for _ in 0..3 {
        let (id, vote) = voted(&mut world, 1);
        // The first time it is within what is believed; a limit that went along would let the others pass, too.
        let clock = vote.clock + most / 4 * 3;
        let (stamp, own) = (Stamp { clock, home: OTHER }, vote);
        commit_at(&mut world, id, stamp);
        commit_at(&mut world, id, own);
        world.sync();
        assert!(world.outcome(id).is_some());
    }
    let (_, last) = voted(&mut world, 1);
    let moved = last.clock - first.clock;
    assert!(moved >= most / 4 * 3, "by {} ms", moved >> 16);
    assert!(moved <= most + (1_000 << 16), "by {} ms", moved >> 16);
}

#[test]
fn two_commits_under_one_stamp_hold_the_watermark_until_both_are_told() {
    let mut world = world();
    let (one, _) = voted(&mut world, 1);
    let (two, vote) = voted(&mut world, 2);
    let stamp = Stamp {
        clock: vote.clock + 9,
        home: OTHER,
    };
    commit_at(&mut world, one, stamp);
    commit_at(&mut world, two, stamp);
    world.sync_one();
    assert_eq!(world.outcome(one), Some(Ok(())));
    assert_eq!(world.outcome(two), None);
    assert!(promised(&world) < stamp);
    world.sync();
    assert_eq!(world.outcome(two), Some(Ok(())));
}

#[test]
fn nobody_makes_a_home_grow_by_deciding() {
    let pending_bytes_max = 1 << 20;
    let mut world = World::new(|config| config.pending_bytes_max = pending_bytes_max);
    let first = vec![on(page(1), vec![create(0, inline(8))])];
    let id = world.commit(Vec::new(), first);
    world.sync();
    // The disk is behind from now on.
    let second = vec![on(page(1), vec![write(0, 8)])];
    world.commit(Vec::new(), second);
    let tells = decide(&world, id, Decision::Abort);
    for _ in 0..10_000 {
        world.receive(tells.clone());
    }
    // Others are below that site, and have done nothing wrong.
    assert!(!world.closed.contains(&SITE), "it is cut off");
    let told_once = COMMITS_IN_FLIGHT_MAX;
    assert!(
        world.size("pending") < told_once,
        "{}",
        world.size("pending")
    );
    for sequence in 1_000..11_000 {
        let unknown = CommitId { sequence, ..id };
        let up = decide(&world, unknown, Decision::Abort);
        world.receive(up);
    }
    assert!(world.size("pending_bytes") < pending_bytes_max + 10_000);
    assert!(world.size("pending") < 10_000 + COMMITS_IN_FLIGHT_MAX);
}

/// Two commits of a rogue name one staged value. If the second took it, or its refusal did, the first
/// could not be carried out once it is decided: its locks and the watermark would stay for ever.
#[test]
fn what_a_vote_names_is_there_when_it_is_decided() {
    let mut world = world();
    let stage = CallRequest::Stage {
        segment: SegmentId(1),
        registration: world.registration,
        token: 1,
        bytes: 9_000,
        index: 0,
        chunks: [OVERFLOW_CHUNK_BYTES, 9_000 - OVERFLOW_CHUNK_BYTES]
            .map(|bytes| Blob::from(vec![b's'; bytes]))
            .into(),
    };
    let Ok(CallResponse::Staged(value)) = world.called(stage) else {
        panic!("it is not staged");
    };
    let named = |slot| vec![create(slot, NewValue::Staged(value))];
    let (id, stamp) = voted_for(&mut world, vec![on(page(1), named(3))]);
    let beside = world.commit(Vec::new(), vec![on(page(2), named(4))]);
    let against = world.commit(Vec::new(), vec![on(page(1), named(3))]);
    world.sync();
    assert_eq!(world.outcome(beside), Some(Err(Refusal::InDoubt)));
    assert_eq!(world.outcome(against), Some(Err(Refusal::InDoubt)));
    commit_at(&mut world, id, stamp);
    world.sync();
    assert_eq!(world.outcome(id), Some(Ok(())));
    assert_eq!(world.size("in_doubt"), 0);
}

#[test]
fn transactions_that_change_nothing_here_do_not_make_the_log_grow() {
    let mut world = World::new(|config| {
        config.log_records_high = 16;
        config.log_trim_max = 4;
    });
    // The least that could hold the log: an object that is not changed again.
    world.commit(Vec::new(), vec![on(page(1), vec![create(0, inline(8))])]);
    world.sync();
    for _ in 0..100 {
        let (id, stamp) = voted_for(&mut world, Vec::new());
        commit_at(&mut world, id, stamp);
        world.sync();
    }
    for _ in 0..100 {
        world.wait(HEARTBEAT_MS);
        world.sync();
    }
    assert!(world.home.durable() > Position(100));
    assert!(world.size("log") <= 16 + 4, "{}", world.size("log"));
}
