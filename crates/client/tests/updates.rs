//! Updates: what a program writes without waiting for the home (rules C3, C4, C6, C7 and C10).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use thorp_client::{
    Consistency, ErrorKind, JoinConfig, LogStatus, Member, Procedure, Reference, Segment, Session,
    Visit,
};
use thorp_testing::{HomeNode, Link, SiteNode, Village, eventually};

/// Two sites far from a home. Anna and Abe are at site A, Ben is at site B.
struct Scene {
    village: Village,
    home: HomeNode,
    a: SiteNode,
    to_a: Link,
    _b: SiteNode,
    _to_b: Link,
    logs: tempfile::TempDir,
    ben: Member,
    counter: Reference,
}

const FAR: Duration = Duration::from_millis(20);

fn scene() -> Scene {
    let village = Village::new();
    let home = village.home("alps");
    let (to_a, to_b) = (home.link(Duration::ZERO), home.link(Duration::ZERO));
    let (a, b) = (village.site("a", &[&to_a]), village.site("b", &[&to_b]));
    let logs = tempfile::tempdir().unwrap();
    let ben = join(&village, &b, "ben", None);
    let segment = shared(&ben);
    let zero = Procedure::Add(0);
    let counter = ben
        .transact(|tx| tx.create(&segment, [0].as_slice()))
        .unwrap();
    ben.transact(|tx| tx.apply(&counter, zero.clone())).unwrap();
    to_a.set_delay(FAR);
    to_b.set_delay(FAR);
    Scene {
        village,
        home,
        a,
        to_a,
        _b: b,
        _to_b: to_b,
        logs,
        ben,
        counter,
    }
}

impl Scene {
    fn log(&self, name: &str) -> std::path::PathBuf {
        self.logs.path().join(name)
    }

    /// A member of site A with a log of its name.
    fn at_a(&self, name: &str) -> Member {
        join(&self.village, &self.a, name, Some(&self.log(name)))
    }

    fn seen_by_ben(&self) -> i64 {
        let read = self
            .ben
            .transact(|tx| tx.read(&self.counter).map(<[u8]>::to_vec));
        number(&read.unwrap())
    }
}

fn join(village: &Village, site: &SiteNode, name: &str, log: Option<&Path>) -> Member {
    let patience = Session::new().fetch_timeout(Duration::from_secs(20));
    let config = JoinConfig::new(site.address().to_string());
    let config = config.identity(village.member(name)).session(patience);
    let config = match log {
        Some(log) => config.log(log),
        None => config,
    };
    Member::join(config).unwrap()
}

fn shared(member: &Member) -> Segment {
    member.open_or_create("thorp://alps/shared").unwrap()
}

/// A small number as `postcard` has it.
fn number(bytes: &[u8]) -> i64 {
    assert!(bytes.len() == 1 && bytes[0].is_multiple_of(2), "{bytes:?}");
    i64::from(bytes[0] / 2)
}

fn visit(member: &Member, segment: &Segment, consistency: &str) -> Visit {
    let consistency: Consistency = consistency.parse().unwrap();
    Visit::open(member, consistency, &[segment]).unwrap()
}

fn add(member: &Member, segment: &Segment, counter: &Reference) {
    let mut visit = visit(member, segment, "eventual");
    visit.apply(counter, Procedure::Add(1)).unwrap();
    visit.close().unwrap();
}

fn tentative(member: &Member, segment: &Segment, counter: &Reference) -> i64 {
    let mut visit = visit(member, segment, "eventual,mode=rd");
    number(&visit.read(counter).unwrap())
}

#[test]
fn an_update_is_seen_by_its_program_at_once_and_by_all_later() {
    let scene = scene();
    let anna = scene.at_a("anna");
    let segment = shared(&anna);
    add(&anna, &segment, &scene.counter);
    assert_eq!(tentative(&anna, &segment, &scene.counter), 1);
    eventually("Ben sees it", || scene.seen_by_ben() == 1);
    assert_eq!(tentative(&anna, &segment, &scene.counter), 1);
}

#[test]
fn a_site_that_is_cut_off_goes_on_sharing_and_all_is_saved_once() {
    let scene = scene();
    let (anna, abe) = (scene.at_a("anna"), scene.at_a("abe"));
    let (of_anna, of_abe) = (shared(&anna), shared(&abe));
    add(&anna, &of_anna, &scene.counter);
    let mut reading = visit(&abe, &of_abe, "eventual,isolation=access");
    eventually("Abe sees the first", || {
        number(&reading.read(&scene.counter).unwrap()) == 1
    });
    scene.to_a.fall_silent();
    for _ in 0..5 {
        add(&anna, &of_anna, &scene.counter);
    }
    assert_eq!(tentative(&anna, &of_anna, &scene.counter), 6);
    eventually("Abe sees Anna's", || {
        number(&reading.read(&scene.counter).unwrap()) == 6
    });
    reading.apply(&scene.counter, Procedure::Add(10)).unwrap();
    reading.publish().unwrap();
    assert_eq!(scene.seen_by_ben(), 1);
    scene.to_a.mend();
    eventually("Ben sees all", || scene.seen_by_ben() == 16);
    eventually("Abe and Anna see the same", || {
        let abe = number(&reading.read(&scene.counter).unwrap());
        (abe, tentative(&anna, &of_anna, &scene.counter)) == (16, 16)
    });
}

#[test]
fn a_member_tells_what_is_tentative_and_how_old_it_is() {
    let scene = scene();
    assert_eq!(scene.ben.log(), None, "it has no log");
    let anna = scene.at_a("anna");
    let segment = shared(&anna);
    add(&anna, &segment, &scene.counter);
    let is_empty = |log: &Option<LogStatus>| *log == Some(LogStatus::default());
    eventually("its home has all", || is_empty(&anna.log()));
    scene.to_a.fall_silent();
    let before = Instant::now();
    add(&anna, &segment, &scene.counter);
    thread::sleep(Duration::from_millis(20));
    add(&anna, &segment, &scene.counter);
    let log = anna.log().unwrap();
    assert_eq!((log.tentative, log.of_earlier_starts), (2, 0));
    let oldest = log.oldest.unwrap();
    let most = before.elapsed();
    assert!(
        (Duration::from_millis(19)..=most).contains(&oldest),
        "{oldest:?} of {most:?}"
    );
    assert!(log.bytes > 0 && log.rejected == 0);
    anna.close();
    assert_eq!(anna.log(), None, "it is closed");

    let anna = scene.at_a("anna");
    let log = anna.log().unwrap();
    assert_eq!((log.tentative, log.of_earlier_starts), (2, 2));
    assert_eq!(log.oldest, None, "nothing of this start");
    scene.to_a.mend();
    eventually("its home has all again", || is_empty(&anna.log()));
}

#[test]
fn a_log_outlives_its_process_and_the_next_one_saves_it_once() {
    let scene = scene();
    let anna = scene.at_a("anna");
    let segment = shared(&anna);
    add(&anna, &segment, &scene.counter);
    eventually("Ben sees the first", || scene.seen_by_ben() == 1);
    scene.to_a.fall_silent();
    add(&anna, &segment, &scene.counter);
    add(&anna, &segment, &scene.counter);
    anna.close();
    scene.to_a.mend();
    assert_eq!(scene.seen_by_ben(), 1);
    let anna = scene.at_a("anna");
    eventually("Ben sees the rest", || scene.seen_by_ben() == 3);
    anna.close();
    let again = scene.at_a("anna");
    add(&again, &shared(&again), &scene.counter);
    eventually("each counts once", || scene.seen_by_ben() == 4);
}

#[test]
fn a_hard_read_sees_what_a_log_elsewhere_has_answered() {
    let scene = scene();
    let anna = scene.at_a("anna");
    let of_anna = shared(&anna);
    let of_ben = shared(&scene.ben);
    for round in 1..=20 {
        add(&anna, &of_anna, &scene.counter);
        let mut hard = visit(&scene.ben, &of_ben, "close-to-open,mode=rd");
        assert_eq!(number(&hard.read(&scene.counter).unwrap()), round);
    }
}

#[test]
fn without_a_log_an_optimistic_write_is_refused() {
    let scene = scene();
    let nobody = join(&scene.village, &scene.a, "noah", None);
    let segment = shared(&nobody);
    let mut visit = visit(&nobody, &segment, "eventual");
    visit.apply(&scene.counter, Procedure::Add(1)).unwrap();
    let error = visit.close().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("JoinConfig::log"), "{error}");
    assert_eq!(scene.seen_by_ben(), 0);
    assert_eq!(scene.home.size("logs"), 0);
}
