//! The rules that readers live by, one at a time.

mod common;

use common::*;
use thorp_cache::{Cache, Doomed, ReadSet};
use thorp_model::{
    Content, Draft, Generation, HomeId, ImageEdit, Overflow, PageNo, Place, Position, Publish, Slot,
};

const CHANGED_1: Doomed = Doomed::Changed(Place {
    home: HOME,
    page: thorp_model::PageId::new(1, 1),
});

#[test]
fn a_read_is_served_and_recorded() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    assert_eq!(read(&mut set, &cache, 1, 2), Ok(102));
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    assert_eq!(evidence(&mut set, &cache), Ok(10));
    let reads: Vec<_> = set.reads(HOME).collect();
    assert_eq!(reads, [(page(1), slots(&[0, 2])), (page(2), slots(&[0]))]);
    assert_eq!(set.homes().collect::<Vec<_>>(), [HOME]);
    assert_eq!(set.stamp(HOME), stamp(10));
}

#[test]
fn absence_is_read_too() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    let read_absent = set.read(&cache, place(1), Slot(9)).expect("cached");
    assert_eq!(
        (read_absent.generation, read_absent.content),
        (Generation(0), Content::Free)
    );
    assert_eq!(
        set.reads(HOME).collect::<Vec<_>>(),
        [(page(1), slots(&[9]))]
    );
    // Another creates it (trap 12).
    cache.publish(&changes(11, 1, &[9], &[100, 101, 102, 1, 1, 1, 1, 1, 1, 9]));
    assert_eq!(evidence(&mut set, &cache), Err(CHANGED_1));
}

#[test]
fn an_object_over_overflow_pages_is_told_as_such() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    let overflow = Overflow {
        bytes: 9000,
        first: PageNo::OVERFLOW_FIRST,
        pages: 2,
    };
    let mut edit = ImageEdit::default();
    edit.set(Slot(0), Generation(3), Draft::Overflow(overflow));
    cache.publish(&arrives(10, 3, edit.finish(Position(4), stamp(4))));
    let head = set.read(&cache, place(3), Slot(0)).expect("cached");
    assert_eq!(head.generation, Generation(3));
    assert_eq!(head.content, Content::Overflow(overflow));
}

#[test]
fn a_change_of_a_slot_read_dooms_and_of_another_does_not() {
    let (cache, mut reader, mut other) = (two_pages(), ReadSet::new(), ReadSet::new());
    assert_eq!(read(&mut reader, &cache, 1, 1), Ok(101));
    assert_eq!(read(&mut other, &cache, 1, 0), Ok(100));
    cache.publish(&changes(11, 1, &[1], &[100, 111, 102]));
    assert_eq!(evidence(&mut reader, &cache), Err(CHANGED_1));
    assert_eq!(evidence(&mut other, &cache), Ok(11));
}

#[test]
fn the_doomed_stay_doomed_until_they_begin_anew() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(101));
    cache.publish(&changes(11, 1, &[1], &[100, 111, 102]));
    assert_eq!(read(&mut set, &cache, 2, 1), doomed(CHANGED_1));
    assert_eq!(read(&mut set, &cache, 1, 1), doomed(CHANGED_1));
    assert_eq!(evidence(&mut set, &cache), Err(CHANGED_1));
    assert_eq!(set.doomed(), Some(CHANGED_1));
    set.finish(&cache);
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(111));
    assert_eq!(evidence(&mut set, &cache), Ok(11));
    assert_eq!(set.reads(HOME).count(), 1);
}

#[test]
fn a_transaction_never_sees_two_states_even_if_it_is_doomed_later() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(101));
    let both = Publish {
        touched: vec![(page(1), slots(&[1])), (page(2), slots(&[1]))],
        images: vec![
            (page(1), Some(image(20, &[100, 111, 102]))),
            (page(2), Some(image(20, &[200, 211, 202]))),
        ],
        ..at(20)
    };
    cache.publish(&both);
    // The held page goes on telling one state; a page of the next is not shown.
    assert_eq!(read(&mut set, &cache, 1, 2), Ok(102));
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(101));
    assert_eq!(read(&mut set, &cache, 2, 1), doomed(CHANGED_1));
}

#[test]
fn a_stale_slot_is_never_served_from_the_held_image() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(101));
    cache.publish(&changes(20, 1, &[2], &[100, 101, 122]));
    cache.publish(&changes(30, 2, &[0], &[230, 201, 202]));
    // Page 2 moves the transaction to 30; slot 2 of page 1 as of 10 is past.
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(230));
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    assert_eq!(read(&mut set, &cache, 1, 2), Ok(122));
    assert_eq!(evidence(&mut set, &cache), Ok(30));
    // What was read before on the page is still watched after the change of images.
    cache.publish(&changes(31, 1, &[1], &[100, 131, 122]));
    assert_eq!(evidence(&mut set, &cache), Err(CHANGED_1));
}

#[test]
fn a_slot_changed_after_the_last_look_is_read_as_of_that_look() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(101));
    cache.publish(&changes(20, 1, &[2], &[100, 101, 122]));
    // Nothing else was read since: slot 2 as of 10 fits what was read at 10 ...
    assert_eq!(read(&mut set, &cache, 1, 2), Ok(102));
    // ... but it cannot commit: it has been changed.
    assert_eq!(evidence(&mut set, &cache), Err(CHANGED_1));
}

#[test]
fn a_stale_slot_of_a_page_that_is_gone_is_a_miss() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(101));
    let whole = Publish {
        touched: vec![(page(1), slots(&[2]))],
        images: vec![(page(1), None)],
        ..at(20)
    };
    cache.publish(&whole);
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    assert_eq!(read(&mut set, &cache, 1, 2), miss(1));
    cache.publish(&arrives(21, 1, image(20, &[100, 101, 122])));
    assert_eq!(read(&mut set, &cache, 1, 2), Ok(122));
    assert_eq!(evidence(&mut set, &cache), Ok(21));
}

#[test]
fn holes_and_absent_pages_are_misses_and_leave_no_trace() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 7, 0), miss(7));
    cache.publish(&changes(11, 1, &[1], &[100, 0, 102]));
    assert_eq!(read(&mut set, &cache, 1, 1), miss(1));
    assert_eq!(set.reads(HOME).count(), 0);
    assert_eq!(set.homes().count(), 0);
    // The hole is filled by a fetch: the same version, no change.
    cache.publish(&arrives(12, 1, image(11, &[100, 111, 102])));
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(111));
    assert_eq!(evidence(&mut set, &cache), Ok(12));
    assert_eq!(set.counted().misses, 2);
}

#[test]
fn a_hole_filled_in_a_held_page_keeps_and_checks_what_was_read() {
    let (cache, mut kept, mut lost) = (two_pages(), ReadSet::new(), ReadSet::new());
    cache.publish(&changes(11, 1, &[1], &[100, 0, 102]));
    assert_eq!(read(&mut kept, &cache, 1, 0), Ok(100));
    assert_eq!(read(&mut lost, &cache, 1, 2), Ok(102));
    assert_eq!(read(&mut kept, &cache, 1, 1), miss(1));
    assert_eq!(read(&mut lost, &cache, 1, 1), miss(1));
    // While the page is on its way, slot 2 changes.
    cache.publish(&changes(12, 1, &[2], &[100, 0, 122]));
    cache.publish(&arrives(12, 1, image(12, &[100, 111, 122])));
    assert_eq!(read(&mut kept, &cache, 1, 1), Ok(111));
    assert_eq!(read(&mut lost, &cache, 1, 1), doomed(CHANGED_1));
    assert_eq!(
        kept.reads(HOME).collect::<Vec<_>>(),
        [(page(1), slots(&[0, 1]))]
    );
}

#[test]
fn a_change_that_the_image_tells_of_already_dooms_nobody() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    cache.publish(&arrives(20, 3, image(20, &[320])));
    assert_eq!(read(&mut set, &cache, 3, 0), Ok(320));
    // The commit at 20 is told once more, for instance to a watcher.
    let again = Publish {
        touched: vec![(page(3), slots(&[0]))],
        ..at(20)
    };
    cache.publish(&again);
    assert_eq!(evidence(&mut set, &cache), Ok(20));
}

#[test]
fn evidence_follows_the_position_and_nothing_read_needs_none() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(evidence(&mut set, &cache), Ok(10));
    assert_eq!(set.evidence(&cache, HomeId(9)), Ok(Position(0)));
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    cache.publish(&at(50));
    assert_eq!(evidence(&mut set, &cache), Ok(50));
}

#[test]
fn a_broken_stream_dooms_who_read_what_changed_and_nobody_else() {
    let (cache, mut set, mut fresh) = (two_pages(), ReadSet::new(), ReadSet::new());
    let (mut idle, mut held) = (ReadSet::new(), ReadSet::new());
    let mut other_page = ReadSet::new();
    let far = |page| Place {
        home: HomeId(2),
        page,
    };
    let other = Publish {
        home: HomeId(2),
        ..arrives(5, 1, image(5, &[7]))
    };
    cache.publish(&other);
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    assert_eq!(read(&mut held, &cache, 1, 0), Ok(100));
    assert_eq!(read(&mut idle, &cache, 1, 0), Ok(100));
    idle.finish(&cache);
    assert!(fresh.read(&cache, far(page(1)), Slot(0)).is_ok());
    assert_eq!(read(&mut other_page, &cache, 2, 0), Ok(200));
    let broken = Publish {
        images: vec![(page(1), None)],
        missed: Some(vec![page(1)]),
        ..at(18)
    };
    cache.publish(&broken);
    assert_eq!(evidence(&mut set, &cache), Err(Doomed::Changed(place(1))));
    assert_eq!(read(&mut held, &cache, 1, 1), Ok(101)); // Still its one state.
    let changed = doomed(Doomed::Changed(place(1)));
    assert_eq!(read(&mut held, &cache, 2, 0), changed);
    assert_eq!(evidence(&mut other_page, &cache), Ok(18));
    assert_eq!(evidence(&mut idle, &cache), Ok(18));
    assert_eq!(read(&mut idle, &cache, 2, 0), Ok(200));
    assert_eq!(read(&mut fresh, &cache, 1, 0), miss(1));
    assert_eq!(read(&mut fresh, &cache, 2, 0), Ok(200));
    assert_eq!(evidence(&mut fresh, &cache), Ok(18));
    assert_eq!(fresh.evidence(&cache, HomeId(2)), Ok(Position(5)));
    assert_eq!(cache.pages(), 2);
}

/// Rule R9.
#[test]
fn what_was_read_at_a_home_that_went_back_is_doomed_and_the_cache_begins_anew() {
    let (cache, mut set, mut reader) = (two_pages(), ReadSet::new(), ReadSet::new());
    let (mut idle, mut fresh, mut behind) = (ReadSet::new(), ReadSet::new(), ReadSet::new());
    reader.only_reads();
    behind.only_reads();
    for set in [&mut set, &mut reader, &mut idle, &mut behind] {
        assert_eq!(read(set, &cache, 1, 0), Ok(100));
    }
    idle.finish(&cache);
    cache.publish(&changes(11, 1, &[0], &[110]));
    assert_eq!(evidence(&mut behind, &cache), Ok(10));
    let watching = cache.now(HOME);
    let gone = Publish {
        images: vec![(page(1), None), (page(2), None)],
        missed: Some(Vec::new()),
        history: 1,
        ..at(4)
    };
    cache.publish(&gone);
    assert_eq!((cache.position(HOME), cache.pages()), (Position(4), 0));
    assert_eq!(cache.bytes(), 0, "also of old images");
    let went_back = Err(Doomed::WentBack(HOME));
    for set in [&mut set, &mut reader, &mut behind] {
        assert_eq!(evidence(set, &cache), went_back);
        assert_eq!(read(set, &cache, 2, 0), doomed(Doomed::WentBack(HOME)));
        set.finish(&cache);
    }
    let heard = cache.changes_since(HOME, watching);
    assert!(heard.lost && heard.went_back);
    assert!(!cache.changes_since(HOME, heard.cursor).went_back);
    // Whoever begins now sees the home as it is, also in a set that was used before.
    assert_eq!(cache.history(HOME), 1);
    let later = Publish {
        history: 1,
        ..arrives(5, 1, image(5, &[7]))
    };
    cache.publish(&later);
    for set in [&mut set, &mut idle, &mut fresh] {
        assert_eq!(read(set, &cache, 1, 0), Ok(7));
        assert_eq!(evidence(set, &cache), Ok(5));
    }
}

#[test]
fn what_is_no_longer_remembered_counts_as_changed() {
    let (cache, mut early, mut idle) = (two_pages(), ReadSet::new(), ReadSet::new());
    assert_eq!(read(&mut early, &cache, 1, 0), Ok(100));
    assert_eq!(read(&mut idle, &cache, 1, 0), Ok(100));
    idle.finish(&cache);
    let mut late = ReadSet::new();
    for n in 0..64 {
        if n == 1 {
            assert_eq!(read(&mut late, &cache, 1, 0), Ok(100));
        }
        cache.publish(&changes(11 + n, 2, &[0], &[n + 1]));
    }
    assert_eq!(evidence(&mut late, &cache), Ok(74));
    assert_eq!(evidence(&mut early, &cache), Err(Doomed::Outrun(HOME)));
    assert_eq!(read(&mut idle, &cache, 2, 0), Ok(64));
    assert_eq!(evidence(&mut idle, &cache), Ok(74));
}

#[test]
fn the_cache_tells_where_it_stands() {
    let cache = Cache::new(1000);
    assert!(!cache.home_known(HOME));
    assert_eq!(cache.position(HOME), Position(0));
    assert_eq!(cache.heard(HOME), None);
    let mut set = ReadSet::new();
    assert_eq!(read(&mut set, &cache, 1, 0), miss(1));
    cache.publish(&at(3));
    assert!(cache.home_known(HOME));
    let standing = cache.standing(HOME).expect("known");
    assert_eq!(standing.position, Position(3));
    assert_eq!(cache.watermark(HOME), stamp(3));
    assert_eq!(cache.heard(HOME).map(|heard| heard.0), Some(3));
}

#[test]
fn counts_reach_the_cache_when_a_transaction_ends() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    for _ in 0..3 {
        assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    }
    assert_eq!(read(&mut set, &cache, 9, 0), miss(9));
    cache.publish(&changes(11, 1, &[0], &[110]));
    assert!(evidence(&mut set, &cache).is_err());
    assert!(evidence(&mut set, &cache).is_err());
    assert_eq!(cache.totals().reads, 0);
    set.finish(&cache);
    let totals = cache.totals();
    assert_eq!((totals.reads, totals.misses, totals.doomed), (3, 1, 1));
}

#[test]
fn an_image_handed_out_outlives_the_transaction() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    let held = set.image(place(1)).cloned().expect("read");
    set.finish(&cache);
    cache.publish(&evicts(11, 1));
    assert_eq!(held.content(Slot(0)), Content::Value(&100u64.to_le_bytes()));
    assert!(set.image(place(1)).is_none());
}
