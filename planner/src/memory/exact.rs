//! Exact mean value analysis (Reiser and Lavenberg 1980).

use super::network::{Class, Network};
use super::station::{Closed, Station};

/// Solves the closed classes: machine by machine, from none to all, for each mix on the way. A request finds what there is
/// on average without the machine that sends it.
pub(super) fn exact(network: &Network, stations: &[Station]) -> Closed {
    let classes = &network.classes;
    if let [class] = &**classes {
        return alone(network, stations, class);
    }
    let mut found = vec![0.0; states(classes) * stations.len()];
    let mut machines = vec![0; classes.len()];
    let mut state = 0;
    while next(&mut machines, classes) {
        state += 1;
        let closed = step(network, stations, &machines, |class, group| {
            found[(state - stride(classes, class)) * stations.len() + group]
        });
        for group in 0..stations.len() {
            found[state * stations.len() + group] = closed.at(group);
        }
        if state + 1 == states(classes) {
            return closed;
        }
    }
    Closed::default()
}

/// One class needs no more than what there was with one machine fewer.
fn alone(network: &Network, stations: &[Station], class: &Class) -> Closed {
    let groups = network.groups.iter();
    let nodes: Vec<f64> = groups.map(|group| f64::from(group.nodes)).collect();
    let mut found = vec![0.0; stations.len()];
    let mut queues = vec![0.0; stations.len()];
    for machines in 1..class.machines {
        let mut response_s = 0.0;
        for (group, station) in stations.iter().enumerate() {
            queues[group] = class.routing[group] * station.getpage_s(found[group]);
            response_s += nodes[group] * queues[group];
        }
        let getpages_per_s = f64::from(machines) / (class.think_s + response_s);
        for (found, queue) in found.iter_mut().zip(&queues) {
            *found = getpages_per_s * queue;
        }
    }
    let mut closed = Closed::default();
    closed.push(
        network,
        stations,
        class,
        f64::from(class.machines),
        |group| found[group],
    );
    closed
}

/// How many numbers exact analysis has to keep: its time grows alike.
pub(super) fn size(network: &Network) -> f64 {
    let mixes = network.classes.iter().map(|c| f64::from(c.machines) + 1.0);
    mixes.product::<f64>() * network.groups.len() as f64
}

fn states(classes: &[Class]) -> usize {
    stride(classes, classes.len())
}

/// How far the state with one machine of a class fewer is behind.
fn stride(classes: &[Class], class: usize) -> usize {
    let before = classes[..class].iter();
    before.map(|class| class.machines as usize + 1).product()
}

/// Counts on: the first class fastest.
fn next(machines: &mut [u32], classes: &[Class]) -> bool {
    for (count, class) in machines.iter_mut().zip(classes) {
        if *count < class.machines {
            *count += 1;
            return true;
        }
        *count = 0;
    }
    false
}

fn step(
    network: &Network,
    stations: &[Station],
    machines: &[u32],
    found: impl Fn(usize, usize) -> f64,
) -> Closed {
    let mut closed = Closed::default();
    for (number, class) in network.classes.iter().enumerate() {
        let count = f64::from(machines[number]);
        if count == 0.0 {
            closed.push_nobody(stations.len());
        } else {
            closed.push(network, stations, class, count, |group| {
                found(number, group)
            });
        }
    }
    closed
}
