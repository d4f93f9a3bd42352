//! Real threads: one writer, several readers, for a moment. Every commit
//! writes its position into the same slot of two pages, so that whoever sees
//! both pages sees whether they are of one state.

mod common;

use common::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use thorp_cache::{Cache, Doomed, ReadError, ReadSet};
use thorp_model::{Position, Publish, Xoshiro256};

const SLOTS: usize = 8;
const PAIRS: u32 = 4;
const READERS: u64 = 3;
const LASTS: Duration = Duration::from_millis(1500);

/// When each slot of each pair last changed, as the home knows it; written
/// before it is published.
struct Truth {
    changed: Vec<[AtomicU64; SLOTS]>,
    over: AtomicBool,
}

fn write(cache: &Cache, truth: &Truth) {
    let mut dice = Xoshiro256::new(7);
    let mut values = vec![[1u64; SLOTS]; PAIRS as usize];
    let mut versions = vec![1u64; PAIRS as usize];
    let mut evicted = vec![false; PAIRS as usize];
    let mut position = 1;
    while !truth.over.load(Ordering::Relaxed) {
        let pair = dice.below(u64::from(PAIRS)) as usize;
        let (left, right) = (2 * pair as u32, 2 * pair as u32 + 1);
        let how = dice.below(40);
        if how == 0 {
            // The stream was broken: all pages may have changed.
            let all: Vec<_> = (0..2 * PAIRS).map(page).collect();
            let broken = Publish {
                images: all.iter().map(|page| (*page, None)).collect(),
                missed: Some(all),
                ..at(position)
            };
            cache.publish(&broken);
            evicted.fill(true);
        } else if how < 4 && !evicted[pair] {
            cache.publish(&evicts(position, left));
            evicted[pair] = true;
        } else if evicted[pair] {
            // Both come back, one after the other.
            for number in [right, left] {
                cache.publish(&arrives(
                    position,
                    number,
                    image(versions[pair], &values[pair]),
                ));
            }
            evicted[pair] = false;
        } else {
            position += 1;
            let slot = dice.below(SLOTS as u64) as usize;
            values[pair][slot] = position;
            versions[pair] = position;
            truth.changed[pair][slot].store(position, Ordering::SeqCst);
            cache.publish(&both(position, [left, right], slot, &values[pair]));
        }
        if dice.below(64) == 0 {
            std::thread::yield_now();
        }
    }
}

fn both(position: u64, numbers: [u32; 2], slot: usize, values: &[u64]) -> Publish {
    Publish {
        touched: numbers
            .map(|number| (page(number), slots(&[slot as u16])))
            .to_vec(),
        images: numbers
            .map(|number| (page(number), Some(image(position, values))))
            .to_vec(),
        ..at(position)
    }
}

/// Reads one slot of some pairs; what it saw.
fn transact(
    set: &mut ReadSet,
    cache: &Cache,
    dice: &mut Xoshiro256,
) -> Result<Vec<(usize, usize, u64)>, ReadError> {
    let mut seen = Vec::new();
    for _ in 0..4 {
        let pair = dice.below(u64::from(PAIRS)) as usize;
        let slot = dice.below(SLOTS as u64) as usize;
        let left = read(set, cache, 2 * pair as u32, slot as u16)?;
        if dice.below(4) == 0 {
            std::thread::yield_now();
        }
        let right = read(set, cache, 2 * pair as u32 + 1, slot as u16)?;
        assert_eq!(left, right, "pair {pair} slot {slot} of two states");
        seen.push((pair, slot, left));
    }
    Ok(seen)
}

fn read_on(seed: u64, cache: &Cache, truth: &Truth) -> [u64; 3] {
    let (mut dice, mut set) = (Xoshiro256::new(seed), ReadSet::new());
    let (mut committed, mut doomed, mut missed) = (0, 0, 0);
    while !truth.over.load(Ordering::Relaxed) {
        let done = transact(&mut set, cache, &mut dice);
        let evidence = set.evidence(cache, HOME);
        match (done, evidence) {
            (Ok(seen), Ok(evidence)) => {
                assert_true(&seen, evidence, truth);
                committed += 1;
            }
            (Err(ReadError::Miss(_)), _) => missed += 1,
            (_, Err(Doomed::Newer(_) | Doomed::Changed(_))) => doomed += 1,
            (done, evidence) => panic!("{done:?} {evidence:?}"),
        }
        set.finish(cache);
    }
    [committed, doomed, missed]
}

/// Nothing that was read is newer than the evidence, nor did it change between.
fn assert_true(seen: &[(usize, usize, u64)], evidence: Position, truth: &Truth) {
    for (pair, slot, value) in seen {
        assert!(*value <= evidence.0);
        let changed = truth.changed[*pair][*slot].load(Ordering::SeqCst);
        // Later changes overwrite the truth; those at or before the evidence must be ours.
        assert!(changed == *value || changed > evidence.0, "an old value");
    }
}

#[test]
fn threads_see_one_state_each() {
    let cache = Cache::new(1 << 20);
    cache.publish(&at(1));
    let truth = Truth {
        changed: (0..PAIRS)
            .map(|_| std::array::from_fn(|_| AtomicU64::new(1)))
            .collect(),
        over: AtomicBool::new(false),
    };
    for number in 0..2 * PAIRS {
        cache.publish(&arrives(1, number, image(1, &[1; SLOTS])));
    }
    let begun = Instant::now();
    let totals = std::thread::scope(|scope| {
        scope.spawn(|| write(&cache, &truth));
        let readers: Vec<_> = (1..=READERS)
            .map(|seed| {
                scope.spawn({
                    let (cache, truth) = (&cache, &truth);
                    move || read_on(seed, cache, truth)
                })
            })
            .collect();
        while begun.elapsed() < LASTS && readers.iter().all(|reader| !reader.is_finished()) {
            std::thread::sleep(Duration::from_millis(10));
        }
        truth.over.store(true, Ordering::Relaxed);
        let ends = readers
            .into_iter()
            .map(|reader| reader.join().expect("it held"));
        ends.fold([0; 3], |sum, end| {
            std::array::from_fn(|at| sum[at] + end[at])
        })
    });
    println!(
        "committed, doomed, missed: {totals:?}; position {}",
        cache.position(HOME)
    );
    assert!(totals.iter().all(|count| *count > 0), "{totals:?}");
}
