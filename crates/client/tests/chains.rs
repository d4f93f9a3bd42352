//! Programs that go on before their commits are answered (rule 14).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::thread;
use std::time::Duration;
use thorp_client::{
    EARLY_PER_HOME_MAX, Error, ErrorKind, HomeId, JoinConfig, Member, Outcome, Pending, Ref,
    Result, Session, Transaction,
};
use thorp_testing::{HomeNode, eventually};

const SOON: Duration = Duration::from_millis(300);

/// Two members, who have two counters in their caches, and a home whose disk can be held: then nobody is answered.
struct Scene {
    anna: Member,
    bert: Member,
    count: Ref<u64>,
    other: Ref<u64>,
    // The last to go.
    village: HomeNode,
}

fn scene() -> Scene {
    let village = HomeNode::sharing_with(&["dale"]);
    let (anna, shop) = village.member_at("shop");
    let bert = Member::join(village.config().name("bert")).unwrap();
    let make = |tx: &mut Transaction| {
        let count = tx.create_typed(&shop, &0u64)?;
        Ok((count, tx.create_typed(&shop, &0u64)?))
    };
    let (count, other) = anna.transact(make).unwrap();
    let scene = Scene {
        anna,
        bert,
        count,
        other,
        village,
    };
    eventually("both have the page", || {
        let members = [&scene.anna, &scene.bert];
        members.iter().all(|member| scene.read(member) == (0, 0))
    });
    scene
}

impl Scene {
    fn read(&self, member: &Member) -> (u64, u64) {
        let read = |tx: &mut Transaction| Ok((tx.get(&self.count)?, tx.get(&self.other)?));
        member.transact(read).unwrap()
    }

    /// One more, and nobody waits.
    fn increment(&self) -> (u64, Pending) {
        let increment = |tx: &mut Transaction| {
            let count = tx.get(&self.count)? + 1;
            tx.put(&self.count, &count)?;
            Ok(count)
        };
        self.anna.transact_early(increment).unwrap()
    }

    /// What a transaction that is given up sees: it waits for nobody.
    fn anna_sees(&self) -> (u64, u64) {
        let mut tx = self.anna.begin(Session::new());
        (tx.get(&self.count).unwrap(), tx.get(&self.other).unwrap())
    }
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn a_chain_goes_on_without_answers() {
    let scene = scene();
    scene.village.hold_disk();
    let (counts, pending): (Vec<u64>, Vec<Pending>) =
        (0..EARLY_PER_HOME_MAX).map(|_| scene.increment()).unzip();
    let all = EARLY_PER_HOME_MAX as u64;
    assert_eq!(counts, (1..=all).collect::<Vec<_>>());
    assert_eq!(scene.anna_sees(), (all, 0));
    assert_eq!(scene.read(&scene.bert), (0, 0), "nobody else sees it");
    scene.village.release_disk();
    let stamps = pending
        .into_iter()
        .map(|commit| commit.wait().unwrap().stamp);
    let stamps: Vec<_> = stamps.collect();
    assert!(stamps.is_sorted() && stamps[0].is_some());
    eventually("bert hears of all", || scene.read(&scene.bert) == (all, 0));
    assert_eq!(scene.anna.stats().conflicts, 0);
}

#[test]
fn a_refused_one_takes_with_it_what_builds_on_it() {
    let scene = scene();
    scene.village.hold_disk();
    let (count, other) = (scene.count, scene.other);
    // The home has it, and anna has not heard.
    let bert = scene.bert.clone();
    let changes = thread::spawn(move || bert.transact(|tx| tx.put(&other, &7)));
    eventually("it waits for the disk", || scene.village.has_waiting());
    let depends = |tx: &mut Transaction| {
        let count_was = tx.get(&count)?;
        let other_was = tx.get(&other)?;
        tx.put(&count, &(count_was + other_was + 1))
    };
    let ((), first) = scene.anna.transact_early(depends).unwrap();
    let (_, second) = scene.increment();
    assert_eq!(scene.anna_sees(), (2, 0));
    scene.village.release_disk();
    changes.join().unwrap().unwrap();
    assert_eq!(kind(first.wait()), ErrorKind::Conflict);
    // Nothing of it is left here, as soon as that is told.
    assert_eq!(scene.anna_sees(), (0, 7));
    assert_eq!(kind(second.wait()), ErrorKind::Conflict);
    assert_eq!(scene.read(&scene.anna), (0, 7));
    let (count, again) = scene.increment();
    assert_eq!((count, again.wait().is_ok()), (1, true));
}

#[test]
fn who_only_reads_what_is_not_answered_waits_for_that() {
    let scene = scene();
    scene.village.hold_disk();
    let before = scene.anna.stats();
    let (_, pending) = scene.increment();
    let (anna, count) = (scene.anna.clone(), scene.count);
    let reads = thread::spawn(move || anna.transact(|tx| tx.get(&count)));
    thread::sleep(SOON);
    assert!(!reads.is_finished());
    // Who has not read it does not wait.
    let other = scene.anna.transact(|tx| tx.get(&scene.other));
    assert_eq!(other.unwrap(), 0);
    scene.village.release_disk();
    assert_eq!(reads.join().unwrap().unwrap(), 1);
    pending.wait().unwrap();
    // Neither of the two that only read sent a message.
    let spent = scene.anna.stats().since(&before);
    assert_eq!((spent.commits, spent.free_commits), (3, 2));
}

#[test]
fn a_reader_of_what_is_not_answered_loses_patience() {
    let scene = scene();
    scene.village.hold_disk();
    let (_, pending) = scene.increment();
    let session = Session::new().commit_timeout(SOON);
    let read = scene.anna.transact_with(session, |tx| tx.get(&scene.count));
    assert_eq!(kind(read), ErrorKind::HomeUnreachable);
    scene.village.release_disk();
    pending.wait().unwrap();
}

/// Its program has been given a reference to what it created: that never names what somebody else makes.
#[test]
fn slots_of_what_was_refused_stay_taken() {
    let scene = scene();
    let shop = scene.anna.open("thorp://alps/shop").unwrap();
    scene.village.hold_disk();
    let (bert, other) = (scene.bert.clone(), scene.other);
    let changes = thread::spawn(move || bert.transact(|tx| tx.put(&other, &7)));
    eventually("it waits for the disk", || scene.village.has_waiting());
    let create = |tx: &mut Transaction| {
        tx.get(&other)?;
        tx.create(&shop, "new")
    };
    let (refused, pending) = scene.anna.transact_early(create).unwrap();
    scene.village.release_disk();
    changes.join().unwrap().unwrap();
    assert_eq!(kind(pending.wait()), ErrorKind::Conflict);
    let (created, pending) = scene.anna.transact_early(create).unwrap();
    assert_ne!(created, refused);
    pending.wait().unwrap();
    assert_eq!(
        kind(scene.anna.transact(|tx| tx.write(&refused, "old"))),
        ErrorKind::Gone
    );
    let read = scene.anna.transact(|tx| Ok(tx.read(&created)?.to_vec()));
    assert_eq!(read.unwrap(), b"new");
}

#[test]
fn an_outcome_that_nobody_took_can_be_asked_for() {
    let scene = scene();
    // Dropped before the answer, and after it.
    for wait in [false, true] {
        let (count, pending) = scene.increment();
        let id = pending.id().unwrap();
        if wait {
            eventually("it is answered", || scene.read(&scene.bert).0 == count);
            scene.read(&scene.anna);
        }
        drop(pending);
        let outcome = scene.anna.outcome(id).unwrap();
        assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
    }
}

#[test]
fn what_cannot_be_shown_is_answered() {
    let scene = scene();
    let shop = scene.anna.open("thorp://alps/shop").unwrap();
    // Travels ahead of its commit.
    let (large, pending) = scene
        .anna
        .transact_early(|tx| tx.create(&shop, vec![5; 100_000]))
        .unwrap();
    assert!(pending.wait().unwrap().position.is_some());
    let read = || scene.bert.transact(|tx| Ok(tx.read(&large)?.len()));
    eventually("bert hears of it", || {
        read().is_ok_and(|bytes| bytes == 100_000)
    });
    // Nothing is written: nobody is asked.
    let (count, pending) = scene
        .anna
        .transact_early(|tx| tx.get(&scene.count))
        .unwrap();
    assert_eq!((count, pending.id()), (0, None));
    pending.wait().unwrap();
    // Two homes vote.
    let dale = scene.village.beside("dale", HomeId(8));
    let both = scene.village.config().and_home(dale.address().to_string());
    let both = Member::join(both).unwrap();
    let there = both.create("thorp://dale/there").unwrap();
    let write = |tx: &mut Transaction| {
        tx.put(&scene.count, &9)?;
        tx.create(&there, "there")
    };
    let (_, pending) = both.transact_early(write).unwrap();
    let committed = pending.wait().unwrap();
    assert!(committed.stamp.is_some() && committed.position.is_none());
}

#[test]
fn a_commit_over_two_homes_waits_for_what_it_has_read() {
    let scene = scene();
    let dale = scene.village.beside("dale", HomeId(8));
    let both = Member::join(scene.village.config().and_home(dale.address().to_string())).unwrap();
    let there = both.create("thorp://dale/there").unwrap();
    eventually("it has the page", || scene.read(&both) == (0, 0));
    scene.village.hold_disk();
    let ((), pending) = both.transact_early(|tx| tx.put(&scene.count, &5)).unwrap();
    let (count, of_both) = (scene.count, both.clone());
    let copies = thread::spawn(move || {
        of_both.transact(|tx| {
            let count = tx.get(&count)?;
            tx.create_typed(&there, &count)
        })
    });
    thread::sleep(SOON);
    assert!(!copies.is_finished());
    scene.village.release_disk();
    let copy = copies.join().unwrap().unwrap();
    assert_eq!(both.transact(|tx| tx.get(&copy)).unwrap(), 5);
    pending.wait().unwrap();
}

#[test]
fn a_home_that_does_not_answer_holds_up_no_chain_at_another() {
    let scene = scene();
    let dale = scene.village.beside("dale", HomeId(8));
    let both = Member::join(scene.village.config().and_home(dale.address().to_string())).unwrap();
    let there = both.create("thorp://dale/there").unwrap();
    let there = both.transact(|tx| tx.create_typed(&there, &0u64)).unwrap();
    let add = |tx: &mut Transaction, to: &Ref<u64>| {
        let count = tx.get(to)? + 1;
        tx.put(to, &count)
    };
    eventually("it has the pages", || {
        scene.read(&both).0 == 0 && both.transact(|tx| tx.get(&there)).unwrap() == 0
    });
    scene.village.hold_disk();
    let mut here = Vec::new();
    for _ in 0..EARLY_PER_HOME_MAX {
        here.push(both.transact_early(|tx| add(tx, &scene.count)).unwrap().1);
    }
    // No place is left here.
    let mut tx = both.begin(Session::new().commit_timeout(SOON));
    add(&mut tx, &scene.count).unwrap();
    assert_eq!(kind(tx.commit_early()), ErrorKind::HomeUnreachable);
    for _ in 0..5 {
        let (_, pending) = both.transact_early(|tx| add(tx, &there)).unwrap();
        pending.wait().unwrap();
    }
    scene.village.release_disk();
    for pending in here {
        pending.wait().unwrap();
    }
}

#[test]
fn a_chain_whose_home_goes_and_comes_back_tells_how_each_ended() {
    let scene = scene();
    scene.village.lose_disk();
    let pending: Vec<Pending> = (0..5).map(|_| scene.increment().1).collect();
    scene.village.stop();
    scene.village.restart();
    scene.village.release_disk();
    for commit in pending {
        // The home never wrote them: it says so, and nothing of them is left.
        assert_eq!(kind(commit.wait()), ErrorKind::Conflict);
    }
    eventually("anna hears the home again", || {
        scene.read(&scene.anna) == (0, 0)
    });
    let (count, pending) = scene.increment();
    pending.wait().unwrap();
    assert_eq!(count, 1);
}

#[test]
fn closing_ends_what_is_waited_for() {
    let scene = scene();
    scene.village.hold_disk();
    let (_, pending) = scene.increment();
    scene.anna.close();
    let error: Error = pending.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    scene.village.release_disk();
}

#[test]
fn at_a_site_neighbours_have_it_when_it_is_committed() {
    let village = HomeNode::new();
    let site = village.site(0);
    let join = |name| {
        let config = JoinConfig::new(site.address().to_string());
        Member::join(config.identity_of(village.identity()).name(name)).unwrap()
    };
    let (anna, bert) = (join("anna"), join("bert"));
    let shop = anna.create("thorp://alps/shop").unwrap();
    let count = anna.transact(|tx| tx.create_typed(&shop, &0u64)).unwrap();
    eventually("both have it", || {
        [&anna, &bert]
            .iter()
            .all(|member| member.transact(|tx| tx.get(&count)).unwrap() == 0)
    });
    let mut pending = Vec::new();
    for _ in 0..20 {
        let add = |tx: &mut Transaction| {
            let next = tx.get(&count)? + 1;
            tx.put(&count, &next)
        };
        pending.push(anna.transact_early(add).unwrap().1);
    }
    for commit in pending {
        commit.wait().unwrap();
    }
    eventually("bert has all", || {
        bert.transact(|tx| tx.get(&count)).unwrap() == 20
    });
}
