//! Approximate mean value analysis: what a request finds is guessed from what there is with its machine included.

use super::network::Network;
use super::station::{Closed, Station};

/// How the part of a class's machines that is at a node changes if one machine leaves: by class, by group, by the class of
/// the one that left.
pub(super) type Change = Vec<Vec<Vec<f64>>>;

/// Bard and Schweitzer's guess: a class's machines are spread as before if one of them leaves.
pub(super) fn schweitzer(network: &Network, stations: &[Station]) -> Closed {
    let machines: Vec<f64> = network
        .classes
        .iter()
        .map(|class| f64::from(class.machines))
        .collect();
    spread(network, stations, &machines, None)
}

/// Iterates from an even spread until nothing changes any more.
pub(super) fn spread(
    network: &Network,
    stations: &[Station],
    machines: &[f64],
    change: Option<&Change>,
) -> Closed {
    let mut closed = start(network, machines);
    for _ in 0..STEPS_MAX {
        let mut next = step(network, stations, machines, change, &closed);
        next.residual = moved(machines, &closed, &next);
        closed = next;
        if closed.residual < SETTLED {
            break;
        }
    }
    closed
}

/// All machines wait, none thinks.
fn start(network: &Network, machines: &[f64]) -> Closed {
    let queues = network.classes.iter().zip(machines);
    Closed {
        getpages_per_s: vec![0.0; machines.len()],
        response_s: vec![0.0; machines.len()],
        queues: queues
            .map(|(class, count)| class.routing.iter().map(|to| to * count).collect())
            .collect(),
        residual: 1.0,
    }
}

fn step(
    network: &Network,
    stations: &[Station],
    machines: &[f64],
    change: Option<&Change>,
    closed: &Closed,
) -> Closed {
    let mut next = Closed::default();
    for (number, class) in network.classes.iter().enumerate() {
        if machines[number] > 0.0 {
            next.push(network, stations, class, machines[number], |group| {
                found(machines, change, closed, (number, group))
            });
        } else {
            next.push_nobody(stations.len());
        }
    }
    next
}

/// How many getpages a request of a class finds at a node of a group.
fn found(
    machines: &[f64],
    change: Option<&Change>,
    closed: &Closed,
    (by, group): (usize, usize),
) -> f64 {
    let mut found = 0.0;
    for (other, &count) in machines.iter().enumerate() {
        let left = if other == by { count - 1.0 } else { count };
        if left > 0.0 {
            let part = closed.queues[other][group] / count;
            let part = part + change.map_or(0.0, |change| change[other][group][by]);
            found += left * part.max(0.0);
        }
    }
    found
}

/// The largest change of a queue, as a part of its class.
fn moved(machines: &[f64], before: &Closed, after: &Closed) -> f64 {
    let classes = machines.iter().zip(before.queues.iter().zip(&after.queues));
    let moved = classes.flat_map(|(count, (before, after))| {
        let queues = before.iter().zip(after);
        queues.map(move |(before, after)| (before - after).abs() / count.max(1.0))
    });
    moved.fold(0.0, f64::max)
}

const STEPS_MAX: u32 = 100_000;

const SETTLED: f64 = 1e-14;
