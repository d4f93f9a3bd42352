//! Large objects, objects that the home moved, and whole segments.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::time::Duration;
use thorp_client::{ErrorKind, Member, Outcome, Reference, Result, Segment, Session};
use thorp_model::Table;
use thorp_testing::{HomeNode, eventually};

/// Bytes of which no page is like another.
fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

fn read(member: &Member, reference: &Reference) -> Result<Vec<u8>> {
    member.transact(|tx| Ok(tx.read(reference)?.to_vec()))
}

#[test]
fn eight_megabytes_are_one_object() {
    round_trip(8 << 20);
}

#[test]
fn sixty_four_megabytes_are_one_object() {
    round_trip(64 << 20);
}

fn round_trip(len: usize) {
    let village = HomeNode::new();
    let (anna, films) = village.member_at("films");
    let film = noise(len, 1);
    let reference = anna
        .transact(|tx| {
            let reference = tx.create(&films, film.clone())?;
            assert!(tx.read(&reference)? == film, "own writes");
            Ok(reference)
        })
        .unwrap();
    assert_eq!(village.records(Table::Staged), 0);
    let bert = village.member();
    assert!(read(&bert, &reference).unwrap() == film);
    assert!(read(&anna, &reference).unwrap() == film);
}

#[test]
fn every_length_around_a_page_comes_back() {
    let village = HomeNode::new();
    let (anna, films) = village.member_at("films");
    let chunk = 8160;
    let lens = [
        0,
        1,
        chunk - 1,
        chunk,
        chunk + 1,
        2 * chunk - 1,
        2 * chunk,
        2 * chunk + 1,
        64 * chunk,
        64 * chunk + 1,
    ];
    let made: Vec<Reference> = anna
        .transact(|tx| {
            lens.iter()
                .map(|len| tx.create(&films, noise(*len, 7)))
                .collect()
        })
        .unwrap();
    let bert = village.member();
    for (reference, len) in made.iter().zip(lens) {
        assert_eq!(read(&bert, reference).unwrap(), noise(len, 7), "{len}");
        let mut tx = bert.begin(Session::new());
        assert_eq!(tx.size(reference).unwrap(), len as u64);
        tx.commit().unwrap();
    }
}

#[test]
fn a_part_of_a_large_object_fetches_only_its_pages() {
    let village = HomeNode::new();
    let (anna, films) = village.member_at("films");
    let film = noise(4 << 20, 2);
    let reference = anna.transact(|tx| tx.create(&films, film.clone())).unwrap();
    let bert = village.member();
    let mut tx = bert.begin(Session::new());
    for (from, len) in [
        (0, 10),
        (8155, 10),
        (1 << 20, 20_000),
        (film.len() - 5, 100),
        (film.len(), 5),
        (film.len() + 9, 1),
    ] {
        let end = (from + len).min(film.len());
        let want = film.get(from..end).unwrap_or_default();
        assert_eq!(
            tx.read_at(&reference, from as u64, len).unwrap(),
            want,
            "{from} {len}"
        );
    }
    assert_eq!(tx.size(&reference).unwrap(), film.len() as u64);
    tx.commit().unwrap();
    assert!(bert.stats().fetches < 15, "{}", bert.stats().fetches);
}

#[test]
fn a_large_object_is_patched_replaced_shortened_and_deleted() {
    let village = HomeNode::new();
    let (anna, films) = village.member_at("films");
    let bert = village.member();
    let mut film = noise(200_000, 3);
    let reference = anna.transact(|tx| tx.create(&films, film.clone())).unwrap();
    bert.transact(|tx| {
        tx.patch(&reference, 100_000, b"cut")?;
        tx.patch(&reference, 0, b"cut")?;
        assert_eq!(&tx.read(&reference)?[..3], b"cut");
        Ok(())
    })
    .unwrap();
    film[100_000..100_003].copy_from_slice(b"cut");
    film[..3].copy_from_slice(b"cut");
    eventually("anna hears of the cut", || {
        read(&anna, &reference).unwrap() == film
    });

    anna.transact(|tx| tx.write(&reference, "short")).unwrap();
    eventually("bert hears of the short one", || {
        read(&bert, &reference).unwrap() == b"short"
    });
    bert.transact(|tx| tx.write(&reference, noise(100_000, 4)))
        .unwrap();
    eventually("anna hears of the long one", || {
        read(&anna, &reference).unwrap() == noise(100_000, 4)
    });
    anna.transact(|tx| tx.delete(&reference)).unwrap();
    eventually("bert hears that it is gone", || {
        read(&bert, &reference).is_err_and(|error| error.kind() == ErrorKind::Gone)
    });
}

#[test]
fn a_reader_of_a_large_object_never_sees_half_of_it() {
    let village = HomeNode::new();
    let (anna, films) = village.member_at("films");
    let bert = village.member();
    let reference = anna
        .transact(|tx| tx.create(&films, vec![0u8; 300_000]))
        .unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=20u8 {
                anna.transact(|tx| tx.write(&reference, vec![n; 300_000 - usize::from(n)]))
                    .unwrap();
            }
        });
        loop {
            let film = read(&bert, &reference).unwrap();
            assert!(film.iter().all(|byte| *byte == film[0]));
            assert_eq!(film.len(), 300_000 - usize::from(film[0]));
            if film[0] == 20 {
                break;
            }
        }
    });
}

#[test]
fn what_was_staged_for_a_refused_transaction_is_forgotten() {
    let village = HomeNode::new();
    let (anna, films) = village.member_at("films");
    let bert = village.member();
    let note = anna.transact(|tx| tx.create(&films, "a")).unwrap();
    village.eventually_quiet();
    let pages = village.records(Table::Pages);
    let mut tx = anna.begin(Session::new());
    tx.read(&note).unwrap();
    tx.create(&films, noise(100_000, 5)).unwrap();
    bert.transact(|tx| tx.write(&note, "b")).unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
    eventually("the staged pages go", || {
        village.records(Table::Staged) == 0 && village.records(Table::Pages) <= pages + 2
    });
}

#[test]
fn what_was_staged_for_a_commit_that_is_refused_late_is_forgotten() {
    let village = HomeNode::new();
    let (bert, films) = village.member_at("films");
    let note = bert.transact(|tx| tx.create(&films, "a")).unwrap();
    bert.transact(|tx| tx.delete(&note)).unwrap();
    let session = Session::new().commit_timeout(Duration::from_millis(1500));
    let far_away = village.config().link_delay(Duration::from_millis(200));
    let anna = Member::join(far_away.session(session)).unwrap();
    let films = anna.open("thorp://alps/films").unwrap();
    let mut tx = anna.begin(session);
    tx.write(&note, "b").unwrap();
    tx.create(&films, noise(100_000, 5)).unwrap();
    let committing = std::thread::spawn(move || tx.commit());
    // The value is there, and the commit on its way: its refusal will not be durable in time.
    eventually("the value is staged", || village.records(Table::Staged) > 0);
    village.hold_disk();
    let error = committing.join().unwrap().unwrap_err();
    let ErrorKind::OutcomeUnknown(id) = error.kind() else {
        panic!("{error}");
    };
    village.release_disk();
    assert!(matches!(anna.outcome(id).unwrap(), Outcome::Refused(_)));
    eventually("the staged value goes", || {
        village.records(Table::Staged) == 0
    });
}

#[test]
fn transactions_that_stage_more_together_than_a_home_keeps_wait_for_each_other() {
    let village = HomeNode::new();
    let far_away = village.config().link_delay(Duration::from_millis(5));
    let anna = Member::join(far_away).unwrap();
    let films = anna.open_or_create("thorp://alps/films").unwrap();
    let write = |seed: u32| {
        anna.transact(|tx| {
            (0..40u32)
                .map(|n| tx.create(&films, noise(20_000, seed + n)))
                .collect::<Result<Vec<_>>>()
        })
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|n| scope.spawn(move || write(n * 100)))
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap().unwrap().len(), 40);
        }
    });
    let too_many = anna.transact(|tx| {
        (0..65u32).try_for_each(|n| tx.create(&films, noise(20_000, n)).map(|_| ()))
    });
    assert_eq!(too_many.unwrap_err().kind(), ErrorKind::TooLarge);
    village.eventually_quiet();
    eventually("nothing stays", || village.records(Table::Staged) == 0);
}

#[test]
fn a_member_that_the_home_has_forgotten_stages_all_the_same() {
    let village = HomeNode::remembering(1);
    let (anna, films) = village.member_at("films");
    anna.transact(|tx| tx.create(&films, "a")).unwrap();
    let bert = village.member();
    let films_of_bert = bert.open("thorp://alps/films").unwrap();
    bert.transact(|tx| tx.create(&films_of_bert, "b")).unwrap();
    let film = noise(100_000, 8);
    let reference = anna.transact(|tx| tx.create(&films, film.clone())).unwrap();
    assert!(read(&bert, &reference).unwrap() == film);
}

#[test]
fn a_large_object_fits_through_a_small_cache() {
    let village = HomeNode::new();
    let (anna, films) = village.member_at("films");
    let film = noise(6 << 20, 6);
    let reference = anna.transact(|tx| tx.create(&films, film.clone())).unwrap();
    let bert = Member::join(village.config().cache_bytes(1 << 20)).unwrap();
    assert!(read(&bert, &reference).unwrap() == film);
    eventually("the cache is within its limit", || {
        bert.stats().cached_bytes <= 1 << 20
    });
}

#[test]
fn objects_that_the_home_moved_are_read_patched_and_grown_as_before() {
    let village = HomeNode::new();
    let (anna, notes) = village.member_at("notes");
    let bert = village.member();
    let made: Vec<Reference> = anna
        .transact(|tx| (0..70u8).map(|n| tx.create(&notes, vec![n; 100])).collect())
        .unwrap();
    assert!(
        made.iter()
            .all(|note| note.object.page == made[0].object.page)
    );
    // Together they outgrow the page: the home moves some.
    for (n, note) in made.iter().enumerate().take(30) {
        bert.transact(|tx| tx.write(note, vec![n as u8; 1000]))
            .unwrap();
    }
    for (n, note) in made.iter().enumerate().take(30) {
        eventually("anna sees it grown", || {
            read(&anna, note).unwrap() == vec![n as u8; 1000]
        });
        anna.transact(|tx| {
            tx.patch(note, 500, b"patched")?;
            assert_eq!(&tx.read(note)?[500..507], b"patched");
            assert_eq!(tx.size(note)?, 1000);
            Ok(())
        })
        .unwrap();
        eventually("bert sees the patch", || {
            &read(&bert, note).unwrap()[500..507] == b"patched"
        });
    }
    let rest = made.iter().enumerate().skip(30);
    for (n, note) in rest {
        assert_eq!(read(&bert, note).unwrap(), vec![n as u8; 100]);
    }
}

fn scanned(member: &Member, segment: &Segment) -> Vec<(Reference, Vec<u8>)> {
    member
        .transact(|tx| {
            let mut all = Vec::new();
            tx.scan(segment, |reference, bytes| {
                all.push((reference, bytes.to_vec()));
                Ok(())
            })?;
            Ok(all)
        })
        .unwrap()
}

#[test]
fn a_scan_visits_every_object_once_with_own_writes() {
    let village = HomeNode::new();
    let (anna, notes) = village.member_at("notes");
    let mut made: Vec<(Reference, Vec<u8>)> = Vec::new();
    for round in 0..10u32 {
        let more = anna.transact(|tx| {
            (0..50u32)
                .map(|n| {
                    let bytes = noise(100 + (n as usize * 37) % 400, round * 50 + n);
                    Ok((tx.create(&notes, bytes.clone())?, bytes))
                })
                .collect::<Result<Vec<_>>>()
        });
        made.extend(more.unwrap());
    }
    let large = noise(50_000, 999);
    made.push((
        anna.transact(|tx| tx.create(&notes, large.clone()))
            .unwrap(),
        large,
    ));
    notes.set_root("first", Some(made[0].0)).unwrap();
    made.sort();
    let bert = village.member();
    let notes_of_bert = bert.open("thorp://alps/notes").unwrap();
    assert_eq!(scanned(&bert, &notes_of_bert), made);

    let mut tx = anna.begin(Session::new());
    tx.delete(&made[3].0).unwrap();
    tx.write(&made[4].0, "mine").unwrap();
    let new = tx.create(&notes, "new").unwrap();
    let mut seen = Vec::new();
    tx.scan(&notes, |reference, bytes| {
        seen.push((reference, bytes.to_vec()));
        Ok(())
    })
    .unwrap();
    let mut want = made.clone();
    want.remove(3);
    want[3].1 = b"mine".to_vec();
    want.push((new, b"new".to_vec()));
    want.sort();
    assert_eq!(seen, want);
    tx.abort();
}

#[test]
fn nobody_adds_an_object_under_a_scan() {
    let village = HomeNode::new();
    let (anna, notes) = village.member_at("notes");
    let bert = village.member();
    let notes_of_bert = bert.open("thorp://alps/notes").unwrap();
    let count = anna.transact(|tx| tx.create_typed(&notes, &0u64)).unwrap();
    // Into a page that is there, and into one that is not.
    for _ in 0..2 {
        let mut tx = anna.begin(Session::new());
        let mut seen = 0u64;
        tx.scan(&notes, |_, _| {
            seen += 1;
            Ok(())
        })
        .unwrap();
        bert.transact(|tx| tx.create(&notes_of_bert, "another"))
            .unwrap();
        tx.put(&count, &seen).unwrap();
        assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
    }
    // One that the member itself puts into the very page.
    let mut tx = anna.begin(Session::new());
    tx.scan(&notes, |_, _| Ok(())).unwrap();
    anna.transact(|tx| tx.create(&notes, "beside")).unwrap();
    tx.put(&count, &9).unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn a_visit_to_a_whole_segment_is_sent_as_a_few_bytes_a_page() {
    let village = HomeNode::new();
    let (anna, notes) = village.member_at("notes");
    let pages = 100;
    anna.transact(|tx| (0..pages).try_for_each(|_| tx.create(&notes, vec![7; 8000]).map(|_| ())))
        .unwrap();
    let tally = anna.create("thorp://alps/tally").unwrap();
    let count = anna.transact(|tx| tx.create_typed(&tally, &0u64)).unwrap();
    let mut tx = anna.begin(Session::new());
    tx.scan(&notes, |_, _| Ok(())).unwrap();
    tx.put(&count, &pages).unwrap();
    let before = anna.stats();
    tx.commit().unwrap();
    // All slots of a page, free ones too, are one set of bits: forty bytes, and the page's name.
    let sent = anna.stats().since(&before).traffic.bytes_sent;
    assert!(sent < 100 * 50 + 500, "{sent} bytes");
}

#[test]
fn an_empty_segment_is_scanned_and_a_visitor_may_stop() {
    let village = HomeNode::new();
    let (anna, notes) = village.member_at("notes");
    assert_eq!(scanned(&anna, &notes), []);
    anna.transact(|tx| tx.create(&notes, "x")).unwrap();
    let stopped: Result<()> =
        anna.transact(|tx| tx.scan(&notes, |_, _| Err(thorp_client::Error::aborted("enough"))));
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Aborted);
}

#[test]
fn prefetched_pages_are_read_without_waiting() {
    let village = HomeNode::new();
    let (anna, notes) = village.member_at("notes");
    let made: Vec<Reference> = anna
        .transact(|tx| (0..20).map(|n| tx.create(&notes, noise(4000, n))).collect())
        .unwrap();
    let bert = village.member();
    bert.prefetch(&made);
    eventually("they come", || bert.stats().cached_pages >= 10);
    std::thread::sleep(Duration::from_millis(20));
    let before = bert.stats();
    bert.transact(|tx| made.iter().try_for_each(|note| tx.read(note).map(|_| ())))
        .unwrap();
    let spent = bert.stats().since(&before);
    assert_eq!((spent.misses, spent.fetches), (0, 0));
    assert_eq!((bert.stats().from_home, bert.stats().through_site), (10, 0));
}
