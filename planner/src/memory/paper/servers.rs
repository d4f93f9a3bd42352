//! Figure 3.4: how many servers are needed.

use super::{DISK_S, chart, disk_line, micros, solved};
use crate::memory::{Cluster, Method, machines_until, servers_needed};
use crate::report::{Chart, Section, Series, Table};

const MACHINES: u32 = 60;

pub(super) fn section() -> Section {
    let alone = solved(&of(1, 8), Method::Exact).response_s();
    let many = solved(&of(MACHINES, 8), Method::Exact).response_s();
    let guessed = solved(&of(MACHINES, 8), Method::Schweitzer).response_s();
    Section {
        heading: "How many memory servers are needed (thesis, figure 3.4)".into(),
        words: vec![
            format!(
                "The thesis says that more than three balanced servers are needed for medium and large numbers of machines, and that with eight the time for a page only doubles when there are 60 machines. Here it grows from {} to {} with eight, by a factor of {:.2} ({:.2} by Schweitzer's approximation). With three servers a page takes as long as from a disk from {} machines on.",
                micros(alone),
                micros(many),
                many / alone,
                guessed / alone,
                until(3),
            ),
            "Its conclusion that eight servers suffice for a cluster of 70 nodes is the same point: 60 machines and eight servers. OO7 thinks longest of table 3.1's programs; the others ask more often and need more servers (the table above).".into(),
        ],
        tables: vec![by_servers(), needed()],
        charts: vec![figure()],
    }
}

fn of(machines: u32, servers: u32) -> Cluster {
    Cluster {
        machines,
        servers,
        ..Cluster::default()
    }
}

fn until(servers: u32) -> String {
    match machines_until(&of(1, servers), DISK_S) {
        Ok(Some(machines)) => machines.to_string(),
        _ => "none".into(),
    }
}

fn by_servers() -> Table {
    let mut table = Table::new(
        "Time for a page, balanced, OO7",
        &[
            "servers",
            "20 machines",
            "40",
            "60",
            "60, Schweitzer",
            "machines until a disk is as quick",
        ],
    );
    for servers in 1..=8 {
        let exact = |machines| micros(solved(&of(machines, servers), Method::Exact).response_s());
        table.row(vec![
            servers.to_string(),
            exact(20),
            exact(40),
            exact(60),
            micros(solved(&of(60, servers), Method::Schweitzer).response_s()),
            until(servers),
        ]);
    }
    table
}

fn needed() -> Table {
    let mut table = Table::new(
        "Servers needed, balanced, OO7",
        &[
            "machines",
            "to be quicker than a disk",
            "so that a page takes less than 1 ms",
            "less than twice the time of service",
        ],
    );
    for machines in [10, 20, 40, 60, 100, 200] {
        let needed = |bound_s| match servers_needed(&of(machines, 1), bound_s) {
            Ok(Some(servers)) => servers.to_string(),
            _ => "none".into(),
        };
        let twice_s = 2.0 * Cluster::default().getpage_s;
        table.row(vec![
            machines.to_string(),
            needed(DISK_S),
            needed(1e-3),
            needed(twice_s),
        ]);
    }
    table
}

fn figure() -> Chart {
    let curve = |servers: u32| {
        let at = |n| {
            let solution = solved(&of(n, servers), Method::Exact);
            (f64::from(n), solution.response_s() * 1e3)
        };
        // Above twice a disk's time nobody looks.
        let points = (1..=MACHINES).map(at);
        let name = match servers {
            1 => "1 server".to_owned(),
            _ => format!("{servers} servers"),
        };
        let shown = points.take_while(|&(_, ms)| ms < 2.0 * DISK_S * 1e3);
        Series::line(&name, shown.collect())
    };
    let mut curves: Vec<Series> = (1..=8).map(curve).collect();
    curves.push(disk_line(MACHINES));
    chart(
        "memory-servers",
        "Time for a page, by memory servers (figure 3.4)",
        ("active machines", "time for a page, ms"),
        curves,
    )
}
