//! What the library costs, in numbers: `cargo test --release -p thorp-client --test cost -- --ignored --nocapture`.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::time::Instant;
use thorp_client::{Reference, Session};
use thorp_testing::HomeNode;

#[test]
#[ignore = "a measurement, not a test"]
fn what_it_costs() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let since = Instant::now();
    let mut notes: Vec<Reference> = Vec::new();
    for _ in 0..100 {
        let made = anna.transact(|tx| {
            (0..1000)
                .map(|_| tx.create(&shop, vec![7; 92]))
                .collect::<Result<Vec<_>, _>>()
        });
        notes.extend(made.unwrap());
    }
    per("create, 1000 to a commit", since, notes.len());

    let bert = village.member();
    let read_all = || {
        bert.transact(|tx| {
            notes
                .iter()
                .try_fold(0u64, |sum, note| Ok(sum + u64::from(tx.read(note)?[0])))
        })
        .unwrap()
    };
    let since = Instant::now();
    assert_eq!(read_all(), 700_000);
    per("read, cold (81 to a page)", since, notes.len());
    for _ in 0..3 {
        let since = Instant::now();
        assert_eq!(read_all(), 700_000);
        per("read, cached, in page order", since, notes.len());
    }

    let one = notes[0];
    let since = Instant::now();
    for _ in 0..200_000 {
        let mut tx = bert.begin(Session::new());
        tx.read(&one).unwrap();
        tx.commit().unwrap();
    }
    per("transaction of one cached read", since, 200_000);

    let since = Instant::now();
    for n in 0..2000u64 {
        bert.transact(|tx| tx.patch(&one, 0, &n.to_le_bytes()))
            .unwrap();
    }
    per("transaction of one patch", since, 2000);

    let since = Instant::now();
    let mut count = 0;
    bert.transact(|tx| {
        tx.scan(&shop, |_, _| {
            count += 1;
            Ok(())
        })
    })
    .unwrap();
    per("scan, cached", since, count);

    let film = vec![1u8; 64 << 20];
    let since = Instant::now();
    let reference = anna.transact(|tx| tx.create(&shop, film.clone())).unwrap();
    println!("64 MiB committed in {:?}", since.elapsed());
    let since = Instant::now();
    let len = bert.transact(|tx| Ok(tx.read(&reference)?.len())).unwrap();
    assert_eq!(len, film.len());
    println!("64 MiB read in {:?}", since.elapsed());

    println!("{:?}", bert.stats());
}

fn per(what: &str, since: Instant, count: usize) {
    let each = since.elapsed().as_nanos() as f64 / count as f64;
    println!("{what}: {each:.0} ns each");
}
