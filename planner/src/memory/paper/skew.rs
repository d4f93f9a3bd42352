//! Figure 3.3: what it costs that one server is asked more than the others.

use super::{chart, percent, solved};
use crate::memory::simulate::{Experiment, Putpages, Service};
use crate::memory::{Cluster, Method, slowdown};
use crate::report::{Chart, Section, Series, Table};

pub(super) fn section() -> Section {
    Section {
        heading: "What an uneven load costs (thesis, figure 3.3)".into(),
        words: vec![
            "The increase of execution time is (Z + R) / (Z + R') - 1, where R' is the time of a page with the same servers asked evenly. The first number of a pair is the part of the requests that goes to the first server, the second that of each of the others.".into(),
            "The figure is not in the text, so only what the text says of it can be compared. It says that (0.75, 0.025) costs 12 % with 18 machines, and that (0.60, 0.040) costs nearly the same with 24; its introduction says 12 % with 18 and 37 % with 24, without the skew: 37 % fits (0.75, 0.025). Exact analysis, Schweitzer's approximation and a simulation with service times that do not vary lie around these values. They depend strongly on what the text leaves open: near saturation the result follows Z and the time of service several times over, and a tenth of either moves it by about a third.".into(),
        ],
        tables: vec![claims()],
        charts: vec![
            panel("memory-skew-2", "two servers", 2, &[0.6, 0.7, 0.75, 0.8, 0.9, 1.0]),
            panel("memory-skew-11", "eleven servers", 11, &[0.25, 0.5, 0.6, 0.75, 0.9, 1.0]),
        ],
    }
}

fn of(machines: u32, servers: u32, hottest_share: f64) -> Cluster {
    Cluster {
        machines,
        servers,
        hottest_share: Some(hottest_share),
        ..Cluster::default()
    }
}

fn cost(cluster: &Cluster, method: Method) -> f64 {
    let balanced = Cluster {
        hottest_share: None,
        ..*cluster
    };
    let [skewed, balanced] = [*cluster, balanced].map(|c| solved(&c, method).classes[0]);
    slowdown(&skewed, &balanced)
}

/// The same with service times that do not vary, by simulation.
fn cost_if_fixed(cluster: &Cluster) -> f64 {
    let balanced = Cluster {
        hottest_share: None,
        ..*cluster
    };
    let experiment = Experiment {
        runs: 10,
        getpages: 3000,
        putpages: Putpages::Independent,
        service: Service::Fixed,
        ..Experiment::default()
    };
    let cycle_s = [*cluster, balanced].map(|cluster| {
        let network = cluster.network();
        let seen = network.and_then(|network| experiment.run(&network, |_| ()));
        let seen = seen.expect("the thesis has parameters that can be");
        cluster.think_s + seen.response_of_all_s.mean
    });
    cycle_s[0] / cycle_s[1] - 1.0
}

fn claims() -> Table {
    let mut table = Table::new(
        "Increase of execution time, eleven servers, OO7",
        &[
            "machines and skew",
            "thesis",
            "exact",
            "Schweitzer",
            "service that does not vary, simulated",
            "exact, Z a tenth longer",
            "exact, service a tenth shorter",
        ],
    );
    for (machines, share, skew, told) in [
        (18, 0.75, "(0.75, 0.025)", "12 %"),
        (24, 0.75, "(0.75, 0.025)", "37 % (introduction)"),
        (24, 0.60, "(0.60, 0.040)", "nearly 12 %"),
        (18, 0.60, "(0.60, 0.040)", ""),
    ] {
        let cluster = of(machines, 11, share);
        let longer = Cluster {
            think_s: cluster.think_s * 1.1,
            ..cluster
        };
        let shorter = Cluster {
            getpage_s: cluster.getpage_s * 0.9,
            putpage_s: cluster.putpage_s * 0.9,
            ..cluster
        };
        table.row(vec![
            format!("{machines}: {skew}"),
            told.into(),
            percent(cost(&cluster, Method::Exact)),
            percent(cost(&cluster, Method::Schweitzer)),
            percent(cost_if_fixed(&cluster)),
            percent(cost(&longer, Method::Exact)),
            percent(cost(&shorter, Method::Exact)),
        ]);
    }
    table
}

fn panel(name: &str, servers_in_words: &str, servers: u32, shares: &[f64]) -> Chart {
    let curves = shares.iter().map(|&share| {
        let others = (1.0 - share) / f64::from(servers - 1);
        let cost = |n| {
            (
                f64::from(n),
                cost(&of(n, servers, share), Method::Exact) * 100.0,
            )
        };
        // Shares are hundredths; rounding is not shown.
        let others = (others * 1e4).round() / 1e4;
        Series::line(
            &format!("({share}, {others})"),
            (1..=30).map(cost).collect(),
        )
    });
    chart(
        name,
        &format!("Execution time with an uneven load on {servers_in_words} (figure 3.3)"),
        ("active machines", "longer than with an even load, %"),
        curves.collect(),
    )
}
