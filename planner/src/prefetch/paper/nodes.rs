//! Figures 4.3 to 4.7: what nodes and each kind of prefetching add.

use super::runs::{Runs, Stream};
use super::{percent_more, ratio, seconds, times};
use crate::Invalid;
use crate::prefetch::{Hierarchy, Policy};
use crate::report::{Axis, Chart, Section, Series, Table};

pub(super) fn section(runs: &mut Runs) -> Result<Section, Invalid> {
    Ok(Section {
        heading: "Prefetching: what memory servers add (thesis, figures 4.3 to 4.7)".into(),
        words: vec![
            "Speedups are relative to one node without global memory and without prefetching. The text gives few values, and most are of Render, a program whose references it does not contain; beside them stands what cyclic hotcold does, which like Render has cold misses, a working set above local memory, and reuse. The prototype's baseline had the system's read-ahead, and its disks were faster on neighbours; the model's are not, so cyclic patterns, whose later rounds need no disk, gain more here than the thesis's 4 to 7.".into(),
            "The hybrid by the text gains nothing from a second idle node and loses by prefetching from global memory, both because the node's own disk stands idle while its first missing page is on its way into global memory. By the thesis that prefetching gains 5 % for Render (section 4.1), and its speedup is nearly linear in nodes (section 4.4.3); the hybrid that looks past such pages does both, so the prototype presumably did that. It is what the charts and the last table show.".into(),
        ],
        tables: vec![claims(runs)?, breakdown(runs)?],
        charts: vec![by_pattern(runs)?, by_kind(runs)?],
    })
}

/// Nodes of the thesis's cluster, with the active one.
const NODES: std::ops::RangeInclusive<u32> = 1..=5;

fn of(nodes: u32) -> Hierarchy {
    Hierarchy::of_thesis(nodes - 1)
}

fn by_pattern(runs: &mut Runs) -> Result<Chart, Invalid> {
    let mut series = Vec::new();
    for stream in Stream::ALL {
        for (policy, what) in [(Policy::HYBRID_PAST, ""), (Policy::DEMAND_LRU, "; GMS")] {
            let name = format!("{}{what}", stream.name());
            series.push(line(runs, &name, stream, &policy)?);
        }
    }
    Ok(chart(
        "prefetch-speedup",
        "Speedup by nodes (figure 4.3)",
        series,
    ))
}

fn by_kind(runs: &mut Runs) -> Result<Chart, Invalid> {
    let mut series = Vec::new();
    for policy in Policy::OF_FIGURE_4_4 {
        series.push(line(runs, policy.name, Stream::HotColdCyclic, &policy)?);
    }
    Ok(chart(
        "prefetch-kinds",
        "Speedup by kinds of prefetching, cyclic hotcold (figure 4.4)",
        series,
    ))
}

fn line(runs: &mut Runs, name: &str, stream: Stream, policy: &Policy) -> Result<Series, Invalid> {
    let mut points = Vec::new();
    for nodes in NODES {
        points.push((f64::from(nodes), runs.speedup(stream, &of(nodes), policy)?));
    }
    Ok(Series::line(name, points))
}

fn chart(name: &str, title: &str, series: Vec<Series>) -> Chart {
    Chart {
        name: name.into(),
        title: title.into(),
        x: Axis::linear("nodes"),
        y: Axis::linear("speedup"),
        series,
    }
}

fn claims(runs: &mut Runs) -> Result<Table, Invalid> {
    let mut table = Table::new(
        "What the text says, and the model",
        &[
            "what",
            "thesis",
            "of",
            "model, by the text",
            "looking past",
            "of",
        ],
    );
    let mut add = |cells: [&str; 6]| table.row(cells.map(str::to_owned).to_vec());
    for stream in Stream::ALL {
        let by_text = times(runs.speedup(stream, &of(5), &Policy::HYBRID)?);
        let past = times(runs.speedup(stream, &of(5), &Policy::HYBRID_PAST)?);
        add([
            "speedup with 5 nodes",
            "4 to 7",
            "all programs",
            &by_text,
            &past,
            stream.name(),
        ]);
    }
    for (stream, thesis) in [
        (Stream::Random, "not said"),
        (Stream::RandomCyclic, "moderate"),
    ] {
        let gms = times(runs.speedup(stream, &of(5), &Policy::DEMAND_LRU)?);
        add([
            "speedup of GMS alone, 5 nodes",
            thesis,
            "patterns",
            &gms,
            &gms,
            stream.name(),
        ]);
    }
    for (what, thesis, by_text, past) in of_render(runs)? {
        add([
            what,
            thesis,
            "Render",
            &by_text,
            &past,
            Stream::HotColdCyclic.name(),
        ]);
    }
    Ok(table)
}

type Claim = (&'static str, &'static str, String, String);

fn of_render(runs: &mut Runs) -> Result<[Claim; 5], Invalid> {
    let mut at = |nodes, policy| runs.elapsed_us(Stream::HotColdCyclic, &of(nodes), &policy);
    let (alone, alone_ahead) = (at(1, Policy::DEMAND_LRU)?, at(1, Policy::FORESTALL_DISK)?);
    let gms = at(5, Policy::DEMAND_LRU)?;
    let (from_disk, from_both) = (at(5, Policy::FORESTALL_DISK)?, at(5, Policy::FORESTALL)?);
    let on_demand = at(5, Policy::HYBRID_DISK)?;
    let (by_text, past) = (at(5, Policy::HYBRID)?, at(5, Policy::HYBRID_PAST)?);
    let more = |before, after| percent_more(ratio(before, after));
    let many = |before, after| format!("{} times", times(ratio(before, after)));
    let same = |text: String| (text.clone(), text);
    let claim = |what, thesis, (by_text, past)| (what, thesis, by_text, past);
    Ok([
        claim(
            "prefetching from the local disk, 1 node",
            "+57 %",
            same(more(alone, alone_ahead)),
        ),
        claim(
            "global to local as well, 5 nodes",
            "slight",
            same(more(from_disk, from_both)),
        ),
        claim(
            "global to local as well, after disk to global, 5 nodes",
            "+5 %",
            (more(on_demand, by_text), more(on_demand, past)),
        ),
        claim(
            "all against GMS, 5 nodes",
            "2.8 times",
            (many(gms, by_text), many(gms, past)),
        ),
        claim(
            "all on 5 nodes against the local disk on 1",
            "3.1 times",
            (many(alone_ahead, by_text), many(alone_ahead, past)),
        ),
    ])
}

fn breakdown(runs: &mut Runs) -> Result<Table, Invalid> {
    let mut table = Table::new(
        "Cyclic hotcold under the hybrid that looks past, by nodes (figures 4.5 to 4.7)",
        &[
            "nodes",
            "computing, s",
            "stall, s",
            "disk to local",
            "disk to global",
            "global to local",
            "came late",
            "cold misses",
            "capacity misses from disk",
        ],
    );
    let pages = runs.pages(Stream::HotColdCyclic)?;
    let cold = u64::from(pages.iter().max().map_or(0, |&last| last + 1));
    for nodes in NODES {
        let outcome = runs.run(Stream::HotColdCyclic, &of(nodes), &Policy::HYBRID_PAST)?;
        let fetches = &outcome.fetches;
        let counts = [
            fetches.demand_disk + fetches.prefetch_disk,
            fetches.prefetch_into_global,
            fetches.demand_global + fetches.prefetch_global,
            outcome.late,
            cold,
            fetches.from_disk() - cold,
        ];
        let mut row = vec![
            nodes.to_string(),
            seconds(outcome.compute_us),
            seconds(outcome.stall_us),
        ];
        row.extend(counts.map(|count| count.to_string()));
        table.row(row);
    }
    Ok(table)
}
