//! What a directory costs for each (page, holder): targets 64, 32 and 24 bytes
//! at 1, 4 and 16 holders a page, measured at a million pages.
//!
//! `cargo run --release -p thorp-bench --bin directory_memory [PAGES]`

use thorp_bench::counting::{Counting, bytes};
use thorp_model::{EntryNo, PageId};
use thorp_protocol::{ChildNo, Directory, Holder};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let pages = std::env::args().nth(1);
    let pages: u32 = pages.and_then(|p| p.parse().ok()).unwrap_or(1_000_000);
    for (holders, target) in [(1, 64.0), (4, 32.0), (16, 24.0)] {
        for (order, step) in [("ascending", 1), ("scattered", 7_919)] {
            let each = measure(pages, holders, step);
            println!(
                "{{\"bench\":\"directory_memory\",\"pages\":{pages},\"holders\":{holders},\"order\":\"{order}\",\"bytes\":{each:.1},\"target\":{target},\"met\":{}}}",
                each <= target
            );
        }
    }
}

/// Bytes for each (page, holder), the pages entered in an order of this step.
fn measure(pages: u32, holders: u16, step: u64) -> f64 {
    let before = bytes();
    let mut directory = Directory::default();
    for child in 0..holders {
        for number in 0..pages {
            let page = (u64::from(number) * step % u64::from(pages)) as u32;
            let holder = Holder {
                updates: 0,
                child: ChildNo(child),
                complete: true,
                entry: EntryNo(number + 1),
            };
            directory.enter(PageId::new(1, page), holder);
        }
    }
    assert_eq!(directory.len(), pages as usize);
    (bytes() - before) as f64 / (f64::from(pages) * f64::from(holders))
}
