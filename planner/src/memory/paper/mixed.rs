//! Beyond the thesis: machines that run different programs.

use super::micros;
use crate::memory::{Class, Cluster, Method, Network, OO7_THINK_S};
use crate::report::{Section, Table};

pub(super) fn section() -> Section {
    Section {
        heading: "Machines that are not alike (beyond the thesis)".into(),
        words: vec![
            "Section 3.3.1 says that the model is easily extended to think times that differ. Here half of the machines run m3 (Z = 2.7 ms), half OO7 (5 ms), at three balanced servers; beside it the same number of machines with the mean of their rates. Taking the mean is within 5 % for all of them together. m3, which asks more often, waits a little less for a page than OO7: of the requests that a machine could meet its own is missing, and m3 has more of them.".into(),
        ],
        tables: vec![table()],
        charts: Vec::new(),
    }
}

fn table() -> Table {
    let mut table = Table::new(
        "Time for a page, three servers",
        &[
            "machines",
            "m3",
            "OO7",
            "both",
            "both, Linearizer",
            "both, Schweitzer",
            "as one class with their mean rate",
        ],
    );
    for machines in [6, 12, 18, 24, 36] {
        let network = mixed(machines / 2);
        let solved = |method| {
            let solution = network.solve(method);
            solution.expect("the thesis has parameters that can be")
        };
        let exact = solved(Method::Exact);
        table.row(vec![
            machines.to_string(),
            micros(exact.classes[0].response_s),
            micros(exact.classes[1].response_s),
            micros(exact.response_s()),
            micros(solved(Method::Linearizer).response_s()),
            micros(solved(Method::Schweitzer).response_s()),
            micros(super::solved(&alike(machines), Method::Exact).response_s()),
        ]);
    }
    table
}

const M3_THINK_S: f64 = 2.7e-3;

fn mixed(of_each: u32) -> Network {
    let network = alike(of_each).network();
    let mut network = network.expect("the thesis has parameters that can be");
    let classes = [M3_THINK_S, OO7_THINK_S].map(|think_s| Class {
        think_s,
        ..network.classes[0].clone()
    });
    network.classes = classes.to_vec();
    network
}

fn alike(machines: u32) -> Cluster {
    Cluster {
        machines,
        servers: 3,
        think_s: 2.0 / (1.0 / M3_THINK_S + 1.0 / OO7_THINK_S),
        ..Cluster::default()
    }
}
