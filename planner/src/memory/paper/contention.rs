//! Table 3.1 and figure 3.2: more and more machines at one server.

use super::{DISK_S, chart, disk_line, micros, percent, solved};
use crate::memory::{Cluster, Limits, Method, OO7_THINK_S, machines_until};
use crate::report::{Section, Series, Style, Table};

/// Times between requests to global memory, in seconds (table 3.1).
pub(super) const APPLICATIONS: [(&str, f64); 6] = [
    ("m3", 2.7e-3),
    ("ld", 0.36e-3),
    ("atom", 1.5e-3),
    ("render", 4.1e-3),
    ("gdb", 0.17e-3),
    ("OO7", OO7_THINK_S),
];

pub(super) fn section() -> Section {
    Section {
        heading: "Machines at one memory server (thesis, table 3.1 and figure 3.2)".into(),
        words: vec![
            "Each active machine thinks for Z on average, then waits for a page; a server takes 194 µs for each page that it sends or takes, and gets one for each that it sends (f = 1). The thesis solved the network by approximate mean value analysis and does not say which approximation; the columns are exact analysis and the usual one, Schweitzer's.".into(),
            format!(
                "Its prototype was busy for 56 % of the time with seven machines, its model said 51 %, and both grew linearly up to there. This model says the same. What the prototype had besides is less thinking or longer service: 56 % are reached with Z = {:.2} ms, or with {} for a request.",
                think_for_prototype_s() * 1e3,
                micros(service_for_prototype_s())
            ),
        ],
        tables: vec![claims(), applications()],
        charts: vec![utilisation(), response()],
    }
}

fn of(machines: u32) -> Cluster {
    Cluster {
        machines,
        ..Cluster::default()
    }
}

fn busy(cluster: &Cluster, method: Method) -> f64 {
    solved(cluster, method).groups[0].utilisation
}

fn think_for_prototype_s() -> f64 {
    falling_to(PROTOTYPE, (1e-3, 1e-2), |think_s| {
        let cluster = Cluster { think_s, ..of(7) };
        busy(&cluster, Method::Exact)
    })
}

fn service_for_prototype_s() -> f64 {
    let faster = falling_to(PROTOTYPE, (1e3, 1e5), |per_s| {
        let cluster = Cluster {
            getpage_s: 1.0 / per_s,
            putpage_s: 1.0 / per_s,
            ..of(7)
        };
        busy(&cluster, Method::Exact)
    });
    1.0 / faster
}

/// Where a falling function has a value.
fn falling_to(value: f64, (mut low, mut high): (f64, f64), f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        match f(middle) > value {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// The utilisation that the prototype had with seven machines.
const PROTOTYPE: f64 = 0.56;

fn claims() -> Table {
    let mut table = Table::new(
        "One server, OO7 (figure 3.2)",
        &[
            "machines",
            "thesis: busy",
            "exact",
            "Schweitzer",
            "without putpages",
            "a page takes: exact",
            "Schweitzer",
        ],
    );
    for machines in [1, 2, 3, 5, 7, 8, 10, 15, 20, 30] {
        let cluster = of(machines);
        let without = Cluster {
            putpages_per_getpage: 0.0,
            ..cluster
        };
        let told = match machines {
            7 => "51 % (measured: 56 %)",
            _ => "",
        };
        table.row(vec![
            machines.to_string(),
            told.into(),
            percent(busy(&cluster, Method::Exact)),
            percent(busy(&cluster, Method::Schweitzer)),
            percent(busy(&without, Method::Exact)),
            micros(solved(&cluster, Method::Exact).response_s()),
            micros(solved(&cluster, Method::Schweitzer).response_s()),
        ]);
    }
    table
}

fn applications() -> Table {
    let mut table = Table::new(
        "What each program of table 3.1 makes of it",
        &[
            "program",
            "Z",
            "machines that fill a server",
            "machines until one server is as slow as a disk",
            "until eight are",
        ],
    );
    for (name, think_s) in APPLICATIONS {
        let one = Cluster {
            think_s,
            ..Cluster::default()
        };
        let eight = Cluster { servers: 8, ..one };
        let until = |cluster: &Cluster| match machines_until(cluster, DISK_S) {
            Ok(Some(machines)) => machines.to_string(),
            _ => "never".into(),
        };
        let knee = one
            .network()
            .map(|network| Limits::of(&network.classes[0], &network.groups).machines_at_knee);
        table.row(vec![
            name.into(),
            format!("{:.2} ms", think_s * 1e3),
            format!("{:.1}", knee.unwrap_or(f64::NAN)),
            until(&one),
            until(&eight),
        ]);
    }
    table
}

const MACHINES: u32 = 30;

fn utilisation() -> crate::report::Chart {
    let curve = |method| {
        let points = (1..=MACHINES).map(|n| (f64::from(n), busy(&of(n), method) * 100.0));
        points.collect()
    };
    let told = vec![(7.0, 51.0)];
    let measured = vec![(7.0, PROTOTYPE * 100.0)];
    chart(
        "memory-utilisation",
        "One memory server's utilisation (figure 3.2)",
        ("active machines", "utilisation, %"),
        vec![
            Series::line("exact", curve(Method::Exact)),
            Series::line("Schweitzer", curve(Method::Schweitzer)),
            Series::line("the thesis's model", told).drawn(Style::Points),
            Series::line("its prototype", measured).drawn(Style::Points),
        ],
    )
}

fn response() -> crate::report::Chart {
    let curve = |method| {
        let at = |n| (f64::from(n), solved(&of(n), method).response_s() * 1e3);
        (1..=MACHINES).map(at).collect()
    };
    chart(
        "memory-response",
        "Time for a page from one memory server (figure 3.2)",
        ("active machines", "time for a page, ms"),
        vec![
            Series::line("exact", curve(Method::Exact)),
            Series::line("Schweitzer", curve(Method::Schweitzer)),
            disk_line(MACHINES),
        ],
    )
}
