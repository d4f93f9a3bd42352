//! What policies say they take in memory, beside what they allocate.
#![allow(
    unsafe_code,
    reason = "an allocator that counts can be had in no other way"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use thorp_plan::evict;
use thorp_plan::replay::{Kind, Knobs, Server, Times, Village, replay};

struct Counting;

static LIVE: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Those that note different things.
const LOCALS: [evict::Kind; 4] = [
    evict::Kind::Lru,
    evict::Kind::Sieve,
    evict::Kind::S3Fifo,
    evict::Kind::WTinyLfu,
];

const FOOTPRINT: usize = 8_000;

fn village(local: evict::Kind, client_pages: usize) -> Village {
    Village {
        clients: 12,
        client_pages,
        servers: vec![
            Server {
                pages: 400,
                busy_most: 1.0,
            };
            3
        ],
        home_pages: 400,
        footprint: FOOTPRINT,
        local,
        times: Times::default(),
        seed: 1,
    }
}

/// What is allocated for a policy when all memories have been full for a while.
fn taken(kind: Kind, village: &Village) -> u64 {
    let mut random = fastrand::Rng::with_seed(7);
    let page = |_| (FOOTPRINT as f64 * random.f64().powi(2)) as u32;
    let pages: Vec<u32> = (0..120_000).map(page).collect();
    let clients: Vec<u16> = (0..pages.len()).map(|at| (at % 12) as u16).collect();
    let before = LIVE.load(Ordering::Relaxed);
    let mut policy = kind.policy(village, &Knobs::default()).expect("it can be");
    replay(village, &mut *policy, &pages, &clients, &mut |_| {});
    LIVE.load(Ordering::Relaxed) - before
}

/// The only test here: others would allocate at the same time.
#[test]
fn policies_take_what_they_say_and_not_half_of_it() {
    for client_pages in [80, 2000] {
        for kind in Kind::ALL {
            for local in LOCALS {
                let village = village(local, client_pages);
                let said = kind.bytes(&village, &Knobs::default());
                let taken = taken(kind, &village);
                assert!(
                    taken <= said && said <= taken * 5 / 2,
                    "{kind} of {local}, {client_pages} pages each: says {said}, takes {taken}"
                );
            }
        }
    }
}
