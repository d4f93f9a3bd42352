//! Figures 3.5, 3.6 and 3.7.

use super::{ABOUT, Named, percent};
use crate::evict::StackDistances;
use crate::replay::{Deviation, Newcomer, Times};
use crate::report::{Axis, Chart, Section, Series, Table};

/// Figure 3.5.
pub(super) fn stack(traces: &[Named]) -> Section {
    let mut table = Table::new(
        "Requests that find their page at these parts of the LRU stack",
        &[
            "trace",
            "requests",
            "pages",
            "first requests",
            "top 5 %",
            "5 to 20 %",
            "20 to 50 %",
            "bottom 50 %",
            "more than 1 % at one position",
        ],
    );
    let mut curves = Vec::new();
    for Named { name, trace } in traces {
        let told = StackDistances::of(&trace.pages, trace.footprint);
        let requests = told.requests() as f64;
        let between = |from: f64, to: f64| {
            let position = |part: f64| (part * trace.footprint as f64) as usize;
            percent((told.hits(position(to)) - told.hits(position(from))) as f64 / requests)
        };
        let frequent = told
            .counts()
            .iter()
            .filter(|&&count| count as f64 > requests / 100.0)
            .count();
        table.row(vec![
            (*name).into(),
            trace.pages.len().to_string(),
            trace.footprint.to_string(),
            percent(told.firsts() as f64 / requests),
            between(0.0, 0.05),
            between(0.05, 0.2),
            between(0.2, 0.5),
            between(0.5, 1.0),
            frequent.to_string(),
        ]);
        curves.push(Series::line(name, by_position(&told)));
    }
    Section {
        heading: "How deep in the LRU stack pages are found (thesis, figure 3.5)".into(),
        words: vec![
            ABOUT.into(),
            "The thesis: for the programs of table 3.1 each position in the bottom 95 % of the stack is asked for with a probability below 1 %, for those of table 3.2 every position that is known; long tails of pages that hardly matter. Ours have the tails, too: each point is the mean over a hundredth of the stack.".into(),
        ],
        tables: vec![table],
        charts: vec![Chart {
            name: "lru-stack".into(),
            title: "Probability that a request finds its page at a position of the LRU stack".into(),
            x: Axis::linear("position from the top, % of all pages"),
            y: Axis::log("probability of one position, %"),
            series: curves,
        }],
    }
}

/// The mean probability of a position, for each hundredth of the stack.
fn by_position(told: &StackDistances) -> Vec<(f64, f64)> {
    let hundredth = told.counts().len().div_ceil(100).max(1);
    let parts = told.counts().chunks(hundredth).enumerate();
    let point = |(at, part): (usize, &[u64])| {
        let mean = part.iter().sum::<u64>() as f64 / part.len() as f64;
        (at as f64 + 0.5, 100.0 * mean / told.requests() as f64)
    };
    parts.map(point).collect()
}

/// Figure 3.6.
pub(super) fn deviation(traces: &[Named]) -> Section {
    let mut columns = vec!["lets go of the page at"];
    columns.extend(traces.iter().map(|named| named.name));
    let mut table = Table::new(
        "More disk faults than LRU has, by the position in global memory, from its oldest page",
        &columns,
    );
    let deviation = Deviation::default();
    let curve = |named: &Named| -> Vec<(f64, f64)> {
        let faults = |position| {
            deviation.disk_faults(&named.trace.pages, named.trace.footprint, position) as f64
        };
        let lru = faults(0.0);
        POSITIONS
            .iter()
            .map(|&position| (position * 100.0, 100.0 * (faults(position) / lru - 1.0)))
            .collect()
    };
    let curves: Vec<Series> = traces
        .iter()
        .map(|named| Series::line(named.name, curve(named)))
        .collect();
    for (at, position) in POSITIONS.iter().enumerate() {
        let mut row = vec![format!("{:.0} %", position * 100.0)];
        row.extend(
            curves
                .iter()
                .map(|curve| format!("{:+.1} %", curve.points[at].1 + 0.0)),
        );
        table.row(row);
    }
    Section {
        heading: "Deviating from LRU (thesis, figure 3.6)".into(),
        words: vec![
            "One client has memory for a quarter of all pages, one server for half of them. Instead of the oldest page of the server the one at a position from there is let go. First requests, which nobody can answer, count as disk faults.".into(),
            "The thesis: m3 has 9 % more disk faults at 30 %; ld, atom, render and applu have fewer than with LRU; m88ksim suffers from 25 % on. Ours are of the same three kinds: cloudPhysics has the fewer the farther one strays, so that its pages must come around again after more than fits; multi3 stays within -2 % and +7 %; orm-busy has more from the beginning, of the few that LRU leaves it.".into(),
            format!("With LRU these parts of all requests are disk faults: {}.", lru_faults(traces, &deviation)),
        ],
        tables: vec![table],
        charts: vec![Chart {
            name: "lru-deviation".into(),
            title: "More disk faults, by the position of the page that is let go".into(),
            x: Axis::linear("position in global memory, % from the oldest"),
            y: Axis::linear("more disk faults than LRU, %"),
            series: curves,
        }],
    }
}

fn lru_faults(traces: &[Named], deviation: &Deviation) -> String {
    let told = traces.iter().map(|Named { name, trace }| {
        let faults = deviation.disk_faults(&trace.pages, trace.footprint, 0.0);
        format!(
            "{name} {}",
            percent(faults as f64 / trace.pages.len() as f64)
        )
    });
    told.collect::<Vec<_>>().join(", ")
}

const POSITIONS: [f64; 11] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// Figure 3.7.
pub(super) fn newcomer(traces: &[Named]) -> Section {
    let mut table = Table::new(
        "Longer execution if every third fault goes to the new server, whatever the ages, than if its memory is used at once",
        &[
            "trace",
            "new server has 1/3",
            "with 1 ms of work a request",
            "new server has 2/3",
            "with 1 ms of work a request",
        ],
    );
    for Named { name, trace } in traces {
        let mut row = vec![(*name).to_owned()];
        for newcomer in [Newcomer::THIRD, Newcomer::TWO_THIRDS] {
            for think_ms in [0.0, 1.0] {
                let times = Times {
                    think_ms,
                    ..Times::default()
                };
                row.push(percent(newcomer.increase(
                    &trace.pages,
                    trace.footprint,
                    &times,
                )));
            }
        }
        table.row(row);
    }
    Section {
        heading: "Naive balancing when a server joins (thesis, figure 3.7)".into(),
        words: vec![
            "A client and two servers have 1/3, 1/6 and 1/6 of the memory for all pages, or 1/9 each; a third server joins with the rest after a third of the requests. A page of another's memory takes 0.194 ms, one from disk 3.6 ms (the times of section 3.3.2; what its simulator took is not said). Of its programs' own work the thesis tells what came between two faults (Z, table 3.1), not what came between two references: we show none of it, which is an upper bound, and 1 ms a request.".into(),
            "The thesis has bars whose numbers are not in the text, and concludes that ignoring ages altogether does not use new memory eagerly enough. So it is here where the new memory is large, and hardly so where it is small: what is there before it joins is enough by then.".into(),
        ],
        tables: vec![table],
        charts: Vec::new(),
    }
}
