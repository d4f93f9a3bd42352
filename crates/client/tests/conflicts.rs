//! Conflict routines: what becomes of updates that their home refuses (rule C6).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use thorp_client::{
    Conflicts, ErrorKind, JoinConfig, Member, ObjectUpdate, Procedure, Ref, Reference,
    RefusedChange, Resolution, Right, RightsList, Segment, Subject, Visit,
};
use thorp_model::limits::CONFLICT_ATTEMPTS_MAX;
use thorp_store::UpdateLog;
use thorp_testing::{HomeNode, Link, Village, eventually};

type Map = BTreeMap<String, Vec<u8>>;

/// Anna has a log, and may be cut off. Ben writes meanwhile.
struct Scene {
    village: Village,
    _home: HomeNode,
    link: Link,
    logs: tempfile::TempDir,
    ben: Member,
    map: Ref<Map>,
    text: Reference,
}

fn scene() -> Scene {
    let village = Village::new();
    let home = village.home("alps");
    let link = home.link(Duration::ZERO);
    let ben =
        Member::join(JoinConfig::new(home.address().to_string()).identity(village.member("ben")))
            .unwrap();
    let segment = desk(&ben);
    let (map, text) = ben
        .transact(|tx| {
            let map = tx.create_typed(&segment, &Map::new())?;
            Ok((map, tx.create(&segment, "text")?))
        })
        .unwrap();
    Scene {
        village,
        _home: home,
        link,
        logs: tempfile::tempdir().unwrap(),
        ben,
        map,
        text,
    }
}

fn desk(member: &Member) -> Segment {
    member.open_or_create("thorp://alps/desk").unwrap()
}

/// An entry of one byte.
fn new_entry(key: &str, value: u8) -> Procedure {
    Procedure::PutNew {
        key: key.as_bytes().into(),
        value: [value][..].into(),
    }
}

impl Scene {
    fn log(&self) -> PathBuf {
        self.logs.path().join("anna")
    }

    fn anna(&self, conflicts: Conflicts) -> Member {
        let config = JoinConfig::new(self.link.address())
            .identity(self.village.member("anna"))
            .log(self.log())
            .on_conflict(conflicts);
        Member::join(config).unwrap()
    }

    /// Anna is cut off and writes, Ben writes what is in her way, and the link is mended.
    fn meanwhile(&self, anna: &Member, hers: impl FnOnce(&mut Visit), his: impl FnOnce(&Member)) {
        let mut visit = open(anna);
        self.link.fall_silent();
        hers(&mut visit);
        visit.close().unwrap();
        his(&self.ben);
        self.link.mend();
    }

    /// Both put an entry under one key.
    fn both_put(&self, anna: &Member) {
        let hers = |visit: &mut Visit| {
            visit.apply(self.map.as_ref(), new_entry("key", 1)).unwrap();
        };
        self.meanwhile(anna, hers, |ben| self.put(ben, "key", 2));
    }

    fn put(&self, member: &Member, key: &str, value: u8) {
        let work =
            |tx: &mut thorp_client::Transaction| tx.apply(self.map.as_ref(), new_entry(key, value));
        member.transact(work).unwrap();
    }

    fn map(&self) -> Map {
        self.ben.transact(|tx| tx.get(&self.map)).unwrap()
    }

    fn text(&self) -> Vec<u8> {
        let read = self
            .ben
            .transact(|tx| tx.read(&self.text).map(<[u8]>::to_vec));
        read.unwrap()
    }
}

fn open(member: &Member) -> Visit {
    Visit::open(member, "eventual".parse().unwrap(), &[&desk(member)]).unwrap()
}

/// How many updates are on the list, and how many wait for their home.
fn counts(member: &Member) -> (usize, usize) {
    let log = member.log().unwrap();
    (log.rejected, log.tentative)
}

fn of_key(value: u8) -> Map {
    Map::from([("key".to_owned(), vec![value])])
}

#[test]
fn without_a_routine_a_refused_update_stays_on_the_list() {
    let scene = scene();
    let anna = scene.anna(Conflicts::Keep);
    scene.both_put(&anna);
    eventually("it is on the list", || counts(&anna) == (1, 0));
    assert_eq!(scene.map(), of_key(2));
}

#[test]
fn theirs_counts_and_the_log_notes_what_it_gave_up() {
    let scene = scene();
    let anna = scene.anna(Conflicts::Theirs);
    scene.both_put(&anna);
    eventually("it has left", || counts(&anna) == (0, 0));
    assert_eq!(scene.map(), of_key(2));
    anna.close();
    let log = UpdateLog::existing(scene.log()).unwrap();
    assert!(log.updates().unwrap().is_empty());
    assert_eq!(log.left().unwrap().numbers.len(), 1);
}

#[test]
fn mine_counts() {
    let scene = scene();
    let anna = scene.anna(Conflicts::Mine);
    scene.both_put(&anna);
    eventually("hers is there", || scene.map() == of_key(1));
    eventually("the log is empty", || counts(&anna) == (0, 0));
    // What is gone cannot be written.
    let hers = |visit: &mut Visit| visit.write(&scene.text, "hers").unwrap();
    let his = |ben: &Member| ben.transact(|tx| tx.delete(&scene.text)).unwrap();
    scene.meanwhile(&anna, hers, his);
    eventually("that is on the list", || counts(&anna) == (1, 0));
}

#[test]
fn both_count_beside_each_other() {
    let scene = scene();
    let anna = scene.anna(Conflicts::Both);
    scene.both_put(&anna);
    eventually("both are there", || scene.map().len() == 2);
    let map = scene.map();
    assert_eq!(map["key"], [2]);
    let (key, value) = map.iter().find(|(key, _)| *key != "key").unwrap();
    assert!(key.starts_with("key~") && key.ends_with(".1"), "{key}");
    assert_eq!(*value, [1]);
    eventually("the log is empty", || counts(&anna) == (0, 0));
}

/// What a routine is told: the kind of refusal, the segment and the changes.
type Told = (ErrorKind, Option<String>, Vec<RefusedChange>);

/// The routine of a program, and what it was told.
fn told(
    decide: impl Fn(&[RefusedChange]) -> Resolution + Send + Sync + 'static,
) -> (Conflicts, Arc<Mutex<Vec<Told>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let here = Arc::clone(&told);
    let routine = Conflicts::program(move |refused| {
        let segment = refused.segment().map(str::to_owned);
        let one = (refused.why().kind(), segment, refused.changes().to_vec());
        here.lock().unwrap().push(one);
        decide(refused.changes())
    });
    (routine, told)
}

#[test]
fn the_routine_of_a_program_sees_what_is_there_and_says_what_is_done() {
    let scene = scene();
    let (routine, told) = told(|changes| {
        let object = changes[0].object;
        Resolution::Again(vec![(object, ObjectUpdate::Run(new_entry("other", 1)))])
    });
    let anna = scene.anna(routine);
    scene.both_put(&anna);
    eventually("it is there", || scene.map().len() == 2);
    assert_eq!(scene.map()["other"], [1]);
    let told = told.lock().unwrap();
    let [(kind, segment, changes)] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(*kind, ErrorKind::Invalid);
    assert_eq!(segment.as_deref(), Some("thorp://alps/desk"));
    let [change] = &changes[..] else {
        panic!("{changes:?}");
    };
    assert_eq!(change.object, *scene.map.as_ref());
    assert_eq!(change.update, ObjectUpdate::Run(new_entry("key", 1)));
    assert_eq!(change.there.as_deref(), Some(&b"\x01\x03key\x01\x02"[..]));
}

#[test]
fn what_is_refused_again_and_again_goes_to_the_list() {
    let scene = scene();
    let again = |changes: &[RefusedChange]| {
        let again = changes.iter();
        let again = again.map(|change| (change.object, change.update.clone()));
        Resolution::Again(again.collect())
    };
    let (routine, told) = told(again);
    let anna = scene.anna(routine);
    scene.both_put(&anna);
    eventually("it is on the list", || counts(&anna) == (1, 0));
    // The first refusal, and those of all attempts.
    eventually("each refusal was told", || {
        told.lock().unwrap().len() == CONFLICT_ATTEMPTS_MAX as usize + 1
    });
    thread::sleep(Duration::from_millis(100));
    assert_eq!(counts(&anna), (1, 0));
    assert_eq!(scene.map(), of_key(2));
}

#[test]
fn a_routine_that_panics_or_errs_leaves_the_update_on_the_list() {
    let scene = scene();
    let elsewhere = desk_of_others(&scene);
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let anna = scene.anna(Conflicts::program(move |_| {
        match counted.fetch_add(1, Ordering::Relaxed) {
            0 => panic!("a bug of the program"),
            _ => Resolution::Again(vec![(elsewhere, ObjectUpdate::Delete)]),
        }
    }));
    scene.both_put(&anna);
    eventually("it is on the list", || counts(&anna) == (1, 0));
    scene.meanwhile(
        &anna,
        |visit| {
            visit
                .apply(scene.map.as_ref(), new_entry("more", 1))
                .unwrap()
        },
        |ben| scene.put(ben, "more", 2),
    );
    eventually("both are on the list", || counts(&anna) == (2, 0));
    eventually("it was asked twice", || runs.load(Ordering::Relaxed) == 2);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(counts(&anna), (2, 0));
    // The member goes on.
    open(&anna).close().unwrap();
}

/// An object of another segment.
fn desk_of_others(scene: &Scene) -> Reference {
    let segment = scene.ben.open_or_create("thorp://alps/others").unwrap();
    scene.ben.transact(|tx| tx.create(&segment, "x")).unwrap()
}

#[test]
fn a_slow_routine_holds_nothing_up_but_other_refused_updates() {
    let scene = scene();
    let (go, waits) = channel::<()>();
    let waits = Mutex::new(waits);
    let anna = scene.anna(Conflicts::program(move |_| {
        let _ = waits.lock().unwrap().recv();
        Resolution::Drop
    }));
    scene.both_put(&anna);
    eventually("it was refused", || counts(&anna) == (1, 0));
    let mut visit = open(&anna);
    visit
        .apply(&scene.text, Procedure::Append(b"!"[..].into()))
        .unwrap();
    visit.close().unwrap();
    eventually("a later one is saved", || scene.text() == b"text!");
    eventually("the log knows", || counts(&anna) == (1, 0));
    go.send(()).unwrap();
    eventually("it has left", || counts(&anna) == (0, 0));
}

/// The process ends between the refusal and the routine's decision. The next one asks again, and the decision takes effect once.
#[test]
fn a_restart_between_refusal_and_routine_loses_nothing() {
    let scene = scene();
    let (began, begins) = channel();
    let (go, waits) = channel::<()>();
    let waits = Mutex::new(waits);
    let slow = scene.anna(Conflicts::program(move |_| {
        began.send(()).unwrap();
        let _ = waits.lock().unwrap().recv();
        // Too late: the member has gone.
        Resolution::Drop
    }));
    scene.both_put(&slow);
    begins.recv().unwrap();
    slow.close();
    drop(slow);
    drop(go);
    let anna = scene.anna(Conflicts::Both);
    eventually("both are there", || scene.map().len() == 2);
    eventually("the log is empty", || counts(&anna) == (0, 0));
    anna.close();
    drop(anna);
    // A third start sends nothing more.
    let anna = scene.anna(Conflicts::Both);
    assert_eq!(counts(&anna), (0, 0));
    assert_eq!(scene.map().len(), 2);
}

/// The process ends when the decision is durable, and before the home has heard of it.
#[test]
fn a_restart_between_routine_and_home_makes_it_once() {
    let scene = scene();
    let (go, waits) = channel::<()>();
    let waits = Mutex::new(waits);
    let both = |changes: &[RefusedChange]| {
        let object = changes[0].object;
        Resolution::Again(vec![(object, ObjectUpdate::Run(new_entry("other", 1)))])
    };
    let anna = scene.anna(Conflicts::program(move |refused| {
        let _ = waits.lock().unwrap().recv();
        both(refused.changes())
    }));
    scene.both_put(&anna);
    eventually("it was refused", || counts(&anna) == (1, 0));
    scene.link.fall_silent();
    go.send(()).unwrap();
    eventually("another is in the log instead", || counts(&anna) == (0, 1));
    anna.close();
    drop(anna);
    assert_eq!(scene.map(), of_key(2));
    scene.link.mend();
    let anna = scene.anna(Conflicts::Keep);
    eventually("it is there", || scene.map().len() == 2);
    eventually("the log is empty", || counts(&anna) == (0, 0));
}

/// What a person has on the list stays there.
#[test]
fn a_routine_never_touches_what_was_on_the_list_before() {
    let scene = scene();
    let anna = scene.anna(Conflicts::Keep);
    scene.both_put(&anna);
    eventually("it is on the list", || counts(&anna) == (1, 0));
    anna.close();
    drop(anna);
    let anna = scene.anna(Conflicts::Theirs);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(counts(&anna), (1, 0));
    // Retried by a person, it is a new update, and the routine decides.
    anna.close();
    drop(anna);
    let log = UpdateLog::existing(scene.log()).unwrap();
    let refused: Vec<_> = log.updates().unwrap();
    log.retry(&[refused[0].update.clone()]).unwrap();
    drop(log);
    let anna = scene.anna(Conflicts::Theirs);
    eventually("it has left", || counts(&anna) == (0, 0));
}

/// A missing right is no conflict: nobody has written anything else.
#[test]
fn an_update_without_a_right_goes_to_the_list_whatever_the_routine() {
    let scene = scene();
    let anna = scene.anna(Conflicts::Theirs);
    let segment = desk(&scene.ben);
    let mut list = RightsList::of_new(Subject::Name("ben".to_owned()));
    list.revoke(&Subject::Members);
    list.grant(Subject::Name("anna".to_owned()), Right::Read);
    scene.meanwhile(
        &anna,
        |visit| visit.write(&scene.text, "hers").unwrap(),
        |ben| ben.transact(|tx| tx.set_rights(&segment, &list)).unwrap(),
    );
    eventually("it is on the list", || counts(&anna) == (1, 0));
    assert_eq!(scene.text(), b"text");
}
