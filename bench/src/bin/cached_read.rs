//! What a read of a cached object costs, with its evidence recorded, against a
//! lookup of the same object in a concurrent hash map.
//!
//! `cargo run --release -p thorp-bench --bin cached_read -- [PAGES]`
//!
//! Both sides read all bytes of each object. A transaction is 100 reads, its
//! evidence and its end; the map's reader pins it once for the same 100.
//! The map hashes its keys by one multiplication, as the cache does.

use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::time::{Duration, Instant};
use thorp_cache::{Cache, ReadSet};
use thorp_core::door::Publish;
use thorp_core::ids::{Generation, HomeId, Millis, PageId, Place, Position, Slot, Stamp};
use thorp_core::image::{Content, Draft, ImageEdit};

const HOME: HomeId = HomeId(1);
const PAGES: u32 = 20_000;
const OBJECTS: u16 = 70;
const OBJECT_BYTES: usize = 100;
const READS_PER_TRANSACTION: usize = 100;
/// Reads that stay on a page, in the pattern with locality.
const RUN: u32 = 10;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(300);

type Map = papaya::HashMap<u64, Box<[u8]>, OneMultiplication>;

/// Which object is read next.
#[derive(Clone, Copy, PartialEq)]
enum Pattern {
    /// Any.
    Random,
    /// Ten of a page, then ten of another.
    Local,
}

struct Village {
    cache: Cache,
    map: Map,
    pages: u32,
}

/// Reads in a second of the clock on the wall, and in a second of processor
/// time times the threads: what two idle processors would give.
#[derive(Clone, Copy, Default)]
struct Rate {
    wall: f64,
    processor: f64,
}

/// The best of all rounds.
#[derive(Default)]
struct Best {
    cache_one: Rate,
    cache_two: Rate,
    map_one: Rate,
    map_two: Rate,
}

impl Rate {
    fn best(&mut self, other: Rate) {
        self.wall = self.wall.max(other.wall);
        self.processor = self.processor.max(other.processor);
    }

    /// How many times another rate.
    fn over(self, other: Rate) -> Rate {
        Rate {
            wall: self.wall / other.wall,
            processor: self.processor / other.processor,
        }
    }
}

fn main() {
    let pages = std::env::args().nth(1).and_then(|arg| arg.parse().ok());
    let village = Village::new(pages.unwrap_or(PAGES));
    for (name, pattern) in [("random", Pattern::Random), ("local", Pattern::Local)] {
        let best = measure(&village, pattern);
        report(name, village.pages, &best);
    }
}

fn measure(village: &Village, pattern: Pattern) -> Best {
    let mut best = Best::default();
    // In turn, so that whatever else the machine does falls on all alike.
    for _ in 0..ROUNDS {
        let cache = |seed| village.read_cache(pattern, seed);
        let map = |seed| village.read_map(pattern, seed);
        best.cache_one.best(rate(1, cache));
        best.map_one.best(rate(1, map));
        best.cache_two.best(rate(2, cache));
        best.map_two.best(rate(2, map));
    }
    best
}

fn report(name: &str, pages: u32, best: &Best) {
    let ns = |rate: Rate| 1e9 / rate.processor;
    let (cache, map) = (ns(best.cache_one), ns(best.map_one));
    let ratio = cache / map;
    let cache_two = best.cache_two.over(best.cache_one);
    let map_two = best.map_two.over(best.map_one);
    println!("{name}, {pages} pages of {OBJECTS} objects of {OBJECT_BYTES} bytes:");
    println!("  cache {cache:.1} ns, map {map:.1} ns a read: {ratio:.2} times (target: at most 4)");
    for (what, two) in [("cache", cache_two), ("map", map_two)] {
        println!(
            "  {what}, two threads: {:.2} times one by processor time, {:.2} by the clock (target: at least 1.8)",
            two.processor, two.wall
        );
    }
    println!(
        "{{\"bench\":\"cached_read\",\"pattern\":\"{name}\",\"pages\":{pages},\
         \"cache_ns\":{cache:.2},\"map_ns\":{map:.2},\"ratio\":{ratio:.3},\
         \"cache_two_threads\":{:.3},\"cache_two_threads_wall\":{:.3},\
         \"map_two_threads\":{:.3},\"map_two_threads_wall\":{:.3}}}",
        cache_two.processor, cache_two.wall, map_two.processor, map_two.wall
    );
}

/// Lets so many threads each read on for one round.
fn rate(threads: u64, read_on: impl Fn(u64) -> u64 + Sync) -> Rate {
    let begun = Instant::now();
    let timed = |seed| {
        let before = processor_ns();
        let reads = read_on(seed);
        let spent = processor_ns()
            .zip(before)
            .map(|(after, before)| after - before);
        (reads, spent)
    };
    let done: Vec<(u64, Option<u64>)> = std::thread::scope(|scope| {
        let timed = &timed;
        let threads: Vec<_> = (0..threads)
            .map(|seed| scope.spawn(move || timed(seed + 1)))
            .collect();
        let done = threads.into_iter();
        done.map(|thread| thread.join().expect("it only reads"))
            .collect()
    });
    let reads: u64 = done.iter().map(|(reads, _)| reads).sum();
    let wall = reads as f64 / begun.elapsed().as_secs_f64();
    let each = done
        .iter()
        .map(|(reads, spent)| Some(*reads as f64 * 1e9 / (*spent)? as f64));
    Rate {
        wall,
        processor: each.sum::<Option<f64>>().unwrap_or(wall),
    }
}

/// The processor time of this thread, where the system tells.
fn processor_ns() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split_whitespace().next()?.parse().ok()
}

impl Village {
    fn new(pages: u32) -> Self {
        let (cache, map) = (Cache::new(usize::MAX), Map::default());
        let resident = resident_bytes();
        let mut bytes = 0;
        for number in 0..pages {
            bytes += install(&cache, number);
        }
        if let (Some(before), Some(after)) = (resident, resident_bytes()) {
            let over = (after.saturating_sub(before)) as f64 / bytes as f64 - 1.0;
            println!(
                "{pages} pages, {bytes} bytes: {:.2} % more are resident",
                over * 100.0
            );
        }
        let pinned = map.pin();
        for page in 0..pages {
            for slot in 0..OBJECTS {
                pinned.insert(key(page, slot), object(page, slot).into());
            }
        }
        drop(pinned);
        Village { cache, map, pages }
    }

    fn read_cache(&self, pattern: Pattern, seed: u64) -> u64 {
        let mut walk = Walk::new(seed, self.pages, pattern);
        let mut set = ReadSet::new();
        transactions(|| {
            for _ in 0..READS_PER_TRANSACTION {
                let (page, slot) = walk.next();
                let place = Place {
                    home: HOME,
                    page: PageId::new(1, page),
                };
                let read = set.read(&self.cache, place, Slot(slot)).expect("cached");
                if let Content::Value(bytes) = read.content {
                    black_box(sum(bytes));
                }
            }
            black_box(set.evidence(&self.cache, HOME).expect("nothing changes"));
            set.finish(&self.cache);
        })
    }

    fn read_map(&self, pattern: Pattern, seed: u64) -> u64 {
        let mut walk = Walk::new(seed, self.pages, pattern);
        transactions(|| {
            let pinned = self.map.pin();
            for _ in 0..READS_PER_TRANSACTION {
                let (page, slot) = walk.next();
                let bytes = pinned.get(&key(page, slot)).expect("it is there");
                black_box(sum(bytes));
            }
        })
    }
}

/// Runs transactions for one round; the reads in them.
fn transactions(mut transaction: impl FnMut()) -> u64 {
    let begun = Instant::now();
    let mut reads = 0;
    while begun.elapsed() < ROUND {
        for _ in 0..100 {
            transaction();
            reads += READS_PER_TRANSACTION as u64;
        }
    }
    reads
}

/// Puts a page into the cache; its bytes.
fn install(cache: &Cache, page: u32) -> usize {
    let mut edit = ImageEdit::default();
    for slot in 0..OBJECTS {
        let value = Draft::Value(object(page, slot));
        edit.set(Slot(slot), Generation(1), value);
    }
    let image = edit.finish(Position(1), Stamp::default());
    let bytes = image.bytes().len();
    cache.publish(&Publish {
        home: HOME,
        reset: false,
        touched: Vec::new(),
        evicted: Vec::new(),
        images: vec![(PageId::new(1, page), Some(image))],
        position: Position(1),
        watermark: Stamp::default(),
        heard: Millis(1),
    });
    bytes
}

fn object(page: u32, slot: u16) -> Vec<u8> {
    vec![page as u8 ^ slot as u8; OBJECT_BYTES]
}

fn key(page: u32, slot: u16) -> u64 {
    (u64::from(page) << 16) | u64::from(slot)
}

fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(4);
    let words = words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    words.fold(0, |sum, word| sum.wrapping_add(u64::from(word)))
}

fn resident_bytes() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// The objects in the order of a pattern.
struct Walk {
    dice: u64,
    pages: u32,
    pattern: Pattern,
    page: u32,
    left: u32,
}

impl Walk {
    fn new(seed: u64, pages: u32, pattern: Pattern) -> Self {
        Walk {
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            pages,
            pattern,
            page: 0,
            left: 0,
        }
    }

    fn next(&mut self) -> (u32, u16) {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        let (high, low) = ((self.dice >> 32) as u32, self.dice as u32);
        if self.pattern == Pattern::Random || self.left == 0 {
            self.page = below(high, self.pages);
            self.left = RUN;
        }
        self.left -= 1;
        (self.page, below(low, u32::from(OBJECTS)) as u16)
    }
}

fn below(dice: u32, n: u32) -> u32 {
    ((u64::from(dice) * u64::from(n)) >> 32) as u32
}

/// Hashes by one multiplication.
#[derive(Clone, Copy, Default)]
struct OneMultiplication;

struct Hash(u64);

impl BuildHasher for OneMultiplication {
    type Hasher = Hash;

    fn build_hasher(&self) -> Hash {
        Hash(0)
    }
}

impl Hasher for Hash {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, n: u64) {
        let mixed = u128::from(self.0 ^ n ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (mixed >> 64) as u64 ^ mixed as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
