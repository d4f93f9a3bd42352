//! Figure 3.8: what local nodes give and lose.

use super::{chart, percent, solved};
use crate::memory::{Cluster, Kind, Method};
use crate::report::{Chart, Section, Series, Table};

const SHARES: [f64; 8] = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7];

pub(super) fn section() -> Section {
    Section {
        heading: "What local nodes give, and what it costs them (thesis, figure 3.8)".into(),
        words: vec![
            "A part P_local of the requests goes to nodes with work of their own, evenly. The benefit is how much less time a page takes than with idle nodes only, 1 - R / R'; the cost is the utilisation of each local node, which its own work loses.".into(),
            "The text gives ten idle and ten local nodes, one to 36 machines, a peak of the benefit at around 18 machines, and a utilisation of local nodes that nears a limit after it. With ten idle nodes and OO7's think time 36 machines do not load anything: the benefit has no peak before some 140. With one idle and one local node all is as the text says, with peaks from 16 to 24 machines: so the figure seems to have one of each, as its caption says (*a local node*). The chart shows that. Counted as R' / R - 1 the benefit is larger, and has its peaks at the same places.".into(),
            "The limit: idle nodes fill first if they get more, so a local node never gets busier than P_local / (1 - P_local) when there are as many of each kind; from one half on it fills too. Both as the text says.".into(),
        ],
        tables: vec![peaks()],
        charts: vec![figure()],
    }
}

fn of(machines: u32, nodes: u32, local_share: f64) -> Cluster {
    Cluster {
        machines,
        servers: nodes,
        local_servers: nodes,
        local_share,
        ..Cluster::default()
    }
}

/// The numbers of machines that the figure has symbols for.
fn counts() -> impl Iterator<Item = u32> {
    [1].into_iter().chain((1..=12).map(|third| third * 3))
}

/// How much of the time of a page local nodes save, and how busy each of them is.
fn saved_and_busy(machines: u32, nodes: u32, local_share: f64) -> (f64, f64) {
    let without = solved(&of(machines, nodes, 0.0), Method::Exact);
    let with = solved(&of(machines, nodes, local_share), Method::Exact);
    let saved = 1.0 - with.response_s() / without.response_s();
    (saved, with.utilisation_max(Kind::Local))
}

/// With how many machines the benefit is largest.
fn peak(nodes: u32, local_share: f64, machines: impl Iterator<Item = u32>) -> (u32, f64) {
    let saved = machines.map(|n| (n, saved_and_busy(n, nodes, local_share).0));
    saved.fold(
        (0, 0.0),
        |best, here| if here.1 > best.1 { here } else { best },
    )
}

fn peaks() -> Table {
    let mut table = Table::new(
        "Peak of the benefit (text: around 18 machines), and the local node's utilisation",
        &[
            "P_local",
            "one of each: peak at",
            "saved there",
            "local busy at 36",
            "its limit",
            "ten of each: peak at about",
            "saved at 36",
            "local busy at 36",
        ],
    );
    for share in SHARES {
        let (at, saved) = peak(1, share, 1..=60);
        let (far, _) = peak(10, share, (1..=30).map(|n| n * 10));
        let ten = saved_and_busy(36, 10, share);
        table.row(vec![
            share.to_string(),
            at.to_string(),
            percent(saved),
            percent(saved_and_busy(36, 1, share).1),
            percent((share / (1.0 - share)).min(1.0)),
            far.to_string(),
            percent(ten.0),
            percent(ten.1),
        ]);
    }
    table
}

fn figure() -> Chart {
    let curve = |share: f64| {
        let points = counts().map(|n| {
            let (saved, busy) = saved_and_busy(n, 1, share);
            (busy * 100.0, saved * 100.0)
        });
        Series::line(&format!("P_local = {share}"), points.collect())
    };
    chart(
        "memory-local",
        "One idle and one local node, 1 to 36 machines (figure 3.8)",
        (
            "utilisation of the local node, %",
            "time of a page saved, %",
        ),
        SHARES.into_iter().map(curve).collect(),
    )
}
