//! Table 3.1 and figures 3.2, 3.3, 3.4 and 3.8, as far as the text tells what they show.

mod check;
mod contention;
mod local;
mod mixed;
mod servers;
mod skew;

use super::{Cluster, Method, Solution};
use crate::report::{self, Axis, Chart, Section, Series};

/// What the thesis says, what the model says, and with what.
pub fn paper() -> Vec<Section> {
    vec![
        contention::section(),
        skew::section(),
        servers::section(),
        local::section(),
        mixed::section(),
        check::section(),
    ]
}

/// How the thesis's cluster performs. Its parameters are constants, and possible.
fn solved(cluster: &Cluster, method: Method) -> Solution {
    let network = cluster.network();
    let solution = network.and_then(|network| network.solve(method));
    solution.expect("the thesis has parameters that can be")
}

fn chart(name: &str, title: &str, (x, y): (&str, &str), series: Vec<Series>) -> Chart {
    Chart {
        name: name.into(),
        title: title.into(),
        x: Axis::linear(x),
        y: Axis::linear(y),
        series,
    }
}

/// The time of the fastest page fault from a disk (section 3.3.2).
const DISK_S: f64 = 3.6e-3;

fn disk_line(machines: u32) -> Series {
    let points = vec![(1.0, DISK_S * 1e3), (f64::from(machines), DISK_S * 1e3)];
    Series::line("a disk", points).drawn(crate::report::Style::Thin)
}

fn percent(part: f64) -> String {
    report::percent(part, 1)
}

fn micros(seconds: f64) -> String {
    format!("{:.0} µs", seconds * 1e6)
}
