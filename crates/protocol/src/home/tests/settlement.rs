//! Votes in doubt that an operator looks at and ends (rule R7), and what comes afterwards.

use crate::home::HomeConfig;
use crate::home::tests::decisions::{
    TO_OTHER, asked_for, commit_at, decide, other_answers, voted, world,
};
use crate::home::tests::world::{HOME, OTHER, World, anna, create, inline, on, page, site, write};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use thorp_model::limits::{DOUBTS_LISTED_MAX, HEARTBEAT_MS, IN_DOUBT_MS, UNSETTLED_MS};
use thorp_model::records::decode_log;
use thorp_model::{
    AuditEvent, AuditRecord, CallError, CallRequest, CallResponse, Certified, CommitId, Decision,
    Direction, Doubt, DoubtHome, Down, EdgeId, HomeId, Lack, MemberId, Message, Millis, NameId,
    NodeKind, Note, Outcome, PageSlots, Participant, Peer, Position, Principal, Proof, Refusal,
    Right, Ruling, SegmentId, SignedText, SlotChange, Stamp, Table, Up, Verifier, message,
};

pub(super) const OPERATOR: EdgeId = EdgeId(20);
const STRANGER: EdgeId = EdgeId(21);
const ISLE: HomeId = HomeId(3);
const TO_ISLE: EdgeId = EdgeId(22);

pub(super) fn olga() -> MemberId {
    MemberId::new(NameId::of("olga"), 1)
}

fn is_there(world: &mut World, edge: EdgeId, node: MemberId, name: &str, is_operator: bool) {
    let peer = Peer {
        kind: NodeKind::Member,
        node,
        name: String::from(name),
        is_operator,
        is_carried: false,
    };
    world.connect_peer(edge, Direction::Down, peer);
}

/// A home with an operator on an edge of its own.
pub(super) fn with_operator() -> World {
    let mut world = world();
    is_there(&mut world, OPERATOR, olga(), "olga", true);
    world
}

fn settle(world: &mut World, commit: CommitId, ruling: Ruling) -> Result<CallResponse, CallError> {
    let request = CallRequest::Settle { commit, ruling };
    let answer = world.called_on(OPERATOR, olga(), request);
    answer.expect("an answer")
}

fn list(world: &mut World, after: Option<(Stamp, CommitId)>) -> (Vec<Doubt>, bool) {
    let request = CallRequest::Doubts { after };
    match world.called_on(OPERATOR, olga(), request) {
        Some(Ok(CallResponse::Doubts { doubts, more })) => (doubts, more),
        other => panic!("{other:?}"),
    }
}

/// The records of the audit in the log, as they are durable.
fn audited(world: &World) -> Vec<AuditRecord> {
    let records = world.stored(Table::Log);
    let records = records.filter_map(|(key, bytes)| decode_log(key, bytes).ok());
    let changes = records.flat_map(|record| record.changes);
    let slots = changes.flat_map(|change| match change.slots {
        PageSlots::Some(slots) => slots,
        PageSlots::Whole => Vec::new(),
    });
    let values = slots.into_iter().filter_map(|(_, change)| match change {
        SlotChange::Value { bytes, .. } => AuditRecord::parse(bytes.bytes()),
        _ => None,
    });
    values.collect()
}

fn settled_records(world: &World) -> Vec<(NameId, AuditEvent)> {
    let records = audited(world).into_iter();
    let settled = records.filter(|r| matches!(r.event, AuditEvent::DoubtSettled { .. }));
    settled.map(|record| (record.who, record.event)).collect()
}

fn count(world: &World, note: Note) -> usize {
    world.notes.iter().filter(|n| **n == note).count()
}

fn committed(answer: Result<CallResponse, CallError>) -> (Position, Stamp) {
    match answer {
        Ok(CallResponse::Settled(Outcome::Committed { position, stamp })) => (position, stamp),
        other => panic!("{other:?}"),
    }
}

fn refused() -> Result<CallResponse, CallError> {
    let refused = Outcome::Refused(Refusal::Elsewhere);
    Ok(CallResponse::Settled(refused))
}

#[test]
fn a_list_names_the_commit_its_member_and_the_other_homes() {
    let mut world = with_operator();
    let (id, stamp) = voted(&mut world, 1);
    let name = String::from("other");
    let away = DoubtHome {
        home: OTHER,
        name: Some(name),
        is_reached: false,
        vote: None,
    };
    let (doubts, more) = list(&mut world, None);
    let [doubt] = &doubts[..] else {
        panic!("{doubts:?}");
    };
    assert_eq!((doubt.commit, doubt.stamp, more), (id, stamp, false));
    assert_eq!(doubt.others, core::slice::from_ref(&away));
    assert_eq!(doubt.name, None, "no edge has named the member");
    let before = doubt.age_ms;
    world.wait(700);
    world.other_home(OTHER, TO_OTHER);
    is_there(&mut world, STRANGER, anna(), "anna", false);
    let (doubts, _) = list(&mut world, None);
    assert!(doubts[0].age_ms >= before + 700, "{doubts:?}");
    let there = DoubtHome {
        is_reached: true,
        ..away
    };
    assert_eq!(doubts[0].others, [there]);
}

#[test]
fn a_list_comes_page_by_page_the_oldest_first() {
    let mut world = with_operator();
    let ids: Vec<CommitId> = (0..=DOUBTS_LISTED_MAX)
        .map(|_| asked_for(&mut world, Vec::new()))
        .collect();
    let (first, more) = list(&mut world, None);
    assert_eq!((first.len(), more), (DOUBTS_LISTED_MAX, true));
    let last = first.last().expect("a page");
    let (second, more) = list(&mut world, Some((last.stamp, last.commit)));
    assert!(!more);
    let listed = first.iter().chain(&second).map(|doubt| doubt.commit);
    assert!(listed.eq(ids.iter().copied()));
    // What has ended is not in doubt.
    assert_eq!(settle(&mut world, ids[0], Ruling::Abort), refused());
    assert_eq!(list(&mut world, None).0[0].commit, ids[1]);
}

#[test]
fn a_commit_by_an_operator_is_a_commit() {
    let mut world = with_operator();
    let (id, vote) = voted(&mut world, 1);
    let in_its_way = world.commit(Vec::new(), vec![on(page(1), vec![write(0, 9)])]);
    world.sync();
    assert_eq!(world.outcome(in_its_way), Some(Err(Refusal::InDoubt)));
    let (position, stamp) = committed(settle(&mut world, id, Ruling::Commit));
    // No other vote is known.
    assert_eq!((position, stamp), (world.home.durable(), vote));
    assert_eq!(world.outcome(id), Some(Ok(())));
    assert_eq!(world.size("in_doubt"), 0);
    let free = world.commit(Vec::new(), vec![on(page(1), vec![write(0, 9)])]);
    world.sync();
    assert_eq!(world.outcome(free), Some(Ok(())));
    // It comes again, and another ruling comes too late.
    for ruling in [Ruling::Commit, Ruling::Abort] {
        let again = committed(settle(&mut world, id, ruling));
        assert_eq!(again, (position, stamp));
    }
    assert_eq!(count(&world, Note::DoubtSettled), 1);
}

/// Two other homes took part. One has told its vote, and the other one is gone.
#[test]
fn a_commit_by_an_operator_gets_the_highest_known_stamp() {
    let mut world = World::new(|config: &mut HomeConfig| {
        config.other_homes.push(String::from("isle"));
    });
    is_there(&mut world, OPERATOR, olga(), "olga", true);
    world.other_home_named(ISLE, "isle", TO_ISLE);
    let evidence = world.home.durable();
    let mut request = world.request(evidence, Vec::new(), Vec::new());
    let registration = world.registration;
    let with = [HOME, OTHER, ISLE].map(|home| Participant { home, registration });
    request.with = Vec::from(with);
    let id = world.send(request);
    world.sync();
    let vote = world.vote(id).expect("a vote");
    world.wait(IN_DOUBT_MS);
    let of_isle = Stamp {
        clock: vote.clock + 5,
        home: ISLE,
    };
    let Some(Up::Call(message::Call { call, .. })) = world.asked.pop() else {
        panic!("it is not asked");
    };
    let answer = Down::CallResult(message::CallResult {
        home: ISLE,
        call,
        result: Ok(CallResponse::Voted(of_isle)),
    });
    world.receive_on(TO_ISLE, Message::Down(answer));
    let (doubts, _) = list(&mut world, None);
    let votes = doubts[0]
        .others
        .iter()
        .map(|other| (other.home, other.vote));
    assert!(votes.eq([(OTHER, None), (ISLE, Some(of_isle))]));
    let (_, stamp) = committed(settle(&mut world, id, Ruling::Commit));
    assert_eq!(stamp, of_isle);
}

#[test]
fn an_abort_by_an_operator_is_a_refusal_for_the_sake_of_another_home() {
    let mut world = with_operator();
    let (id, _) = voted(&mut world, 1);
    assert_eq!(settle(&mut world, id, Ruling::Abort), refused());
    assert_eq!(world.outcome(id), Some(Err(Refusal::Elsewhere)));
    assert_eq!(settle(&mut world, id, Ruling::Commit), refused());
    let free = world.commit(Vec::new(), vec![on(page(1), vec![write(0, 9)])]);
    world.sync();
    assert_eq!(world.outcome(free), Some(Ok(())));
    // The outcome is kept for the other home, which asks when it is back.
    assert_eq!((world.size("in_doubt"), world.size("votes")), (0, 1));
    let asked = CallRequest::Outcome {
        commit: id,
        registration: world.registration,
    };
    let refused = Outcome::Refused(Refusal::Elsewhere);
    assert_eq!(world.called(asked), Ok(CallResponse::Outcome(refused)));
}

#[test]
fn what_no_vote_names_is_not_settled() {
    let mut world = with_operator();
    let (id, _) = voted(&mut world, 1);
    let unknown = [
        CommitId { sequence: 99, ..id },
        CommitId {
            member: MemberId(77),
            ..id
        },
    ];
    for commit in unknown {
        let answer = settle(&mut world, commit, Ruling::Abort);
        assert_eq!(answer, Err(CallError::NoSuchVote));
    }
    assert!(settled_records(&world).is_empty());
    // A commit at this home alone has ended, and is told as it is.
    let alone = world.commit(Vec::new(), vec![on(page(2), vec![write(0, 9)])]);
    committed(settle(&mut world, alone, Ruling::Abort));
}

/// A member's rights do not suffice, nor do an operator's that a site brings: a site could make the request up.
#[test]
fn only_an_operator_on_its_own_edge_sees_and_ends_doubts() {
    #[derive(Debug)]
    struct Operators;
    impl Verifier for Operators {
        fn verify(&self, text: &dyn SignedText, _: &Proof, _: Millis) -> Option<Certified> {
            let name = text.by();
            let who = Principal {
                name,
                is_operator: true,
            };
            let name = String::from("anna");
            Some(Certified { name, who })
        }
    }
    let mut world = World::new(|config| config.verifier = Arc::new(Operators));
    let id = asked_for(&mut world, Vec::new());
    assert!(world.vote(id).is_some());
    let ben = MemberId::new(NameId::of("ben"), 1);
    is_there(&mut world, STRANGER, ben, "ben", false);
    let requests = [
        CallRequest::Doubts { after: None },
        CallRequest::Settle {
            commit: id,
            ruling: Ruling::Commit,
        },
    ];
    let no_right = Err(CallError::NoRight {
        right: Right::Admin,
    });
    for request in requests {
        assert_eq!(world.called(request.clone()), no_right);
        let answer = world.called_on(STRANGER, ben, request);
        assert_eq!(answer, Some(no_right.clone()));
    }
    assert_eq!(
        (world.size("in_doubt"), count(&world, Note::DoubtSettled)),
        (1, 0)
    );
    world.wait(HEARTBEAT_MS);
    world.sync();
    let denied = audited(&world).into_iter().map(|record| {
        let right = Right::Admin;
        assert_eq!(record.event, AuditEvent::Denied { right });
        (
            record.who,
            record.site.is_some(),
            record.segment,
            record.count,
        )
    });
    let denied: Vec<_> = denied.collect();
    let of_site = (anna().name(), true, SegmentId(0), 2);
    let of_ben = (ben.name(), false, SegmentId(0), 2);
    assert!(
        denied.contains(&of_site) && denied.contains(&of_ben),
        "{denied:?}"
    );
}

/// Whatever of the log is durable: an end without its record is not.
#[test]
fn the_record_of_a_settlement_is_durable_before_it() {
    let mut world = with_operator();
    let (id, _) = voted(&mut world, 1);
    let ruling = Ruling::Commit;
    let request = CallRequest::Settle { commit: id, ruling };
    let call = thorp_model::CallId {
        member: olga(),
        number: 1,
    };
    let home = HOME;
    let settle = message::Call {
        call,
        home,
        request,
    };
    world.receive_on(OPERATOR, Message::Up(Up::Call(settle)));
    let event = AuditEvent::DoubtSettled { commit: id, ruling };
    let expected = [(olga().name(), event)];
    while world.outcome(id).is_none() {
        let was_recorded = settled_records(&world) == expected;
        assert!(world.sync_one(), "it does not end");
        assert!(was_recorded || world.outcome(id).is_none());
    }
    assert_eq!(settled_records(&world), expected);
}

/// Anybody can be denied things: that leaves the space of this record to it.
#[test]
fn a_flood_of_denials_leaves_a_settlement_its_record() {
    let mut world = with_operator();
    let (id, _) = voted(&mut world, 1);
    for number in 0..2 * thorp_model::limits::AUDIT_PENDING_MAX as u64 {
        let member = MemberId::new(NameId(number), 1);
        let edge = EdgeId(1_000 + number);
        is_there(&mut world, edge, member, "n", false);
        let request = CallRequest::Doubts { after: None };
        let _ = world.called_on(edge, member, request);
        world.handle(thorp_model::Event::Disconnected { edge });
    }
    assert_eq!(settle(&mut world, id, Ruling::Abort), refused());
    assert_eq!(settled_records(&world).len(), 1);
}

#[test]
fn a_store_without_space_settles_nothing() {
    let mut world = with_operator();
    let (id, _) = voted(&mut world, 1);
    let space = |has: bool| {
        thorp_model::Event::Command(crate::home::HomeCommand::Lacks(
            (!has).then_some(Lack::OF_ALL),
        ))
    };
    world.handle(space(false));
    let answer = settle(&mut world, id, Ruling::Abort);
    assert_eq!(answer, Err(CallError::Full(Lack::OF_ALL)));
    assert_eq!(world.size("in_doubt"), 1);
    world.handle(space(true));
    assert_eq!(settle(&mut world, id, Ruling::Abort), refused());
}

/// The operator asks again until it is there, and is recorded once.
#[test]
fn a_commit_by_an_operator_waits_for_its_page() {
    let mut world = World::new(|config| config.cache_bytes = 0);
    is_there(&mut world, OPERATOR, olga(), "olga", true);
    world.commit(Vec::new(), vec![on(page(1), vec![create(0, inline(8))])]);
    world.sync();
    let (id, vote) = voted(&mut world, 1);
    world.held = Some(Vec::new());
    for _ in 0..2 {
        let answer = settle(&mut world, id, Ruling::Commit);
        assert_eq!(answer, Err(CallError::Busy));
    }
    assert_eq!(world.held.take().as_deref(), Some(&[page(1)][..]));
    assert!(list(&mut world, None).0.is_empty(), "its end is known");
    world.load(page(1));
    world.sync();
    let (_, stamp) = committed(settle(&mut world, id, Ruling::Commit));
    assert_eq!(stamp, vote);
    assert_eq!(settled_records(&world).len(), 1);
}

// --- What comes later and says otherwise ---

#[test]
fn a_members_later_decision_changes_nothing_and_is_noted() {
    for (ruling, decides) in [(Ruling::Abort, true), (Ruling::Commit, false)] {
        let mut world = with_operator();
        let (id, vote) = voted(&mut world, 1);
        let ended = settle(&mut world, id, ruling);
        world.sent.clear();
        if decides {
            commit_at(&mut world, id, vote);
        } else {
            let up = decide(&world, id, Decision::Abort);
            world.receive(up);
        }
        world.sync();
        assert_eq!(count(&world, Note::EndedOtherwise), 1);
        assert_eq!(settle(&mut world, id, ruling), ended);
        // It learns how it ended here.
        let told = world.outcome(id).expect("an answer");
        assert_eq!(told.is_ok(), ruling == Ruling::Commit);
        let next = world.commit(Vec::new(), vec![on(page(1), vec![write(0, 9)])]);
        world.sync();
        assert_eq!(world.outcome(next), Some(Ok(())));
    }
}

#[test]
fn another_home_that_ended_it_otherwise_is_heard_and_noted() {
    let mut world = with_operator();
    let (id, vote) = voted(&mut world, 1);
    assert_eq!(settle(&mut world, id, Ruling::Abort), refused());
    // It was not gone for ever.
    world.other_home(OTHER, TO_OTHER);
    world.wait(UNSETTLED_MS);
    let stamp = Stamp {
        clock: vote.clock + 1,
        home: OTHER,
    };
    let committed = Outcome::Committed {
        position: Position(7),
        stamp,
    };
    other_answers(&mut world, CallResponse::Outcome(committed));
    assert_eq!(count(&world, Note::EndedOtherwise), 1);
    assert_eq!(world.size("votes"), 0, "every home has an outcome");
    assert_eq!(world.outcome(id), Some(Err(Refusal::Elsewhere)));
}

/// An operator of the other home knew only that home's vote. This home has promised stamps up to its own.
#[test]
fn no_part_is_committed_below_the_vote_of_its_home() {
    let mut world = world();
    world.other_home(OTHER, TO_OTHER);
    let (id, vote) = voted(&mut world, 1);
    let lower = Stamp {
        clock: vote.clock - 1,
        home: OTHER,
    };
    // A member that learned it there is no rogue.
    is_there(&mut world, STRANGER, anna(), "anna", false);
    let up = decide(&world, id, Decision::Commit(lower));
    world.receive_on(STRANGER, Message::Up(up));
    assert_eq!((world.closed.len(), world.size("in_doubt")), (0, 1));
    world.wait(IN_DOUBT_MS);
    let committed = Outcome::Committed {
        position: Position(7),
        stamp: lower,
    };
    other_answers(&mut world, CallResponse::Outcome(committed));
    assert_eq!(world.size("in_doubt"), 0);
    let outcome = CallRequest::Outcome {
        commit: id,
        registration: world.registration,
    };
    match world.called(outcome) {
        Ok(CallResponse::Outcome(Outcome::Committed { stamp, .. })) => assert_eq!(stamp, vote),
        other => panic!("{other:?}"),
    }
}

// --- Who may end what, and for whom ---

/// `Settled` makes a home forget how a vote ended. Only the member does that for its own commit, or a site that it named.
#[test]
fn nobody_makes_a_home_forget_the_vote_of_another() {
    let mut world = with_operator();
    let (id, vote) = voted(&mut world, 1);
    let settled = Up::Settled(message::Settled {
        home: HOME,
        commit: id,
        registration: world.registration,
    });
    // Not while it is in doubt, whoever sends it.
    world.receive(settled.clone());
    assert_eq!((world.size("in_doubt"), world.size("votes")), (1, 1));
    commit_at(&mut world, id, vote);
    world.sync();
    let ben = MemberId::new(NameId::of("ben"), 1);
    is_there(&mut world, STRANGER, ben, "ben", false);
    world.receive_on(STRANGER, Message::Up(settled.clone()));
    assert_eq!(
        (&world.closed[..], world.size("votes")),
        (&[STRANGER][..], 1)
    );
    let evil = MemberId::new(NameId(666), 1);
    world.connect(TO_ISLE, Direction::Down, NodeKind::Redirector, evil);
    world.receive_on(TO_ISLE, Message::Up(settled.clone()));
    assert_eq!(world.size("votes"), 1, "the member did not name that site");
    world.receive(settled);
    assert_eq!(world.size("votes"), 0);
    assert_ne!(evil, site());
}

/// A home of the village that shares no votes with this one: its question ends no id.
#[test]
fn a_home_that_is_not_configured_ends_no_id() {
    let mut world = world();
    let (id, vote) = voted(&mut world, 1);
    let far = CommitId {
        sequence: u64::MAX,
        ..id
    };
    let registration = world.registration;
    let asks = |commit| CallRequest::Outcome {
        commit,
        registration,
    };
    let homes = [(STRANGER, "a stranger"), (OPERATOR, "other")];
    for (edge, name) in homes {
        let peer = Peer {
            kind: NodeKind::Home,
            node: MemberId(9),
            name: String::from(name),
            is_operator: false,
            is_carried: false,
        };
        world.connect_peer(edge, Direction::Down, peer);
        let answer = world.called_on(edge, MemberId(9), asks(id));
        assert_eq!(answer, Some(Ok(CallResponse::Voted(vote))), "{name}");
    }
    let answer = world.called_on(STRANGER, MemberId(9), asks(far));
    assert_eq!(answer, Some(Err(CallError::Busy)));
    assert_eq!(count(&world, Note::UnknownRecorded), 0);
    let next = world.commit(Vec::new(), vec![on(page(2), vec![write(0, 9)])]);
    world.sync();
    assert_eq!(world.outcome(next), Some(Ok(())), "its ids are as before");
    let unknown = CommitId { sequence: 99, ..id };
    let answer = world.called_on(OPERATOR, MemberId(9), asks(unknown));
    let unknown = Outcome::Refused(Refusal::Unknown);
    assert_eq!(answer, Some(Ok(CallResponse::Outcome(unknown))));
}
