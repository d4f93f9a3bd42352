//! Visits under locks (rule C5).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::thread;
use std::time::Duration;
use thorp_client::{
    Consistency, ErrorKind, JoinConfig, LockNumber, Member, Reference, Segment, Session, Visit,
};
use thorp_testing::{HomeNode, eventually};

const NAME: &str = "thorp://alps/plan";

struct Scene {
    home: HomeNode,
    anna: Member,
    ben: Member,
    object: Reference,
}

fn scene(home: HomeNode) -> Scene {
    let (anna, ben) = (home.member(), home.member());
    let segment = plan(&anna);
    let object = anna.transact(|tx| tx.create(&segment, "0")).unwrap();
    Scene {
        home,
        anna,
        ben,
        object,
    }
}

fn plan(member: &Member) -> Segment {
    member.open_or_create(NAME).unwrap()
}

fn locked(member: &Member, mode: &str) -> Visit {
    let consistency: Consistency = mode.parse().unwrap();
    Visit::open(member, consistency, &[&plan(member)]).unwrap()
}

fn hasty() -> Session {
    let patience = Duration::from_secs(1);
    let session = Session::new().attempts_max(1);
    session.fetch_timeout(patience).commit_timeout(patience)
}

#[test]
fn nobody_else_writes_until_the_visit_is_closed() {
    let Scene {
        home,
        anna,
        ben,
        object,
    } = scene(HomeNode::new());
    let mut visit = locked(&anna, "locking");
    assert_eq!(visit.read(&object).unwrap(), b"0");
    let refused = ben.transact_with(hasty(), |tx| tx.write(&object, "ben"));
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::Busy { .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("holds a lock"), "{refused}");
    // Nor does one's own program, if it does not name the lock.
    anna.transact_with(hasty(), |tx| tx.write(&object, "anna"))
        .unwrap_err();
    visit.write(&object, "1").unwrap();
    visit.close().unwrap();
    assert_eq!(home.size("locks"), 0);
    let read = |tx: &mut thorp_client::Transaction| {
        let before = tx.read(&object)?.to_vec();
        tx.write(&object, "2")?;
        Ok(before)
    };
    assert_eq!(ben.transact(read).unwrap(), b"1");
    drop(locked(&ben, "mode=rdlk"));
    eventually("a visit that is dropped gives its lock back", || {
        home.size("locks") == 0
    });
}

/// It waits for the lock as long as a commit may take, and no attempt waits once more.
#[test]
fn a_transaction_gives_up_at_a_lock_after_one_commit_timeout() {
    let Scene {
        home: _home,
        anna,
        ben,
        object,
    } = scene(HomeNode::new());
    let _visit = locked(&anna, "locking");
    let session = Session::new().commit_timeout(Duration::from_secs(2));
    let mut runs = 0;
    let refused = ben.transact_with(session, |tx| {
        runs += 1;
        tx.write(&object, "ben")
    });
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::Busy { .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("holds a lock"), "{refused}");
    assert_eq!(runs, 1);
}

/// Each adds one to a number that it has read, and writes it blindly.
#[test]
fn no_update_is_lost_among_those_that_lock() {
    const ROUNDS: u32 = 25;
    let Scene {
        home,
        anna,
        ben,
        object,
    } = scene(HomeNode::new());
    let carol = home.member();
    thread::scope(|scope| {
        for member in [&anna, &ben, &carol] {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut visit = locked(member, "locking");
                    let number = String::from_utf8(visit.read(&object).unwrap()).unwrap();
                    let next = number.parse::<u32>().unwrap() + 1;
                    visit.write(&object, next.to_string()).unwrap();
                    visit.close().unwrap();
                }
            });
        }
    });
    let sum = anna
        .transact(|tx| tx.read(&object).map(<[u8]>::to_vec))
        .unwrap();
    assert_eq!(sum, (3 * ROUNDS).to_string().as_bytes());
}

#[test]
fn readers_lock_together_and_writers_wait() {
    let Scene {
        home, anna, ben, ..
    } = scene(HomeNode::new());
    let (one, other) = (locked(&anna, "mode=rdlk"), locked(&ben, "mode=rdlk"));
    let hasty_ben = home.config().session(hasty());
    let carol = Member::join(hasty_ben).unwrap();
    let late = Visit::open(&carol, Consistency::LOCKING, &[&plan(&carol)])
        .err()
        .unwrap();
    assert!(matches!(late.kind(), ErrorKind::Busy { .. }), "{late}");
    assert!(late.to_string().contains("holds a lock"), "{late}");
    let waiting = thread::spawn(move || locked(&carol, "locking").close().unwrap());
    eventually("it waits", || home.size("lock_queue") == 1);
    one.close().unwrap();
    other.close().unwrap();
    waiting.join().unwrap();
}

/// Trap C32: a session reads on under a lock that is over.
#[test]
fn whoever_is_cut_off_loses_the_lock_and_hears_so() {
    let Scene {
        home, object, ben, ..
    } = scene(HomeNode::leasing_for(1_000));
    let link = home.link(Duration::ZERO);
    let far = JoinConfig::new(link.address()).identity_of(home.identity());
    let carol = Member::join(far.session(hasty())).unwrap();
    let mut visit = locked(&carol, "locking");
    assert_eq!(visit.read(&object).unwrap(), b"0");
    // It is kept for longer than a lease, as long as there is a way.
    thread::sleep(Duration::from_millis(1_500));
    assert_eq!(visit.read(&object).unwrap(), b"0");
    link.cut();
    ben.transact(|tx| tx.write(&object, "ben")).unwrap();
    assert_eq!(visit.read(&object).unwrap_err().kind(), ErrorKind::LockLost);
    assert_eq!(visit.check_locks().unwrap_err().kind(), ErrorKind::LockLost);
    visit.write(&object, "carol").unwrap();
    link.mend();
    assert_eq!(visit.close().unwrap_err().kind(), ErrorKind::LockLost);
    let now = ben
        .transact(|tx| tx.read(&object).map(<[u8]>::to_vec))
        .unwrap();
    assert_eq!(now, b"ben");
}

#[test]
fn a_program_of_the_same_name_writes_under_the_lock() {
    let Scene {
        home, anna, object, ..
    } = scene(HomeNode::new());
    let visit = locked(&anna, "locking");
    let [number]: [LockNumber; 1] = visit.locks().try_into().unwrap();
    let config = home.config().under(number.to_string().parse().unwrap());
    let below = Member::join(config.session(hasty())).unwrap();
    below.transact(|tx| tx.write(&object, "below")).unwrap();
    visit.close().unwrap();
    let late = below.transact(|tx| tx.write(&object, "late")).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::LockLost, "{late}");
    let next = locked(&anna, "locking");
    assert!(next.locks()[0].fence() > number.fence());
}
