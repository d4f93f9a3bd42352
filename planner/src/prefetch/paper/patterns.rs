//! Patterns by policies.

use super::runs::{Runs, Stream};
use super::{ratio, seconds, times};
use crate::Invalid;
use crate::prefetch::{Hierarchy, Outcome, Policy};
use crate::report::{Section, Table};

pub(super) fn section(runs: &mut Runs) -> Result<Section, Invalid> {
    let hierarchy = Hierarchy::of_thesis(4);
    let mut table = Table::new(
        "One node and four memory servers",
        &[
            "pattern",
            "policy",
            "stall, s",
            "elapsed, s",
            "times the limit",
            "disk to local, on demand",
            "ahead",
            "global to local, on demand",
            "ahead",
            "disk to global, ahead",
            "for nothing",
        ],
    );
    for stream in Stream::ALL {
        let limit_us = runs.limit_us(stream, &hierarchy)?;
        for policy in Policy::ALL {
            let outcome = runs.run(stream, &hierarchy, &policy)?;
            table.row(row(stream.name(), &policy, &outcome, limit_us));
        }
    }
    Ok(Section {
        heading: "Prefetching: policies on hinted patterns (thesis, sections 2.3.1 and 4.4.3)".into(),
        words: vec![
            "Each pattern is that of the text: 8 KB pages; random and reverse read each of 12,800 pages once, hotcold reads 20 times 512 pages of 2,560 hot ones and 256 of 10,240 cold ones, in groups of four; cyclic is the same three times. Each node has 4,096 pages of memory and a disk; 250 µs of computing between references, 370 µs for a page from global memory, 13 ms for a page from disk. All of the future is told. In the model every page costs the same, so that reverse, sequential and random are the same pattern; it has no read-ahead.".into(),
            "The limit is a time that no schedule can end before: MIN's misses with local and global memory in one, by all disks at once, and MIN's misses of local memory, by the node's link and disk at once, each with what remains to be computed afterwards.".into(),
            "Section 4.2.2 has a node wait for its first missing page, also while that is on its way into global memory; its own disk is idle meanwhile, which is nearly all of the hybrid's distance from the limit here. *Hybrid, looking past* differs in that alone: it goes on with the first page that is not on its way. *Aggressive, both* is as fast, but brings pages into local memory before they are due and some of them twice, which costs whoever issues fetches: that is the reason for forestall (section 4.2.3).".into(),
        ],
        tables: vec![table],
        charts: Vec::new(),
    })
}

pub(super) fn row(stream: &str, policy: &Policy, outcome: &Outcome, limit_us: u64) -> Vec<String> {
    let fetches = &outcome.fetches;
    let counts = [
        fetches.demand_disk,
        fetches.prefetch_disk,
        fetches.demand_global,
        fetches.prefetch_global,
        fetches.prefetch_into_global,
        outcome.useless,
    ];
    let mut row = vec![
        stream.to_owned(),
        policy.name.to_owned(),
        seconds(outcome.stall_us),
        seconds(outcome.elapsed_us),
        times(ratio(outcome.elapsed_us, limit_us)),
    ];
    row.extend(counts.map(|count| count.to_string()));
    row
}
