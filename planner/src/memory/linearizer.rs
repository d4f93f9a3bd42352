//! Linearizer (Chandy and Neuse 1982): Schweitzer's guess, corrected by how the spread changes with one machine fewer.

use super::amva::{Change, spread};
use super::network::Network;
use super::station::{Closed, Station};

/// Solves the closed classes.
pub(super) fn linearizer(network: &Network, stations: &[Station]) -> Closed {
    let machines: Vec<f64> = network
        .classes
        .iter()
        .map(|class| f64::from(class.machines))
        .collect();
    let classes = machines.len();
    let mut change = vec![vec![vec![0.0; classes]; stations.len()]; classes];
    for _ in 0..CORRECTIONS {
        let all = spread(network, stations, &machines, Some(&change));
        let fewer: Vec<Closed> = (0..classes)
            .map(|class| spread(network, stations, &without(&machines, class), Some(&change)))
            .collect();
        correct(&mut change, &machines, &all, &fewer);
    }
    spread(network, stations, &machines, Some(&change))
}

fn without(machines: &[f64], class: usize) -> Vec<f64> {
    let mut machines = machines.to_vec();
    machines[class] -= 1.0;
    machines
}

fn correct(change: &mut Change, machines: &[f64], all: &Closed, fewer: &[Closed]) {
    for (class, by_group) in change.iter_mut().enumerate() {
        for (group, by_leaver) in by_group.iter_mut().enumerate() {
            for (leaver, change) in by_leaver.iter_mut().enumerate() {
                let left = without(machines, leaver)[class];
                // Of a class that has nobody left nothing changes that anybody could find.
                *change = match left > 0.0 {
                    true => {
                        let before = all.queues[class][group] / machines[class];
                        fewer[leaver].queues[class][group] / left - before
                    }
                    false => 0.0,
                };
            }
        }
    }
}

/// As many as its authors found worth while.
const CORRECTIONS: usize = 3;
