//! What a commit asks of its driver, step by step.

use super::*;
use crate::fixture::*;
use crate::transaction::Terms;
use thorp_cache::ReadSet;
use thorp_model::limits::INLINE_VALUE_BYTES_MAX;
use thorp_model::{Blob, MemberId, NewValue, PageNo, PageWrites, Publish, Slot, WriteOp};

/// A transaction of a member, and its commit.
struct Run {
    member: Member,
    tx: Transaction<()>,
    commit: Commit,
}

impl Run {
    fn new(terms: Terms) -> Self {
        Run {
            member: Member::new(),
            tx: begin(terms),
            commit: Commit::new(),
        }
    }

    /// A transaction that has read slot 0 at each of these homes.
    fn reader(terms: Terms, homes: &[HomeId]) -> Self {
        let mut run = Run::new(terms);
        for home in homes {
            assert_eq!(run.member.read(&mut run.tx, *home, 0), Ok(vec![0]));
        }
        run
    }

    /// A transaction that has read slot 0, and written slot 1, at each of these homes.
    fn writer(homes: &[HomeId]) -> Self {
        let mut run = Run::reader(USUAL, homes);
        for home in homes {
            run.tx.write(&reference(*home, 1), vec![9]).unwrap();
        }
        run
    }

    fn try_step(&mut self) -> Result<Step, Stop> {
        self.commit.step(&mut self.tx, &self.member.world())
    }

    fn step(&mut self) -> Step {
        self.try_step().expect("it goes on")
    }

    /// A home answers a call.
    fn is_answered(&mut self, clock: u64) {
        self.commit.ended(Ended::Committed {
            id: THIS,
            position: None,
            stamp: stamp(clock),
        });
    }
}

/// The commit of the transaction.
const THIS: CommitId = CommitId {
    member: MemberId(7),
    sequence: 2,
};

fn reach(homes: &[HomeId]) -> Step {
    Step::Wait(Wait::Reach(homes.to_vec()))
}

fn promises(clock: u64, homes: &[HomeId]) -> Step {
    Step::Wait(Wait::Promises(Lagging {
        stamp: stamp(clock),
        homes: homes.to_vec(),
    }))
}

fn pause(ms: u32) -> Step {
    Step::Wait(Wait::Pause(ms))
}

fn locally(position: Option<u64>, clock: u64) -> Step {
    Step::Committed(Committed::Locally {
        position: position.map(Position),
        stamp: Some(stamp(clock)),
    })
}

fn at_homes(clock: u64) -> Step {
    Step::Committed(Committed::AtHomes {
        id: THIS,
        position: None,
        stamp: stamp(clock),
    })
}

/// What read slot 0 at a home.
fn read_part(home: HomeId, evidence: u64) -> Part {
    Part {
        home,
        evidence: Position(evidence),
        reads: vec![(PAGE, slots(&[0]))],
        writes: Vec::new(),
        under: None,
    }
}

/// What read slot 0 and wrote slot 1 at a home.
fn written_part(home: HomeId, evidence: u64, value: NewValue) -> Part {
    let write = WriteOp::Write {
        generation: GENERATION,
        value,
    };
    Part {
        writes: vec![PageWrites {
            page: PAGE,
            slots: vec![(Slot(1), write)],
        }],
        ..read_part(home, evidence)
    }
}

fn nine() -> NewValue {
    NewValue::Inline(Blob::from(&[9][..]))
}

/// A call of what depends on no other commit.
fn call(parts: Vec<Part>, after: u64) -> CommitCall {
    CommitCall {
        histories: vec![0; parts.len()],
        parts,
        depends_on: Vec::new(),
        after: stamp(after),
    }
}

// --- Without a message ---

#[test]
fn what_did_nothing_is_placed_where_its_program_had_been() {
    let mut run = Run::new(USUAL);
    run.tx = Transaction::begin(USUAL, ReadSet::new(), stamp(5));
    assert!(!run.commit.is_begun());
    assert_eq!(run.step(), locally(None, 5));
}

#[test]
fn a_strict_reader_that_found_no_page_is_of_no_home() {
    let mut run = Run::new(STRICT);
    run.member.evicts(A, 21);
    let missed = run.member.read(&mut run.tx, A, 0);
    assert_eq!(missed, Err(Stop::Miss(place(A))));
    assert_eq!(run.step(), Step::Committed(Committed::Nothing));
}

#[test]
fn a_reading_at_one_home_is_placed_at_once() {
    let mut run = Run::reader(USUAL, &[A]);
    assert_eq!(run.step(), locally(Some(20), 20));
}

#[test]
fn a_reading_at_two_homes_waits_until_the_one_that_lags_has_promised() {
    let mut run = Run::reader(USUAL, &[A, B]);
    assert_eq!(run.step(), promises(20, &[B]));
    assert!(run.commit.is_begun());
    run.member.receives_promise(B, 20);
    assert_eq!(run.step(), locally(None, 20));
}

#[test]
fn a_reading_below_its_session_floor_waits_for_a_promise_too() {
    let mut run = Run::reader(USUAL, &[A]);
    run.tx.raise_floor(stamp(50));
    assert_eq!(run.step(), promises(50, &[A]));
    assert_eq!(run.step(), reach(&[A]));
    assert_eq!(run.step(), Step::Send(call(vec![read_part(A, 20)], 50)));
    run.is_answered(51);
    assert_eq!(run.step(), at_homes(51));
}

#[test]
fn an_optimistic_session_reads_on_at_one_home_and_has_no_stamp() {
    let mut run = Run::reader(OPTIMISTIC, &[A]);
    run.tx.raise_floor(stamp(50));
    let committed = Committed::Locally {
        position: Some(Position(20)),
        stamp: None,
    };
    assert_eq!(run.step(), Step::Committed(committed));
    let mut run = Run::reader(OPTIMISTIC, &[A, B]);
    assert_eq!(run.step(), promises(20, &[B]), "two homes have to fit");
}

#[test]
fn what_stays_behind_a_change_is_placed_before_it() {
    let mut run = Run::reader(USUAL, &[B]);
    run.member.receives_change(B, 11, 0);
    assert_eq!(run.step(), locally(Some(10), 10));
}

#[test]
fn what_stays_behind_a_change_and_cannot_be_placed_there_is_doomed() {
    let mut run = Run::reader(USUAL, &[A, B]);
    run.member.receives_change(B, 11, 0);
    let doomed = Stop::Doomed(Doomed::Changed(place(B)));
    assert_eq!(run.try_step(), Err(doomed));
}

#[test]
fn what_was_read_too_long_ago_is_not_committed_without_its_home() {
    let mut run = Run::reader(USUAL, &[A]);
    run.member.now = Millis(121);
    let silent = Stop::HomeSilent {
        home: A,
        silent_ms: 101,
    };
    assert_eq!(run.try_step(), Err(silent));
    run.member.now = Millis(120);
    assert_eq!(run.step(), locally(Some(20), 20));
    let mut run = Run::reader(OPTIMISTIC, &[A]);
    run.member.now = Millis(1_000_000);
    assert_eq!(run.step(), locally(Some(20), 20));
}

#[test]
fn what_the_cache_has_evicted_grows_older_while_its_home_is_there() {
    let mut run = Run::reader(USUAL, &[A]);
    run.member.evicts(A, 21);
    run.member.publish(&Publish {
        heard: Millis(1000),
        ..at(A, 30)
    });
    run.member.now = Millis(1050);
    let too_old = Stop::ReadsTooOld {
        home: A,
        silent_ms: 1029,
    };
    assert_eq!(run.try_step(), Err(too_old));
}

// --- Validated by each home ---

/// A reading at two homes, whose calls the driver has.
fn validated() -> Run {
    let mut run = Run::reader(USUAL, &[A, B]);
    assert_eq!(run.step(), promises(20, &[B]));
    assert_eq!(run.step(), reach(&[A, B]));
    let calls = [read_part(A, 20), read_part(B, 10)].map(|part| call(vec![part], 20));
    assert_eq!(run.step(), Step::Validate(calls.to_vec()));
    run
}

#[test]
fn what_fits_at_each_home_is_validated() {
    let mut run = validated();
    run.is_answered(20);
    run.is_answered(20);
    assert_eq!(run.step(), Step::Committed(Committed::Validated));
}

#[test]
fn if_it_does_not_fit_at_one_home_the_homes_vote() {
    for stamps in [[20, 21], [21, 20]] {
        let mut run = validated();
        for clock in stamps {
            run.is_answered(clock);
        }
        let parts = vec![read_part(A, 20), read_part(B, 10)];
        assert_eq!(run.step(), Step::Send(call(parts, 20)));
        run.is_answered(30);
        assert_eq!(run.step(), at_homes(30));
    }
}

#[test]
fn only_the_home_that_is_busy_is_asked_again_after_its_pause() {
    let mut run = validated();
    run.commit.ended(Ended::Busy(7));
    run.is_answered(20);
    assert_eq!(run.step(), pause(7));
    let again = call(vec![read_part(A, 20)], 20);
    assert_eq!(run.step(), Step::Validate(vec![again]));
    run.is_answered(20);
    assert_eq!(run.step(), Step::Committed(Committed::Validated));
}

#[test]
fn homes_that_are_busy_are_asked_again_after_the_longest_of_their_pauses() {
    for (pauses, longest) in [([3, 8], 8), ([8, 3], 8), ([0, 0], 1)] {
        let mut run = validated();
        for ms in pauses {
            run.commit.ended(Ended::Busy(ms));
        }
        assert_eq!(run.step(), pause(longest));
        let again = [read_part(A, 20), read_part(B, 10)].map(|part| call(vec![part], 20));
        assert_eq!(run.step(), Step::Validate(again.to_vec()));
    }
}

#[test]
fn what_did_not_fit_is_remembered_while_another_home_is_busy() {
    let mut run = validated();
    run.is_answered(21);
    run.commit.ended(Ended::Busy(7));
    assert_eq!(run.step(), pause(7));
    let again = call(vec![read_part(B, 10)], 20);
    assert_eq!(run.step(), Step::Validate(vec![again]));
    run.is_answered(20);
    let parts = vec![read_part(A, 20), read_part(B, 10)];
    assert_eq!(run.step(), Step::Send(call(parts, 20)));
}

#[test]
fn what_a_home_has_refused_is_not_validated() {
    let mut run = validated();
    run.is_answered(20);
    // A refusal ends the transaction at its driver, so the commit gets no answer of home B.
    let again = call(vec![read_part(B, 10)], 20);
    assert_eq!(run.step(), Step::Validate(vec![again]));
}

#[test]
fn no_promise_is_asked_where_the_evidence_is_frozen() {
    let mut run = Run::reader(USUAL, &[A, B]);
    run.member.evicts(B, 11);
    run.member.receives_promise(B, 20);
    assert_eq!(run.step(), reach(&[A, B]));
    let calls = [read_part(A, 20), read_part(B, 11)].map(|part| call(vec![part], 20));
    assert_eq!(run.step(), Step::Validate(calls.to_vec()));
}

// --- Strict sessions ---

#[test]
fn a_strict_reader_is_validated_by_its_home() {
    let mut run = Run::reader(STRICT, &[A]);
    assert_eq!(run.step(), reach(&[A]));
    assert_eq!(run.step(), Step::Send(call(vec![read_part(A, 20)], 20)));
}

#[test]
fn a_strict_reader_at_two_homes_asks_for_no_promise() {
    let mut run = Run::reader(STRICT, &[A, B]);
    assert_eq!(run.step(), reach(&[A, B]));
    let calls = [read_part(A, 20), read_part(B, 10)].map(|part| call(vec![part], 20));
    assert_eq!(run.step(), Step::Validate(calls.to_vec()));
    // A change of what it read dooms it before a busy home is asked again.
    run.commit.ended(Ended::Busy(7));
    run.is_answered(20);
    assert_eq!(run.step(), pause(7));
    run.member.receives_change(A, 21, 0);
    let doomed = Stop::Doomed(Doomed::Changed(place(A)));
    assert_eq!(run.try_step(), Err(doomed));
}

// --- Writers ---

#[test]
fn a_writer_at_one_home_is_sent() {
    let mut run = Run::writer(&[A]);
    assert_eq!(run.step(), reach(&[A]));
    let parts = vec![written_part(A, 20, nine())];
    assert_eq!(run.step(), Step::Send(call(parts, 20)));
    run.is_answered(30);
    assert_eq!(run.step(), at_homes(30));
}

#[test]
fn a_writer_at_two_homes_is_sent_once_with_both_parts() {
    let mut run = Run::writer(&[A, B]);
    assert_eq!(run.step(), reach(&[A, B]));
    let parts = vec![written_part(A, 20, nine()), written_part(B, 10, nine())];
    assert_eq!(run.step(), Step::Send(call(parts, 20)));
    run.is_answered(30);
    assert_eq!(run.step(), at_homes(30));
}

#[test]
fn a_home_that_was_only_read_takes_part() {
    let mut run = Run::reader(USUAL, &[A, B]);
    run.tx.write(&reference(B, 1), vec![9]).unwrap();
    assert_eq!(run.step(), reach(&[A, B]));
    let parts = vec![read_part(A, 20), written_part(B, 10, nine())];
    assert_eq!(run.step(), Step::Send(call(parts, 20)));
}

#[test]
fn a_busy_home_gets_the_same_call_after_its_pause() {
    let mut run = Run::writer(&[A]);
    assert_eq!(run.step(), reach(&[A]));
    let first = run.step();
    run.commit.ended(Ended::Busy(7));
    assert_eq!(run.step(), pause(7));
    assert_eq!(run.step(), first);
}

#[test]
fn evidence_is_as_of_when_the_call_is_made() {
    let mut run = Run::writer(&[A]);
    assert_eq!(run.step(), reach(&[A]));
    run.member.receives_change(A, 21, 3);
    let parts = vec![written_part(A, 21, nine())];
    assert_eq!(run.step(), Step::Send(call(parts, 20)));
}

#[test]
#[should_panic(expected = "a driver says how a commit ended")]
fn what_was_sent_is_not_sent_again_without_an_answer() {
    let mut run = Run::writer(&[A]);
    assert_eq!(run.step(), reach(&[A]));
    assert!(matches!(run.step(), Step::Send(_)));
    run.step();
}

#[test]
fn a_doomed_writer_is_not_sent() {
    let doomed = Err(Stop::Doomed(Doomed::Changed(place(A))));
    let mut run = Run::writer(&[A]);
    run.member.receives_change(A, 21, 0);
    assert_eq!(run.try_step(), doomed);
    let mut run = Run::writer(&[A]);
    assert_eq!(run.step(), reach(&[A]));
    run.member.receives_change(A, 21, 0);
    assert_eq!(run.try_step(), doomed);
}

// --- Large values ---

#[test]
fn large_values_are_staged_at_their_home_and_named_in_each_call() {
    let mut run = Run::writer(&[A, B]);
    let large = vec![9; INLINE_VALUE_BYTES_MAX + 1];
    run.tx.write(&reference(B, 1), large).unwrap();
    assert_eq!(run.step(), reach(&[A, B]));
    assert_eq!(run.step(), Step::Stage(vec![B]));
    let overflow = Overflow {
        bytes: INLINE_VALUE_BYTES_MAX as u64 + 1,
        first: PageNo::OVERFLOW_FIRST,
        pages: 2,
    };
    let staged = HashMap::from([(object(1), overflow)]);
    run.commit.staged(B, staged);
    let parts = vec![
        written_part(A, 20, nine()),
        written_part(B, 10, NewValue::Staged(overflow)),
    ];
    let sent = Step::Send(call(parts, 20));
    assert_eq!(run.step(), sent);
    run.commit.ended(Ended::Busy(7));
    assert_eq!(run.step(), pause(7));
    assert_eq!(run.step(), sent, "nothing is staged twice");
}

// --- What depends on an own commit that is not answered ---

/// A transaction that has read at home A what an own open commit wrote there.
fn dependent() -> Run {
    let mut run = Run::new(USUAL);
    run.member.shows_own(A, 2);
    assert_eq!(run.member.read(&mut run.tx, A, 2), Ok(vec![99]));
    run
}

const OWN_OUTCOME: Step = Step::Wait(Wait::OwnOutcome);

#[test]
fn a_reading_of_an_open_own_commit_waits_and_is_placed_above_it() {
    let mut run = dependent();
    assert_eq!(run.step(), OWN_OUTCOME);
    assert_eq!(run.step(), OWN_OUTCOME, "it is still open");
    run.member.own_is_answered(stamp(25));
    assert_eq!(run.step(), promises(25, &[A]));
    run.member.receives_promise(A, 25);
    assert_eq!(run.step(), locally(Some(20), 25));
}

#[test]
fn a_writer_at_one_home_names_its_open_own_commit_and_does_not_wait() {
    let mut run = dependent();
    run.tx.write(&reference(A, 1), vec![9]).unwrap();
    assert_eq!(run.step(), reach(&[A]));
    let Step::Send(sent) = run.step() else {
        panic!("it is sent");
    };
    assert_eq!(sent.depends_on, [(A, OWN)]);
    assert_eq!(sent.after, stamp(20));
}

#[test]
fn a_writer_at_two_homes_waits_for_its_open_own_commit_and_is_placed_above_it() {
    let mut run = dependent();
    run.tx.write(&reference(B, 1), vec![9]).unwrap();
    assert_eq!(run.step(), OWN_OUTCOME);
    assert_eq!(run.step(), OWN_OUTCOME, "it is still open");
    run.member.own_is_answered(stamp(25));
    assert_eq!(run.step(), reach(&[A, B]));
    let Step::Send(sent) = run.step() else {
        panic!("it is sent");
    };
    assert_eq!(sent.depends_on, [(A, OWN)]);
    assert_eq!(sent.after, stamp(25));
}

#[test]
fn a_reading_at_two_homes_names_its_own_commit_at_each_of_them() {
    let mut run = dependent();
    run.member.read(&mut run.tx, B, 0).unwrap();
    assert_eq!(run.step(), OWN_OUTCOME);
    run.member.own_is_answered(stamp(25));
    assert_eq!(run.step(), promises(25, &[A, B]));
    assert_eq!(run.step(), reach(&[A, B]));
    let Step::Validate(calls) = run.step() else {
        panic!("each home validates it");
    };
    let homes = calls.iter().map(|call| call.parts[0].home);
    assert_eq!(homes.collect::<Vec<_>>(), [A, B]);
    for call in calls {
        assert_eq!(call.depends_on, [(A, OWN)]);
        assert_eq!(call.after, stamp(25));
    }
}
