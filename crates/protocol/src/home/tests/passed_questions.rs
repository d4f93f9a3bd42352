//! What operators ask other homes by way of a home (rule R9).

use crate::home::tests::decisions::{TO_OTHER, commit_at, voted, world};
use crate::home::tests::settlement::{OPERATOR, olga, with_operator};
use crate::home::tests::world::{HOME, OTHER, World};
use alloc::vec;
use alloc::vec::Vec;
use thorp_model::limits::{JOINTS_LISTED_MAX, JOINTS_PASSED_MAX};
use thorp_model::{
    CallError, CallId, CallRequest, CallResponse, CommitId, Down, EdgeId, HomeId, JointAnswer,
    JointPart, JointQuestion, Message, Stamp, Up, message,
};

type Answer = Option<Result<CallResponse, CallError>>;

fn ask(world: &mut World, at: HomeId, question: JointQuestion) -> Answer {
    let request = CallRequest::Joint { at, question };
    world.called_on(OPERATOR, olga(), request)
}

fn said(answer: JointAnswer) -> Answer {
    Some(Ok(CallResponse::Joint(answer)))
}

/// A question about one transaction.
fn of(stamp: Stamp, commit: CommitId) -> JointQuestion {
    JointQuestion::Of(vec![(stamp, commit)])
}

/// The call that was passed on last.
fn passed(world: &World) -> CallId {
    match world.asked.last() {
        Some(Up::Call(message::Call { call, .. })) => *call,
        other => panic!("{other:?}"),
    }
}

fn answers(world: &mut World, edge: EdgeId, call: CallId, answer: JointAnswer) {
    let result = message::CallResult {
        home: OTHER,
        call,
        result: Ok(CallResponse::Joint(answer)),
    };
    world.receive_on(edge, Message::Down(Down::CallResult(result)));
    world.sync();
}

#[test]
fn a_part_is_in_doubt_and_then_kept() {
    let mut world = with_operator();
    let (id, stamp) = voted(&mut world, 1);
    let part = |world: &mut World| ask(world, HOME, of(stamp, id));
    assert_eq!(
        part(&mut world),
        said(JointAnswer::Of(vec![JointPart::InDoubt]))
    );
    commit_at(&mut world, id, stamp);
    world.sync();
    assert_eq!(
        part(&mut world),
        said(JointAnswer::Of(vec![JointPart::Kept]))
    );
    assert_eq!(world.size("joints"), 1);
    let other = CommitId { sequence: 77, ..id };
    let lost = ask(&mut world, HOME, of(stamp, other));
    assert_eq!(lost, said(JointAnswer::Of(vec![JointPart::Lost])));
}

#[test]
fn a_question_may_not_be_too_long() {
    let mut world = with_operator();
    let (id, stamp) = voted(&mut world, 1);
    let long = JointQuestion::Of(vec![(stamp, id); JOINTS_LISTED_MAX + 1]);
    assert_eq!(ask(&mut world, HOME, long), Some(Err(CallError::Invalid)));
}

#[test]
fn only_so_many_questions_have_no_answer() {
    let mut world = with_operator();
    world.other_home(OTHER, TO_OTHER);
    for _ in 0..JOINTS_PASSED_MAX {
        assert_eq!(ask(&mut world, OTHER, JointQuestion::Homes), None);
    }
    let more = ask(&mut world, OTHER, JointQuestion::Homes);
    assert_eq!(more, Some(Err(CallError::Busy)));
    assert_eq!(world.size("questions_passed"), JOINTS_PASSED_MAX);
}

#[test]
fn only_who_was_asked_answers_and_not_too_much() {
    let mut world = with_operator();
    world.other_home(OTHER, TO_OTHER);
    assert_eq!(ask(&mut world, OTHER, JointQuestion::Homes), None);
    let call = passed(&world);
    answers(&mut world, EdgeId(77), call, JointAnswer::Of(Vec::new()));
    assert_eq!(world.size("questions_passed"), 1, "others answer nothing");
    let long = JointAnswer::Of(vec![JointPart::Kept; JOINTS_LISTED_MAX + 1]);
    answers(&mut world, TO_OTHER, call, long);
    assert_eq!(world.size("questions_passed"), 0);
    let told = world.told.iter().rev().find_map(|told| match told {
        (OPERATOR, Down::CallResult(answer)) => Some(answer.result.clone()),
        _ => None,
    });
    assert_eq!(told, said(JointAnswer::NotReached));
}

#[test]
fn nobody_else_asks() {
    let mut world = world();
    let request = CallRequest::Joint {
        at: HOME,
        question: JointQuestion::Homes,
    };
    let refused = world.called(request);
    assert!(
        matches!(refused, Err(CallError::NoRight { .. })),
        "{refused:?}"
    );
}
