//! Where there is a formula, and at the limits.

use super::super::{Limits, local_share_max, machines_until, servers_needed, slowdown};
use super::*;

/// Machines that break down and are repaired by one: the chance that nobody waits, for the throughput.
fn repairman_per_s(machines: u32, think_s: f64, service_s: f64) -> f64 {
    // 1 / P(0) = sum over k of N! / (N - k)! (S / Z)^k.
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 1..=machines {
        term *= f64::from(machines - k + 1) * service_s / think_s;
        sum += term;
    }
    (1.0 - 1.0 / sum) / service_s
}

#[test]
fn one_server_without_putpages_is_the_repairman() {
    for machines in [1, 2, 5, 13, 40] {
        for think_s in [0.17e-3, 1e-3, 5e-3] {
            let cluster = Cluster {
                machines,
                think_s,
                putpages_per_getpage: 0.0,
                ..Cluster::default()
            };
            let solution = cluster.solve().expect("it can be");
            let repaired = repairman_per_s(machines, think_s, 194e-6);
            assert_near(solution.getpages_per_s(), repaired, 1e-12);
        }
    }
}

#[test]
fn alone_nobody_waits() {
    for method in METHODS {
        let cluster = Cluster {
            putpages_per_getpage: 0.0,
            servers: 5,
            hottest_share: Some(0.7),
            ..Cluster::default()
        };
        let network = cluster.network().expect("it can be");
        let solution = network.solve(method).expect("it can be");
        assert_near(solution.response_s(), 194e-6, 1e-12);
    }
}

/// One machine among its own putpages: `R = D / (1 - f R_rate D)` is a quadratic equation.
#[test]
fn one_machine_waits_for_putpages_only() {
    let (think_s, service_s) = (5e-3, 194e-6);
    let solution = Cluster::default().solve().expect("it can be");
    let rate = solution.getpages_per_s();
    let response_s = service_s / (1.0 - rate * service_s);
    assert_near(solution.response_s(), response_s, 1e-12);
    assert_near(rate, 1.0 / (think_s + response_s), 1e-12);
    // By the formula of quadratic equations: X = 1 / (Z + D / (1 - X D)).
    let b = think_s + 2.0 * service_s;
    let root = (b - (b * b - 4.0 * think_s * service_s).sqrt()) / (2.0 * think_s * service_s);
    assert_near(rate, root, 1e-12);
}

#[test]
fn machines_that_hardly_ask_see_an_empty_server_and_open_arrivals_see_a_queue() {
    // Very many machines that think very long are an open class: M/M/1.
    let rate = 2000.0;
    let machines = 20_000;
    let cluster = Cluster {
        machines,
        think_s: f64::from(machines) / rate,
        ..Cluster::default()
    };
    let response_s = 194e-6 / (1.0 - 2.0 * rate * 194e-6);
    let solution = cluster.solve().expect("it can be");
    assert_near(solution.response_s(), response_s, 2e-3);
    assert_near(solution.groups[0].putpage_s, response_s, 2e-3);
    for method in METHODS {
        let network = Cluster {
            machines: 50,
            think_s: 1e12,
            ..Cluster::default()
        };
        let network = network.network().expect("it can be");
        let solution = network.solve(method).expect("it can be");
        assert_near(solution.response_s(), 194e-6, 1e-9);
    }
}

#[test]
fn a_full_server_serves_all_the_time_half_of_it_putpages() {
    for method in METHODS {
        let network = Cluster {
            machines: 400,
            ..Cluster::default()
        };
        let network = network.network().expect("it can be");
        let solution = network.solve(method).expect("it can be");
        assert_near(solution.groups[0].utilisation, 1.0, 1e-3);
        assert_near(solution.groups[0].putpage_utilisation, 0.5, 1e-3);
        assert_near(solution.response_s(), 400.0 * 2.0 * 194e-6 - 5e-3, 2e-3);
    }
}

#[test]
fn balanced_servers_without_thinking_share_the_work_as_known() {
    // X = N / (N + K - 1) / D for each of K alike, whatever the routing among the same demands (Lazowska et al., chapter 5).
    for (machines, servers) in [(1, 1), (4, 3), (20, 8)] {
        let cluster = Cluster {
            machines,
            servers,
            think_s: 0.0,
            putpages_per_getpage: 0.0,
            ..Cluster::default()
        };
        let (n, k) = (f64::from(machines), f64::from(servers));
        let solution = cluster.solve().expect("it can be");
        let rate = n / (n + k - 1.0) * k / 194e-6;
        assert_near(solution.getpages_per_s(), rate, 1e-12);
    }
}

#[test]
fn classes_that_are_alike_are_one() {
    for method in METHODS {
        let mut network = Cluster {
            machines: 12,
            servers: 3,
            hottest_share: Some(0.6),
            ..Cluster::default()
        }
        .network()
        .expect("it can be");
        let one = network.solve(method).expect("it can be");
        let mut half = network.classes[0].clone();
        half.machines = 6;
        network.classes = vec![half.clone(), half];
        let two = network.solve(method).expect("it can be");
        let by = if method == Method::Exact { 1e-9 } else { 1e-3 };
        assert_near(two.response_s(), one.response_s(), by);
        assert_near(two.classes[0].response_s, two.classes[1].response_s, 1e-9);
    }
}

#[test]
fn limits_by_hand() {
    let cluster = Cluster {
        machines: 10,
        servers: 2,
        hottest_share: Some(0.75),
        ..Cluster::default()
    };
    let network = cluster.network().expect("it can be");
    let limits = Limits::of(&network.classes[0], &network.groups);
    assert_near(limits.capacity_per_s, 1.0 / (0.75 * 2.0 * 194e-6), 1e-12);
    assert_near(limits.unhindered_per_s, 10.0 / 5.194e-3, 1e-12);
    assert_near(limits.machines_at_knee, 5.194e-3 / (1.5 * 194e-6), 1e-12);
    assert_near(limits.getpages_per_s(), 10.0 / 5.194e-3, 1e-12);
}

#[test]
fn what_is_needed_is_the_least() {
    let cluster = Cluster {
        machines: 60,
        ..Cluster::default()
    };
    let of = |servers| {
        let cluster = Cluster { servers, ..cluster };
        cluster.solve().expect("it can be").response_s()
    };
    for bound_s in [0.25e-3, 0.5e-3, 1e-3, 3.6e-3] {
        let needed = servers_needed(&cluster, bound_s).expect("it can be");
        let needed = needed.expect("some number is enough");
        assert!(of(needed) <= bound_s);
        assert!(needed == 1 || of(needed - 1) > bound_s);
    }
    assert_eq!(servers_needed(&cluster, 194e-6), Ok(None));
    let until = machines_until(&cluster, 3.6e-3).expect("it can be");
    let until = until.expect("a disk is reached");
    let with = |machines| {
        let cluster = Cluster {
            machines,
            ..cluster
        };
        cluster.solve().expect("it can be").response_s()
    };
    assert!(with(until) >= 3.6e-3 && with(until - 1) < 3.6e-3);
}

#[test]
fn local_servers_lose_what_is_allowed_and_no_more() {
    let cluster = Cluster {
        machines: 40,
        servers: 2,
        local_servers: 4,
        ..Cluster::default()
    };
    let share = local_share_max(&cluster, 0.2).expect("it can be");
    let cluster = Cluster {
        local_share: share,
        ..cluster
    };
    let solution = cluster.solve().expect("it can be");
    assert_near(solution.utilisation_max(Kind::Local), 0.2, 1e-6);
    assert_eq!(local_share_max(&cluster, 1.0), Ok(1.0));
}

/// Section 3.5: a local server is asked less than an idle one if it gets less than half, so it never fills.
#[test]
fn a_local_server_fills_up_to_its_share_of_a_full_idle_one() {
    for (local_share, most) in [(0.2, 0.25), (0.5, 1.0), (0.7, 1.0)] {
        let cluster = Cluster {
            machines: 2000,
            local_servers: 1,
            local_share,
            ..Cluster::default()
        };
        let solution = cluster.solve().expect("it can be");
        let busy = solution.utilisation_max(Kind::Local);
        assert_near(busy, most, 1e-2);
    }
}

#[test]
fn a_skew_costs_time_and_none_costs_nothing() {
    let network = Cluster {
        machines: 18,
        servers: 2,
        ..Cluster::default()
    };
    let of = |share| {
        let cluster = Cluster {
            hottest_share: Some(share),
            ..network
        };
        let network = cluster.network().expect("it can be");
        let [skewed, balanced] = [network.clone(), network.balanced()]
            .map(|network| network.solve(Method::Exact).expect("it can be").classes[0]);
        slowdown(&skewed, &balanced)
    };
    assert!(of(0.5).abs() < 1e-12);
    assert!(of(0.75) > 0.01 && of(1.0) > of(0.75));
}

#[test]
fn what_cannot_be_is_refused() {
    let told = |cluster: Cluster| cluster.solve().expect_err("it cannot be").to_string();
    let usual = Cluster::default();
    for (cluster, why) in [
        (
            Cluster {
                machines: 0,
                ..usual
            },
            "machines must be from 1",
        ),
        (
            Cluster {
                servers: 0,
                ..usual
            },
            "servers must be 1 or more",
        ),
        (
            Cluster {
                think_s: f64::NAN,
                ..usual
            },
            "think s must be",
        ),
        (
            Cluster {
                getpage_s: 0.0,
                ..usual
            },
            "getpage s must be",
        ),
        (
            Cluster {
                putpage_s: -1.0,
                ..usual
            },
            "putpage s must be",
        ),
        (
            Cluster {
                putpages_per_getpage: -1.0,
                ..usual
            },
            "putpages per getpage must be",
        ),
        (
            Cluster {
                local_share: 0.5,
                ..usual
            },
            "local share cannot be 0.5 without local servers",
        ),
        (
            Cluster {
                servers: 4,
                hottest_share: Some(0.1),
                ..usual
            },
            "hottest share cannot be below 0.250",
        ),
        (
            Cluster {
                hottest_share: Some(1.5),
                ..usual
            },
            "hottest share must be between",
        ),
    ] {
        assert!(told(cluster).starts_with(why), "{}", told(cluster));
    }
    let mut network = usual.network().expect("it can be");
    network.classes[0].routing = vec![0.9];
    assert!(network.solve(Method::Exact).is_err());
    network.classes[0].routing = vec![0.5, 0.5];
    assert!(network.solve(Method::Exact).is_err());
    network.classes.clear();
    assert!(network.solve(Method::Exact).is_err());
    let many = Cluster {
        machines: 1_000_000,
        servers: 20,
        hottest_share: Some(0.5),
        ..usual
    };
    let many = many.network().expect("it can be");
    assert!(many.solve(Method::Linearizer).is_ok());
}
