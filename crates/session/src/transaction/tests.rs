//! What a transaction finds, and what it concludes from what it did.

use super::*;
use crate::fixture::*;
use thorp_cache::Doomed;
use thorp_model::limits::PARTICIPANTS_MAX;
use thorp_model::{Blob, Draft, Generation, NewValue, PageNo};

/// A transaction of a program whose allocator names slots by words.
fn usual() -> Transaction<&'static str> {
    begin(USUAL)
}

fn gone<T>(reference: Reference) -> Result<T, Stop> {
    Err(Stop::Gone(reference))
}

// --- What it finds ---

#[test]
fn an_object_is_found_in_its_page_or_the_page_is_missing() {
    let (member, mut tx) = (Member::new(), usual());
    assert_eq!(tx.find(&member.cache, &reference(A, 2)), Ok(Found::Inline));
    assert_eq!(member.read(&mut tx, A, 2), Ok(vec![2]));
    let elsewhere = Reference {
        object: ObjectId {
            page: OVERFLOW_PAGE,
            slot: Slot(0),
        },
        ..reference(A, 0)
    };
    let missing = Place {
        home: A,
        page: OVERFLOW_PAGE,
    };
    let found = tx.find(&member.cache, &elsewhere);
    assert_eq!(found, Err(Stop::Miss(missing)));
}

#[test]
fn a_free_slot_or_another_generation_is_gone_and_read() {
    let (member, mut tx) = (Member::new(), usual());
    let newer = Reference {
        generation: Generation(2),
        ..reference(A, 2)
    };
    assert_eq!(tx.find(&member.cache, &newer), gone(newer));
    assert_eq!(
        tx.find(&member.cache, &reference(A, 9)),
        gone(reference(A, 9))
    );
    let part = tx.part(&member.cache, A, Vec::new()).unwrap();
    assert_eq!(part.reads, [(PAGE, slots(&[2, 9]))]);
}

#[test]
fn a_hole_is_missing() {
    let (member, mut tx) = (Member::new(), usual());
    member.receives_page(A, 21, PAGE, &[Draft::Hole]);
    let found = tx.find(&member.cache, &reference(A, 0));
    assert_eq!(found, Err(Stop::Miss(place(A))));
}

#[test]
fn an_object_that_spilled_is_found_in_its_overflow_page() {
    let (member, mut tx) = (Member::new(), usual());
    let spilled = Draft::Overflow(overflow(1));
    member.receives_page(A, 21, PAGE, &[spilled]);
    let page = Place {
        home: A,
        page: OVERFLOW_PAGE,
    };
    let found = tx.find(&member.cache, &reference(A, 0));
    assert_eq!(found, Err(Stop::Miss(page)));
    member.receives_page(A, 22, OVERFLOW_PAGE, &[Draft::Value(vec![8])]);
    let found = tx.find(&member.cache, &reference(A, 0));
    assert_eq!(found, Ok(Found::Spilled(page)));
    assert_eq!(member.read(&mut tx, A, 0), Ok(vec![8]));
}

#[test]
fn a_spilled_object_whose_overflow_page_is_empty_is_torn() {
    let (member, mut tx) = (Member::new(), usual());
    member.receives_page(A, 21, PAGE, &[Draft::Overflow(overflow(1))]);
    member.receives_page(A, 22, OVERFLOW_PAGE, &[]);
    let found = tx.find(&member.cache, &reference(A, 0));
    assert_eq!(found, Err(Stop::Torn(reference(A, 0))));
}

#[test]
fn a_large_object_is_found_by_its_head() {
    let (member, mut tx) = (Member::new(), usual());
    member.receives_page(A, 21, PAGE, &[Draft::Overflow(overflow(2))]);
    let found = tx.find(&member.cache, &reference(A, 0)).unwrap();
    assert_eq!(found, Found::Large(overflow(2)));
    assert_eq!(tx.bytes(&reference(A, 0), found), None);
}

fn overflow(pages: u32) -> Overflow {
    Overflow {
        bytes: 1,
        first: PageNo::OVERFLOW_FIRST,
        pages,
    }
}

// --- What it writes ---

#[test]
fn it_reads_what_it_wrote() {
    let (member, mut tx) = (Member::new(), usual());
    tx.write(&reference(A, 2), vec![9]).unwrap();
    assert_eq!(tx.find(&member.cache, &reference(A, 2)), Ok(Found::Own));
    assert_eq!(member.read(&mut tx, A, 2), Ok(vec![9]));
    assert_eq!(member.read(&mut tx, B, 2), Ok(vec![2]), "the other home's");
    assert_eq!(tx.delete(&reference(A, 2)), Ok(None));
    assert_eq!(member.read(&mut tx, A, 2), gone(reference(A, 2)));
    assert_eq!(tx.write(&reference(A, 2), vec![9]), gone(reference(A, 2)));
    assert_eq!(tx.delete(&reference(A, 2)), gone(reference(A, 2)));
}

#[test]
fn an_object_that_it_made_and_deleted_gives_its_reservation_back() {
    let (member, mut tx) = (Member::new(), usual());
    tx.begin_creating(A).unwrap();
    tx.create(&reference(A, 9), vec![1], "slot 9");
    tx.write(&reference(A, 9), vec![2]).unwrap();
    assert_eq!(member.read(&mut tx, A, 9), Ok(vec![2]));
    let created = WriteOp::Create {
        generation: GENERATION,
        value: NewValue::Inline(Blob::from(&[2][..])),
    };
    assert_eq!(op(&tx, 9), created);
    assert_eq!(tx.delete(&reference(A, 9)), Ok(Some("slot 9")));
    assert!(tx.writes().is_empty());
}

#[test]
fn patches_of_an_object_travel_as_one() {
    let (member, mut tx) = (Member::new(), usual());
    member.receives_page(A, 21, PAGE, &[Draft::Value(vec![1; 8])]);
    patch(&mut tx, &member, 5..6, &[5]);
    patch(&mut tx, &member, 2..4, &[2, 3]);
    assert_eq!(member.read(&mut tx, A, 0), Ok(vec![1, 1, 2, 3, 1, 5, 1, 1]));
    let patched = WriteOp::Patch {
        generation: GENERATION,
        offset: 2,
        bytes: Blob::from(&[2, 3, 1, 5][..]),
    };
    assert_eq!(op(&tx, 0), patched);
}

#[test]
fn a_patch_of_what_it_wrote_travels_as_a_whole() {
    let (member, mut tx) = (Member::new(), usual());
    tx.write(&reference(A, 0), vec![7; 3]).unwrap();
    patch(&mut tx, &member, 1..2, &[1]);
    let written = WriteOp::Write {
        generation: GENERATION,
        value: NewValue::Inline(Blob::from(&[7, 1, 7][..])),
    };
    assert_eq!(op(&tx, 0), written);
}

#[test]
fn a_patch_of_a_large_object_travels_as_a_whole() {
    let mut tx = usual();
    let found = Found::Large(overflow(2));
    let patched = tx.patch(&reference(A, 0), found, vec![7; 3], 1..2, &[1]);
    assert_eq!(patched, Ok(()));
    let written = WriteOp::Write {
        generation: GENERATION,
        value: NewValue::Inline(Blob::from(&[7, 1, 7][..])),
    };
    assert_eq!(op(&tx, 0), written);
}

#[test]
fn what_the_program_prepared_has_no_bytes_and_travels_as_it_is() {
    let (member, mut tx) = (Member::new(), usual());
    let prepared = WriteOp::Delete {
        generation: GENERATION,
    };
    tx.prepare((&reference(A, 0)).into(), prepared.clone())
        .unwrap();
    assert_eq!(op(&tx, 0), prepared);
    assert_eq!(
        tx.find(&member.cache, &reference(A, 0)),
        gone(reference(A, 0))
    );
}

fn patch(tx: &mut Transaction<&'static str>, member: &Member, part: Range<usize>, bytes: &[u8]) {
    let reference = reference(A, 0);
    let found = tx.find(&member.cache, &reference).unwrap();
    let base = tx.bytes(&reference, found).unwrap().to_vec();
    tx.patch(&reference, found, base, part, bytes).unwrap();
}

/// What travels to home A of an object.
fn op<R>(tx: &Transaction<R>, slot: u16) -> WriteOp {
    let pages = tx.page_writes(A, &HashMap::new());
    let slots = pages.into_iter().flat_map(|page| page.slots);
    let (_, op) = slots.into_iter().find(|(at, _)| *at == Slot(slot)).unwrap();
    op
}

// --- When what it read changes ---

#[test]
fn one_that_only_reads_goes_on_as_of_before_and_cannot_write_any_more() {
    let (member, mut tx) = (Member::new(), usual());
    member.read(&mut tx, A, 0).unwrap();
    member.receives_change(A, 21, 0);
    assert_eq!(tx.evidence(&member.cache, A), Ok(Position(20)));
    assert!(tx.is_doomed(&member.cache), "what it read is no longer so");
    let behind = Err(Stop::Doomed(Doomed::Behind(place(A))));
    assert_eq!(tx.begin_writing(), behind);
}

#[test]
fn a_writer_is_doomed_and_its_next_try_is_a_writer_too() {
    let (member, mut tx) = (Member::new(), usual());
    tx.write(&reference(A, 1), vec![9]).unwrap();
    member.read(&mut tx, A, 0).unwrap();
    assert!(!tx.is_doomed(&member.cache));
    member.receives_change(A, 21, 0);
    let doomed = Err(Stop::Doomed(Doomed::Changed(place(A))));
    assert_eq!(tx.evidence(&member.cache, A), doomed);
    assert!(tx.is_doomed(&member.cache));
    tx.writes_mut().clear();
    tx.end(&member.cache);
    assert!(tx.homes().is_empty());
    tx.restart(stamp(30));
    assert_eq!(tx.floor(), stamp(30));
    member.read(&mut tx, A, 1).unwrap();
    member.receives_change(A, 22, 1);
    let doomed = Err(Stop::Doomed(Doomed::Changed(place(A))));
    assert_eq!(tx.evidence(&member.cache, A), doomed);
}

#[test]
fn a_strict_reader_is_doomed() {
    let (member, mut tx) = (Member::new(), begin::<()>(STRICT));
    member.read(&mut tx, A, 0).unwrap();
    member.receives_change(A, 21, 0);
    let doomed = Err(Stop::Doomed(Doomed::Changed(place(A))));
    assert_eq!(tx.evidence(&member.cache, A), doomed);
}

// --- What it concludes ---

#[test]
fn it_takes_in_no_more_homes_than_may_take_part() {
    let mut tx = usual();
    let homes = (1..=PARTICIPANTS_MAX as u32).map(HomeId);
    homes.for_each(|home| tx.enter(home).unwrap());
    assert_eq!(tx.enter(HomeId(0)), Err(Stop::TooManyHomes));
    assert_eq!(tx.begin_creating(HomeId(0)), Err(Stop::TooManyHomes));
    let written = tx.write(&reference(HomeId(0), 0), vec![9]);
    assert_eq!(written, Err(Stop::TooManyHomes));
    assert!(tx.writes().is_empty());
}

#[test]
fn homes_where_it_read_or_wrote_take_part() {
    let (member, mut tx) = (Member::new(), usual());
    tx.enter(HomeId(3)).unwrap();
    tx.write(&reference(B, 1), vec![9]).unwrap();
    member.read(&mut tx, A, 0).unwrap();
    assert_eq!(tx.homes(), [A, B, HomeId(3)]);
    assert_eq!(tx.participants(), [A, B]);
}

#[test]
fn it_comes_after_all_that_it_saw_and_after_its_floor() {
    let (member, mut tx) = (Member::new(), usual());
    assert_eq!(tx.after(), Stamp::default());
    member.read(&mut tx, B, 0).unwrap();
    assert_eq!(tx.after(), stamp(10));
    member.read(&mut tx, A, 0).unwrap();
    assert_eq!(tx.after(), stamp(20));
    tx.raise_floor(stamp(15));
    assert_eq!((tx.floor(), tx.after()), (stamp(15), stamp(20)));
    tx.raise_floor(stamp(30));
    tx.raise_floor(stamp(25));
    assert_eq!((tx.floor(), tx.after()), (stamp(30), stamp(30)));
}

#[test]
fn it_depends_on_an_own_commit_whose_value_it_read() {
    let (mut member, mut tx) = (Member::new(), usual());
    member.shows_own(A, 2);
    member.read(&mut tx, A, 0).unwrap();
    assert!(tx.depends_on().is_empty() && !tx.rests_on_open(&member));
    member.read(&mut tx, A, 2).unwrap();
    assert_eq!(tx.depends_on(), [(A, OWN)]);
    assert!(tx.rests_on_open(&member));
    member.own_is_answered(stamp(25));
    assert!(!tx.rests_on_open(&member));
    tx.place_above_own(&member);
    assert_eq!(tx.floor(), stamp(25));
}

#[test]
fn only_what_wrote_nothing_and_is_not_strict_needs_no_home() {
    let (member, mut tx) = (Member::new(), usual());
    member.read(&mut tx, A, 0).unwrap();
    assert!(tx.can_commit_locally());
    tx.change_terms(STRICT);
    assert!(!tx.can_commit_locally());
    assert!(begin::<()>(STRICT).can_commit_locally(), "it is of no home");
    tx.change_terms(USUAL);
    tx.write(&reference(A, 1), vec![9]).unwrap();
    assert!(!tx.can_commit_locally());
}

#[test]
fn a_home_that_was_never_heard_of_is_silent_since_the_clock_began() {
    let (member, mut tx) = (Member::new(), usual());
    tx.enter(HomeId(3)).unwrap();
    let silent = Stop::HomeSilent {
        home: HomeId(3),
        silent_ms: 101,
    };
    assert_eq!(tx.check_staleness(&member.cache, Millis(100)), Ok(()));
    let checked = tx.check_staleness(&member.cache, Millis(101));
    assert_eq!(checked, Err(silent));
    tx.change_terms(OPTIMISTIC);
    assert_eq!(tx.check_staleness(&member.cache, Millis(101)), Ok(()));
}
