//! Lists of reads come back, whatever is no list is refused, and how long they are.

use super::*;
use crate::codec;
use crate::ids::{CommitId, HomeId, MemberId, Position, Registration, Slot, Stamp};
use crate::limits::{COMMIT_BYTES_MAX, FRAME_BYTES_MAX, PAGE_READ_BYTES, SLOTS_MAX};
use crate::message::{CommitRequest, Message, PageWrites, Part, Up};
use crate::random::Xoshiro256;
use alloc::vec;

type List = Vec<(PageId, SlotSet)>;

/// What the list took before it had a form of its own: the words of each set, the last ones only if
/// they have slots.
fn bytes_as_words(reads: &List) -> usize {
    postcard::to_allocvec(reads).expect("it encodes").len()
}

fn bytes_as_read(reads: &List) -> usize {
    let bytes = written(reads);
    assert_eq!(read(&bytes).as_ref(), Some(reads));
    bytes.len()
}

fn pages_of(pages: u32, mut slots: impl FnMut(u32) -> SlotSet) -> List {
    let pages = (1..=pages).map(|page| (PageId::new(1, page), slots(page)));
    pages.collect()
}

/// Ten to twenty slots of a page with some eighty objects, in short runs with gaps: what belongs
/// together was made together.
fn in_runs(dice: &mut Xoshiro256) -> SlotSet {
    let mut left = 10 + dice.below(11) as u16;
    let mut at = dice.below(20) as u16;
    let mut set = SlotSet::default();
    while left > 0 {
        let run = (3 + dice.below(6) as u16).min(left);
        set.extend((at..at + run).map(Slot).collect());
        at += run + 1 + dice.below(20) as u16;
        left -= run;
    }
    set
}

fn scattered(dice: &mut Xoshiro256, slots: u64, within: u64) -> SlotSet {
    let mut set = SlotSet::default();
    while (set.iter().count() as u64) < slots {
        set.insert(Slot(dice.below(within) as u16));
    }
    set
}

#[test]
fn a_page_of_a_traversal_takes_five_bytes() {
    let mut dice = Xoshiro256::new(1);
    let runs = pages_of(400, |_| in_runs(&mut dice));
    let one = pages_of(400, |page| SlotSet::of(Slot(page as u16 % 80)));
    let random = pages_of(400, |_| scattered(&mut dice, 15, 80));
    let measured = [runs, one, random].map(|list| (bytes_as_words(&list), bytes_as_read(&list)));
    assert_eq!(measured, [(4378, 2086), (3315, 1021), (5922, 4631)]);
}

/// Few or many slots, near the beginning or anywhere.
fn any_set(dice: &mut Xoshiro256) -> SlotSet {
    let within = dice.below(u64::from(SLOTS_MAX)) as u16 + 1;
    let one_in = dice.below(12) + 1;
    let slots = (0..within).filter(|_| dice.below(one_in) == 0);
    let mut set: SlotSet = slots.map(Slot).collect();
    set.insert(Slot(within - 1));
    set
}

/// Pages near each other and far away, in segments near each other and far away.
fn any_list(dice: &mut Xoshiro256) -> List {
    let far = |dice: &mut Xoshiro256| dice.below(1 << 32) as u32;
    let mut pages = BTreeMap::new();
    for _ in 0..dice.below(40) {
        let (segment, page) = match dice.below(10) {
            0 => (far(dice), far(dice)),
            1 => (dice.below(4) as u32, far(dice)),
            2 => (u32::MAX, u32::MAX),
            _ => (dice.below(3) as u32, dice.below(300) as u32),
        };
        pages.insert(PageId::new(segment, page), any_set(dice));
    }
    pages.into_iter().collect()
}

#[test]
fn every_list_comes_back() {
    let mut dice = Xoshiro256::new(2);
    for _ in 0..1_000 {
        let list = any_list(&mut dice);
        assert_eq!(read(&written(&list)), Some(list));
    }
}

#[test]
fn a_request_comes_back_with_what_follows_its_reads() {
    let mut dice = Xoshiro256::new(5);
    for sequence in 1..100 {
        let member = MemberId(7);
        let request = CommitRequest {
            id: CommitId { member, sequence },
            registration: Registration(1),
            part: Part {
                home: HomeId(1),
                evidence: Position(300),
                reads: any_list(&mut dice),
                writes: vec![PageWrites {
                    page: PageId::new(1, 2),
                    slots: vec![],
                }],
                under: None,
            },
            with: vec![],
            depends_on: vec![],
            after: Stamp::default(),
        };
        let message = Message::Up(Up::Commit(request));
        let bytes = codec::encode(&message).expect("it encodes");
        assert_eq!(codec::decode(&bytes), Ok(message));
    }
}

#[test]
fn whatever_is_read_is_written_so() {
    let mut dice = Xoshiro256::new(3);
    let mut lists = 0;
    for _ in 0..30_000 {
        let length = dice.below(10);
        let bytes: Vec<u8> = (0..length).map(|_| dice.below(256) as u8).collect();
        if let Some(list) = read(&bytes) {
            lists += 1;
            assert_eq!(written(&list), bytes);
        }
    }
    assert!(lists > 200, "{lists} of them are lists");
}

#[test]
fn what_is_changed_on_its_way_is_another_list_or_none() {
    let mut dice = Xoshiro256::new(4);
    for _ in 0..1_000 {
        let list = any_list(&mut dice);
        let mut bytes = written(&list);
        if bytes.is_empty() {
            continue;
        }
        let at = dice.below(bytes.len() as u64) as usize;
        match dice.below(3) {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << dice.below(8),
            _ => bytes.push(dice.below(256) as u8),
        }
        let other = read(&bytes);
        assert_ne!(other, Some(list));
        if let Some(other) = other {
            assert!(other.windows(2).all(|pair| pair[0].0 < pair[1].0));
            assert_eq!(written(&other), bytes);
        }
    }
}

#[test]
fn what_is_out_of_order_is_put_in_order() {
    let (first, second) = (PageId::new(1, 1), PageId::new(1, 2));
    let of = |slot| SlotSet::of(Slot(slot));
    let list = vec![
        (second, of(3)),
        (PageId::new(2, 1), SlotSet::default()),
        (first, of(1)),
        (second, of(5)),
    ];
    let both = [Slot(3), Slot(5)].into_iter().collect();
    let ordered = vec![(first, of(1)), (second, both)];
    assert_eq!(read(&written(&list)), Some(ordered));
    assert_eq!(written(&[(first, SlotSet::default())]), []);
}

fn list_of(numbers: &[u32]) -> Option<List> {
    let mut out = Writer::default();
    numbers.iter().for_each(|number| out.put(*number));
    read(&out.finish())
}

#[test]
fn pages_go_up_and_not_beyond_the_last() {
    // Segment 1, its page 2, one run: slot 0.
    let first = [0, 1, 2, 1, 0, 0];
    let with = |more: &[u32]| list_of(&[&first, more].concat());
    assert_eq!(with(&[]).map(|list| list.len()), Some(1));
    assert_eq!(
        with(&[5, 1, 0, 0]).map(|list| list[1].0),
        Some(PageId::new(1, 7))
    );
    assert_eq!(
        with(&[0, 4, 1, 1, 0, 0]).map(|list| list[1].0),
        Some(PageId::new(5, 1))
    );
    assert_eq!(
        with(&[0, 0, 9, 1, 0, 0]),
        None,
        "the same segment once more"
    );
    assert_eq!(with(&[u32::MAX, 1, 0, 0]), None, "beyond the last page");
    assert_eq!(
        with(&[0, u32::MAX, 1, 1, 0, 0]),
        None,
        "beyond the last segment"
    );
    assert_eq!(list_of(&[1, 1, 0, 0]), None, "a step from nowhere");
    assert_eq!(with(&[5]), None, "a page without slots");
}

#[test]
fn no_bytes_come_to_more_pages_than_a_commit_may_read() {
    let pages = |count: usize| {
        let first = [0, 1, 0, 1, 0, 0];
        let others = core::iter::repeat_n([1, 1, 0, 0], count - 1).flatten();
        let mut out = Writer::default();
        first.into_iter().chain(others).for_each(|n| out.put(n));
        out.finish()
    };
    let most = pages(READ_PAGES_MAX);
    assert_eq!(read(&most).map(|list| list.len()), Some(READ_PAGES_MAX));
    assert!(most.len() < FRAME_BYTES_MAX / 16, "{} bytes", most.len());
    assert_eq!(read(&pages(READ_PAGES_MAX + 1)), None);
    assert!(READ_PAGES_MAX * size_of::<(PageId, SlotSet)>() <= COMMIT_BYTES_MAX);
}

#[test]
fn no_page_takes_more_than_it_is_charged() {
    let sparse = |page: u32| {
        let slots = (0..SLOTS_MAX).filter(|slot| u32::from(*slot) % 3 != page % 3);
        slots.map(Slot).collect::<SlotSet>()
    };
    // Each in a segment of its own, far from the one before, and late in it.
    let worst: List = (0..3)
        .map(|at| (PageId::new(at << 30, u32::MAX), sparse(at)))
        .collect();
    assert_eq!(bytes_as_read(&worst), 124);
    assert!(124 <= worst.len() * PAGE_READ_BYTES);
}
