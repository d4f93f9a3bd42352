//! What each call does while the home is unreachable: the table of `docs/unreachable.md`, row by row.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::thread;
use std::time::{Duration, Instant};
use thorp_client::{
    CommitId, Error, ErrorKind, JoinConfig, JoinError, Member, NodeRole, Outcome, Reference,
    Result, Session,
};
use thorp_testing::{HomeNode, Village, eventually};

const SOON: Duration = Duration::from_millis(300);

fn impatient() -> Session {
    Session::new()
        .fetch_timeout(SOON)
        .commit_timeout(SOON)
        .max_staleness(Duration::from_secs(60))
}

fn join(village: &HomeNode, session: Session) -> Member {
    Member::join(village.config().session(session)).unwrap()
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

fn reached(member: &Member) -> bool {
    member.homes().iter().all(|home| home.reachable)
}

/// The commit that a call left in doubt.
fn doubt(error: &Error) -> CommitId {
    match error.kind() {
        ErrorKind::OutcomeUnknown(id) => id,
        other => panic!("{other:?}: {error}"),
    }
}

struct Scene {
    village: HomeNode,
    anna: Member,
    cached: Reference,
    elsewhere: Reference,
    notes: thorp_client::Segment,
}

/// A member with one object in its cache and one that is not.
fn scene(session: Session) -> Scene {
    let village = HomeNode::new();
    let bert = village.member();
    let of_bert = bert.open_or_create("thorp://alps/notes").unwrap();
    let (cached, elsewhere) = bert
        .transact(|tx| {
            Ok((
                tx.create(&of_bert, "x")?,
                tx.create(&of_bert, vec![0; 8160])?,
            ))
        })
        .unwrap();
    let anna = join(&village, session);
    let notes = anna.open("thorp://alps/notes").unwrap();
    anna.transact(|tx| tx.read(&cached).map(|_| ())).unwrap();
    Scene {
        village,
        anna,
        cached,
        elsewhere,
        notes,
    }
}

impl Scene {
    fn stop(&self) {
        self.village.stop();
        eventually("the member notices", || !reached(&self.anna));
    }
}

#[test]
fn cached_objects_are_read_until_they_are_too_stale() {
    let staleness = Duration::from_millis(1500);
    let s = scene(impatient().max_staleness(staleness));
    s.stop();
    let read = |session: Session| {
        s.anna
            .transact_with(session, |tx| Ok(tx.read(&s.cached)?.to_vec()))
    };
    let usual = s.anna.session();
    assert_eq!(read(usual).unwrap(), b"x");
    eventually("it is too stale", || {
        read(usual).is_err_and(|error| error.kind() == ErrorKind::HomeUnreachable)
    });
    assert_eq!(read(usual.optimistic_reads(true)).unwrap(), b"x");
    assert_eq!(
        read(usual.max_staleness(Duration::from_secs(60))).unwrap(),
        b"x"
    );
    assert_eq!(kind(read(usual.strict(true))), ErrorKind::HomeUnreachable);
    s.village.restart();
    eventually("it is fresh again", || read(usual).is_ok());
}

#[test]
fn what_is_not_cached_is_waited_for_and_then_given_up() {
    let s = scene(impatient());
    s.stop();
    let since = Instant::now();
    let read = || {
        s.anna
            .transact(|tx| tx.read(&s.elsewhere).map(|bytes| bytes.len()))
    };
    assert_eq!(kind(read()), ErrorKind::HomeUnreachable);
    assert!(since.elapsed() >= SOON);
    // If the home comes back in time, nobody notices.
    let anna = s.anna.clone();
    let (elsewhere, patient) = (
        s.elsewhere,
        impatient().fetch_timeout(Duration::from_secs(20)),
    );
    let reader = thread::spawn(move || {
        anna.transact_with(patient, |tx| tx.read(&elsewhere).map(|bytes| bytes.len()))
    });
    thread::sleep(Duration::from_millis(100));
    s.village.restart();
    assert_eq!(reader.join().unwrap().unwrap(), 8160);
}

#[test]
fn a_writer_that_was_not_sent_certainly_had_no_effect() {
    let s = scene(impatient());
    s.stop();
    let write = s.anna.transact(|tx| tx.write(&s.cached, "y"));
    assert_eq!(kind(write), ErrorKind::HomeUnreachable);
    s.village.restart();
    eventually("the home is back", || reached(&s.anna));
    let read = s.anna.transact(|tx| Ok(tx.read(&s.cached)?.to_vec()));
    assert_eq!(read.unwrap(), b"x");
}

#[test]
fn creating_waits_for_room_and_calls_wait_for_their_answers() {
    let s = scene(impatient());
    s.stop();
    let anna = &s.anna;
    assert_eq!(
        kind(anna.transact(|tx| tx.create(&s.notes, "z"))),
        ErrorKind::HomeUnreachable
    );
    assert_eq!(
        kind(anna.open("thorp://alps/notes")),
        ErrorKind::HomeUnreachable
    );
    assert_eq!(kind(anna.list("thorp://alps/")), ErrorKind::HomeUnreachable);
    assert_eq!(
        kind(anna.remove("thorp://alps/notes")),
        ErrorKind::HomeUnreachable
    );
    assert_eq!(
        kind(anna.open("thorp://elsewhere/notes")),
        ErrorKind::HomeUnreachable
    );
    assert_eq!(kind(s.notes.watch()), ErrorKind::HomeUnreachable);
    // Names of what is known need no home.
    let text = anna.format(&s.cached).unwrap();
    assert_eq!(anna.parse(&text).unwrap(), s.cached);
    anna.prefetch(&[s.elsewhere]);
    s.village.restart();
    eventually("what was asked ahead comes", || {
        anna.stats().cached_pages >= 1
    });
    anna.transact(|tx| tx.create(&s.notes, "z")).unwrap();
}

#[test]
fn an_unknown_outcome_can_be_asked_for() {
    let s = scene(impatient());
    s.village.hold_disk();
    let error = s.anna.transact(|tx| tx.write(&s.cached, "y")).unwrap_err();
    let id = doubt(&error);
    assert!(!error.is_retryable());
    let session = impatient();
    assert_eq!(kind(s.anna.outcome(id)), ErrorKind::OutcomeUnknown(id));
    // Its effect is not seen before it is durable.
    let read = s
        .anna
        .transact_with(session, |tx| Ok(tx.read(&s.cached)?.to_vec()));
    assert_eq!(read.unwrap(), b"x");
    s.village.release_disk();
    match s.anna.outcome(id).unwrap() {
        Outcome::Committed(committed) => assert_eq!(committed.id, Some(id)),
        Outcome::Refused(error) => panic!("{error}"),
    }
    let read = s.anna.transact(|tx| Ok(tx.read(&s.cached)?.to_vec()));
    assert_eq!(read.unwrap(), b"y");
    assert_eq!(s.anna.stats().unknown_outcomes, 1);
    let unheard = CommitId {
        sequence: 999,
        ..id
    };
    assert_eq!(kind(s.anna.outcome(unheard)), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_commit_that_nobody_waits_for_goes_on_and_keeps_its_slots() {
    let village = tokio::task::spawn_blocking(HomeNode::new).await.unwrap();
    let anna = Member::join_async(village.config()).await.unwrap();
    let notes = anna.create_async("thorp://alps/notes").await.unwrap();
    let first = anna
        .transact_async(async |tx| tx.create_async(&notes, "first").await)
        .await
        .unwrap();
    village.hold_disk();
    let mut tx = anna.begin(Session::new());
    let note = tx.create_near_async(&first, "second").await.unwrap();
    let sent = async {
        while !village.has_waiting() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = sent => {}
        committed = tx.commit_async() => panic!("it was not durable: {committed:?}"),
    }
    village.release_disk();
    let third = anna
        .transact_async(async |tx| tx.create_near_async(&first, "third").await)
        .await
        .unwrap();
    assert_ne!(third.object, note.object);
    let read = anna.transact_async(async |tx| Ok(tx.read_async(&note).await?.to_vec()));
    assert_eq!(read.await.unwrap(), b"second");
    assert_eq!(anna.stats().unknown_outcomes, 1);
}

#[test]
fn a_home_that_dies_after_it_wrote_tells_the_outcome_when_it_is_back() {
    let s = scene(impatient().commit_timeout(Duration::from_secs(20)));
    s.village.hold_disk();
    let (anna, cached) = (s.anna.clone(), s.cached);
    let writer = thread::spawn(move || anna.transact(|tx| tx.write(&cached, "y")));
    eventually("the commit is written", || s.village.has_waiting());
    s.stop();
    s.village.restart();
    writer.join().unwrap().unwrap();
    let read = s.anna.transact(|tx| Ok(tx.read(&s.cached)?.to_vec()));
    assert_eq!(read.unwrap(), b"y");
}

#[test]
fn a_commit_that_died_with_the_home_is_run_again_and_counts_once() {
    let s = scene(impatient().commit_timeout(Duration::from_secs(20)));
    let counter = s
        .anna
        .transact(|tx| tx.create_typed(&s.notes, &0u64))
        .unwrap();
    s.village.eventually_quiet();
    s.village.lose_disk();
    let (anna, attempts) = (
        s.anna.clone(),
        std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0)),
    );
    let tries = std::sync::Arc::clone(&attempts);
    let writer = thread::spawn(move || {
        anna.transact(|tx| {
            tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let value = tx.get(&counter)? + 1;
            tx.put(&counter, &value)
        })
    });
    eventually("the commit came", || s.village.has_waiting());
    s.stop();
    s.village.restart();
    writer.join().unwrap().unwrap();
    assert_eq!(s.anna.transact(|tx| tx.get(&counter)).unwrap(), 1);
    assert!(attempts.load(std::sync::atomic::Ordering::SeqCst) >= 2);
}

#[test]
fn what_was_read_before_a_restart_is_right_unless_it_has_changed() {
    let s = scene(impatient());
    let mut tx = s.anna.begin(impatient());
    let [mut stale, mut writer] = [(); 2].map(|()| s.anna.begin(impatient()));
    tx.read(&s.cached).unwrap();
    let was = stale.read(&s.cached).unwrap().to_vec();
    writer.read(&s.cached).unwrap();
    writer.create(&s.notes, "beside").unwrap();
    s.stop();
    s.village.restart();
    eventually("the home is back", || reached(&s.anna));
    tx.commit().unwrap();
    s.stop();
    s.village.restart();
    let bert = s.village.member();
    bert.transact(|tx| tx.write(&s.cached, "new")).unwrap();
    eventually("anna hears of it", || {
        let read = |tx: &mut thorp_client::Transaction| tx.read(&s.cached).map(|v| v == b"new");
        s.anna.transact(read).unwrap_or(false)
    });
    assert_eq!(kind(writer.commit()), ErrorKind::Conflict);
    // Who only reads stands where the old stream ended.
    assert_eq!(stale.read(&s.cached).unwrap(), was);
    let mut newest = s.anna.begin(impatient());
    assert_eq!(newest.read(&s.cached).unwrap(), b"new");
    let at = |tx: thorp_client::Transaction| tx.commit().unwrap().position;
    assert!(at(stale) < at(newest));
}

#[test]
fn a_store_without_room_refuses_writers_and_serves_readers() {
    let s = scene(impatient());
    s.village.set_space(false);
    assert_eq!(
        kind(s.anna.transact(|tx| tx.write(&s.cached, "y"))),
        ErrorKind::Full
    );
    assert_eq!(
        kind(s.anna.transact(|tx| tx.create(&s.notes, "y"))),
        ErrorKind::Full
    );
    let read = |tx: &mut thorp_client::Transaction| tx.read(&s.elsewhere).map(|bytes| bytes.len());
    assert_eq!(s.anna.transact(read).unwrap(), 8160);
    s.village.set_space(true);
    s.anna.transact(|tx| tx.write(&s.cached, "y")).unwrap();
}

#[test]
fn after_closing_every_call_says_so_and_nobody_waits_for_ever() {
    let s = scene(impatient().fetch_timeout(Duration::from_secs(600)));
    let mut watch = s.notes.watch().unwrap();
    let mut open = s.anna.begin(Session::new());
    open.read(&s.cached).unwrap();
    s.stop();
    let (anna, elsewhere) = (s.anna.clone(), s.elsewhere);
    let waiting = thread::spawn(move || anna.transact(|tx| tx.read(&elsewhere).map(|_| ())));
    let watching = thread::spawn(move || watch.next(Duration::from_secs(600)));
    thread::sleep(Duration::from_millis(100));
    s.anna.close();
    s.anna.close();
    assert_eq!(kind(waiting.join().unwrap()), ErrorKind::Closed);
    assert_eq!(kind(watching.join().unwrap()), ErrorKind::Closed);
    assert_eq!(kind(open.commit()), ErrorKind::Closed);
    assert_eq!(kind(s.anna.open("thorp://alps/notes")), ErrorKind::Closed);
    assert_eq!(
        kind(s.anna.transact(|tx| tx.create(&s.notes, "z"))),
        ErrorKind::Closed
    );
    assert_eq!(
        kind(s.anna.transact(|tx| tx.read(&s.cached).map(|_| ()))),
        ErrorKind::Closed
    );
    assert_eq!(
        kind(s.anna.transact(|tx| tx.write(&s.cached, "y"))),
        ErrorKind::Closed
    );
}

#[test]
fn joining_nobody_fails_in_time_and_says_why() {
    let village = HomeNode::new();
    let nobody = village.path("nobody.sock");
    let config = JoinConfig::new(format!("unix:{}", nobody.display()))
        .identity_of(village.identity())
        .join_timeout(SOON);
    let error = Member::join(config.clone()).unwrap_err();
    assert!(matches!(error, JoinError::Unreachable(_)), "{error}");
    // Another address of the same home is as good.
    let member = Member::join(
        config
            .or_at(village.address().to_string())
            .join_timeout(Duration::from_secs(10)),
    );
    assert!(reached(&member.unwrap()));
    let error = Member::join(JoinConfig::new("nowhere").identity_of(village.identity()));
    assert!(matches!(error.unwrap_err(), JoinError::Address(_)));
    let error = Member::join(JoinConfig::new(village.address().to_string()));
    assert!(matches!(error.unwrap_err(), JoinError::Address(_)));
}

#[test]
fn a_stranger_does_not_get_in() {
    let village = HomeNode::new();
    let other = Village::new();
    let eve = other.identity_of(NodeRole::Member, "eve");
    let config = JoinConfig::new(village.address().to_string()).identity_of(eve);
    assert!(matches!(
        Member::join(config.join_timeout(SOON)).unwrap_err(),
        JoinError::Unreachable(_)
    ));
}

#[test]
fn a_directory_without_an_identity_is_told_and_left_as_it_is() {
    let village = HomeNode::new();
    let misspelt = village.path("misspelt");
    let config = JoinConfig::new(village.address().to_string()).identity(&misspelt);
    let error = Member::join(config).unwrap_err();
    assert!(matches!(error, JoinError::Identity(_)), "{error}");
    assert!(!misspelt.exists());
}
