//! On what answers to others rest: reads, and evidence that a home has confirmed (rule W3).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::thread;
use thorp_client::{Member, ReadKey, Ref, Session};
use thorp_testing::HomeNode;

/// A member, and a counter at a home whose disk can be held.
fn scene() -> (HomeNode, Member, Ref<u64>) {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let count = anna.transact(|tx| tx.create_typed(&shop, &0u64)).unwrap();
    (village, anna, count)
}

fn position(member: &Member, count: &Ref<u64>) -> u64 {
    let (_, basis) = member.answer(|tx| tx.get(count)).unwrap();
    basis.homes()[0].position.unwrap().0
}

#[test]
fn an_answer_names_what_it_has_read_and_as_of_when() {
    let (village, anna, count) = scene();
    let (value, basis) = anna.answer(|tx| tx.get(&count)).unwrap();
    assert_eq!((value, basis.homes().len()), (0, 1));
    let at = &basis.homes()[0];
    let key = ReadKey::Object(count.reference().object);
    assert_eq!(at.keys.as_deref(), Some(&[key][..]));
    let fields = basis.fields().unwrap();
    let name = village.name();
    let position_before = at.position.unwrap().0;
    assert_eq!(fields[0].1, format!("{name}={position_before}"));
    assert_eq!(fields[1].1, format!("{name} {key}"));
    // What somebody else commits is in the evidence of the next answer.
    let bert = Member::join(village.config().name("bert")).unwrap();
    bert.transact(|tx| tx.put(&count, &1)).unwrap();
    let (value, basis) = anna.answer(|tx| tx.get(&count)).unwrap();
    assert_eq!(value, 1);
    assert!(basis.homes()[0].position.unwrap().0 > position_before);
}

#[test]
fn a_slot_without_an_object_is_read_too() {
    let (_village, anna, count) = scene();
    anna.transact(|tx| tx.delete(&count.reference())).unwrap();
    let (is_there, basis) = anna.answer(|tx| tx.exists(&count.reference())).unwrap();
    assert!(!is_there);
    let key = ReadKey::Object(count.reference().object);
    assert_eq!(basis.homes()[0].keys.as_deref(), Some(&[key][..]));
    assert!(basis.fields().is_some());
}

#[test]
fn what_its_home_does_not_confirm_has_no_evidence() {
    let (_village, anna, count) = scene();
    let mut lenient = anna.begin(Session::new());
    lenient.get(&count).unwrap();
    let (_, basis) = lenient.commit_for_answer().unwrap();
    assert_eq!((basis.homes().len(), basis.fields()), (1, None));
    let (_, basis) = anna.answer(|tx| tx.put(&count, &2)).unwrap();
    assert_eq!(basis.fields(), None, "it has read nothing");
    let written = anna.answer(|tx| {
        let value = tx.get(&count)?;
        tx.put(&count, &(value + 1))
    });
    assert_eq!(written.unwrap().1.fields(), None, "it has written");
}

/// Traps W16 and W35: what this member has written, and its home has not delivered, is no evidence. An application that shows it shows more
/// than a hit does. So it waits for the `Pending`.
#[test]
fn an_early_commit_has_no_evidence_before_its_answer() {
    let (village, anna, count) = scene();
    let before = position(&anna, &count);
    village.hold_disk();
    let (_, pending) = anna.transact_early(|tx| tx.put(&count, &7)).unwrap();
    let mut tx = anna.begin(Session::new().strict(true));
    assert_eq!(
        tx.get(&count).unwrap(),
        7,
        "it is shown here, and nowhere else"
    );
    let reading = thread::spawn(move || tx.commit_for_answer());
    thread::sleep(std::time::Duration::from_millis(50));
    village.release_disk();
    let (_, basis) = reading.join().unwrap().unwrap();
    assert_eq!((basis.homes().len(), basis.fields()), (1, None));
    let committed = pending.wait().unwrap().position.unwrap().0;
    assert!(committed > before);
    // From here on an answer has evidence, and it is not of before the commit.
    let (value, _) = anna.answer(|tx| tx.get(&count)).unwrap();
    assert_eq!(value, 7);
    assert!(position(&anna, &count) >= committed);
}
