//! Traps that only a whole client falls into, each with a planted bug (`docs/traps.md`).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thorp_client::{
    Consistency, ErrorKind, JoinConfig, Member, Procedure, Reference, Segment, Session, Visit,
};
use thorp_model::planted::{Bug, plant};
use thorp_testing::{HomeNode, Link, eventually};

/// Anna has a log, and is at the home by a link that can fall silent.
struct Scene {
    _home: HomeNode,
    link: Link,
    _logs: tempfile::TempDir,
    anna: Member,
    segment: Segment,
    text: Reference,
}

/// A planted bug is for the whole process: no two tests at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn scene(home: HomeNode) -> Scene {
    let link = home.link(Duration::ZERO);
    let logs = tempfile::tempdir().unwrap();
    let patience = Session::new().fetch_timeout(Duration::from_secs(20));
    let config = JoinConfig::new(link.address()).identity_of(home.identity());
    let config = config.name("anna").log(logs.path()).session(patience);
    let anna = Member::join(config).unwrap();
    let segment = anna.open_or_create("thorp://alps/text").unwrap();
    let text = anna.transact(|tx| tx.create(&segment, "a")).unwrap();
    let scene = Scene {
        _home: home,
        link,
        _logs: logs,
        anna,
        segment,
        text,
    };
    scene.append("b");
    eventually("the first is saved", || scene.committed() == "ab");
    scene
}

impl Scene {
    fn visit(&self, consistency: &str) -> Visit {
        let consistency: Consistency = consistency.parse().unwrap();
        Visit::open(&self.anna, consistency, &[&self.segment]).unwrap()
    }

    fn append(&self, text: &str) {
        let mut visit = self.visit("eventual");
        let append = Procedure::Append(text.as_bytes().into());
        visit.apply(&self.text, append).unwrap();
        visit.close().unwrap();
    }

    fn committed(&self) -> String {
        let read = |tx: &mut thorp_client::Transaction| tx.read(&self.text).map(<[u8]>::to_vec);
        String::from_utf8(self.anna.transact(read).unwrap()).unwrap()
    }

    fn seen_in(&self, visit: &mut Visit) -> String {
        String::from_utf8(visit.read(&self.text).unwrap()).unwrap()
    }
}

/// Trap C32: a session reads on under a lock that is over.
#[test]
fn a_visit_looks_whether_its_lock_holds() {
    let _alone = alone();
    let scene = scene(HomeNode::leasing_for(1_000));
    let mut visit = scene.visit("locking");
    assert_eq!(scene.seen_in(&mut visit), "ab");
    scene.link.cut();
    eventually("the lock is over", || visit.check_locks().is_err());
    let lost = visit.read(&scene.text).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::LockLost);
    plant(Some(Bug::LockNotLooked));
    let read = visit.read(&scene.text);
    plant(None);
    assert_eq!(read.unwrap(), b"ab", "the bug would be noticed");
}

/// Trap C40: a snapshot shows an update, which is then saved and leaves the view. The old image is without it.
#[test]
fn a_snapshot_keeps_the_updates_of_its_opening() {
    let _alone = alone();
    let scene = scene(HomeNode::new());
    scene.link.fall_silent();
    scene.append("c");
    let mut old = scene.visit("eventual,mode=rd,isolation=session");
    assert_eq!(scene.committed(), "ab");
    scene.link.mend();
    eventually("the second is saved", || scene.committed() == "abc");
    assert_eq!(scene.seen_in(&mut old), "abc");
    plant(Some(Bug::OverlayOfNow));
    let missed = scene.seen_in(&mut old);
    plant(None);
    assert_eq!(missed, "ab", "the bug would be noticed");
}
