//! What it takes to carry a page, counted: large pieces of memory that are taken, whoever takes them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use thorp_model::{Blob, Generation, NewValue, Note, PageId, SegmentId, WriteOp};
use thorp_testing::{MemberNode, Village};

use crate::nodes::{commit, home, member, site};

/// The system's allocator; what a test's own thread takes is counted.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static TAKEN: Cell<Taken> = const { Cell::new(Taken { pieces: 0, bytes: 0 }) };
}

/// Large pieces of memory that were taken.
#[derive(Clone, Copy, Debug)]
struct Taken {
    pieces: usize,
    bytes: usize,
}

fn count(bytes: usize) {
    if bytes >= LARGE_BYTES {
        // None when the thread is ending.
        let _ = TAKEN.try_with(|taken| {
            let Taken { pieces, bytes: all } = taken.get();
            taken.set(Taken {
                pieces: pieces + 1,
                bytes: all + bytes,
            });
        });
    }
}

#[allow(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed on unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

/// Pages that are nearly full, in somebody's cache.
async fn full_pages(of: &MemberNode, segment: SegmentId) -> Vec<PageId> {
    let first = of.fresh_page(segment).await;
    let mut pages = Vec::new();
    for number in 0..PAGES {
        let page = PageId {
            page: thorp_model::PageNo(first.page.0 + number),
            ..first
        };
        let value = NewValue::Inline(Blob::from(vec![7; VALUE_BYTES]));
        let generation = Generation(1);
        commit(of, page, WriteOp::Create { generation, value }).await;
        of.fetch(page).await;
        pages.push(page);
    }
    pages
}

/// What each of these fetches takes, in everybody who has a part in it.
async fn taken_by_fetches(by: &MemberNode, pages: &[PageId]) -> Taken {
    // What is taken once, and kept.
    let (warm, counted) = pages.split_at(pages.len() / 2);
    for page in warm {
        by.fetch(*page).await;
    }
    let before = TAKEN.get();
    for page in counted {
        by.fetch(*page).await;
    }
    let after = TAKEN.get();
    Taken {
        pieces: (after.pieces - before.pieces) / counted.len(),
        bytes: (after.bytes - before.bytes) / counted.len(),
    }
}

#[tokio::test]
async fn a_page_of_a_neighbour_takes_few_pieces_of_memory_on_its_way() {
    let village = Village::new();
    let home = home(&village).await;
    let site = site(&village, &home, 0).await;
    let anna = member(&village, site.address(), 10).await;
    let bert = member(&village, site.address(), 11).await;
    let segment = anna.open_or_create("letters").await;
    let pages = full_pages(&anna, segment).await;
    let taken = taken_by_fetches(&bert, &pages).await;
    assert_eq!(
        site.handle().notes().get(Note::Redirected),
        u64::from(PAGES)
    );
    // It was 14 and 105,000; queues that grow now and then add a little.
    assert!(taken.pieces <= 10 && taken.bytes <= 76_000, "{taken:?}");
}

#[tokio::test]
async fn a_page_of_the_home_takes_few_pieces_of_memory_on_its_way() {
    let village = Village::new();
    let home = home(&village).await;
    let anna = member(&village, home.address(), 10).await;
    let bert = member(&village, home.address(), 11).await;
    let segment = anna.open_or_create("letters").await;
    let pages = full_pages(&anna, segment).await;
    let taken = taken_by_fetches(&bert, &pages).await;
    assert!(taken.pieces <= 5 && taken.bytes <= 36_500, "{taken:?}");
}

/// What is smaller is not a page or a part of one.
const LARGE_BYTES: usize = 2 << 10;
const VALUE_BYTES: usize = 8000;
const PAGES: u32 = 16;
