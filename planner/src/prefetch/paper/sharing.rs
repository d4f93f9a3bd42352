//! Figure 4.9, right side: processes on different nodes that share one idle node.

use super::runs::{Runs, Stream};
use super::{percent_more, ratio, seconds};
use crate::Invalid;
use crate::prefetch::{Hierarchy, Hinting, Job, Policy, simulate};
use crate::report::{Section, Table};

pub(super) fn section(runs: &mut Runs) -> Result<Section, Invalid> {
    let pages = runs.pages(Stream::HotColdCyclic)?;
    let (told, untold) = (
        Job::hinted(pages),
        Job {
            hinting: Hinting::NONE,
            ..Job::hinted(pages)
        },
    );
    let shared = Hierarchy::of_thesis(1);
    let half = Hierarchy {
        global_pages: shared.global_pages / 2,
        ..shared
    };
    let mut table = Table::new(
        "Elapsed time of each process, s",
        &["processes", "first", "second"],
    );
    let mut times = Vec::new();
    for (shown, hierarchy, jobs) in [
        ("one without hints", &shared, vec![untold]),
        (
            "one without hints, half of the idle node's memory",
            &half,
            vec![untold],
        ),
        ("one with hints", &shared, vec![told]),
        ("two without hints", &shared, vec![untold, untold]),
        (
            "one with hints and one without",
            &shared,
            vec![told, untold],
        ),
        ("two with hints", &shared, vec![told, told]),
    ] {
        let outcomes = simulate(hierarchy, &jobs, &Policy::HYBRID_PAST)?;
        let elapsed: Vec<u64> = outcomes.iter().map(|outcome| outcome.elapsed_us).collect();
        let second = elapsed
            .get(1)
            .map_or(String::new(), |&time_us| seconds(time_us));
        table.row(vec![shown.to_owned(), seconds(elapsed[0]), second]);
        times.push(elapsed);
    }
    let words = vec![
        format!(
            "Processes on nodes of their own share one idle node and compete for its memory and disk. The thesis (Render): two without hints each take within 1 % of what one alone takes with half of that memory; the model (hotcold, cyclic): {} and {}. The thesis: beside one with hints, that one finishes quickly and leaves the resources to the other, to which it does no harm against another without hints; the model: {} for the other.",
            percent_more(ratio(times[3][0], times[1][0])),
            percent_more(ratio(times[3][1], times[1][0])),
            percent_more(ratio(times[4][1], times[3][1])),
        ),
        "Two processes on one node (the left side of the figure) share a processor too, which the model does not have.".into(),
    ];
    Ok(Section {
        heading: "Prefetching: processes that share an idle node (thesis, figure 4.9)".into(),
        words,
        tables: vec![table],
        charts: Vec::new(),
    })
}
