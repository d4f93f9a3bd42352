//! What a home answers to those that follow and write by logs, if they send what no member of ours sends.

use crate::home::tests::world::World;
use alloc::vec;
use thorp_model::{CallError, CallRequest, CallResponse, LogId, MemberId, SegmentId};

const SEGMENT: SegmentId = SegmentId(1);

fn log(number: u64) -> LogId {
    LogId(MemberId(u128::from(number)))
}

/// An attack: one log that is named a thousand times has its refusals in the answer as often.
#[test]
fn who_follows_names_each_log_once() {
    let mut world = World::new(|_| {});
    let mut follow = |logs| {
        let segment = SEGMENT;
        world.called(CallRequest::Follow { segment, logs })
    };
    for logs in [vec![log(1), log(1)], vec![log(2), log(1)]] {
        assert_eq!(follow(logs), Err(CallError::Invalid));
    }
    match follow(vec![log(1), log(2)]) {
        Ok(CallResponse::Following { logs, .. }) => assert_eq!(logs.len(), 2),
        other => panic!("{other:?}"),
    }
}
