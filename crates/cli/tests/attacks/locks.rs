//! Locks, against others that want them (rule C5).

use crate::leases::{open_many, to_write};
use crate::scene::{Writer, add_one, arrive, ask, counter, home_with, intrude, join, open, rate};
use std::time::{Duration, Instant};
use thorp_model::{
    CallId, CallRequest, CallResponse, LockMode, MemberId, Message, Privilege, SegmentId, Up,
    message,
};
use thorp_testing::Attacker;

fn to_lock(segments: &[SegmentId], patience_ms: u32) -> CallRequest {
    CallRequest::Lock {
        segments: segments.to_vec(),
        mode: LockMode::Write,
        patience_ms,
    }
}

fn send(writer: &Writer, number: u64, request: CallRequest) {
    let call = CallId {
        member: writer.intruder.member,
        number,
    };
    let home = writer.intruder.home;
    writer.intruder.send(Up::Call(message::Call {
        call,
        home,
        request,
    }));
}

/// Rule C5: a change of rights ends the locks of those that lose it. Whoever waits for a lock keeps others from it, too.
#[test]
fn who_waits_for_a_lock_keeps_nobody_waiting_without_the_right() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(dir.path(), &[("anna", "member"), ("mallory", "member")]);
    let mut anna = Writer::new(intrude(dir.path(), "anna", &home.via));
    let letters = open(&mut anna.intruder, "letters");
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    let own = open(&mut mallory.intruder, "own");
    let held = mallory.call(to_lock(&[own], 1_000));
    let Ok(CallResponse::Locked { fence, .. }) = held else {
        panic!("{held:?}");
    };
    let mut both = [letters, own];
    both.sort();
    send(&mallory, 900_000, to_lock(&both, u32::MAX));
    std::thread::sleep(Duration::from_millis(500));
    anna.restrict(letters, "admin anna\n").unwrap();
    let gone = mallory.call(to_lock(&[letters], 0));
    println!("mallory's right is gone: {gone:?}");
    let lease = anna.call(to_write(&[letters]));
    assert!(lease.is_ok(), "{lease:?}");
    // Her own lease would stand against her lock.
    anna.intruder.send(Up::GiveBack(message::GiveBack {
        home: anna.intruder.home,
        segments: vec![letters],
        privilege: Privilege::Write,
    }));
    let begun = Instant::now();
    let mut locked = Vec::new();
    for _ in 0..4 {
        locked.push(anna.call(to_lock(&[letters], 5_000)));
        let kept = mallory.call(CallRequest::KeepLock { fence });
        assert!(kept.is_ok(), "{kept:?}");
        if locked.last().unwrap().is_ok() {
            break;
        }
    }
    println!(
        "anna: lease {lease:?}, locks {locked:?} in {:?}",
        begun.elapsed()
    );
    assert!(locked[0].is_ok(), "{locked:?}");
}

/// "Others wait for up to ten minutes": a name that asks many times is before others as often.
#[test]
fn a_name_that_waits_often_does_not_go_before_others_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(dir.path(), &[("anna", "member"), ("mallory", "member")]);
    let mut anna = Writer::new(intrude(dir.path(), "anna", &home.via));
    let letters = open(&mut anna.intruder, "letters");
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    for number in 0..100 {
        send(&mallory, 900_000 + number, to_lock(&[letters], u32::MAX));
    }
    std::thread::sleep(Duration::from_secs(1));
    send(&anna, 900_000, to_lock(&[letters], 60_000));
    std::thread::sleep(Duration::from_millis(500));
    let (mut turns, begun) = (0, Instant::now());
    let anna_has = |anna: &mut Writer| loop {
        match anna.intruder.edge.receive_within(Duration::from_millis(20)) {
            Some(Some(Message::Down(thorp_model::Down::CallResult(answer)))) => {
                break Some(answer.result);
            }
            Some(None) => panic!("anna is cut off"),
            Some(_) => {}
            None => break None,
        }
    };
    let result = loop {
        anna.intruder.edge.send(&Message::Alive);
        if let Some(result) = anna_has(&mut anna) {
            break Some(result);
        }
        if begun.elapsed() > Duration::from_secs(90) {
            break None;
        }
        if let thorp_model::Down::CallResult(answer) = mallory.intruder.hear()
            && let Ok(CallResponse::Locked { fence, .. }) = answer.result
        {
            turns += 1;
            send(&mallory, 950_000 + turns, CallRequest::Unlock { fence });
        }
    };
    println!("anna gets {result:?} after {turns} locks of mallory");
    assert!(turns <= 2, "{turns} locks of mallory came before anna's");
}

/// 256 sessions that wait for 64 segments each: a home compares each with each, whenever anything changes.
#[test]
#[ignore = "it measures a rate: run it by itself"]
fn who_waits_for_many_locks_leaves_others_the_home() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(dir.path(), &[("anna", "member"), ("mallory", "member")]);
    let anna = join(dir.path(), "anna", &home.via);
    let money = counter(&anna, "thorp://alps/bank");
    add_one(&anna, &money).unwrap();
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    let segments = open_many(&mut mallory, 130);
    let attacker = Attacker::at(&dir.path().join("mallory").display().to_string());
    let name = attacker.greeting().node.name();
    let held = segments[129];
    assert!(mallory.call(to_lock(&[held], 0)).is_ok());
    let before = rate(&anna, &money, Duration::from_secs(4));
    // The calls of the flood without the queue.
    let flood = |mallory: &mut Writer, from: u64| {
        for number in 0..60 {
            send(mallory, from + number, to_lock(&segments[..1], 0));
        }
    };
    // These wait for what is held. They are alike.
    let mut first: Vec<SegmentId> = segments[..63].to_vec();
    first.push(held);
    // These wait for each other's. They share nothing with those before.
    let second: Vec<SegmentId> = segments[63..127].to_vec();
    let third: Vec<SegmentId> = segments[64..128].to_vec();
    let mut edges = Vec::new();
    let mut calls = 0;
    for random in 1..=2_u64 {
        let (mut edge, begin) = arrive(&attacker, &home.via, random, Vec::new());
        let who = (MemberId::new(name, random), begin.home);
        if random == 2 {
            let got = ask(&mut edge, who, 1, to_lock(&second[..1], 0));
            assert!(got.is_ok(), "{got:?}");
        }
        for number in 0..125 {
            calls += 1;
            let wanted = match (random, number) {
                (1, _) => &first,
                (_, 0) => &second,
                _ => &third,
            };
            let call = CallId {
                member: who.0,
                number: 1_000 + number,
            };
            edge.send(&Message::Up(Up::Call(message::Call {
                call,
                home: who.1,
                request: to_lock(wanted, u32::MAX),
            })));
        }
        edges.push(edge);
    }
    std::thread::sleep(Duration::from_secs(2));
    let waiting = rate(&anna, &money, Duration::from_secs(4));
    for edge in edges.iter().chain([&mallory.intruder.edge]) {
        edge.send(&Message::Alive);
    }
    flood(&mut mallory, 800_000);
    let during = rate(&anna, &money, Duration::from_secs(4));
    println!(
        "{calls} wait; anna commits {before} before, {waiting} while they wait, {during} during a flood, in 4 s"
    );
    assert!(
        waiting * 3 > before,
        "{before} before, {waiting} while they wait, {during} during a flood"
    );
}
