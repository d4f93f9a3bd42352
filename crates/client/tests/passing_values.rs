//! Large values that pass through a program: from what it reads to the home, and from the home to what it writes.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::error::Error as _;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use thorp_client::{ErrorKind, Member, Reference, Session};
use thorp_model::Table;
use thorp_testing::{HomeNode, eventually};

/// Bytes that no page repeats.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn passed(member: &Member, reference: &Reference) -> Vec<u8> {
    let mut out = Vec::new();
    let count = member.transact(|tx| {
        out.clear();
        tx.read_into(reference, &mut out)
    });
    assert_eq!(count.unwrap(), out.len() as u64);
    out
}

#[test]
fn every_length_passes_in_both_directions() {
    let home = HomeNode::new();
    let (anna, films) = home.member_at("films");
    for len in [0, 1, 8_160, 8_161, 16_320, 522_240, 522_241, 3_000_000] {
        let bytes = noise(len);
        let made = anna.transact(|tx| tx.create_from(&films, &mut Cursor::new(&bytes)));
        let made = made.unwrap();
        let bert = home.member();
        assert_eq!(passed(&bert, &made), bytes, "{len}");
        assert_eq!(
            bert.transact(|tx| Ok(tx.read(&made)?.to_vec())).unwrap(),
            bytes
        );
        let from = Reference {
            offset: len as u64 * 2 / 3,
            ..made
        };
        assert_eq!(passed(&bert, &from), bytes[len * 2 / 3..], "{len}");
    }
    home.eventually_quiet();
    eventually("nothing is staged", || home.records(Table::Staged) == 0);
}

#[test]
fn an_object_is_replaced_from_a_stream_also_one_that_is_new() {
    let home = HomeNode::new();
    let (anna, films) = home.member_at("films");
    let bytes = noise(100_000);
    let note = anna.transact(|tx| tx.create(&films, "a")).unwrap();
    anna.transact(|tx| tx.write_from(&note, &mut Cursor::new(&bytes)))
        .unwrap();
    assert_eq!(passed(&home.member(), &note), bytes);
    anna.transact(|tx| tx.write_from(&note, &mut Cursor::new("b")))
        .unwrap();
    assert_eq!(passed(&home.member(), &note), b"b");
    let made = anna.transact(|tx| {
        let made = tx.create(&films, "c")?;
        tx.write_from(&made, &mut Cursor::new(&bytes))?;
        Ok(made)
    });
    assert_eq!(passed(&home.member(), &made.unwrap()), bytes);
    let nothing = anna
        .transact(|tx| tx.delete(&note))
        .and_then(|()| anna.transact(|tx| tx.write_from(&note, &mut Cursor::new(&bytes))));
    assert_eq!(nothing.unwrap_err().kind(), ErrorKind::Gone);
    eventually("nothing is staged", || home.records(Table::Staged) == 0);
}

#[test]
fn a_transaction_that_conflicts_reads_its_stream_again() {
    let home = HomeNode::new();
    let (anna, films) = home.member_at("films");
    let bert = home.member();
    let bytes = noise(600_000);
    let note = anna.transact(|tx| tx.create(&films, "0")).unwrap();
    let mut attempts = 0;
    let made = anna.transact(|tx| {
        attempts += 1;
        tx.read(&note)?;
        let made = tx.create_from(&films, &mut Cursor::new(&bytes))?;
        if attempts < 3 {
            bert.transact(|tx| tx.write(&note, attempts.to_string()))?;
        }
        Ok(made)
    });
    assert_eq!(attempts, 3);
    assert_eq!(passed(&bert, &made.unwrap()), bytes);
    home.eventually_quiet();
    eventually("what was in vain goes", || home.records(Table::Staged) == 0);
    let seen = bert.transact(|tx| {
        let mut seen = 0;
        tx.scan_references(&bert.open("thorp://alps/films")?, |_| {
            seen += 1;
            Ok(())
        })?;
        Ok(seen)
    });
    assert_eq!(seen.unwrap(), 2);
}

#[test]
fn a_transaction_does_not_use_what_it_has_streamed() {
    let home = HomeNode::new();
    let (anna, films) = home.member_at("films");
    let bytes = noise(20_000);
    let mut tx = anna.begin(Session::new());
    let made = tx.create_from(&films, &mut Cursor::new(&bytes)).unwrap();
    let mut errors = vec![
        tx.read(&made).map(|_| ()).unwrap_err(),
        tx.write(&made, "x").unwrap_err(),
        tx.patch(&made, 0, b"x").unwrap_err(),
        tx.delete(&made).unwrap_err(),
    ];
    errors.push(tx.scan(&films, |_, _| Ok(())).unwrap_err());
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("after the commit"), "{error}");
    }
    tx.commit().unwrap();
    assert_eq!(passed(&anna, &made), bytes);
    // Not committed: nothing is left.
    let mut tx = anna.begin(Session::new());
    tx.create_from(&films, &mut Cursor::new(&bytes)).unwrap();
    assert_eq!(home.records(Table::Staged), 1);
    drop(tx);
    eventually("the value goes", || home.records(Table::Staged) == 0);
}

#[test]
fn too_many_streams_of_one_transaction_are_refused() {
    let home = HomeNode::new();
    let (anna, films) = home.member_at("films");
    let bytes = noise(9_000);
    let made = anna.transact(|tx| {
        (0..65).try_for_each(|_| tx.create_from(&films, &mut Cursor::new(&bytes)).map(|_| ()))
    });
    assert_eq!(made.unwrap_err().kind(), ErrorKind::TooLarge);
    eventually("nothing stays", || home.records(Table::Staged) == 0);
}

/// It ends too early, or its disk fails.
struct Bad {
    bytes: Cursor<Vec<u8>>,
    fails_at: Option<u64>,
}

impl Read for Bad {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.fails_at {
            Some(at) if self.bytes.position() >= at => Err(io::Error::other("the disk fails")),
            _ => self.bytes.read(into),
        }
    }
}

impl Seek for Bad {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match to {
            SeekFrom::End(0) => Ok(2_000_000),
            to => self.bytes.seek(to),
        }
    }
}

#[test]
fn a_stream_that_fails_ends_the_transaction_and_leaves_nothing() {
    let home = HomeNode::new();
    let (anna, films) = home.member_at("films");
    for (len, fails_at) in [(2_000_000, Some(1_000_000)), (1_500_000, None)] {
        let mut bad = Bad {
            bytes: Cursor::new(noise(len)),
            fails_at,
        };
        let made = anna.transact(|tx| tx.create_from(&films, &mut bad));
        let error = made.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Aborted, "{error}");
        assert!(error.source().is_some());
    }
    eventually("nothing stays", || home.records(Table::Staged) == 0);
}

/// A pipe whose reader has gone.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(self.0);
        self.0 -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_told_apart() {
    let home = HomeNode::new();
    let (anna, films) = home.member_at("films");
    let made = anna
        .transact(|tx| tx.create(&films, noise(100_000)))
        .unwrap();
    let read = anna.transact(|tx| tx.read_into(&made, &mut Full(50_000)));
    let error = read.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Aborted);
    let source = error
        .source()
        .and_then(|error| error.downcast_ref::<io::Error>());
    assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::BrokenPipe));
}

#[test]
fn a_value_that_is_large_for_the_cache_does_not_stay_there() {
    let home = HomeNode::new();
    let (anna, films) = home.member_at("films");
    let bert = Member::join(home.config().cache_bytes(2 << 20)).unwrap();
    let kept = anna
        .transact(|tx| tx.create(&films, noise(300_000)))
        .unwrap();
    let passing = anna
        .transact(|tx| tx.create(&films, noise(8 << 20)))
        .unwrap();
    passed(&bert, &kept);
    let before = bert.stats();
    passed(&bert, &passing);
    eventually("its pages go", || {
        bert.stats().cached_bytes <= before.cached_bytes + 100_000
    });
    let fetches = bert.stats().fetches;
    passed(&bert, &kept);
    assert_eq!(bert.stats().fetches, fetches, "what is used stays");
}

#[test]
fn an_object_of_more_than_a_gibibyte_is_refused_before_anything_travels() {
    struct Sparse(u64);
    impl Read for Sparse {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("nobody reads it")
        }
    }
    impl Seek for Sparse {
        fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
            Ok(self.0)
        }
    }
    let home = HomeNode::new();
    let (anna, films) = home.member_at("films");
    let made = anna.transact(|tx| tx.create_from(&films, &mut Sparse((1 << 30) + 1)));
    assert_eq!(made.unwrap_err().kind(), ErrorKind::TooLarge);
}
