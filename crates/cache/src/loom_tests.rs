//! The protocol under the model checker: every order of the writer's and a
//! reader's steps, and every value that a relaxed load may see, with at most
//! three preemptions. Run: `cargo test -p thorp-cache-loom`.

use crate::ring::Ring;
use crate::{Cache, ReadSet};
use loom::thread;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use thorp_model::{
    Content, Draft, Generation, HomeId, Image, ImageEdit, Millis, PageId, Place, Position, Publish,
    Slot, SlotSet, Stamp,
};

const HOME: HomeId = HomeId(1);
const P: PageId = PageId::new(1, 1);
const Q: PageId = PageId::new(1, 2);

/// Runs a test in all orders; what it came to, each outcome once. The tests
/// ask for the outcomes that show that the threads did meet.
fn model<T>(test: impl Fn() -> T + Sync + Send + 'static) -> BTreeSet<T>
where
    T: Ord + Clone + Send + 'static,
{
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    let outcomes = Arc::new(Mutex::new(BTreeSet::new()));
    let all = Arc::clone(&outcomes);
    builder.check(move || {
        let outcome = test();
        all.lock().expect("no test has failed").insert(outcome);
    });
    let outcomes = outcomes.lock().expect("no test has failed");
    outcomes.clone()
}

fn image(version: u64) -> Image {
    let mut edit = ImageEdit::default();
    edit.set(Slot(0), Generation(version as u32), Draft::Value(vec![0]));
    edit.finish(Position(version), Stamp::default())
}

fn at(position: u64) -> Publish {
    Publish {
        home: HOME,
        overlay: thorp_model::OverlayUpdate::default(),
        touched: Vec::new(),
        evicted: Vec::new(),
        images: Vec::new(),
        position: Position(position),
        watermark: Stamp::default(),
        heard: Millis(position),
        missed: None,
        tentative: Default::default(),
        history: 0,
    }
}

/// A commit changes slot 0 of these pages: its generation tells the version.
fn changes(position: u64, pages: &[PageId]) -> Publish {
    let slots = SlotSet::of(Slot(0));
    Publish {
        touched: pages.iter().map(|page| (*page, slots)).collect(),
        ..brings(position, pages)
    }
}

fn brings(position: u64, pages: &[PageId]) -> Publish {
    let image = |page: &PageId| (*page, Some(image(position)));
    Publish {
        images: pages.iter().map(image).collect(),
        ..at(position)
    }
}

fn evicts(position: u64, page: PageId) -> Publish {
    Publish {
        evicted: vec![page],
        images: vec![(page, None)],
        ..at(position)
    }
}

/// A slot's version, or nothing: missed, or doomed.
fn read(set: &mut ReadSet, cache: &Cache, page: PageId) -> Option<u64> {
    let place = Place { home: HOME, page };
    let read = set.read(cache, place, Slot(0)).ok()?;
    assert!(matches!(read.content, Content::Value(_)));
    Some(u64::from(read.generation.0))
}

/// The evidence, or nothing: doomed.
fn evidence(set: &mut ReadSet, cache: &Cache) -> Option<u64> {
    let evidence = set.evidence(cache, HOME).ok()?;
    Some(evidence.0)
}

/// What was read on each of two pages, and the evidence.
type Outcome = (Option<u64>, Option<u64>, Option<u64>);

fn read_both(cache: &Cache, first: PageId, second: PageId) -> Outcome {
    let mut set = ReadSet::new();
    let first = read(&mut set, cache, first);
    let second = read(&mut set, cache, second);
    (first, second, evidence(&mut set, cache))
}

fn read_both_behind(cache: &Cache, first: PageId, second: PageId) -> Outcome {
    let mut set = ReadSet::new();
    set.only_reads();
    let first = read(&mut set, cache, first);
    let second = read(&mut set, cache, second);
    (first, second, evidence(&mut set, cache))
}

/// Pages P and Q as of 1; then a writer publishes, while a reader goes on. Each has a thread of its own: loom does not try all orders with
/// its first one.
fn with_writer<T: Send + 'static>(
    publications: Vec<Publish>,
    reader: impl FnOnce(&Cache) -> T + Send + 'static,
) -> T {
    let cache = Arc::new(Cache::remembering(1 << 20, 7));
    cache.publish(&brings(1, &[P, Q]));
    let writer = thread::spawn({
        let cache = Arc::clone(&cache);
        move || {
            publications
                .iter()
                .for_each(|publish| cache.publish(publish))
        }
    });
    let reader = thread::spawn(move || reader(&cache));
    let outcome = reader.join().expect("the reader never fails");
    writer.join().expect("the writer never fails");
    outcome
}

/// A change of P at 2 against a read of it: what was read, and the evidence.
fn trap_20(late_mark: bool) -> BTreeSet<(Option<u64>, Option<u64>)> {
    model(move || {
        with_writer(vec![changes(2, &[P])], move |cache| {
            let mut set = ReadSet::new();
            set.late_mark = late_mark;
            let value = read(&mut set, cache, P);
            (value, evidence(&mut set, cache))
        })
    })
}

#[test]
fn a_read_and_a_change_miss_each_other_in_no_order() {
    let outcomes = trap_20(false);
    let right = [(Some(1), None), (Some(1), Some(1)), (Some(2), Some(2))];
    assert_eq!(outcomes, BTreeSet::from(right));
}

#[test]
fn the_mark_loaded_after_the_image_would_miss_the_change() {
    // Planted: the read of an old value gets the new position as its evidence.
    assert!(trap_20(true).contains(&(Some(1), Some(2))));
}

#[test]
fn two_pages_changed_together_are_seen_together() {
    // In the order in which the writer replaces them, and in the other one.
    for (first, second) in [(P, Q), (Q, P)] {
        let outcomes = model(move || {
            with_writer(vec![changes(2, &[P, Q])], move |cache| {
                read_both(cache, first, second)
            })
        });
        let right = [
            (Some(1), Some(1), Some(1)),
            (Some(1), Some(1), None),
            (Some(1), None, None),
            (Some(2), Some(2), Some(2)),
        ];
        assert_eq!(outcomes, BTreeSet::from(right));
    }
}

#[test]
fn a_commit_after_a_commit_is_not_seen_before_it() {
    let outcomes = model(|| {
        with_writer(vec![changes(2, &[P]), changes(3, &[Q])], move |cache| {
            read_both(cache, P, Q)
        })
    });
    for (p, q, evidence) in outcomes.iter().copied() {
        assert!((p, q) != (Some(1), Some(3)), "new Q and old P");
        let (p_then, q_then) = match evidence {
            Some(1) => (1, 1),
            Some(2) => (2, 1),
            Some(3) => (2, 3),
            _ => continue,
        };
        assert_eq!((p, q), (Some(p_then), Some(q_then)));
    }
    for met in [(Some(2), Some(1), None), (Some(2), Some(3), Some(3))] {
        assert!(outcomes.contains(&met), "{outcomes:?}");
    }
}

#[test]
fn who_only_reads_is_never_doomed_by_a_change() {
    // As above, and the old image is there before the new one: nobody finds neither.
    for (first, second) in [(P, Q), (Q, P)] {
        let outcomes = model(move || {
            with_writer(vec![changes(2, &[P, Q])], move |cache| {
                read_both_behind(cache, first, second)
            })
        });
        let right = [(Some(1), Some(1), Some(1)), (Some(2), Some(2), Some(2))];
        assert_eq!(outcomes, BTreeSet::from(right));
    }
}

#[test]
fn old_images_are_of_the_position_before_the_change() {
    let outcomes = model(|| {
        with_writer(vec![changes(2, &[P]), changes(3, &[Q])], move |cache| {
            read_both_behind(cache, P, Q)
        })
    });
    let right = [
        (Some(1), Some(1), Some(1)),
        (Some(2), Some(1), Some(2)),
        (Some(2), Some(3), Some(3)),
    ];
    assert_eq!(outcomes, BTreeSet::from(right));
}

#[test]
fn old_images_end_where_the_stream_broke() {
    // P and Q changed at 2 or 3, of which nothing was heard; P has come since.
    let mut broken = brings(3, &[P]);
    broken.images.push((Q, None));
    broken.missed = Some(vec![P, Q]);
    let outcomes = model(move || {
        with_writer(vec![broken.clone()], move |cache| {
            read_both_behind(cache, P, Q)
        })
    });
    // The page is gone and the mark is not there yet: it looks again once it has asked for it.
    let between = (Some(1), None, Some(1));
    let right = [
        (Some(1), Some(1), Some(1)),
        (Some(3), None, Some(3)),
        between,
    ];
    assert_eq!(outcomes, BTreeSet::from(right));
}

#[test]
fn an_eviction_is_never_missed() {
    // P is evicted at 1. It changes at 2, of which nothing is heard (trap 1).
    for (first, second) in [(P, Q), (Q, P)] {
        let outcomes = model(move || {
            with_writer(vec![evicts(1, P), at(2)], move |cache| {
                read_both(cache, first, second)
            })
        });
        for (one, other, evidence) in outcomes.iter().copied() {
            let p = if first == P { one } else { other };
            let right = [Some(1), if p.is_some() { Some(1) } else { Some(2) }];
            assert!(right.contains(&evidence), "{outcomes:?}");
        }
        let missed = outcomes
            .iter()
            .filter(|outcome| outcome.0.is_none() || outcome.1.is_none());
        assert!(missed.count() > 0, "{outcomes:?}");
    }
}

#[test]
fn nothing_of_two_streams_is_seen_together() {
    // P and Q changed at 2 or 3, of which nothing was heard; P has come since.
    let mut broken = brings(3, &[P]);
    broken.images.push((Q, None));
    broken.missed = Some(vec![P, Q]);
    for (first, second) in [(P, Q), (Q, P)] {
        let broken = broken.clone();
        let outcomes = model(move || {
            with_writer(vec![broken.clone()], move |cache| {
                read_both(cache, first, second)
            })
        });
        for (one, other, evidence) in outcomes.iter().copied() {
            for value in [one, other].into_iter().flatten() {
                assert!(evidence.is_none_or(|evidence| evidence == value));
            }
            assert!((one, other) != (Some(1), Some(3)) && (one, other) != (Some(3), Some(1)));
        }
        assert!(
            outcomes.iter().any(|outcome| outcome.2.is_none()),
            "{outcomes:?}"
        );
        assert!(
            outcomes.iter().any(|outcome| outcome.2 == Some(3)),
            "{outcomes:?}"
        );
    }
}

#[test]
fn a_record_is_read_whole_or_not_at_all() {
    let outcomes = model(|| {
        // Two records fit, one of them is the writer's.
        let ring = Arc::new(Ring::<2>::new(1));
        ring.push([1, 1]);
        let writer = thread::spawn({
            let ring = Arc::clone(&ring);
            move || (2..5).for_each(|n| ring.push([n, n]))
        });
        let reader = thread::spawn(move || {
            let head = ring.head();
            let record = ring.read(head - 1);
            assert!(record.is_none_or(|record| record == [head, head]));
            record
        });
        let record = reader.join().expect("the reader never fails");
        writer.join().expect("the writer never fails");
        record
    });
    assert!(outcomes.contains(&None) && outcomes.contains(&Some([3, 3])));
}
