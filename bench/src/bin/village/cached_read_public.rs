//! What a read of a cached object costs a program: through `Transaction::read`, with its evidence recorded, against a lookup
//! of the same object in a concurrent hash map.
//!
//! As `cached_read`, but all the way through the client library, and the home is another process. A transaction is 100
//! reads with its beginning and its commit; the map's reader pins it once for the same 100. Both read all bytes.

use std::hint::black_box;
use thorp_bench::Result;
use thorp_bench::reading::{
    Map, Pattern, READS_PER_TRANSACTION, Rounds, Walk, key, sum, transactions,
};
use thorp_bench::village::{HOME, OBJECT_BYTES, OBJECTS_PER_PAGE, Village, fill};
use thorp_client::{Member, Reference, Session};
use thorp_model::Slot;

const PAGES: u32 = 20_000;

/// A warm cache, and a map of the same objects.
struct Warm {
    member: Member,
    /// The first object of each page: the others are found by counting, as the map's keys are.
    firsts: Vec<Reference>,
    map: Map,
}

/// With so many pages.
pub(crate) fn measure(pages: Option<u32>) -> Result<()> {
    let village = Village::new(&[])?;
    let warm = Warm::new(&village, pages.unwrap_or(PAGES))?;
    let before = warm.member.stats();
    for (name, pattern) in Pattern::ALL {
        let rounds = Rounds::of(
            |seed| warm.read_member(pattern, seed),
            |seed| warm.read_map(pattern, seed),
        );
        rounds.print("cached_read_public", name, warm.map.len() as u64);
    }
    let spent = warm.member.stats().since(&before);
    if (spent.misses, spent.conflicts) != (0, 0) {
        return Err(format!("not everything was cached: {spent:?}").into());
    }
    Ok(())
}

impl Warm {
    fn new(village: &Village, pages: u32) -> Result<Self> {
        let name = "reader";
        let config = village.config(HOME, name)?.cache_bytes(usize::MAX);
        let member = Member::join(config)?;
        let segment = member.create("thorp://alps/objects")?;
        let firsts = fill(&member, &segment, pages as usize)?;
        for first in &firsts {
            member.transact(|tx| tx.read(first).map(<[u8]>::len))?;
        }
        let map = Map::default();
        let pinned = map.pin();
        for page in 0..pages {
            for slot in 0..OBJECTS_PER_PAGE {
                pinned.insert(key(page, slot), vec![slot as u8; OBJECT_BYTES].into());
            }
        }
        drop(pinned);
        Ok(Warm {
            member,
            firsts,
            map,
        })
    }

    fn walk(&self, pattern: Pattern, seed: u64) -> Walk {
        Walk::new(seed, (self.firsts.len() as u32, OBJECTS_PER_PAGE), pattern)
    }

    fn read_member(&self, pattern: Pattern, seed: u64) -> u64 {
        let mut walk = self.walk(pattern, seed);
        transactions(|| {
            let mut tx = self.member.begin(Session::new());
            for _ in 0..READS_PER_TRANSACTION {
                let (page, slot) = walk.step();
                let mut reference = self.firsts[page as usize];
                reference.object.slot = Slot(slot);
                black_box(sum(tx.read(&reference).expect("cached")));
            }
            black_box(tx.commit().expect("nothing changes"));
        })
    }

    fn read_map(&self, pattern: Pattern, seed: u64) -> u64 {
        let mut walk = self.walk(pattern, seed);
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
