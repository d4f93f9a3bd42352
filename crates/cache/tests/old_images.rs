//! Transactions that only read go on as of before what changes beneath them (rule 5).

mod common;

use common::*;
use thorp_cache::limits::{OLD_PART, OLD_PER_PAGE_MAX};
use thorp_cache::{Cache, Doomed, ReadSet};
use thorp_model::{CommitId, MemberId, Publish, SlotSet};

/// One that only reads, and has read slot 0 of page 1.
fn reader(cache: &Cache) -> ReadSet {
    let mut set = ReadSet::new();
    set.only_reads();
    assert_eq!(read(&mut set, cache, 1, 0), Ok(100));
    set
}

/// Pages that changed while the stream was broken.
fn broken(position: u64, missed: &[u32]) -> Publish {
    Publish {
        images: missed.iter().map(|number| (page(*number), None)).collect(),
        missed: Some(missed.iter().map(|number| page(*number)).collect()),
        ..at(position)
    }
}

#[test]
fn what_changed_is_read_as_it_was() {
    let cache = two_pages();
    let mut set = reader(&cache);
    cache.publish(&changes(11, 2, &[1], &[200, 1, 202]));
    cache.publish(&changes(12, 1, &[0, 1], &[2, 2, 102]));
    cache.publish(&changes(13, 2, &[0], &[3, 1, 202]));
    // 11 came before the change that it stands before.
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    assert_eq!(read(&mut set, &cache, 2, 1), Ok(1));
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(101));
    assert_eq!(evidence(&mut set, &cache), Ok(11));
    assert_eq!(set.behind(), Some(place(1)));
    assert!(set.is_frozen(HOME));
    let read_point = set.read_point(&cache, HOME).unwrap();
    assert_eq!(
        (read_point.stamp, read_point.watermark),
        (stamp(11), stamp(11))
    );
    let counted = set.counted();
    assert_eq!((counted.doomed, counted.behind), (0, 1));
    assert_eq!(counted.old_images, 1, "page 1 is still held");
    set.finish(&cache);
    assert_eq!(cache.totals().behind, 1);
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(3));
}

#[test]
fn whoever_does_not_say_that_it_only_reads_is_doomed() {
    let cache = two_pages();
    let mut set = reader(&cache);
    set.finish(&cache);
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(100));
    cache.publish(&changes(11, 1, &[0], &[1, 101, 102]));
    let changed = Doomed::Changed(place(1));
    assert_eq!(read(&mut set, &cache, 2, 0), doomed(changed));
}

#[test]
fn it_writes_only_before_it_has_read_behind_a_change() {
    let cache = two_pages();
    let mut set = reader(&cache);
    cache.publish(&changes(11, 2, &[0], &[1, 201, 202]));
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(1));
    assert_eq!(set.writes(), Ok(()));
    cache.publish(&changes(12, 1, &[0], &[2, 101, 102]));
    assert_eq!(evidence(&mut set, &cache), Err(Doomed::Changed(place(1))));
    set.finish(&cache);

    set.only_reads();
    assert_eq!(read(&mut set, &cache, 1, 0), Ok(2));
    cache.publish(&changes(13, 1, &[0], &[3, 101, 102]));
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(1));
    assert_eq!(set.writes(), Err(Doomed::Behind(place(1))));
    assert_eq!(
        read(&mut set, &cache, 2, 0),
        doomed(Doomed::Behind(place(1)))
    );
}

#[test]
fn an_invalidated_page_is_read_as_it_was() {
    let cache = two_pages();
    let mut set = reader(&cache);
    cache.publish(&changes(11, 1, &[0], &[0, 101, 102]));
    cache.publish(&changes(12, 2, &[0], &[0, 201, 202]));
    let dropped = Publish {
        touched: vec![(page(2), SlotSet::ALL)],
        images: vec![(page(2), None)],
        ..at(13)
    };
    cache.publish(&dropped);
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    assert_eq!(evidence(&mut set, &cache), Ok(10));
    // Of a hole nothing is known, now or then.
    let mut late = ReadSet::new();
    late.only_reads();
    assert_eq!(read(&mut late, &cache, 1, 1), Ok(101));
    assert_eq!(read(&mut late, &cache, 1, 0), miss(1));
    cache.publish(&changes(14, 1, &[1], &[0, 1, 102]));
    assert_eq!(
        read(&mut late, &cache, 1, 0),
        doomed(Doomed::Newer(place(1)))
    );
}

#[test]
fn an_evicted_page_freezes_and_others_are_read_as_they_were_then() {
    let cache = two_pages();
    let mut set = reader(&cache);
    cache.publish(&evicts(10, 1));
    cache.publish(&changes(11, 2, &[0], &[1, 201, 202]));
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    assert_eq!(evidence(&mut set, &cache), Ok(10));
    assert_eq!(set.writes(), Err(Doomed::Behind(place(2))));
}

#[test]
fn what_was_missed_is_right_up_to_where_the_stream_broke() {
    let cache = two_pages();
    let mut set = reader(&cache);
    let mut other = ReadSet::new();
    other.only_reads();
    assert_eq!(read(&mut other, &cache, 2, 2), Ok(202));
    cache.publish(&at(12));
    cache.publish(&broken(20, &[1]));
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(101));
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    assert_eq!(
        evidence(&mut set, &cache),
        Ok(12),
        "not 19: it changed anywhere between"
    );
    // It goes on with the stream, so what is not there is to be fetched.
    assert_eq!(read(&mut other, &cache, 1, 0), miss(1));
    // What was not missed and changes later has its old image as ever.
    cache.publish(&changes(21, 2, &[2], &[200, 201, 1]));
    assert_eq!(evidence(&mut other, &cache), Ok(20));
    // A page that changed meanwhile, at a position that is not known, comes back.
    cache.publish(&arrives(21, 1, image(15, &[1, 101, 102])));
    cache.publish(&changes(22, 1, &[1], &[1, 1, 102]));
    assert_eq!(read(&mut other, &cache, 1, 0), Ok(1));
    assert_eq!(read(&mut set, &cache, 1, 2), Ok(102));
    assert_eq!(
        (evidence(&mut other, &cache), evidence(&mut set, &cache)),
        (Ok(20), Ok(12))
    );
}

#[test]
fn an_own_value_before_its_place_is_shown_to_nobody_behind() {
    let commit = CommitId {
        member: MemberId::default(),
        sequence: 1,
    };
    let cache = two_pages();
    let mut set = reader(&cache);
    let mut shown = arrives(10, 2, image(10, &[1, 201, 202]));
    shown.overlay.shown = vec![(page(2), slots(&[0]))];
    shown.overlay.values = vec![(page(2), slots(&[0]), commit)];
    cache.publish(&shown);
    let mut own = ReadSet::new();
    own.only_reads();
    assert_eq!(read(&mut own, &cache, 1, 1), Ok(101));
    assert_eq!(read(&mut own, &cache, 2, 0), Ok(1));
    cache.publish(&changes(11, 1, &[0, 1], &[2, 2, 102]));
    // Behind 11 nobody knows what is below the own value.
    assert_eq!(
        read(&mut set, &cache, 2, 1),
        doomed(Doomed::Newer(place(2)))
    );
    // Who has read it stands with what comes, or not at all.
    assert_eq!(evidence(&mut own, &cache), Err(Doomed::Changed(place(1))));
    // When it is delivered, what was shown is not kept as an image of before.
    let mut late = ReadSet::new();
    late.only_reads();
    assert_eq!(read(&mut late, &cache, 1, 0), Ok(2));
    let mut delivered = changes(12, 2, &[0], &[1, 201, 202]);
    delivered.overlay.delivered = vec![(page(2), slots(&[0]))];
    cache.publish(&delivered);
    cache.publish(&changes(13, 1, &[0], &[3, 2, 102]));
    assert_eq!(read(&mut late, &cache, 2, 0), Ok(1));
    assert_eq!(evidence(&mut late, &cache), Ok(12));
}

#[test]
fn old_images_are_kept_while_somebody_may_ask() {
    let cache = two_pages();
    let mut set = reader(&cache);
    cache.publish(&changes(11, 2, &[0], &[1, 201, 202]));
    cache.publish(&changes(12, 2, &[0], &[2, 201, 202]));
    let one = cache.old_bytes() / 2;
    assert!(one > 0 && cache.bytes() > cache.old_bytes());
    assert_eq!(cache.pages(), 2, "they are no pages");
    // It has looked, and stands at 12 now.
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(2));
    cache.publish(&at(12));
    assert_eq!(cache.old_bytes(), 0);
    // It stands still at 12: what is later is not for it, once it has looked.
    cache.publish(&changes(13, 1, &[0], &[3, 101, 102]));
    assert_eq!(evidence(&mut set, &cache), Ok(12));
    for position in 14..20 {
        cache.publish(&changes(position, 2, &[0], &[position, 201, 202]));
    }
    cache.publish(&at(20));
    assert_eq!(read(&mut set, &cache, 2, 1), Ok(201));
    assert!(cache.old_bytes() >= 2 * one);
    set.finish(&cache);
    cache.publish(&at(20));
    assert_eq!(cache.old_bytes(), 0);
    // A transaction that is dropped, or writes, asks for none.
    let dropped = reader_of(&cache, 3);
    let mut writer = reader_of(&cache, 3);
    writer.writes().unwrap();
    drop(dropped);
    cache.publish(&changes(21, 2, &[0], &[1, 201, 202]));
    cache.publish(&at(21));
    assert_eq!(cache.old_bytes(), 0);
}

fn reader_of(cache: &Cache, value: u64) -> ReadSet {
    let mut set = ReadSet::new();
    set.only_reads();
    assert_eq!(read(&mut set, cache, 1, 0), Ok(value));
    set
}

#[test]
fn at_the_limit_the_oldest_goes_and_dooms() {
    let bytes_max = 40 * 1024;
    let cache = Cache::new(bytes_max);
    for number in 1..=30 {
        cache.publish(&arrives(10, number, image(10, &[u64::from(number), 1, 2])));
    }
    let mut first = reader_of(&cache, 1);
    let mut last = reader_of(&cache, 1);
    cache.publish(&changes(11, 1, &[0], &[9, 1, 2]));
    assert_eq!(evidence(&mut first, &cache), Ok(10));
    assert_eq!(evidence(&mut last, &cache), Ok(10));
    for number in 2..=30 {
        cache.publish(&changes(10 + u64::from(number), number, &[0], &[9, 1, 2]));
        assert!(cache.old_bytes() <= bytes_max / OLD_PART);
    }
    assert!(cache.old_bytes() > bytes_max / OLD_PART / 2);
    assert_eq!(
        read(&mut first, &cache, 2, 0),
        doomed(Doomed::Newer(place(2)))
    );
    assert_eq!(read(&mut last, &cache, 30, 0), Ok(30));
    assert_eq!(evidence(&mut last, &cache), Ok(10));
}

#[test]
fn of_one_page_only_so_many_are_kept() {
    let cache = two_pages();
    let mut set = reader(&cache);
    let changed = 2 * OLD_PER_PAGE_MAX as u64;
    cache.publish(&changes(11, 2, &[0], &[11, 201, 202]));
    let one = cache.old_bytes();
    for position in 12..12 + changed {
        cache.publish(&changes(position, 2, &[0], &[position, 201, 202]));
    }
    assert_eq!(cache.old_bytes(), OLD_PER_PAGE_MAX * one);
    set.finish(&cache);
    cache.publish(&at(12 + changed));
    assert_eq!(cache.old_bytes(), 0);
}

#[test]
fn what_a_reader_that_stands_still_needs_goes_last() {
    let cache = two_pages();
    let mut set = reader(&cache);
    cache.publish(&changes(11, 1, &[0], &[1, 101, 102]));
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(101));
    assert_eq!(evidence(&mut set, &cache), Ok(10));
    for position in 12..12 + 3 * OLD_PER_PAGE_MAX as u64 {
        cache.publish(&changes(position, 2, &[0], &[position, 201, 202]));
    }
    assert_eq!(read(&mut set, &cache, 2, 0), Ok(200));
    assert_eq!(evidence(&mut set, &cache), Ok(10));
}

#[test]
fn the_outrun_stand_where_they_looked_last() {
    let cache = two_pages();
    let mut set = reader(&cache);
    let mut other = reader(&cache);
    for position in 11..200 {
        cache.publish(&changes(position, 2, &[0], &[position, 201, 202]));
    }
    // More than is remembered: it may have been anything.
    assert_eq!(read(&mut set, &cache, 1, 1), Ok(101));
    assert_eq!(evidence(&mut set, &cache), Ok(10));
    assert_eq!(set.behind(), Some(place(1)));
    // Of page 2 not all is kept.
    let newer = Doomed::Newer(place(2));
    assert_eq!(read(&mut other, &cache, 2, 0), doomed(newer));
}

#[test]
fn a_tiny_cache_keeps_none() {
    let cache = Cache::new(0);
    cache.publish(&arrives(10, 1, image(10, &[100])));
    let mut set = reader(&cache);
    cache.publish(&changes(11, 1, &[0], &[1]));
    assert_eq!((cache.old_bytes(), evidence(&mut set, &cache)), (0, Ok(10)));
}
