//! What holds for every network.

use super::super::{Limits, Solution, slowdown};
use super::*;

/// Random networks of each kind, all methods.
fn each(seed: u64, count: usize, holds: impl Fn(&Network, Method, &Solution)) {
    let mut rng = Rng::with_seed(seed);
    for number in 0..count {
        let network = match number % 2 {
            0 => any_cluster(&mut rng).network().expect("it can be"),
            _ => any_network(&mut rng),
        };
        for method in METHODS {
            let solution = network.solve(method).expect("it can be");
            holds(&network, method, &solution);
        }
    }
}

#[test]
fn rates_are_found() {
    each(1, 60, |network, method, solution| {
        assert!(
            solution.residual < 1e-9,
            "{method:?} {network:?}: {}",
            solution.residual
        );
    });
}

#[test]
fn laws_of_little_and_of_utilisation_hold() {
    each(2, 40, |network, _, solution| {
        for (class, solved) in network.classes.iter().zip(&solution.classes) {
            let machines = solved.getpages_per_s * (class.think_s + solved.response_s);
            assert_near(machines, f64::from(class.machines), 1e-9);
        }
        for (number, (group, solved)) in network.groups.iter().zip(&solution.groups).enumerate() {
            let rate = |weight: &dyn Fn(&Class) -> f64| -> f64 {
                let classes = network.classes.iter().zip(&solution.classes);
                classes
                    .map(|(class, solved)| {
                        solved.getpages_per_s * class.routing[number] * weight(class)
                    })
                    .sum()
            };
            let putpages_per_s = rate(&|class| class.putpages_per_getpage);
            let busy = rate(&|_| group.getpage_s) + putpages_per_s * group.putpage_s;
            assert_near(solved.utilisation, busy, 1e-8);
            assert!(solved.utilisation <= 1.0 + 1e-9);
            assert_near(solved.getpages, rate(&|_| 1.0) * solved.getpage_s, 1e-8);
            assert_near(solved.putpages, putpages_per_s * solved.putpage_s, 1e-8);
        }
        // All getpages are at the servers.
        let waiting: f64 = solution
            .groups
            .iter()
            .map(|group| f64::from(group.nodes) * group.getpages)
            .sum();
        let by_little = solution.getpages_per_s() * solution.response_s();
        assert_near(waiting, by_little, 1e-9);
    });
}

#[test]
fn no_server_is_faster_than_its_limits() {
    each(3, 40, |network, method, solution| {
        if let [class] = &*network.classes {
            let limits = Limits::of(class, &network.groups);
            let rate = solution.getpages_per_s();
            assert!(
                rate <= limits.getpages_per_s() * (1.0 + 1e-9),
                "{method:?} {network:?}: {rate} of {limits:?}"
            );
        }
        assert!(
            solution
                .classes
                .iter()
                .all(|class| class.response_s.is_finite() && class.response_s > 0.0)
        );
    });
}

#[test]
fn approximations_are_near_what_is_exact() {
    let mut worst = [0.0_f64; 2];
    let mut rng = Rng::with_seed(4);
    for _ in 0..40 {
        let network = any_network(&mut rng);
        let exact = network.solve(Method::Exact).expect("it can be");
        for (worst, method) in worst
            .iter_mut()
            .zip([Method::Schweitzer, Method::Linearizer])
        {
            let guessed = network.solve(method).expect("it can be");
            let off = guessed.response_s() / exact.response_s() - 1.0;
            *worst = worst.max(off.abs());
        }
    }
    assert!(worst[0] < 0.1, "{worst:?}");
    assert!(worst[1] < worst[0] / 3.0, "{worst:?}");
}

#[test]
fn more_machines_wait_longer_and_do_more() {
    let mut rng = Rng::with_seed(5);
    for _ in 0..200 {
        let cluster = any_cluster(&mut rng);
        let more = Cluster {
            machines: cluster.machines + rng.u32(1..10),
            ..cluster
        };
        let [less, more] = [cluster, more].map(|c| c.solve().expect("it can be"));
        assert!(more.response_s() >= less.response_s() * (1.0 - 1e-9));
        assert!(more.getpages_per_s() >= less.getpages_per_s() * (1.0 - 1e-9));
    }
}

#[test]
fn slower_servers_and_more_putpages_make_it_longer() {
    let mut rng = Rng::with_seed(6);
    for _ in 0..200 {
        let cluster = any_cluster(&mut rng);
        let by = 1.0 + rng.f64();
        let slower = Cluster {
            getpage_s: cluster.getpage_s * by,
            putpage_s: cluster.putpage_s * by,
            ..cluster
        };
        let fuller = Cluster {
            putpages_per_getpage: cluster.putpages_per_getpage + by,
            ..cluster
        };
        let of = |cluster: Cluster| cluster.solve().expect("it can be").response_s();
        let usual = of(cluster);
        assert!(of(slower) >= usual, "{cluster:?}");
        assert!(of(fuller) >= usual * (1.0 - 1e-9), "{cluster:?}");
    }
}

#[test]
fn nothing_beats_an_even_load() {
    let mut rng = Rng::with_seed(7);
    for _ in 0..60 {
        let mut network = any_cluster(&mut rng).network().expect("it can be");
        let even = 1.0 / f64::from(network.groups.iter().map(|group| group.nodes).sum::<u32>());
        let mut balanced = network.clone();
        balanced.classes[0].routing.fill(even);
        network.classes[0].routing = any_routing(&mut rng, &network.groups);
        let of = |network: &Network, method| network.solve(method).expect("it can be").response_s();
        for method in METHODS {
            assert!(of(&network, method) >= of(&balanced, method) * (1.0 - 1e-9));
        }
    }
}

#[test]
fn more_servers_that_share_evenly_never_make_it_longer() {
    let mut rng = Rng::with_seed(8);
    for _ in 0..200 {
        let cluster = Cluster {
            hottest_share: None,
            local_servers: 0,
            local_share: 0.0,
            ..any_cluster(&mut rng)
        };
        let more = Cluster {
            servers: cluster.servers + 1,
            ..cluster
        };
        let [few, more] = [cluster, more].map(|c| c.solve().expect("it can be").response_s());
        assert!(more <= few * (1.0 + 1e-9), "{cluster:?}");
    }
}

/// Equation 3.2 is the law of utilisation: what a node gets is the largest share that leaves it as busy as it is.
#[test]
fn the_thesis_bound_on_shares_is_reached() {
    let mut rng = Rng::with_seed(9);
    for _ in 0..200 {
        let cluster = any_cluster(&mut rng);
        let cluster = Cluster {
            putpage_s: cluster.getpage_s,
            ..cluster
        };
        let network = cluster.network().expect("it can be");
        let solution = network.solve(Method::Exact).expect("it can be");
        let [class] = &*solution.classes else {
            panic!("one class");
        };
        let requests = 1.0 + cluster.putpages_per_getpage;
        let interval_s = (class.think_s + class.response_s) / requests;
        for (group, to) in solution.groups.iter().zip(&network.classes[0].routing) {
            let busy = group.utilisation.min(1.0);
            // P <= U* T / (N S)
            let machines = f64::from(class.machines);
            let share = busy * interval_s / (machines * cluster.getpage_s);
            assert_near(share, *to, 1e-8);
        }
    }
}

/// Where a cluster's size changes the method, the answer hardly changes; wherever the machines are between idle and full.
#[test]
fn large_clusters_need_no_exact_analysis() {
    for (putpages_per_getpage, most) in [(1.0, 1.0 / 6.0), (0.0, 0.26)] {
        let (mut cycle, mut response) = (0.0_f64, 0.0_f64);
        let machines = 5_000;
        for (servers, load) in [1, 8, 300]
            .into_iter()
            .flat_map(|servers| [0.5, 0.9, 0.95, 1.0, 1.05, 1.5].map(|load| (servers, load)))
        {
            let each_s = (1.0 + putpages_per_getpage) * 194e-6 / f64::from(servers);
            let cluster = Cluster {
                machines,
                servers,
                think_s: f64::from(machines) / load * each_s,
                putpages_per_getpage,
                ..Cluster::default()
            };
            let network = cluster.network().expect("it can be");
            let [exact, guessed] = [Method::Exact, Method::Schweitzer]
                .map(|method| network.solve(method).expect("it can be").classes[0]);
            cycle = cycle.max(slowdown(&guessed, &exact).abs());
            response = response.max((guessed.response_s / exact.response_s - 1.0).abs());
        }
        assert!(cycle < 0.005 && response < most, "{cycle} {response}");
    }
}

/// Where many machines wait that differ much, and that ask servers differently, rates of putpages depend on each other most.
#[test]
fn rates_of_putpages_are_found_however_classes_differ() {
    let mut rng = Rng::with_seed(41);
    for round in 0..60 {
        let groups: Vec<Group> = (0..rng.usize(1..12))
            .map(|_| Group {
                kind: Kind::Idle,
                nodes: rng.u32(1..3),
                getpage_s: 194e-6,
                putpage_s: 194e-6 * [1.0, 0.2, 3.0][round % 3],
            })
            .collect();
        let classes = (0..rng.usize(2..9)).map(|_| Class {
            machines: rng.u32(1..2000),
            think_s: 1e-4 * 1000_f64.powf(rng.f64()),
            putpages_per_getpage: [0.0, 1.0, 4.0][rng.usize(0..3)],
            routing: any_routing(&mut rng, &groups),
        });
        let classes = classes.collect();
        let network = Network { classes, groups };
        let solution = network.solve(Method::Schweitzer).expect("it can be");
        assert!(
            solution.residual < 1e-8,
            "{} {network:?}",
            solution.residual
        );
    }
    // With as few that exact analysis is quick.
    for _ in 0..60 {
        let network = any_network(&mut rng);
        for method in [Method::Exact, Method::Linearizer] {
            let solution = network.solve(method).expect("it can be");
            assert!(
                solution.residual < 1e-8,
                "{} {network:?}",
                solution.residual
            );
        }
    }
}
