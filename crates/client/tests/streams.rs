//! Streams that end and begin again, and two parents: what the program must hear of that, and what not.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use thorp_client::{ErrorKind, Member, Segment, Watch};
use thorp_testing::{HomeNode, eventually};

const LONG: Duration = Duration::from_secs(20);

/// Counts how often a future wants to be polled.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wakes {
    fn poll<F: Future>(self: &Arc<Self>, future: Pin<&mut F>) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(self));
        future.poll(&mut Context::from_waker(&waker))
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn reached(member: &Member) -> bool {
    let homes = member.homes();
    !homes.is_empty() && homes.iter().all(|home| home.reachable)
}

/// The home restarts, and the member has heard of it.
fn restart(village: &HomeNode, member: &Member) {
    village.stop();
    eventually("the member notices", || !reached(member));
    village.restart();
    eventually("the stream begins again", || reached(member));
}

fn is_lost(watch: &mut Watch) -> bool {
    let changed = watch.next(LONG).unwrap().expect("something to tell");
    changed.lost.is_some()
}

/// A member far away, so that a call takes its time, and what it watches.
fn far_away(one_way: u64) -> (HomeNode, Member, Segment) {
    let village = HomeNode::new();
    let config = village.config();
    let config = config.link_delay(Duration::from_millis(one_way));
    let anna = Member::join(config).unwrap();
    let notes = anna.open_or_create("thorp://alps/notes").unwrap();
    (village, anna, notes)
}

#[test]
fn what_a_watch_lost_is_told_although_the_future_was_dropped() {
    let (village, anna, notes) = far_away(100);
    let mut watch = notes.watch().unwrap();
    restart(&village, &anna);
    let wakes = Arc::<Wakes>::default();
    // A program that looks at its watch between other things.
    assert!(wakes.poll(pin!(watch.next_async())).is_pending());
    assert!(is_lost(&mut watch));
    assert_eq!(watch.next(Duration::from_millis(10)).unwrap(), None);
}

#[test]
fn a_watch_that_is_looked_at_often_gets_to_know_what_was_lost() {
    let (village, anna, notes) = far_away(100);
    let mut watch = notes.watch().unwrap();
    restart(&village, &anna);
    let mut lost = false;
    eventually("it is told", || {
        // Less time than a call takes.
        let changed = watch.next(Duration::from_millis(20)).unwrap();
        lost |= changed.is_some_and(|changed| changed.lost.is_some());
        lost
    });
}

#[test]
fn what_was_lost_is_told_although_looking_failed_first() {
    let village = HomeNode::new();
    let session = thorp_client::Session::new().fetch_timeout(Duration::from_millis(200));
    let config = village.config().session(session);
    let anna = Member::join(config).unwrap();
    let notes = anna.open_or_create("thorp://alps/notes").unwrap();
    let mut watch = notes.watch().unwrap();
    restart(&village, &anna);
    village.stall(Duration::from_millis(600));
    let error = watch.next(LONG).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HomeUnreachable);
    eventually("the home answers", || {
        watch
            .next(LONG)
            .is_ok_and(|told| told.is_some_and(|c| c.lost.is_some()))
    });
}

#[test]
fn a_stream_that_begins_before_a_watch_runs_is_told_as_lost() {
    let (village, anna, notes) = far_away(400);
    let mut watch = notes.watch().unwrap();
    restart(&village, &anna);
    let bert = village.member();
    let notes_of_bert = bert.open("thorp://alps/notes").unwrap();
    {
        let wakes = Arc::<Wakes>::default();
        let mut next = pin!(watch.next_async());
        assert!(wakes.poll(next.as_mut()).is_pending());
        // The answer is there, and the thread does not run.
        eventually("the parent has answered", || wakes.count() > 0);
        restart(&village, &anna);
        eventually("bert is back", || reached(&bert));
        // The home does not know yet that anna watches.
        bert.transact(|tx| tx.create(&notes_of_bert, "unheard"))
            .unwrap();
        // Told at once of the first loss, or once for both.
        let _ = wakes.poll(next.as_mut());
    }
    assert!(is_lost(&mut watch));
}

#[test]
fn a_stream_that_begins_while_a_watch_begins_hides_nothing() {
    let (village, anna, notes) = far_away(400);
    let bert = village.member();
    let notes_of_bert = bert.open("thorp://alps/notes").unwrap();
    let wakes = Arc::<Wakes>::default();
    let mut begin = pin!(notes.watch_async());
    assert!(wakes.poll(begin.as_mut()).is_pending());
    eventually("the parent has answered", || wakes.count() > 0);
    restart(&village, &anna);
    eventually("bert is back", || reached(&bert));
    // If it is there by now, what is committed now is told; otherwise it begins when the parent has heard of it again.
    let mut watch = None;
    if let Poll::Ready(begun) = wakes.poll(begin.as_mut()) {
        watch = Some(begun.unwrap());
    }
    let make = || bert.transact(|tx| tx.create(&notes_of_bert, "unheard"));
    let mut made = make().unwrap().object;
    if watch.is_none() {
        eventually("it begins", || {
            if let Poll::Ready(begun) = wakes.poll(begin.as_mut()) {
                watch = Some(begun.unwrap());
            }
            watch.is_some()
        });
        made = make().unwrap().object;
    }
    let changed = watch.unwrap().next(LONG).unwrap().expect("a change");
    assert!(changed.lost.is_some() || changed.changes.iter().any(|change| change.object == made));
}

#[test]
fn a_member_with_two_parents_of_one_home_keeps_both_and_reaches_it() {
    let village = HomeNode::new();
    let site = village.site(1 << 20);
    let config = village.config().and_home(site.address().to_string());
    let anna = Member::join(config).unwrap();
    let notes = anna.open_or_create("thorp://alps/notes").unwrap();
    let note = anna.transact(|tx| tx.create(&notes, "a")).unwrap();
    let position = |member: &Member| member.homes()[0].position;
    for n in 0..50u8 {
        assert!(reached(&anna), "{n}");
        anna.transact(|tx| tx.write(&note, vec![n])).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(position(&anna).0 >= 50);
}
