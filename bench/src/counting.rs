//! An allocator that counts: what a structure costs is what it asked for.

#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static BYTES: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted. Install it with `#[global_allocator]`.
pub struct Counting;

/// Bytes allocated now, each allocation with the 16 bytes that an allocator
/// typically adds and rounds to.
pub fn bytes() -> usize {
    BYTES.load(Ordering::Relaxed)
}

fn cost(size: usize) -> usize {
    (size + 8).next_multiple_of(16)
}

// SAFETY: every call is passed on unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(cost(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(cost(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}
