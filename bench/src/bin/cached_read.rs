//! What a read of a cached object costs, with its evidence recorded, against a
//! lookup of the same object in a concurrent hash map.
//!
//! `cargo run --release -p thorp-bench --bin cached_read -- [PAGES]`
//!
//! Both sides read all bytes of each object. A transaction is 100 reads, its
//! evidence and its end; the map's reader pins it once for the same 100.
//! The map hashes its keys by one multiplication, as the cache does.

use std::hint::black_box;
use thorp_bench::reading::{
    Map, Pattern, READS_PER_TRANSACTION, Rounds, Walk, key, sum, transactions,
};
use thorp_cache::{Cache, ReadSet};
use thorp_model::{
    Content, Draft, Generation, HomeId, ImageEdit, Millis, PageId, Place, Position, Publish, Slot,
    Stamp,
};

const HOME: HomeId = HomeId(1);
const PAGES: u32 = 20_000;
const OBJECTS: u16 = 70;
const OBJECT_BYTES: usize = 100;

struct Village {
    cache: Cache,
    map: Map,
    pages: u32,
}

fn main() {
    let pages = std::env::args().nth(1).and_then(|arg| arg.parse().ok());
    let village = Village::new(pages.unwrap_or(PAGES));
    for (name, pattern) in Pattern::ALL {
        let rounds = Rounds::of(
            |seed| village.read_cache(pattern, seed),
            |seed| village.read_map(pattern, seed),
        );
        let objects = u64::from(village.pages) * u64::from(OBJECTS);
        rounds.print("cached_read", name, objects);
    }
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
        let mut walk = Walk::new(seed, (self.pages, OBJECTS), pattern);
        let mut set = ReadSet::new();
        transactions(|| {
            for _ in 0..READS_PER_TRANSACTION {
                let (page, slot) = walk.step();
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
        let mut walk = Walk::new(seed, (self.pages, OBJECTS), pattern);
        transactions(|| {
            let pinned = self.map.pin();
            for _ in 0..READS_PER_TRANSACTION {
                let (page, slot) = walk.step();
                let bytes = pinned.get(&key(page, slot)).expect("it is there");
                black_box(sum(bytes));
            }
        })
    }
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
        overlay: thorp_model::OverlayUpdate::default(),
        touched: Vec::new(),
        evicted: Vec::new(),
        images: vec![(PageId::new(1, page), Some(image))],
        position: Position(1),
        watermark: Stamp::default(),
        heard: Millis(1),
        missed: None,
        tentative: Default::default(),
        history: 0,
    });
    bytes
}

fn object(page: u32, slot: u16) -> Vec<u8> {
    vec![page as u8 ^ slot as u8; OBJECT_BYTES]
}

fn resident_bytes() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
