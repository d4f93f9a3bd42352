//! Approximate mean value analysis: what a request finds is guessed from what there is with its machine included.

use super::network::{Class, Network};
use super::station::{Closed, Station};

/// How the part of a class's machines that is at a node changes if one machine leaves: by class, by group, by the class of
/// the one that left.
pub(super) type Change = Vec<Vec<Vec<f64>>>;

/// Bard and Schweitzer's guess: a class's machines are spread as before if one of them leaves.
pub(super) fn schweitzer(network: &Network, stations: &[Station]) -> Closed {
    if let [class] = &*network.classes {
        return alone(network, stations, class);
    }
    let machines: Vec<f64> = network
        .classes
        .iter()
        .map(|class| f64::from(class.machines))
        .collect();
    spread(network, stations, &machines, None)
}

/// One class needs no iteration: the more getpages, the longer the queues that the guess has at that rate, and one rate has
/// all machines either there or thinking.
fn alone(network: &Network, stations: &[Station], class: &Class) -> Closed {
    let machines = f64::from(class.machines);
    let left = (machines - 1.0) / machines;
    // Q = X p (R_0 + R_1 Q (N - 1) / N) at each node, solved for Q; nothing above the rate that fills one.
    let queue = |getpages_per_s: f64, group: usize| {
        let rate = getpages_per_s * class.routing[group];
        let spare = 1.0 - rate * stations[group].each_s() * left;
        match spare > 0.0 {
            true => rate * stations[group].getpage_s(0.0) / spare,
            false => f64::INFINITY,
        }
    };
    let is_above = |getpages_per_s: f64| {
        let queues = network.groups.iter().enumerate();
        let waiting: f64 = queues
            .filter(|(group, _)| class.routing[*group] > 0.0)
            .map(|(group, of)| f64::from(of.nodes) * queue(getpages_per_s, group))
            .sum();
        waiting + getpages_per_s * class.think_s > machines
    };
    let (mut low, mut high) = (
        0.0,
        machines / (class.think_s + class.demand_s(&network.groups)),
    );
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        match is_above(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    let mut closed = Closed::default();
    closed.push(network, stations, class, machines, |group| {
        left * queue(low, group)
    });
    closed
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
