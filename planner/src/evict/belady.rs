//! The best that one memory can do.

use std::collections::BinaryHeap;

/// How many requests one memory of so many pages answers at most: what has to go is always what will be asked for last
/// (Belady's MIN), which may be the page that just came, if it would be the first to go anyhow. No policy has more hits.
pub(crate) fn belady_hits(pages: &[u32], capacity: usize, footprint: usize) -> u64 {
    let next = next_uses(pages, footprint);
    // For each page that is here the next request for it, at which it is here still. Older entries in the heap are stale.
    let mut here = vec![NEVER; footprint];
    let mut latest: BinaryHeap<(usize, u32)> = BinaryHeap::new();
    let (mut hits, mut len) = (0, 0);
    for (at, (&page, &next)) in pages.iter().zip(&next).enumerate() {
        match here[page as usize] == at {
            true => hits += 1,
            false => len += 1,
        }
        // What is never asked for again can go at once.
        if next == NEVER {
            here[page as usize] = NEVER;
            len -= 1;
            continue;
        }
        here[page as usize] = next;
        latest.push((next, page));
        if len > capacity {
            len -= 1;
            evict(&mut latest, &mut here);
        }
    }
    hits
}

fn evict(latest: &mut BinaryHeap<(usize, u32)>, here: &mut [usize]) {
    while let Some((next, page)) = latest.pop() {
        if here[page as usize] == next {
            here[page as usize] = NEVER;
            return;
        }
    }
}

/// For each request the next one for the same page.
fn next_uses(pages: &[u32], footprint: usize) -> Vec<usize> {
    let mut following = vec![NEVER; footprint];
    let mut next = vec![NEVER; pages.len()];
    for (at, &page) in pages.iter().enumerate().rev() {
        next[at] = std::mem::replace(&mut following[page as usize], at);
    }
    next
}

const NEVER: usize = usize::MAX;
