//! What no policy can be faster than.

use super::hierarchy::Hierarchy;
use super::hints::{Hinting, Hints, NEVER};
use super::job::Job;
use crate::Invalid;
use std::collections::BTreeSet;

/// A time that no policy, also none that knows the future, can end before: microseconds from the first reference.
///
/// Finding the optimum itself takes trying everything (see [`super::optimum_us`]), so for real traces there is this bound. Before
/// a reference is served, at least as many pages were read from disk as MIN misses up to there with local and global memory in
/// one, and at least as many came into local memory as MIN misses with local memory alone (MIN is optimal for every beginning of
/// a sequence). Disks and links bring one page at a time; what a memory server's disk reads needs the link as well; and what comes
/// after the reference has still to be computed. The latest time that follows at any reference is the bound. With several
/// processes it holds for each: it leaves all servers to that one.
///
/// # Errors
///
/// [`Invalid`] if a parameter cannot be.
pub fn limit_us(hierarchy: &Hierarchy, job: &Job<'_>) -> Result<u64, Invalid> {
    hierarchy.check()?;
    job.check()?;
    let work_us = job.work_us(hierarchy.compute_us);
    let whole_us = work_us[job.pages.len()];
    let frames = hierarchy.local_pages as usize;
    let read = misses(job, frames + hierarchy.global_pages as usize);
    let brought = misses(job, frames);
    let times = |misses: Vec<u32>, ready_us: &dyn Fn(u64) -> u64| {
        let at = |(count, position): (usize, u32)| {
            ready_us(count as u64 + 1) + whole_us - work_us[position as usize]
        };
        misses.into_iter().enumerate().map(at).max().unwrap_or(0)
    };
    let by_disks = times(read, &|count| read_us(hierarchy, count));
    let by_link = times(brought, &|count| brought_us(hierarchy, count));
    Ok(by_disks.max(by_link).max(whole_us))
}

/// The least time until so many pages are read and have come into local memory: in each round of the disks the node's own has its
/// page there first, the others' need the link.
fn read_us(hierarchy: &Hierarchy, count: u64) -> u64 {
    let servers = match hierarchy.global_pages {
        0 => 0,
        _ => u64::from(hierarchy.server_disks),
    };
    let over_link_us = match (count - 1) % (servers + 1) {
        0 => 0,
        _ => hierarchy.global_fetch_us,
    };
    count.div_ceil(servers + 1) * hierarchy.disk_fetch_us + over_link_us
}

/// The least time until so many pages have come into local memory, when link and disk bring them all the time.
fn brought_us(hierarchy: &Hierarchy, count: u64) -> u64 {
    if hierarchy.global_pages == 0 {
        return count * hierarchy.disk_fetch_us;
    }
    let (link, disk) = (
        u128::from(hierarchy.global_fetch_us),
        u128::from(hierarchy.disk_fetch_us),
    );
    let least = (u128::from(count) * link * disk).div_ceil(link + disk);
    u64::try_from(least).unwrap_or(u64::MAX)
}

/// The references that miss in so many frames with Belady's MIN, in order. A page that comes takes the frame of another.
pub(super) fn misses(job: &Job<'_>, frames: usize) -> Vec<u32> {
    let hints = Hints::of(job.pages, job.page_count(), &Hinting::COMPLETE);
    let (mut needed, mut free) = (BTreeSet::new(), frames);
    let mut missed = Vec::new();
    for position in 0..job.pages.len() as u32 {
        if !needed.remove(&position) {
            missed.push(position);
            match free {
                0 => drop(needed.pop_last()),
                _ => free -= 1,
            }
        }
        match hints.next(position) {
            // A page that is never needed again holds no frame against others.
            NEVER => free += 1,
            next => drop(needed.insert(next)),
        }
    }
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_misses_as_belady_says() {
        // Three frames: the textbook's sequence misses nine times with FIFO, ten with four frames, and seven times with MIN.
        let pages = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5];
        assert_eq!(misses(&Job::hinted(&pages), 3).len(), 7);
        assert_eq!(misses(&Job::hinted(&pages), 4).len(), 6);
        assert_eq!(misses(&Job::hinted(&pages), 5).len(), 5);
    }

    #[test]
    fn a_cold_scan_is_bounded_by_its_disks() {
        let pages: Vec<u32> = (0..10).collect();
        let hierarchy = Hierarchy {
            local_pages: 4,
            global_pages: 4,
            server_disks: 1,
            compute_us: 1,
            global_fetch_us: 2,
            disk_fetch_us: 10,
            issue_us: 0,
        };
        // Ten pages by two disks: five rounds, the last page over the link, then one computation.
        assert_eq!(limit_us(&hierarchy, &Job::hinted(&pages)), Ok(53));
        let alone = Hierarchy {
            global_pages: 0,
            ..hierarchy
        };
        assert_eq!(limit_us(&alone, &Job::hinted(&pages)), Ok(101));
    }
}
