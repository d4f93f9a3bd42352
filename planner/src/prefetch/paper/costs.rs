//! Tables 4.1 and 4.2, which are what the model is given, and what comes of other values.

use super::runs::{Runs, Stream};
use super::seconds;
use crate::Invalid;
use crate::prefetch::{Hierarchy, Policy};
use crate::report::{Section, Table};

pub(super) fn section(runs: &mut Runs) -> Result<Section, Invalid> {
    Ok(Section {
        heading: "Prefetching: what a fetch costs (thesis, tables 4.1 and 4.2)".into(),
        words: vec![
            "The tables are measurements and parameters here. The steps of a prefetch from global memory sum to 412 µs without the access (67.9 + 88.9 + 233.3 + 22.3), of which the text has 370 µs as the whole, since requester and prefetcher overlap; 187 µs of it is the network. Of the 370 the model lets the process compute, except where the last table has it pay 90.2 µs (request and receive) for each prefetch it issues.".into(),
        ],
        tables: vec![by_fetch(runs)?, by_issue(runs)?],
        charts: Vec::new(),
    })
}

fn by_fetch(runs: &mut Runs) -> Result<Table, Invalid> {
    let mut table = Table::new(
        "Cyclic hotcold on five nodes, by what fetches take",
        &[
            "from global memory, µs",
            "from disk, µs",
            "hybrid, s",
            "looking past, s",
            "its pages in global memory on demand, s",
            "limit, s",
        ],
    );
    for (global_fetch_us, disk_fetch_us) in [
        (187, 13_000),
        (370, 13_000),
        (412, 13_000),
        (1_300, 13_000),
        (370, 5_000),
        (370, 1_000),
    ] {
        let hierarchy = Hierarchy {
            global_fetch_us,
            disk_fetch_us,
            ..Hierarchy::of_thesis(4)
        };
        let mut row = vec![global_fetch_us.to_string(), disk_fetch_us.to_string()];
        for policy in [Policy::HYBRID, Policy::HYBRID_PAST, Policy::HYBRID_DISK] {
            row.push(seconds(runs.elapsed_us(
                Stream::HotColdCyclic,
                &hierarchy,
                &policy,
            )?));
        }
        row.push(seconds(runs.limit_us(Stream::HotColdCyclic, &hierarchy)?));
        table.row(row);
    }
    Ok(table)
}

fn by_issue(runs: &mut Runs) -> Result<Table, Invalid> {
    let mut table = Table::new(
        "Random, cyclic on five nodes, 4,000 µs of computing between references",
        &[
            "policy",
            "issuing is free: elapsed, s",
            "at 90.2 µs each: elapsed, s",
            "of that issuing, s",
            "fetches ahead",
        ],
    );
    for policy in [
        Policy::FORESTALL,
        Policy::AGGRESSIVE,
        Policy::HYBRID_PAST,
        Policy::AGGRESSIVE_TWICE,
    ] {
        let mut at = |issue_us| {
            let hierarchy = Hierarchy {
                compute_us: 4_000,
                issue_us,
                ..Hierarchy::of_thesis(4)
            };
            runs.run(Stream::RandomCyclic, &hierarchy, &policy)
        };
        let (free, paid) = (at(0)?, at(90)?);
        table.row(vec![
            policy.name.to_owned(),
            seconds(free.elapsed_us),
            seconds(paid.elapsed_us),
            seconds(paid.issue_us),
            paid.fetches.ahead().to_string(),
        ]);
    }
    Ok(table)
}
