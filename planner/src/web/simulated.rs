//! A cache simulated request by request, as a check of the model: least recently used first, documents that change.

use super::change::{Spacing, interval};
use super::finite::{Stale, Store, filled};
use super::model::{Model, Workload};

struct Simulated {
    random: fastrand::Rng,
    spacing: Spacing,
    /// Mean seconds between two changes of each document.
    change_s: Vec<f64>,
    changed_s: Vec<f64>,
    next_change_s: Vec<f64>,
    /// The copies that are held with the time of their last request, the least recently used first.
    held: Vec<(usize, f64)>,
    store: Store,
}

impl Simulated {
    fn new(workload: &Workload, store: Store, seed: u64) -> Self {
        let popular = workload.popular_documents as usize;
        let change_s: Vec<f64> = (0..workload.documents as usize)
            .map(|rank| match rank < popular {
                true => workload.popular_change_s,
                false => workload.unpopular_change_s,
            })
            .collect();
        let mut simulated = Simulated {
            random: fastrand::Rng::with_seed(seed),
            spacing: workload.spacing,
            changed_s: vec![f64::NEG_INFINITY; change_s.len()],
            next_change_s: vec![0.0; change_s.len()],
            change_s,
            held: Vec::new(),
            store,
        };
        for document in 0..simulated.change_s.len() {
            simulated.next_change_s[document] = simulated.interval_s(document);
        }
        simulated
    }

    fn interval_s(&mut self, document: usize) -> f64 {
        self.change_s[document] * interval(self.spacing, &mut self.random)
    }

    fn change(&mut self, document: usize, now_s: f64) {
        while self.next_change_s[document] <= now_s {
            self.changed_s[document] = self.next_change_s[document];
            self.next_change_s[document] += self.interval_s(document);
        }
    }

    /// Whether it hits.
    fn request(&mut self, document: usize, now_s: f64) -> bool {
        self.change(document, now_s);
        if self.store.stale == Stale::IsDropped {
            self.drop_stale(now_s);
        }
        let at = self.held.iter().position(|held| held.0 == document);
        let before_s = at.map(|at| self.held.remove(at).1);
        self.held.push((document, now_s));
        if self.held.len() as f64 > self.store.documents {
            self.held.remove(0);
        }
        before_s.is_some_and(|before_s| before_s > self.changed_s[document])
    }

    fn drop_stale(&mut self, now_s: f64) {
        for (document, _) in self.held.clone() {
            self.change(document, now_s);
        }
        let changed_s = &self.changed_s;
        self.held
            .retain(|&(document, at_s)| at_s > changed_s[document]);
    }
}

/// The mean share of hits of independent runs, and its standard error.
fn simulate(model: &Model, clients: f64, store: Store) -> (f64, f64) {
    let runs: Vec<f64> = (0..RUNS)
        .map(|seed| run(model, clients, store, seed))
        .collect();
    let mean = runs.iter().sum::<f64>() / RUNS as f64;
    let squares: f64 = runs.iter().map(|run| (run - mean).powi(2)).sum();
    (mean, (squares / ((RUNS - 1) * RUNS) as f64).sqrt())
}

fn run(model: &Model, clients: f64, store: Store, seed: u64) -> f64 {
    let mut simulated = Simulated::new(model.workload(), store, seed);
    let mut random = fastrand::Rng::with_seed(seed + 1000);
    let mut up_to = 0.0;
    let ranks = 1..=model.workload().documents;
    let shares: Vec<f64> = ranks
        .map(|rank| {
            up_to += model.zipf().probability(rank);
            up_to
        })
        .collect();
    let (mut now_s, mut hits) = (0.0, 0);
    for number in 0..WARM + REQUESTS {
        now_s += -(1.0 - random.f64()).ln() / model.requests_s(clients);
        let drawn = random.f64() * up_to;
        let document = shares.partition_point(|&share| share <= drawn);
        let is_hit = simulated.request(document.min(shares.len() - 1), now_s);
        hits += u32::from(is_hit && number >= WARM);
    }
    f64::from(hits) / REQUESTS as f64
}

const RUNS: u64 = 6;
const WARM: u64 = 8_000;
const REQUESTS: u64 = 12_000;

fn small(spacing: Spacing) -> Model {
    let workload = Workload {
        documents: 300,
        popular_documents: 20,
        requests_per_client_s: 1.0,
        popular_change_s: 2.0,
        unpopular_change_s: 100.0,
        spacing,
        cacheable: 1.0,
        ..Workload::washington()
    };
    Model::new(workload).unwrap()
}

/// Infinite room: the model is exact, so that it has to be within four standard errors.
#[test]
fn the_steady_state_is_what_a_simulation_sees() {
    for spacing in [
        Spacing::Exponential,
        Spacing::Regular,
        Spacing::Pareto { shape: 2.5 },
        Spacing::Lognormal { sigma: 1.0 },
    ] {
        let model = small(spacing);
        let store = Store {
            documents: f64::INFINITY,
            stale: Stale::Lingers,
        };
        let (seen, error) = simulate(&model, 20.0, store);
        let expected = model.cacheable_hit_rate(20.0).value;
        assert!(
            (seen - expected).abs() < 4.0 * error,
            "{spacing:?}: {seen} ± {error}, not {expected}"
        );
    }
}

/// Finite room: Che's approximation may be off by another percentage point.
#[test]
fn a_cache_that_fills_up_is_what_a_simulation_sees() {
    for (spacing, stale, documents) in [
        (Spacing::Exponential, Stale::Lingers, 15.0),
        (Spacing::Exponential, Stale::Lingers, 90.0),
        (Spacing::Exponential, Stale::IsDropped, 60.0),
        (Spacing::Pareto { shape: 2.5 }, Stale::Lingers, 60.0),
        (Spacing::Pareto { shape: 2.5 }, Stale::IsDropped, 30.0),
    ] {
        let model = small(spacing);
        let store = Store { documents, stale };
        let (seen, error) = simulate(&model, 20.0, store);
        let expected = filled(&model, 20.0, store).cacheable_hit_rate.value;
        assert!(
            (seen - expected).abs() < 4.0 * error + 0.01,
            "{spacing:?} {store:?}: {seen} ± {error}, not {expected}"
        );
        let unlimited = model.cacheable_hit_rate(20.0).value;
        assert!(unlimited > expected + 0.02, "room matters: {unlimited}");
    }
}
