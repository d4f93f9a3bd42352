//! What cached pages cost over their bytes, by counting what is allocated.
#![allow(
    unsafe_code,
    reason = "an allocator that counts can be had in no other way"
)]

mod common;

use common::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use thorp_cache::Cache;
use thorp_model::{Draft, Generation, Image, ImageEdit, Position, Slot};

const PAGES: u32 = 20_000;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A page of seventy objects of about a hundred bytes.
fn full_page(number: u32) -> Image {
    let mut edit = ImageEdit::default();
    for slot in 0..70 {
        let value = vec![number as u8; 108];
        edit.set(Slot(slot), Generation(1), Draft::Value(value));
    }
    assert!(edit.fits());
    edit.finish(Position(1), stamp(1))
}

#[test]
fn a_page_costs_at_most_five_percent_over_its_bytes() {
    let cache = Cache::new(usize::MAX);
    cache.publish(&at(1));
    let before = LIVE.load(Ordering::Relaxed);
    let mut bytes = 0;
    for number in 0..PAGES {
        let image = full_page(number);
        bytes += image.bytes().len();
        cache.publish(&arrives(1, number, image));
    }
    let live = LIVE.load(Ordering::Relaxed) - before;
    let over = live as f64 / bytes as f64 - 1.0;
    println!(
        "{PAGES} pages: {bytes} bytes cost {:.2} % more",
        over * 100.0
    );
    assert!(over < 0.05, "{over}");
    // What the cache says it costs is not less than what it does.
    assert!(live <= cache.bytes(), "{live} > {}", cache.bytes());
    for number in 0..PAGES {
        cache.publish(&evicts(2, number));
    }
    assert_eq!((cache.bytes(), cache.pages()), (0, 0));
    // Some are still to be let go by the table; not many.
    let left = LIVE.load(Ordering::Relaxed) - before;
    assert!(left < bytes / 20, "{left} bytes of {bytes} are still held");
}
