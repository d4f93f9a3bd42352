//! Closed forms, limits, properties, and the simulation.

mod closed_forms;
mod properties;
mod simulated;

use super::{Class, Cluster, Group, Kind, Method, Network};
use fastrand::Rng;

const METHODS: [Method; 3] = [Method::Exact, Method::Schweitzer, Method::Linearizer];

fn assert_near(this: f64, that: f64, by: f64) {
    assert!(
        (this - that).abs() <= by * that.abs().max(1e-300),
        "{this} is not {that}"
    );
}

/// Machines and servers as somebody could have them.
fn any_cluster(rng: &mut Rng) -> Cluster {
    let servers = rng.u32(1..12);
    let local_servers = rng.u32(0..6);
    let even = 1.0 / f64::from(servers);
    let service_s = 1e-4 * (1.0 + 9.0 * rng.f64());
    Cluster {
        machines: rng.u32(1..50),
        think_s: 20e-3 * rng.f64(),
        putpages_per_getpage: [0.0, 0.3, 1.0, 4.0 * rng.f64()][rng.usize(0..4)],
        servers,
        hottest_share: rng.bool().then(|| even + (1.0 - even) * rng.f64()),
        local_servers,
        local_share: if local_servers > 0 { rng.f64() } else { 0.0 },
        getpage_s: service_s,
        putpage_s: if rng.bool() {
            service_s
        } else {
            service_s * 2.0 * rng.f64() + 1e-6
        },
    }
}

/// Up to three classes with routing of their own, at up to four groups of nodes; small enough for exact analysis.
fn any_network(rng: &mut Rng) -> Network {
    let kinds = [Kind::Idle, Kind::Local];
    let groups: Vec<Group> = (0..rng.usize(1..5))
        .map(|_| Group {
            kind: kinds[rng.usize(0..2)],
            nodes: rng.u32(1..4),
            getpage_s: 1e-4 * (1.0 + 4.0 * rng.f64()),
            putpage_s: 1e-4 * (1.0 + 4.0 * rng.f64()),
        })
        .collect();
    let classes = (0..rng.usize(1..4))
        .map(|_| Class {
            machines: rng.u32(1..6),
            think_s: 5e-3 * rng.f64(),
            putpages_per_getpage: 2.0 * rng.f64(),
            routing: any_routing(rng, &groups),
        })
        .collect();
    Network { classes, groups }
}

fn any_routing(rng: &mut Rng, groups: &[Group]) -> Vec<f64> {
    let weights: Vec<f64> = groups.iter().map(|_| rng.f64() + 1e-3).collect();
    let nodes = weights.iter().zip(groups);
    let sum: f64 = nodes
        .map(|(weight, group)| weight * f64::from(group.nodes))
        .sum();
    weights.iter().map(|weight| weight / sum).collect()
}

#[test]
fn the_thesis_is_computed() {
    let report = crate::report::Report {
        sections: super::paper(),
        ..Default::default()
    };
    let page = crate::report::markdown(&report, "charts");
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
}
