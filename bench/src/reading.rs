//! Reading on and on: which object is next, how fast it goes, and the map that it is held against.

use crate::figure::{Figure, median};
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

/// Reads of a transaction.
pub const READS_PER_TRANSACTION: usize = 100;
/// Reads that stay on a page, in the pattern with locality.
const RUN: u32 = 10;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(300);

/// A concurrent hash map of the same objects. It hashes its keys by one multiplication, as the cache does.
pub type Map = papaya::HashMap<u64, Box<[u8]>, OneMultiplication>;

/// Which object is read next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pattern {
    /// Any.
    Random,
    /// Ten of a page, then ten of another.
    Local,
}

impl Pattern {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Pattern); 2] =
        [("random", Pattern::Random), ("local", Pattern::Local)];
}

/// Reads in a second of the clock on the wall, and in a second of processor
/// time times the threads: what two idle processors would give.
#[derive(Clone, Copy, Default, Debug)]
pub struct Rate {
    /// By the clock on the wall.
    pub wall: f64,
    /// By processor time.
    pub processor: f64,
}

/// What came of all rounds.
#[derive(Default, Debug)]
pub struct Rounds(Vec<Round>);

#[derive(Clone, Copy, Debug)]
struct Round {
    one: Rate,
    two: Rate,
    map_one: Rate,
    map_two: Rate,
}

impl Rate {
    /// How many times another rate.
    fn over(self, other: Rate) -> Rate {
        Rate {
            wall: self.wall / other.wall,
            processor: self.processor / other.processor,
        }
    }
}

impl Rounds {
    /// Measures what reads on for one round with a seed, and the map's reader, in turn, so that whatever else the machine
    /// does falls on all alike.
    pub fn of(measured: impl Fn(u64) -> u64 + Sync, map: impl Fn(u64) -> u64 + Sync) -> Self {
        let round = |_| Round {
            one: rate(1, &measured),
            map_one: rate(1, &map),
            two: rate(2, &measured),
            map_two: rate(2, &map),
        };
        Rounds((0..ROUNDS).map(round).collect())
    }

    /// Prints both figures: what a read costs, and what a second thread brings.
    pub fn print(&self, name: &str, pattern: &str, objects: u64) {
        let figure = |what: &str| {
            let figure = Figure::new(name).with("figure", what);
            figure.with("pattern", pattern).with("objects", objects)
        };
        figure("cost against a concurrent hash map")
            .with("ns", self.median(|round| 1e9 / round.one.processor))
            .with("map_ns", self.median(|round| 1e9 / round.map_one.processor))
            .at_most(
                "ratio",
                self.median(|round| round.map_one.over(round.one).processor),
                4.0,
            );
        figure("two threads against one, by processor time")
            .with(
                "by_wall",
                self.median(|round| round.two.over(round.one).wall),
            )
            .with(
                "map",
                self.median(|round| round.map_two.over(round.map_one).processor),
            )
            .with(
                "map_by_wall",
                self.median(|round| round.map_two.over(round.map_one).wall),
            )
            .at_least(
                "ratio",
                self.median(|round| round.two.over(round.one).processor),
                1.8,
            );
    }

    fn median(&self, of: impl Fn(&Round) -> f64) -> f64 {
        median(self.0.iter().map(of).collect())
    }
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

/// Runs transactions for one round; the reads in them.
pub fn transactions(mut transaction: impl FnMut()) -> u64 {
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

/// An object's key in the map.
pub fn key(page: u32, slot: u16) -> u64 {
    (u64::from(page) << 16) | u64::from(slot)
}

/// Looks at all bytes of an object.
pub fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(4);
    let words = words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    words.fold(0, |sum, word| sum.wrapping_add(u64::from(word)))
}

/// The objects in the order of a pattern.
#[derive(Debug)]
pub struct Walk {
    dice: u64,
    pages: u32,
    objects: u16,
    pattern: Pattern,
    page: u32,
    left: u32,
}

impl Walk {
    /// Over so many pages of so many objects.
    pub fn new(seed: u64, (pages, objects): (u32, u16), pattern: Pattern) -> Self {
        Walk {
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            pages,
            objects,
            pattern,
            page: 0,
            left: 0,
        }
    }

    /// The next page and slot.
    pub fn step(&mut self) -> (u32, u16) {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        let (high, low) = ((self.dice >> 32) as u32, self.dice as u32);
        if self.pattern == Pattern::Random || self.left == 0 {
            self.page = below(high, self.pages);
            self.left = RUN;
        }
        self.left -= 1;
        (self.page, below(low, u32::from(self.objects)) as u16)
    }
}

fn below(dice: u32, n: u32) -> u32 {
    ((u64::from(dice) * u64::from(n)) >> 32) as u32
}

/// Hashes by one multiplication.
#[derive(Clone, Copy, Default, Debug)]
pub struct OneMultiplication;

/// The state of [`OneMultiplication`].
#[derive(Debug)]
pub struct Hash(u64);

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
