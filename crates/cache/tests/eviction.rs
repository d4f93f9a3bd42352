//! Evictions: evidence that freezes, who is chosen, and what pages cost.

mod common;

use common::*;
use thorp_cache::{Cache, Cursor, Doomed, ReadSet};
use thorp_model::{
    CommitId, Draft, Generation, Image, ImageEdit, MemberId, Millis, OverlayUpdate, Place,
    Position, Publish, Slot, SlotSet,
};

#[test]
fn evidence_freezes_where_a_page_that_was_read_is_evicted() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    cache.publish(&evicts(12, 1));
    // Trap 1: page 1 changes at 13, and nothing is heard of it.
    cache.publish(&at(13));
    assert_eq!(evidence(&mut set, &cache), Ok(12));
    cache.publish(&at(14));
    assert_eq!(evidence(&mut set, &cache), Ok(12));
}

#[test]
fn frozen_evidence_grows_older_whatever_is_heard() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    cache.publish(&at(11));
    assert_eq!(evidence(&mut set, &cache), Ok(11));
    assert_eq!(set.heard(&cache, HOME), Some(Millis(11)));
    cache.publish(&evicts(12, 1));
    cache.publish(&at(1000));
    assert_eq!(evidence(&mut set, &cache), Ok(12));
    assert_eq!(set.heard(&cache, HOME), Some(Millis(12)));
    set.finish(&cache);
    assert_eq!(set.heard(&cache, HOME), Some(Millis(1000)));
}

#[test]
fn a_transaction_holds_so_many_images_and_its_evidence_is_whole() {
    let (cache, mut set) = (Cache::new(1 << 20), ReadSet::new());
    let large = || {
        let mut edit = ImageEdit::default();
        edit.set(Slot(0), Generation(1), Draft::Value(vec![7; 8000]));
        edit.finish(Position(10), stamp(10))
    };
    let pages = (1 << 20) / 8000 * 3;
    for number in 1..=pages {
        cache.publish(&arrives(10, number, large()));
        set.read(&cache, place(number), Slot(0))
            .expect("it is there");
        assert!(set.image(place(number)).is_some());
    }
    let held = (1..=pages).filter(|n| set.image(place(*n)).is_some());
    let held: Vec<u32> = held.collect();
    assert!(held.len() * 8000 <= 1 << 20 && held.len() * 9000 >= 1 << 20);
    assert_eq!(held.last(), Some(&pages));
    assert_eq!(set.reads(HOME).count(), pages as usize);
    assert_eq!(set.stamp(HOME), stamp(10));
    // What is read again is loaded again; what was read counts for ever.
    assert!(set.read(&cache, place(1), Slot(0)).is_ok());
    assert!(set.image(place(1)).is_some());
    assert_eq!(evidence(&mut set, &cache), Ok(10));
    cache.publish(&changes(11, 2, &[0], &[1]));
    assert_eq!(evidence(&mut set, &cache), Err(Doomed::Changed(place(2))));
}

#[test]
fn a_page_that_was_not_read_may_be_evicted() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    cache.publish(&evicts(12, 2));
    cache.publish(&at(13));
    assert_eq!(evidence(&mut set, &cache), Ok(13));
}

#[test]
fn a_page_held_but_not_read_freezes_nothing_and_serves_nothing() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    cache.publish(&changes(11, 1, &[1], &[100, 0, 102]));
    assert_eq!(read(&mut set, &cache, 1, 1), miss(1));
    cache.publish(&evicts(12, 1));
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    assert_eq!(read(&mut set, &cache, 1, 0), miss(1));
    cache.publish(&arrives(13, 1, image(13, &[130, 131, 132])));
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(130));
    assert_eq!(evidence(&mut set, &cache), Ok(13));
}

#[test]
fn the_frozen_read_what_is_old_enough_and_nothing_newer() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    cache.publish(&evicts(12, 1));
    cache.publish(&changes(13, 3, &[0], &[313]));
    // Unread slots of the held image are as of 12 too.
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(101));
    assert_eq!(evidence(&mut set, &cache), Ok(12));
    assert_eq!(
        read(&mut set, &cache, 3, 0),
        doomed(Doomed::Newer(place(3)))
    );
    assert_eq!(evidence(&mut set, &cache), Err(Doomed::Newer(place(3))));
}

#[test]
fn the_frozen_read_no_own_value_before_its_place() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    cache.publish(&evicts(12, 1));
    assert_eq!(evidence(&mut set, &cache), Ok(12));
    // A commit of this member changes both pages: what was read of the first is not current with it.
    let commit = CommitId {
        member: MemberId(7),
        sequence: 1,
    };
    let own = OverlayUpdate {
        shown: vec![(page(1), slots(&[0])), (page(2), slots(&[0]))],
        values: vec![(page(2), slots(&[0]), commit)],
        ..OverlayUpdate::default()
    };
    cache.publish(&Publish {
        overlay: own,
        ..arrives(12, 2, image(10, &[222, 201, 202]))
    });
    assert_eq!(
        read(&mut set, &cache, 2, 0),
        doomed(Doomed::Newer(place(2)))
    );
    // Whoever begins now reads it, and names the commit.
    let mut fresh = ReadSet::new();
    assert_eq!(read(&mut fresh, &cache, 2, 0), Ok(222));
    assert_eq!(fresh.built_on(), [(HOME, commit)]);
}

#[test]
fn the_frozen_take_no_notice_of_later_changes() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    cache.publish(&evicts(12, 1));
    // Both at once are found, in order: the change came after the freeze.
    cache.publish(&changes(13, 2, &[0, 1], &[213, 214, 202]));
    assert_eq!(evidence(&mut set, &cache), Ok(12));
    assert_eq!(read(&mut set, &cache, 2, 1), Ok(201)); // As of 12.
    assert_eq!(evidence(&mut set, &cache), Ok(12));
}

#[test]
fn a_change_before_the_eviction_dooms() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    cache.publish(&changes(11, 2, &[0], &[211]));
    cache.publish(&evicts(11, 1));
    assert_eq!(evidence(&mut set, &cache), Err(Doomed::Changed(place(2))));
}

#[test]
fn a_slot_changed_before_the_eviction_is_stale_after_it() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    cache.publish(&changes(11, 2, &[1], &[200, 211, 202]));
    cache.publish(&evicts(12, 1));
    assert_eq!(evidence(&mut set, &cache), Ok(12));
    assert_eq!(read(&mut set, &cache, 2, 1), Ok(211));
    cache.publish(&changes(13, 2, &[2], &[200, 211, 213]));
    // The image in the cache is of 13 now, the one held of 11: it serves as of 12.
    assert_eq!(read(&mut set, &cache, 2, 2), Ok(202));
    assert_eq!(evidence(&mut set, &cache), Ok(12));
}

#[test]
fn fetching_an_evicted_page_again_thaws_nothing() {
    let (cache, mut set, mut fresh) = (two_pages(), ReadSet::new(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    cache.publish(&evicts(12, 1));
    cache.publish(&arrives(14, 1, image(13, &[130])));
    cache.publish(&at(15));
    assert_eq!(evidence(&mut set, &cache), Ok(12));
    assert_eq!(read(&mut fresh, &cache, 1, 0), Ok(130));
    assert_eq!(evidence(&mut fresh, &cache), Ok(15));
}

#[test]
fn a_page_evicted_before_it_was_read_freezes_nothing() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    // Evicted and back before the transaction looks up.
    cache.publish(&evicts(12, 1));
    cache.publish(&arrives(13, 1, image(10, &[100])));
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    cache.publish(&at(14));
    assert_eq!(evidence(&mut set, &cache), Ok(14));
}

#[test]
fn the_frozen_are_not_outrun() {
    let (cache, mut set) = (two_pages(), ReadSet::new());
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    cache.publish(&evicts(12, 1));
    assert_eq!(evidence(&mut set, &cache), Ok(12));
    for n in 13..200 {
        cache.publish(&changes(n, 2, &[0], &[n]));
    }
    assert_eq!(evidence(&mut set, &cache), Ok(12));
    // Nor does a broken stream reach them: what they read was right where they stand.
    let broken = Publish {
        images: vec![(page(2), None)],
        missed: Some(vec![page(2)]),
        ..at(200)
    };
    cache.publish(&broken);
    assert_eq!(evidence(&mut set, &cache), Ok(12));
}

fn full() -> (Cache, Vec<Image>) {
    let cache = Cache::new(500);
    let images: Vec<Image> = (0..10).map(|n| image(1, &[n + 1; 3])).collect();
    for (number, image) in images.iter().enumerate() {
        cache.publish(&arrives(1, number as u32, image.clone()));
    }
    (cache, images)
}

fn numbers(victims: &[Place]) -> Vec<u32> {
    victims.iter().map(|place| place.page.page.0).collect()
}

#[test]
fn pages_used_since_the_hand_passed_get_a_second_chance() {
    let (cache, _member) = full();
    let each = cache.bytes() / 10;
    assert_eq!(cache.excess(), cache.bytes() - 500);
    assert!(cache.victims(0, false).is_empty());
    // All are new: the first round takes their marks away.
    assert_eq!(numbers(&cache.victims(each, false)), [0]);
    let mut set = ReadSet::new();
    for number in [1, 3] {
        assert!(read(&mut set, &cache, number, 0).is_ok());
    }
    set.finish(&cache);
    assert_eq!(numbers(&cache.victims(3 * each, false)), [2, 4, 5]);
    assert_eq!(cache.victims(usize::MAX, false).len(), 10);
}

#[test]
fn pages_of_running_transactions_are_spared_unless_forced() {
    let (cache, _member) = full();
    let mut set = ReadSet::new();
    for number in [0, 4] {
        assert!(read(&mut set, &cache, number, 0).is_ok());
    }
    let chosen = cache.choose(usize::MAX, false);
    assert_eq!(chosen.spared, cache.bytes() / 10 * 2);
    let victims = chosen.pages;
    assert_eq!(victims.len(), 8);
    assert!(!victims.contains(&place(0)) && !victims.contains(&place(4)));
    assert_eq!(cache.victims(usize::MAX, true).len(), 10);
    set.finish(&cache);
    assert_eq!(cache.victims(usize::MAX, false).len(), 10);
}

#[test]
fn bytes_and_pages_are_counted_through_all_that_happens() {
    let (cache, _member) = full();
    let (bytes, each) = (cache.bytes(), cache.bytes() / 10);
    assert_eq!(cache.pages(), 10);
    cache.publish(&evicts(2, 3));
    cache.publish(&evicts(2, 3));
    assert_eq!((cache.pages(), cache.bytes()), (9, bytes - each));
    cache.publish(&changes(3, 4, &[0], &[9, 9, 9]));
    assert_eq!((cache.pages(), cache.bytes()), (9, bytes - each));
    // A seat that became free is given again.
    cache.publish(&arrives(3, 77, image(1, &[7; 3])));
    assert_eq!((cache.pages(), cache.bytes()), (10, bytes));
    assert_eq!(cache.victims(usize::MAX, true).len(), 10);
    // The stream was broken, and all pages but one have changed.
    let gone: Vec<_> = [0, 1, 2, 4, 6, 7, 8, 9, 77].map(page).into();
    let broken = Publish {
        images: gone.iter().map(|page| (*page, None)).collect(),
        missed: Some(gone),
        ..at(4)
    };
    cache.publish(&broken);
    assert_eq!((cache.pages(), cache.bytes()), (1, each));
    assert_eq!(numbers(&cache.victims(usize::MAX, true)), [5]);
}

#[test]
fn an_eviction_alone_drops_the_page() {
    let (cache, _member) = full();
    let told = Publish {
        evicted: vec![page(1)],
        ..at(2)
    };
    cache.publish(&told);
    assert!(cache.image(place(1)).is_none());
    assert!(cache.image(place(2)).is_some());
}

#[test]
fn watchers_hear_of_whole_commits_and_of_what_they_missed() {
    let cache = Cache::remembering(1 << 20, 3);
    assert_eq!(
        cache.changes_since(HOME, Cursor::default()),
        Default::default()
    );
    cache.publish(&changes(1, 1, &[0], &[1]));
    cache.publish(&evicts(1, 1));
    let watched = Publish {
        touched: vec![(page(2), SlotSet::ALL)],
        ..at(2)
    };
    cache.publish(&watched);
    let heard = cache.changes_since(HOME, Cursor::default());
    let first = (Position(1), page(1), slots(&[0]));
    let second = (Position(2), page(2), SlotSet::ALL);
    assert_eq!(heard.touched, [first, second]);
    assert!(!heard.lost);
    assert_eq!(cache.now(HOME), heard.cursor);
    assert!(cache.changes_since(HOME, heard.cursor).touched.is_empty());
    for n in 3..8 {
        cache.publish(&changes(n, 1, &[0], &[n]));
    }
    let heard = cache.changes_since(HOME, heard.cursor);
    assert!(heard.lost);
    assert_eq!(heard.touched.len(), 3);
    let broken = Publish {
        missed: Some(Vec::new()),
        ..at(8)
    };
    cache.publish(&broken);
    let heard = cache.changes_since(HOME, heard.cursor);
    assert!(heard.lost && heard.touched.is_empty());
    assert!(!cache.changes_since(HOME, heard.cursor).lost);
}
