//! The model against the simulation, with fixed seeds.

use super::super::simulate::{Experiment, Putpages, Service};
use super::*;

const SURE: Experiment = Experiment {
    seed: 7,
    runs: 10,
    getpages: 4_000,
    putpages: Putpages::Independent,
    service: Service::Exponential,
    confidence: 0.999,
};

fn cluster(machines: u32, servers: u32, hottest_share: Option<f64>) -> Cluster {
    Cluster {
        machines,
        servers,
        hottest_share,
        ..Cluster::default()
    }
}

/// Exponential service, equal demands, putpages from nowhere: the model is exact, so the simulation has to agree.
#[test]
fn what_is_exact_lies_in_the_intervals() {
    for (machines, servers, hottest_share) in [
        (1, 1, None),
        (7, 1, None),
        (12, 1, None),
        (20, 3, None),
        (18, 2, Some(0.75)),
        (24, 11, Some(0.6)),
    ] {
        let network = cluster(machines, servers, hottest_share)
            .network()
            .expect("it can be");
        agrees(&network);
    }
}

fn agrees(network: &Network) {
    let model = network.solve(Method::Exact).expect("it can be");
    let seen = SURE.run(network, |_| ()).expect("it can be");
    for (seen, model) in seen.response_s.iter().zip(&model.classes) {
        assert!(
            seen.covers(model.response_s),
            "{network:?}: {seen:?}, {model:?}"
        );
        assert!(seen.half_width < 0.2 * seen.mean, "{seen:?}");
    }
    for (seen, model) in seen.getpages_per_s.iter().zip(&model.classes) {
        assert!(
            seen.covers(model.getpages_per_s),
            "{network:?}: {seen:?}, {model:?}"
        );
    }
    for (seen, model) in seen.utilisation.iter().zip(&model.groups) {
        assert!(
            seen.covers(model.utilisation),
            "{network:?}: {seen:?}, {model:?}"
        );
    }
    if let Some(seen) = seen.putpage_s {
        let putpages = model.groups.iter().zip(&network.groups).enumerate();
        let (time_s, rate) = putpages.fold((0.0, 0.0), |(time_s, rate), (_, (model, group))| {
            let of = model.putpage_utilisation / group.putpage_s * f64::from(group.nodes);
            (time_s + of * model.putpage_s, rate + of)
        });
        assert!(seen.covers(time_s / rate), "{network:?}: {seen:?}");
    }
}

#[test]
fn classes_of_their_own_agree_as_well() {
    let mut network = cluster(8, 3, Some(0.5)).network().expect("it can be");
    let mut other = network.classes[0].clone();
    other.think_s = 1.5e-3;
    other.machines = 4;
    other.putpages_per_getpage = 0.5;
    other.routing = vec![0.2, 0.4];
    network.classes.push(other);
    agrees(&network);
}

#[test]
fn without_putpages_nothing_is_approximate() {
    let network = Cluster {
        putpages_per_getpage: 0.0,
        ..cluster(25, 2, Some(0.7))
    };
    agrees(&network.network().expect("it can be"));
}

#[test]
fn a_seed_repeats_a_run() {
    let network = cluster(9, 2, None).network().expect("it can be");
    let small = Experiment {
        runs: 2,
        getpages: 500,
        ..SURE
    };
    let [one, again] = [small, small].map(|small| small.run(&network, |_| ()));
    assert_eq!(one, again);
    let other = Experiment { seed: 99, ..small };
    assert_ne!(other.run(&network, |_| ()), one);
    let mut told = Vec::new();
    assert!(small.run(&network, |done| told.push(done)).is_ok());
    assert_eq!(told, [1, 2]);
}

/// What the model leaves out: fixed service waits less than it says, never more; putpages with getpages is not far off.
#[test]
fn what_the_model_leaves_out_is_bounded() {
    let network = cluster(12, 2, None).network().expect("it can be");
    let model_s = network
        .solve(Method::Exact)
        .expect("it can be")
        .response_s();
    let off = |service, putpages| {
        let experiment = Experiment {
            service,
            putpages,
            ..SURE
        };
        let seen = experiment.run(&network, |_| ()).expect("it can be");
        seen.response_of_all_s.off(model_s)
    };
    let fixed = off(Service::Fixed, Putpages::Independent);
    assert!((0.0..0.3).contains(&fixed), "{fixed}");
    let with = off(Service::Exponential, Putpages::WithGetpages);
    assert!(with.abs() < 0.25, "{with}");
}

/// Putpages that take another time than getpages have no product form: the model then says more than is seen, not less.
#[test]
fn demands_that_differ_are_on_the_safe_side() {
    for (times, most) in [(0.25, 0.15), (0.5, 0.15), (2.0, 0.2), (4.0, 0.35)] {
        for machines in [2, 4, 8, 12, 20] {
            let network = Cluster {
                putpage_s: 194e-6 * times,
                ..cluster(machines, 1, None)
            };
            let network = network.network().expect("it can be");
            let model = network.solve(Method::Exact).expect("it can be");
            let seen = SURE.run(&network, |_| ()).expect("it can be");
            let seen = seen.response_of_all_s;
            let off = seen.off(model.response_s());
            let sure = seen.half_width / seen.mean;
            assert!(
                off > -sure && off < most + sure,
                "{times} {machines}: {off}"
            );
        }
    }
}

/// One machine, all independent of it: `R = D (1 + U / (2 (1 - U)))`, as at a server with fixed service (M/D/1).
#[test]
fn fixed_service_is_that_of_the_formula() {
    let network = Cluster {
        think_s: 0.25,
        putpages_per_getpage: 750.0,
        ..Cluster::default()
    };
    let network = network.network().expect("it can be");
    let experiment = Experiment {
        service: Service::Fixed,
        getpages: 100,
        ..SURE
    };
    let seen = experiment.run(&network, |_| ()).expect("it can be");
    let busy = seen.utilisation[0].mean;
    let formula_s = 194e-6 * (1.0 + busy / (1.0 - busy) / 2.0);
    let of_putpages = seen.putpage_s.expect("there are putpages");
    assert!(
        of_putpages.covers(formula_s),
        "{of_putpages:?}, {formula_s}"
    );
    assert!(seen.response_of_all_s.covers(formula_s), "{seen:?}");
}

#[test]
fn experiments_that_tell_nothing_are_refused() {
    let network = cluster(2, 1, None).network().expect("it can be");
    for wrong in [
        Experiment { runs: 1, ..SURE },
        Experiment {
            getpages: 0,
            ..SURE
        },
        Experiment {
            confidence: 1.0,
            ..SURE
        },
        Experiment {
            confidence: f64::NAN,
            ..SURE
        },
    ] {
        assert!(wrong.run(&network, |_| ()).is_err());
    }
}
