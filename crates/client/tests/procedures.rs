//! The home runs procedures on what it finds: nobody reads before, and nobody conflicts (rule C8).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use thorp_client::{ErrorKind, HomeId, Member, Procedure, Ref, Reference, Segment, Session};
use thorp_testing::{HomeNode, eventually};

const MEMBERS: usize = 4;
const ROUNDS: i64 = 25;

fn segment(member: &Member) -> Segment {
    member.open_or_create("thorp://alps/counts").unwrap()
}

fn put(member: &Member, bytes: &[u8]) -> Reference {
    let segment = segment(member);
    member
        .transact(|tx| tx.create(&segment, bytes.to_vec()))
        .unwrap()
}

fn bytes_of(member: &Member, object: &Reference) -> Vec<u8> {
    let read = member.transact(|tx| tx.read(object).map(<[u8]>::to_vec));
    read.unwrap()
}

fn apply(member: &Member, object: &Reference, procedure: Procedure) -> thorp_client::Result<()> {
    member.transact(|tx| tx.apply(object, procedure.clone()))
}

#[test]
fn members_that_count_at_once_do_not_conflict() {
    let home = HomeNode::new();
    let anna = home.member();
    let segment = segment(&anna);
    let count: Ref<i64> = anna.transact(|tx| tx.create_typed(&segment, &0)).unwrap();
    let others: Vec<Member> = (0..MEMBERS).map(|_| home.member()).collect();
    let conflicts = thread::scope(|scope| {
        let counting = others.iter().map(|member| {
            scope.spawn(|| {
                let of_round = |_| {
                    let mut tx = member.begin(Session::new());
                    tx.apply(count.as_ref(), Procedure::Add(1)).unwrap();
                    usize::from(tx.commit().is_err())
                };
                (0..ROUNDS).map(of_round).sum::<usize>()
            })
        });
        let counting: Vec<_> = counting.collect();
        counting
            .into_iter()
            .map(|one| one.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!(conflicts, 0);
    let all = ROUNDS * MEMBERS as i64;
    // Whoever holds the page hears of each.
    eventually("all counted", || {
        anna.transact(|tx| tx.get(&count)).unwrap() == all
    });
}

#[test]
fn each_procedure_does_what_it_is_called() {
    let home = HomeNode::new();
    let anna = home.member();
    let segment = segment(&anna);
    let blob = |text: &str| text.as_bytes().into();
    let set = BTreeSet::from(["anna".to_owned()]);
    let map = BTreeMap::from([("anna".to_owned(), 1_u8)]);
    let (number, names, ages) = anna
        .transact(|tx| {
            let number = tx.create_typed(&segment, &5_i64)?;
            let names = tx.create_typed(&segment, &set)?;
            Ok((number, names, tx.create_typed(&segment, &map)?))
        })
        .unwrap();
    let text = put(&anna, b"hello");
    let put_if_absent = |key: &str, value: &[u8]| Procedure::PutIfAbsent {
        key: blob(key),
        value: value.into(),
    };
    anna.transact(|tx| {
        tx.apply(number.as_ref(), Procedure::Max(7))?;
        // One after the other, in one commit.
        tx.apply(number.as_ref(), Procedure::Add(-10))?;
        tx.apply(&text, Procedure::Append(blob(", world")))?;
        tx.apply(names.as_ref(), Procedure::Insert(blob("ben")))?;
        tx.apply(names.as_ref(), Procedure::Remove(blob("anna")))
    })
    .unwrap();
    assert_eq!(anna.transact(|tx| tx.get(&number)).unwrap(), -3);
    assert_eq!(bytes_of(&anna, &text), b"hello, world");
    let names = anna.transact(|tx| tx.get(&names)).unwrap();
    assert_eq!(names, BTreeSet::from(["ben".to_owned()]));
    let _ = apply(&anna, ages.as_ref(), put_if_absent("anna", &[9]));
    assert_eq!(
        anna.transact(|tx| tx.get(&ages)).unwrap(),
        map,
        "it is there"
    );
}

#[test]
fn what_cannot_run_refuses_the_whole_commit() {
    let home = HomeNode::new();
    let anna = home.member();
    let (text, other) = (put(&anna, b"\xff\xff"), put(&anna, b"other"));
    let refused = anna.transact(|tx| {
        tx.write(&other, b"changed".to_vec())?;
        tx.apply(&text, Procedure::Add(1))
    });
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("is no number"), "{error}");
    assert_eq!(bytes_of(&anna, &other), b"other");
    // An object that is not there.
    anna.transact(|tx| tx.delete(&other)).unwrap();
    let gone = apply(&anna, &other, Procedure::Append(b"x"[..].into()));
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::Gone);
    // As many as may be on one object, and one more.
    let many = |count: usize| {
        anna.transact(|tx| {
            let add = |_| tx.apply(&text, Procedure::Append(b"."[..].into()));
            (0..count).try_for_each(add)
        })
    };
    let limit = thorp_model::limits::PROCEDURES_OF_OBJECT_MAX;
    assert_eq!(many(limit + 1).unwrap_err().kind(), ErrorKind::TooLarge);
    many(limit).unwrap();
    anna.transact(|tx| tx.write(&text, b"\xff\xff".to_vec()))
        .unwrap();
    // Growing without end ends.
    let piece = Procedure::Append(vec![7; 4000].into());
    let full = (0..4).find_map(|_| apply(&anna, &text, piece.clone()).err());
    let full = full.unwrap().to_string();
    assert!(full.contains("too large"), "{full}");
    assert_eq!(bytes_of(&anna, &text).len(), 8002);
}

#[test]
fn a_transaction_sees_what_its_own_procedures_do() {
    let home = HomeNode::new();
    let (anna, ben) = (home.member(), home.member());
    let text = put(&anna, b"a");
    let mut tx = anna.begin(Session::new());
    tx.apply(&text, Procedure::Append(b"b"[..].into())).unwrap();
    assert_eq!(tx.read(&text).unwrap(), b"ab");
    tx.apply(&text, Procedure::Append(b"c"[..].into())).unwrap();
    assert_eq!(tx.read(&text).unwrap(), b"abc");
    // It has read the object now, so it conflicts.
    apply(&ben, &text, Procedure::Append(b"!"[..].into())).unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
    eventually("the other is seen", || bytes_of(&anna, &text) == b"a!");
    // What it wrote, or deletes again.
    anna.transact(|tx| {
        tx.write(&text, b"x".to_vec())?;
        tx.apply(&text, Procedure::Append(b"y"[..].into()))
    })
    .unwrap();
    assert_eq!(bytes_of(&anna, &text), b"xy");
    anna.transact(|tx| {
        tx.apply(&text, Procedure::Append(b"z"[..].into()))?;
        tx.delete(&text)
    })
    .unwrap();
    assert!(!anna.transact(|tx| tx.exists(&text)).unwrap());
}

#[test]
fn a_procedure_costs_one_message_and_its_writer_reads_the_result_for_nothing() {
    let home = HomeNode::new();
    let anna = home.member();
    let text = put(&anna, b"a");
    bytes_of(&anna, &text);
    let before = anna.stats();
    apply(&anna, &text, Procedure::Append(b"b"[..].into())).unwrap();
    assert_eq!(bytes_of(&anna, &text), b"ab");
    let after = anna.stats();
    assert_eq!(after.fetches, before.fetches, "the step told the value");
}

#[test]
fn a_transaction_over_several_homes_runs_none() {
    let alps = HomeNode::sharing_with(&["dale"]);
    let dale = alps.beside("dale", HomeId(8));
    let anna = Member::join(alps.config().and_home(dale.address().to_string())).unwrap();
    let text = put(&anna, b"a");
    let there = anna.open_or_create("thorp://dale/b").unwrap();
    let refused = anna.transact(|tx| {
        tx.create(&there, b"new".to_vec())?;
        tx.apply(&text, Procedure::Append(b"b"[..].into()))
    });
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("in one of their own"), "{error}");
    assert_eq!(bytes_of(&anna, &text), b"a");
}
