//! The policies on recorded references.

use super::{ratio, seconds, times};
use crate::Invalid;
use crate::prefetch::{Hierarchy, Hinting, Job, Policy, compare};
use crate::report::{Section, Table};
use crate::trace::{Trace, of_papers};
use std::path::Path;

/// Prefetching on the traces in `traces/` of a directory; without one, what is missing.
pub fn paper_of_traces(data: Option<&Path>) -> Vec<Section> {
    let section = match read(data, REQUESTS_MOST) {
        Ok(traces) => {
            of(&traces).unwrap_or_else(|invalid| Section::left_out(HEADING, &invalid.to_string()))
        }
        Err(why) => Section::left_out(HEADING, &why),
    };
    vec![section]
}

const HEADING: &str = "Prefetching: policies on traces";

fn read(data: Option<&Path>, requests_most: usize) -> Result<Vec<Trace>, String> {
    let traces = of_papers(data, Some(requests_most))?.into_iter();
    let named = |(name, trace): (&str, Trace)| Trace {
        name: name.to_owned(),
        ..trace
    };
    Ok(traces.map(named).collect())
}

/// Fourteen runs of each trace have to be done in seconds; of the three, only orm-busy is longer.
const REQUESTS_MOST: usize = 200_000;

fn of(traces: &[Trace]) -> Result<Section, Invalid> {
    Ok(Section {
        heading: HEADING.into(),
        words: vec![
            "The thesis has no traces in its text. These are accesses of a virtual machine's blocks (cloudPhysics, from libCacheSim's repository), of an object-relational mapper (orm-busy, from cache2k) and of four programs at once (multi3, from LIRS), of each the first 200,000 at most, taken as one process that computes 250 µs between references, with the thesis's times of fetches. An eighth of all pages that occur fits into local memory, a quarter into that of four servers with a disk each.".into(),
            "The second table tells a part of the future only, and a part of that wrongly. A wrong hint names a page that is never read: a prefetch for it takes a disk's time and a frame and brings nothing. The thesis has no wrong hints.".into(),
        ],
        tables: vec![by_policy(traces)?, by_hints(traces)?],
        charts: Vec::new(),
    })
}

fn hierarchy(trace: &Trace) -> Hierarchy {
    let footprint = u32::try_from(trace.footprint).unwrap_or(u32::MAX);
    Hierarchy {
        local_pages: (footprint / 8).max(1),
        global_pages: footprint / 4,
        ..Hierarchy::of_thesis(4)
    }
}

fn by_policy(traces: &[Trace]) -> Result<Table, Invalid> {
    let mut table = Table::new(
        "All of the future is told",
        &[
            "trace",
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
    for trace in traces {
        let comparison = compare(&hierarchy(trace), &Job::hinted(&trace.pages), &Policy::ALL)?;
        for (policy, outcome) in &comparison.outcomes {
            table.row(super::patterns::row(
                &trace.name,
                policy,
                outcome,
                comparison.limit_us,
            ));
        }
    }
    Ok(table)
}

fn by_hints(traces: &[Trace]) -> Result<Table, Invalid> {
    let mut table = Table::new(
        "The hybrid that looks past, by what is told",
        &[
            "trace",
            "told ahead",
            "of that wrong",
            "elapsed, s",
            "times the limit",
            "came late",
            "for nothing",
        ],
    );
    for trace in traces {
        for (hinted, wrong) in [
            (1.0, 0.0),
            (0.9, 0.0),
            (0.5, 0.0),
            (0.0, 0.0),
            (1.0, 0.1),
            (1.0, 0.5),
        ] {
            let job = Job {
                hinting: Hinting {
                    hinted,
                    wrong,
                    seed: 1,
                },
                ..Job::hinted(&trace.pages)
            };
            let comparison = compare(&hierarchy(trace), &job, &[Policy::HYBRID_PAST])?;
            let (_, outcome) = comparison.outcomes[0];
            table.row(vec![
                trace.name.clone(),
                format!("{:.0} %", hinted * 100.0),
                format!("{:.0} %", wrong * 100.0),
                seconds(outcome.elapsed_us),
                times(ratio(outcome.elapsed_us, comparison.limit_us)),
                outcome.late.to_string(),
                outcome.useless.to_string(),
            ]);
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::{TRACES, test_data};

    #[test]
    fn without_traces_it_says_so() {
        for (data, why) in [
            (None, "no directory"),
            (Some(Path::new("/nowhere")), "/nowhere/traces/cloud"),
        ] {
            let sections = paper_of_traces(data);
            assert!(sections[0].words[0].contains(why), "{sections:?}");
        }
    }

    #[test]
    fn traces_are_run() {
        let test = "prefetch::paper::traces::tests::traces_are_run";
        let Some(data) = test_data(test, TRACES) else {
            return;
        };
        let traces = read(Some(&data), 5_000).expect("they are read");
        let section = of(&traces).expect("parameters");
        assert_eq!(section.tables[0].rows.len(), 3 * Policy::ALL.len());
        assert_eq!(section.tables[1].rows.len(), 3 * 6);
    }
}
