//! What section 3.4.3 of the thesis shows, and what the policies make of the traces that we have.

mod lru;
mod policies;

use crate::report::Section;
use crate::trace::{Trace, of_papers};
use std::path::Path;

/// Figures 3.5 to 3.7 and the policies, on the traces in `traces/` of a directory; without one, what is missing.
pub fn paper(data: Option<&Path>) -> Vec<Section> {
    match read(data, None) {
        Ok(traces) => {
            let mut sections = computed(&traces);
            sections.push(compared());
            sections
        }
        Err(why) => vec![Section::left_out(
            "Replayed traces (thesis, section 3.4.3)",
            &why,
        )],
    }
}

fn computed(traces: &[Named]) -> Vec<Section> {
    let mut sections = vec![
        lru::stack(traces),
        lru::deviation(traces),
        lru::newcomer(traces),
    ];
    sections.extend(policies::sections(traces));
    sections
}

/// What another simulator counts. It is no part of the project, so that its figures are those of the last run of a script.
fn compared() -> Section {
    Section {
        heading: "Beside another simulator".into(),
        words: vec![
            "`scripts/plan_compare.sh TRACE.oracleGeneral.bin PAGES...` counts the misses of one memory under LRU, FIFO, CLOCK, S3-FIFO and SIEVE here and in libCacheSim (the Python package libcachesim, version 0.3.5, used for nothing else), all objects taken as of one size. In its last run, with the trace cloudPhysics, 95 of 95 counts were the same to the request. These figures are from that run: the command that writes this page does not repeat it.".into(),
            "It compares S3-FIFO from 20 pages on: its small queue is a tenth of all pages, and libCacheSim takes nothing into a small queue of one page, which is what there is below. W-TinyLFU and the policies of cooperation are not compared.".into(),
        ],
        ..Section::default()
    }
}

/// A trace under the name that figures use.
struct Named {
    name: &'static str,
    trace: Trace,
}

fn read(data: Option<&Path>, requests_most: Option<usize>) -> Result<Vec<Named>, String> {
    let traces = of_papers(data, requests_most)?.into_iter();
    Ok(traces.map(|(name, trace)| Named { name, trace }).collect())
}

const ABOUT: &str = "The traces of the thesis (of the programs of table 3.1 and, for LRU alone, of six of Glass and Cao) are not to be had. These are others: cloudPhysics, the block accesses of a virtual machine (from libCacheSim's repository); orm-busy, an object-relational mapper (from cache2k); multi3, four programs at once (from LIRS, both by way of Caffeine). They are accesses of whole blocks and objects, below whatever buffers their programs had, and not loads and stores of a processor: what a program uses again within microseconds is not in them.";

fn percent(part: f64) -> String {
    crate::report::percent(part, 1)
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
            let sections = paper(data);
            assert!(
                sections.len() == 1 && sections[0].words[0].contains(why),
                "{sections:?}"
            );
        }
    }

    #[test]
    fn the_page_tells_of_the_comparison_as_the_code_does() {
        let page = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../docs/planning/server-load.md"
        );
        let page = std::fs::read_to_string(page).expect("the page");
        let page = page.replace('\n', " ");
        let section = compared();
        for part in section.words.iter().chain([&section.heading]) {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn tables_and_charts_are_full() {
        let test = "replay::paper::tests::tables_and_charts_are_full";
        let Some(data) = test_data(test, TRACES) else {
            return;
        };
        // Whole traces would take a test without optimisation minutes.
        let traces = read(Some(&data), Some(5_000)).expect("they are read");
        let sections = computed(&traces);
        assert_eq!(sections.len(), 7);
        for section in &sections {
            assert!(!section.tables.is_empty(), "{}", section.heading);
            let cells = section
                .tables
                .iter()
                .flat_map(|table| table.rows.iter().flatten());
            assert!(
                cells
                    .clone()
                    .all(|cell| !cell.is_empty() && !cell.contains("NaN") && !cell.contains("inf"))
            );
            let points = section
                .charts
                .iter()
                .flat_map(|chart| chart.series.iter().flat_map(|curve| &curve.points));
            assert!(points.clone().all(|(x, y)| x.is_finite() && y.is_finite()));
        }
    }
}
