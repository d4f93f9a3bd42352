//! What is refused, so that nobody makes a home grow (rule 15), and that nothing
//! is told too early (rule 1).

use crate::home::tests::world::{World, create, inline, on, page, write};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use thorp_model::limits::{
    DEPENDS_ON_MAX, EXTENT_PAGES, INLINE_VALUE_BYTES_MAX, INSTALL_PAGES_MIN, MOB_FULL_TIMES,
    OVERFLOW_CHUNK_BYTES,
};
use thorp_model::{
    Blob, CallError, CallRequest, CallResponse, Content, FetchRefusal, FetchResult, Generation,
    InvalidCommit, NewValue, Note, Op, Overflow, PageId, PageNo, PageWrites, Position, Refusal,
    SegmentId, Slot, SlotSet, Table, WriteOp,
};

const SEGMENT: SegmentId = SegmentId(1);

fn all() -> SlotSet {
    SlotSet::of(Slot(0))
}

fn invalid(reason: InvalidCommit) -> Option<Result<(), Refusal>> {
    Some(Err(Refusal::Invalid { reason }))
}

fn overflow(number: u32) -> PageId {
    page(PageNo::OVERFLOW_FIRST.0 + number)
}

fn stage(world: &World, token: u64, bytes: u64, index: u32, chunks: &[usize]) -> CallRequest {
    let chunks = chunks.iter().map(|bytes| Blob::from(vec![b's'; *bytes]));
    CallRequest::Stage {
        segment: SEGMENT,
        registration: world.registration,
        token,
        bytes,
        index,
        chunks: chunks.collect(),
    }
}

fn staged(world: &mut World, token: u64) -> Overflow {
    let request = stage(world, token, 100, 0, &[100]);
    match world.called(request) {
        Ok(CallResponse::Staged(overflow)) => overflow,
        other => panic!("{other:?}"),
    }
}

/// Creates one object, so that there are positions to be below.
fn create_one(world: &mut World, at: PageId) {
    let id = world.commit(vec![], vec![on(at, vec![create(1, inline(8))])]);
    world.sync();
    assert_eq!(world.outcome(id), Some(Ok(())));
}

#[test]
fn pages_that_nobody_was_given_cannot_have_been_read() {
    let mut world = World::new(|config| config.changes_known_max = 1);
    create_one(&mut world, page(1));
    create_one(&mut world, page(2));
    let (pages, bytes) = (world.size("pages"), world.size("image_bytes"));
    for absent in [page(5_000), overflow(0)] {
        let request = world.request(Position(1), vec![(absent, all())], vec![]);
        let id = world.send(request);
        world.sync();
        assert_eq!(world.outcome(id), invalid(InvalidCommit::Malformed));
    }
    assert_eq!(world.size("pages"), pages);
    assert_eq!(world.size("image_bytes"), bytes);
}

#[test]
fn a_page_looked_for_before_it_was_staged_is_not_empty_for_ever() {
    let mut world = World::new(|config| config.changes_known_max = 1);
    create_one(&mut world, page(1));
    create_one(&mut world, page(2));
    let request = world.request(Position(1), vec![(overflow(0), all())], vec![]);
    world.send(request);
    world.sync();
    let value = staged(&mut world, 1);
    let create = create(2, NewValue::Staged(value));
    let id = world.commit(vec![], vec![on(page(1), vec![create])]);
    world.sync();
    assert_eq!(world.outcome(id), Some(Ok(())));
    let attempt = world.fetch(overflow(0));
    match world.fetched(attempt) {
        Some(FetchResult::Image(image)) => {
            assert!(matches!(image.content(Slot(0)), Content::Value(v) if v.len() == 100));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_absence_of_pages_is_weighed_and_given_up() {
    let mut world = World::new(|config| {
        config.changes_known_max = 1;
        config.cache_bytes = 4_000;
    });
    create_one(&mut world, page(1));
    create_one(&mut world, page(2));
    for _ in 0..10 {
        world
            .called(CallRequest::Reserve {
                segment: SEGMENT,
                pages: EXTENT_PAGES,
            })
            .expect("pages");
    }
    let reads = (3..10 * EXTENT_PAGES).map(|number| (page(number), all()));
    let request = world.request(Position(1), reads.collect(), vec![]);
    world.send(request);
    world.sync();
    assert!(world.size("image_bytes") <= 4_000);
    assert!(world.size("pages") < 20, "{}", world.size("pages"));
}

#[test]
fn a_vain_piece_takes_no_page_numbers() {
    let mut world = World::new(|_| {});
    let large = 1 << 30;
    let chunk = OVERFLOW_CHUNK_BYTES;
    for (index, chunks) in [(0, &[][..]), (1, &[]), (1, &[chunk])] {
        let request = stage(&world, 7, large, index, chunks);
        assert_eq!(world.called(request), Err(CallError::Invalid));
    }
    let first = staged(&mut world, 8).first;
    assert_eq!(first, PageNo::OVERFLOW_FIRST);
}

#[test]
fn one_staged_value_is_one_object() {
    let mut world = World::new(|_| {});
    let value = staged(&mut world, 1);
    let twice = [1, 2].map(|slot| create(slot, NewValue::Staged(value)));
    let id = world.commit(vec![], vec![on(page(1), twice.to_vec())]);
    world.sync();
    assert_eq!(world.outcome(id), invalid(InvalidCommit::NotStaged));
    // The refusal has taken the value with it.
    let value = staged(&mut world, 2);
    let once = create(1, NewValue::Staged(value));
    let id = world.commit(vec![], vec![on(page(1), vec![once])]);
    world.sync();
    assert_eq!(world.outcome(id), Some(Ok(())));
}

/// Page numbers can be guessed. Until what was staged is in the store, it would be read there as
/// nothing, and be kept so.
#[test]
fn what_is_being_staged_cannot_be_committed() {
    let mut world = World::new(|_| {});
    let before = staged(&mut world, 1);
    let guessed = Overflow {
        first: before.first.next(),
        ..before
    };
    let request = stage(&world, 2, 100, 0, &[100]);
    world.held = Some(Vec::new());
    world.call(request);
    let write = create(1, NewValue::Staged(guessed));
    let id = world.commit(vec![], vec![on(page(1), vec![write])]);
    let of_value = page(guessed.first.0);
    world.fetch(of_value);
    world.load(of_value);
    world.sync();
    assert_eq!(world.outcome(id), invalid(InvalidCommit::NotStaged));
    // What waits for its answer is committed, and read.
    world.held = None;
    let value = staged(&mut world, 3);
    let write = create(1, NewValue::Staged(value));
    let id = world.commit(vec![], vec![on(page(1), vec![write])]);
    world.sync();
    assert_eq!(world.outcome(id), Some(Ok(())));
    let asked = world.fetch(page(value.first.0));
    let Some(FetchResult::Image(image)) = world.fetched(asked) else {
        panic!("no image");
    };
    assert_eq!(image.content(Slot(0)), Content::Value(&[b's'; 100]));
}

/// Patches of objects that the home had spilled: a few bytes each, and whole values in the log.
#[test]
fn a_small_request_with_large_effects_is_too_large() {
    let mut world = World::new(|config| config.mob_bytes_high = 1 << 30);
    for _ in 0..=200 * 16 / EXTENT_PAGES / 10 {
        world
            .called(CallRequest::Reserve {
                segment: SEGMENT,
                pages: EXTENT_PAGES,
            })
            .expect("pages");
    }
    let pages = 1..=21;
    for number in pages.clone() {
        let objects = (1..=200).map(|slot| create(slot, inline(8_000)));
        let writes = vec![on(page(number), objects.collect())];
        let id = world.commit(vec![], writes);
        world.sync();
        assert_eq!(world.outcome(id), Some(Ok(())));
    }
    let patches = |count: u32| -> Vec<PageWrites> {
        let patch = |slot| {
            let (generation, bytes) = (Generation(1), Blob::from(&b"12345678"[..]));
            let offset = 0;
            let patch = WriteOp::Patch {
                generation,
                offset,
                bytes,
            };
            (Slot(slot), patch)
        };
        let pages = 1..=count;
        pages
            .map(|number| on(page(number), (1..=200).map(patch).collect()))
            .collect()
    };
    let request = world.request(world.home.durable(), vec![], patches(21));
    assert!(request.bytes() < 200_000);
    let id = world.send(request);
    assert!(world.unsynced_bytes() < 1_000);
    world.sync();
    assert_eq!(world.outcome(id), invalid(InvalidCommit::TooLarge));
    let id = world.commit(vec![], patches(2));
    world.sync();
    assert_eq!(world.outcome(id), Some(Ok(())));
}

#[test]
fn a_commit_builds_on_no_more_than_its_member_has_under_way() {
    let mut world = World::new(|_| {});
    let mut request = world.request(world.home.durable(), vec![], vec![]);
    request.depends_on = vec![request.id; DEPENDS_ON_MAX + 1];
    let id = world.send(request);
    world.sync();
    assert_eq!(world.outcome(id), invalid(InvalidCommit::TooLarge));
}

/// Eight bytes change, but an image of 8 KiB is kept until they are durable.
#[test]
fn images_kept_for_commits_that_are_not_durable_are_weighed() {
    let mut world = World::new(|config| config.pending_bytes_max = 100_000);
    let value = create(2, inline(7_000));
    let small = create(1, inline(8));
    let id = world.commit(vec![], vec![on(page(1), vec![small, value])]);
    world.sync();
    assert_eq!(world.outcome(id), Some(Ok(())));
    let mut last = id;
    for _ in 0..20 {
        last = world.commit(vec![], vec![on(page(1), vec![write(1, 8)])]);
    }
    assert!(matches!(
        world.outcome(last),
        Some(Err(Refusal::Busy { .. }))
    ));
    assert!(world.size("image_bytes") < 120_000);
    world.sync();
    assert_eq!(world.size("pending_bytes"), 0);
}

#[test]
fn long_answers_are_weighed_and_then_calls_are_told_busy() {
    let mut world = World::new(|config| config.pending_bytes_max = 20_000);
    let long = |n: usize| {
        let mut path = alloc::format!("{n:03}");
        path.extend(core::iter::repeat_n('p', 500));
        path
    };
    for n in 0..20 {
        let path = long(n);
        world
            .called(CallRequest::Open { path, create: true })
            .expect("a segment");
    }
    // Something that is not durable yet, for the answers to wait for.
    world.call(CallRequest::Reserve {
        segment: SEGMENT,
        pages: EXTENT_PAGES,
    });
    let list = || CallRequest::List {
        prefix: String::new(),
        after: String::new(),
    };
    let calls: Vec<_> = (0..50).map(|_| world.call(list())).collect();
    assert!(world.size("pending") < 6);
    assert!(world.size("pending_bytes") < 40_000);
    let path = long(1);
    let open = world.call(CallRequest::Open {
        path,
        create: false,
    });
    for call in [calls[49], open] {
        assert_eq!(world.answer(call), Some(Err(CallError::Busy)));
    }
    assert_eq!(world.answer(calls[0]), None);
    world.sync();
    assert!(matches!(world.answer(calls[0]), Some(Ok(_))));
    assert_eq!(world.size("pending_bytes"), 0);
}

/// The disk does one batch for every ten commits that come.
#[test]
fn the_mob_stays_bounded_when_installation_falls_behind() {
    let high = 100_000;
    let mut world = World::new(|config| config.mob_bytes_high = high);
    for _ in 0..8 {
        world
            .called(CallRequest::Reserve {
                segment: SEGMENT,
                pages: EXTENT_PAGES,
            })
            .expect("pages");
    }
    for number in 1..250 {
        create_one(&mut world, page(number));
        while world.sync_one() {}
    }
    let (mut most, mut busy, mut done) = (0, 0, 0);
    for round in 0_u32..2_000 {
        let number = 1 + round * 7 % 249;
        let id = world.commit(vec![], vec![on(page(number), vec![write(1, 4_000)])]);
        if matches!(world.outcome(id), Some(Err(Refusal::Busy { .. }))) {
            busy += 1;
        } else {
            done += 1;
        }
        most = most.max(world.size("mob_bytes"));
        if round % 10 == 0 {
            world.sync_one();
        }
    }
    assert!(most <= high * MOB_FULL_TIMES + INLINE_VALUE_BYTES_MAX);
    assert!(busy > 0 && done > 100, "{busy} were told busy, {done} not");
    world.sync();
    assert!(world.size("mob_bytes") < high);
}

/// A home that dies before a removal is durable has the segment again.
#[test]
fn a_removal_is_told_when_it_is_durable() {
    let mut world = World::new(|_| {});
    create_one(&mut world, page(1));
    world.call(CallRequest::Remove { segment: SEGMENT });
    let attempt = world.fetch(page(1));
    assert_eq!(world.fetched(attempt), None);
    world.sync();
    let gone = FetchResult::Refused(FetchRefusal::NoSuchSegment);
    assert_eq!(world.fetched(attempt), Some(gone));
}

/// Judged at each of its pages, it would take the square of their number.
#[test]
fn a_commit_that_waits_is_judged_again_when_all_its_pages_have_come() {
    let mut world = World::new(|config| {
        config.cache_bytes = 0;
        config.mob_bytes_high = 0;
    });
    let pages = 1..=20;
    for number in pages.clone() {
        create_one(&mut world, page(number));
    }
    world.notes.clear();
    world.held = Some(Vec::new());
    let writes = pages.map(|number| on(page(number), vec![write(1, 8)]));
    let id = world.commit(vec![], writes.collect());
    let held = world.held.take().expect("pages are held");
    assert_eq!(held.len(), 20);
    assert_eq!(world.size("parked"), 1);
    let (last, first) = held.split_last().expect("pages");
    for page in first {
        world.load(*page);
    }
    assert_eq!(world.size("parked"), 1);
    world.load(*last);
    assert_eq!(world.size("parked"), 0);
    assert_eq!(world.size("parked_bytes"), 0);
    world.sync();
    assert_eq!(world.outcome(id), Some(Ok(())));
    let parked = world
        .notes
        .iter()
        .filter(|note| **note == Note::CommitParked);
    assert_eq!(parked.count(), 1);
}

/// A batch of installation waits for all the commits before it: the more has to
/// be installed, the more goes at a time.
#[test]
fn an_installation_that_has_fallen_behind_takes_more_pages_at_a_time() {
    let mut world = World::new(|config| config.mob_bytes_high = 4_000);
    for _ in 0..8 {
        world
            .called(CallRequest::Reserve {
                segment: SEGMENT,
                pages: EXTENT_PAGES,
            })
            .expect("pages");
    }
    let mut number = 0;
    loop {
        number += 1;
        let id = world.commit(vec![], vec![on(page(number), vec![create(1, inline(8))])]);
        if world.outcome(id).is_some() {
            break;
        }
    }
    let mut most = 0;
    while let Some(batch) = world.next_batch() {
        let is_page = |op: &&Op| {
            matches!(
                op,
                Op::Put {
                    table: Table::Pages,
                    ..
                }
            )
        };
        most = most.max(batch.ops.iter().filter(is_page).count());
        world.sync_one();
    }
    assert!(most > INSTALL_PAGES_MIN, "{most} pages");
}

/// An installation may wait for space in the store for as long as there is none. What is told
/// meanwhile does not rest on it.
#[test]
fn a_strict_reader_does_not_wait_for_an_installation() {
    let mut world = World::new(|config| config.mob_bytes_high = 150);
    let first = vec![on(page(1), vec![create(0, inline(8))])];
    let id = world.commit(Vec::new(), first);
    while world.outcome(id).is_none() {
        assert!(world.sync_one());
    }
    let held = world.next_batch().expect("an installation");
    let is_image = |op: &Op| {
        matches!(
            op,
            Op::Put {
                table: Table::Pages,
                ..
            }
        )
    };
    assert!(held.ops.iter().any(is_image));
    let reader = world.commit(vec![(page(1), all())], Vec::new());
    assert_eq!(world.outcome(reader), Some(Ok(())));
    // What is accepted after it is not told before it.
    let second = vec![on(page(1), vec![write(0, 9)])];
    let writer = world.commit(Vec::new(), second);
    let late = world.commit(vec![(page(1), SlotSet::of(Slot(1)))], Vec::new());
    assert_eq!((world.outcome(writer), world.outcome(late)), (None, None));
    world.sync();
    assert_eq!(world.outcome(writer), Some(Ok(())));
    assert_eq!(world.outcome(late), Some(Ok(())));
}
