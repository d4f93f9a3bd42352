//! The model against the simulation.

use super::solved;
use crate::memory::simulate::{Estimate, Experiment, Putpages, Service};
use crate::memory::{Cluster, Method};
use crate::report::{Section, Table};

pub(super) fn section() -> Section {
    let rows: Vec<Row> = CASES.iter().map(Row::of).collect();
    let inside = rows
        .iter()
        .filter(|row| row.independent.covers(row.exact_s))
        .count();
    let worst = |off: &dyn Fn(&Row) -> f64| {
        let offs = rows.iter().map(off);
        offs.fold(
            0.0,
            |worst: f64, off| if off.abs() > worst.abs() { off } else { worst },
        )
    };
    Section {
        heading: "The model against a simulation of the same network".into(),
        words: vec![
            format!(
                "Each case was simulated event by event in {RUNS} independent runs of about {GETPAGES} getpages; after ± is the half width of the 95 % confidence interval (Student's t), after it how far the exact model is from the simulation. If putpages come independently, as the model assumes, exact analysis is exact: {inside} of {} intervals cover it, where 95 % are expected to. Schweitzer's approximation is at most {:+.1} % off what is exact.",
                rows.len(),
                worst(&|row| row.guessed_s / row.exact_s - 1.0) * 100.0
            ),
            format!(
                "In a real cluster a putpage leaves with the getpage that needs room, which the thesis's model leaves out; with that alone the model is at most {:+.1} % off here (above 0: it says more than is seen). A real server takes about the same time for each page; with that alone it is at most {:+.1} % off, with both at most {:+.1} %: it is on the safe side, most so where servers are busy but not full.",
                worst(&|row| row.together.off(row.exact_s)) * 100.0,
                worst(&|row| row.fixed.off(row.exact_s)) * 100.0,
                worst(&|row| row.real.off(row.exact_s)) * 100.0
            ),
        ],
        tables: vec![table(&rows)],
        charts: Vec::new(),
    }
}

const RUNS: u32 = 20;

const GETPAGES: u32 = 2000;

/// Machines, servers, the hottest one's share, local servers and their share, programs' think time in seconds.
const CASES: [Case; 8] = [
    case(1, 1, None, 0, 5e-3),
    case(7, 1, None, 0, 5e-3),
    case(12, 1, None, 0, 5e-3),
    case(20, 1, None, 0, 5e-3),
    case(18, 11, Some(0.75), 0, 5e-3),
    case(24, 11, Some(0.75), 0, 5e-3),
    case(60, 8, None, 0, 5e-3),
    case(18, 1, None, 1, 5e-3),
];

struct Case {
    machines: u32,
    servers: u32,
    hottest_share: Option<f64>,
    local_servers: u32,
    think_s: f64,
}

const fn case(
    machines: u32,
    servers: u32,
    hottest_share: Option<f64>,
    local_servers: u32,
    think_s: f64,
) -> Case {
    Case {
        machines,
        servers,
        hottest_share,
        local_servers,
        think_s,
    }
}

struct Row {
    words: String,
    exact_s: f64,
    guessed_s: f64,
    independent: Estimate,
    together: Estimate,
    fixed: Estimate,
    real: Estimate,
}

impl Row {
    fn of(case: &Case) -> Self {
        let cluster = Cluster {
            machines: case.machines,
            servers: case.servers,
            hottest_share: case.hottest_share,
            local_servers: case.local_servers,
            local_share: if case.local_servers > 0 {
                LOCAL_SHARE
            } else {
                0.0
            },
            think_s: case.think_s,
            ..Cluster::default()
        };
        let seen = |putpages, service| {
            let experiment = Experiment {
                runs: RUNS,
                getpages: GETPAGES,
                putpages,
                service,
                ..Experiment::default()
            };
            let network = cluster.network();
            let seen = network.and_then(|network| experiment.run(&network, |_| ()));
            seen.expect("the thesis has parameters that can be")
                .response_of_all_s
        };
        Row {
            words: case.words(),
            exact_s: solved(&cluster, Method::Exact).response_s(),
            guessed_s: solved(&cluster, Method::Schweitzer).response_s(),
            independent: seen(Putpages::Independent, Service::Exponential),
            together: seen(Putpages::WithGetpages, Service::Exponential),
            fixed: seen(Putpages::Independent, Service::Fixed),
            real: seen(Putpages::WithGetpages, Service::Fixed),
        }
    }
}

/// Of the case with local servers.
const LOCAL_SHARE: f64 = 0.25;

impl Case {
    fn words(&self) -> String {
        let skew = self
            .hottest_share
            .map(|share| format!(", {share} to one"))
            .unwrap_or_default();
        let local = match self.local_servers {
            0 => String::new(),
            count => format!(", {LOCAL_SHARE} to {count} local"),
        };
        format!("{} at {}{skew}{local}", self.machines, self.servers)
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "Time for a page, µs",
        &[
            "machines at servers",
            "exact",
            "Schweitzer",
            "simulated",
            "putpages with getpages",
            "service that does not vary",
            "both",
        ],
    );
    for row in rows {
        let seen = |seen: &Estimate| {
            format!(
                "{:.0} ± {:.0} ({:+.1} %)",
                seen.mean * 1e6,
                seen.half_width * 1e6,
                seen.off(row.exact_s) * 100.0
            )
        };
        table.row(vec![
            row.words.clone(),
            format!("{:.0}", row.exact_s * 1e6),
            format!("{:.0}", row.guessed_s * 1e6),
            seen(&row.independent),
            seen(&row.together),
            seen(&row.fixed),
            seen(&row.real),
        ]);
    }
    table
}
