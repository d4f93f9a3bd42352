//! Figure 4.8: more global memory or more nodes; and elapsed time by global memory.

use super::percent_more;
use super::runs::{Runs, Stream};
use crate::Invalid;
use crate::prefetch::{Hierarchy, Policy};
use crate::report::{Axis, Chart, Section, Series, Style, Table};

pub(super) fn section(runs: &mut Runs) -> Result<Section, Invalid> {
    Ok(Section {
        heading: "Prefetching: memory or nodes (thesis, figure 4.8)".into(),
        words: vec![
            "Random, cyclic, whose 12,800 pages fit into three nodes' memory but for 512. The thesis's values are of Render, which also reads some 100 MB but in another order: they show the direction, not the size. The text says of its points b and d 64 and 96 MB, though global memory is 128 MB wherever it is fixed, and that a and b differ by a node alone, though they differ by 32 MB too; only c and d do not.".into(),
            "With the whole future told, memory helps while it saves reads; when it holds all pages, only more disks do.".into(),
        ],
        tables: vec![claims(runs)?],
        charts: vec![by_nodes(runs)?, by_memory(runs)?],
    })
}

const PAGES_OF_128_MB: u32 = 16_384;

fn cluster(idle: u32, is_fixed: bool) -> Hierarchy {
    let mut hierarchy = Hierarchy::of_thesis(idle);
    if is_fixed {
        hierarchy.global_pages = PAGES_OF_128_MB;
    }
    hierarchy
}

fn speedup(runs: &mut Runs, idle: u32, is_fixed: bool) -> Result<f64, Invalid> {
    runs.speedup(
        Stream::RandomCyclic,
        &cluster(idle, is_fixed),
        &Policy::HYBRID_PAST,
    )
}

fn claims(runs: &mut Runs) -> Result<Table, Invalid> {
    let mut table = Table::new(
        "What the hybrid that looks past gains",
        &["from", "to", "thesis (Render)", "model"],
    );
    for (from, to, thesis, before, after) in [
        (
            "one idle node with 32 MB (a)",
            "one with 128 MB (c)",
            "+48 %",
            (1, false),
            (1, true),
        ),
        (
            "two idle nodes with 64 MB (b)",
            "two with 128 MB (d)",
            "+28 %",
            (2, false),
            (2, true),
        ),
        (
            "one idle node with 32 MB (a)",
            "two with 64 MB (b)",
            "+23 %",
            (1, false),
            (2, false),
        ),
        (
            "one idle node with 128 MB (c)",
            "two with 128 MB (d)",
            "",
            (1, true),
            (2, true),
        ),
    ] {
        let gain = speedup(runs, after.0, after.1)? / speedup(runs, before.0, before.1)?;
        let gain = percent_more(gain);
        table.row([from, to, thesis, &gain].map(str::to_owned).to_vec());
    }
    Ok(table)
}

fn by_nodes(runs: &mut Runs) -> Result<Chart, Invalid> {
    let mut series = Vec::new();
    for (name, is_fixed) in [("128 MB in all", true), ("32 MB in each", false)] {
        let mut points = Vec::new();
        for idle in 1..=4 {
            points.push((f64::from(idle + 1), speedup(runs, idle, is_fixed)?));
        }
        series.push(Series::line(name, points));
    }
    Ok(Chart {
        name: "prefetch-memory-or-nodes".into(),
        title: "128 MB in all, or 32 MB in each node (figure 4.8)".into(),
        x: Axis::linear("nodes"),
        y: Axis::linear("speedup"),
        series,
    })
}

fn by_memory(runs: &mut Runs) -> Result<Chart, Invalid> {
    let mut lines = SHOWN.map(|policy| Series::line(policy.name, Vec::new()));
    let mut limit = Series::line("limit", Vec::new()).drawn(Style::Thin);
    for step in 0..=6 {
        let mut hierarchy = Hierarchy::of_thesis(4);
        hierarchy.global_pages = step * 2048;
        let megabytes = f64::from(step) * 16.0;
        for (line, policy) in lines.iter_mut().zip(&SHOWN) {
            let elapsed_us = runs.elapsed_us(Stream::RandomCyclic, &hierarchy, policy)?;
            line.points.push((megabytes, elapsed_us as f64 / 1e6));
        }
        let limit_us = runs.limit_us(Stream::RandomCyclic, &hierarchy)?;
        limit.points.push((megabytes, limit_us as f64 / 1e6));
    }
    let mut series = lines.to_vec();
    series.push(limit);
    Ok(Chart {
        name: "prefetch-elapsed-by-memory".into(),
        title: "Elapsed time by global memory, random cyclic, four servers' disks".into(),
        x: Axis::linear("global memory, MB"),
        y: Axis::log("elapsed, s"),
        series,
    })
}

const SHOWN: [Policy; 4] = [
    Policy::DEMAND_LRU,
    Policy::FORESTALL,
    Policy::HYBRID,
    Policy::HYBRID_PAST,
];
