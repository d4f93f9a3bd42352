//! Ways to cooperate (thesis, section 5.3 and table 5.3), beside every cache on its own.
//!
//! Where the table cannot be taken as it is printed, this is what is computed here:
//!
//! - *Hierarchical, latency*: the first term's index is free; it is the top's, (1 - H_N1) E(L). L_i is said to be the latency
//!   between levels i + 1 and i, but the sum charges a hit at level i with L_i alone, not with the way up to it. Here a level's
//!   latency is all that a client waits for a hit there. With the thesis' numbers both readings print alike.
//! - *Directory, other caches' hits*: the table multiplies (1 - H_N/m) by H_N(1-1/m), as if what one cache misses were asked
//!   for like everything else. It is not: misses are for what is seldom asked for or has just changed. The three weights of the
//!   latency then add up to more than 1 (to 1.17 for the city). What some other cache holds and the own one does not is
//!   H_N - H_N/m, and that is taken; [`Directory::as_printed`] is the other.
//! - *Directory, latency*: its last term is printed L_i; the text has it as L_l.
//! - *Storage*: n H E(S) weighs documents by requests; see [`Model::valid_bytes`]. Both are told.
//!
//! As in the table, a miss costs E(L) alone, not the way on which it was found out.

use super::finite::{Store, keep_s};
use super::model::Model;
use super::zipf::Counted;
use crate::{Invalid, at_least, positive};
use serde::Serialize;

/// Caches side by side with the same number of clients each.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sites {
    /// N: clients of all together.
    pub clients: f64,
    /// m: how many caches.
    pub caches: u64,
    /// L_l: seconds for a document from a client's own cache.
    pub near_s: f64,
    /// L_c: seconds for a document from any of the caches to a client, or to another cache.
    pub between_s: f64,
    /// The room of each cache; nothing for caches that hold all.
    pub store: Option<Store>,
}

/// A level of a tree.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Level {
    /// How many caches are below each cache of the level above; at the top, how many roots there are.
    pub fanout: u64,
    /// Seconds that a client waits for a document that is found on this level.
    pub hit_s: f64,
}

/// What clients and caches get.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// H: the share of all requests that some cache answers.
    pub hit_rate: f64,
    /// Seconds that a client waits for a document on average.
    pub latency_s: f64,
    /// N λ B_N, with B_N = H E(S): bytes a second that all servers need not send to all clients.
    pub saved_bytes_s: f64,
    /// Requests to one cache in a second: one figure, or for each level of a tree, the top first.
    pub arrivals_s: Vec<f64>,
    /// Bytes for each (lowest) cache, as table 5.3 has it. For caches that hold all.
    pub paper_store_bytes: f64,
    /// Bytes of the copies that are valid at a moment, for each (lowest) cache.
    pub valid_bytes: f64,
}

impl Sites {
    /// Refuses what cannot be.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the first parameter that makes no sense.
    pub fn check(&self) -> Result<(), Invalid> {
        positive("clients", self.clients)?;
        at_least("caches", self.caches as f64, 1.0)?;
        at_least("near_s", self.near_s, 0.0)?;
        at_least("between_s", self.between_s, 0.0)?;
        self.store.map_or(Ok(()), |store| store.check())
    }

    fn each(&self) -> f64 {
        self.clients / self.caches as f64
    }

    /// What a cache that serves so many clients, with the room of so many, gets.
    fn cache<'a>(&self, model: &'a Model, clients: f64, rooms: f64) -> Cache<'a> {
        let store = self.store.map(|store| store.times(rooms));
        let keep_s = store.map_or(f64::INFINITY, |store| keep_s(model, clients, store));
        Cache {
            model,
            clients,
            keep_s,
        }
    }
}

/// A cache that keeps what it has for some time.
struct Cache<'a> {
    model: &'a Model,
    clients: f64,
    keep_s: f64,
}

impl Cache<'_> {
    fn hits(&self) -> f64 {
        self.hits_of(self.clients)
    }

    /// The share of requests that hit if so many clients ask this cache or others like it.
    fn hits_of(&self, clients: f64) -> f64 {
        let share = self.model.sum(clients, self.keep_s, Counted::Requests);
        self.model.workload().cacheable * share.as_share().value
    }

    fn valid_bytes(&self) -> f64 {
        let told = self.model.workload();
        let valid = self
            .model
            .sum(self.clients, self.keep_s, Counted::Documents);
        valid.value * told.cacheable * told.document_bytes
    }
}

fn saved_bytes_s(model: &Model, clients: f64, hits: f64) -> f64 {
    model.requests_s(clients) * hits * model.workload().document_bytes
}

/// Every cache for itself.
///
/// # Errors
///
/// [`Invalid`] if the sites cannot be.
pub fn alone(model: &Model, sites: &Sites) -> Result<Outcome, Invalid> {
    sites.check()?;
    let cache = sites.cache(model, sites.each(), 1.0);
    let hits = cache.hits();
    Ok(Outcome {
        hit_rate: hits,
        latency_s: (1.0 - hits) * model.workload().server_s + hits * sites.near_s,
        saved_bytes_s: saved_bytes_s(model, sites.clients, hits),
        arrivals_s: vec![model.requests_s(sites.each())],
        paper_store_bytes: hits * model.whole_bytes(),
        valid_bytes: cache.valid_bytes(),
    })
}

/// Each document has its place in one of the caches, by a hash; clients ask there.
///
/// # Errors
///
/// [`Invalid`] if the sites cannot be.
pub fn hashed(model: &Model, sites: &Sites) -> Result<Outcome, Invalid> {
    sites.check()?;
    let caches = sites.caches as f64;
    let whole = sites.cache(model, sites.clients, caches);
    let hits = whole.hits();
    Ok(Outcome {
        hit_rate: hits,
        latency_s: (1.0 - hits) * model.workload().server_s + hits * sites.between_s,
        saved_bytes_s: saved_bytes_s(model, sites.clients, hits),
        arrivals_s: vec![model.requests_s(sites.each())],
        paper_store_bytes: hits * model.whole_bytes() / caches,
        valid_bytes: whole.valid_bytes() / caches,
    })
}

/// Clients ask their own cache; it knows what the others hold, and asks there first.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Directory {
    /// H_N/m: the share of requests that hit in the client's own cache.
    pub own: f64,
    /// The share that hit in another one.
    pub others: f64,
    /// H_N: the share that hit in any.
    any: f64,
    /// H_N(1-1/m).
    rest: f64,
    /// Bytes of the valid copies in a cache.
    valid_bytes: f64,
}

impl Directory {
    /// Where requests hit.
    ///
    /// With caches that fill up, a copy is taken to be somewhere if any client asked for it within the time that a cache keeps
    /// it, whether or not requests from other caches keep it there longer.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the sites cannot be.
    pub fn new(model: &Model, sites: &Sites) -> Result<Self, Invalid> {
        sites.check()?;
        let cache = sites.cache(model, sites.each(), 1.0);
        let (own, any) = (cache.hits(), cache.hits_of(sites.clients));
        Ok(Directory {
            own,
            others: (any - own).max(0.0),
            any,
            rest: cache.hits_of(sites.clients - sites.each()),
            valid_bytes: cache.valid_bytes(),
        })
    }

    /// What that comes to.
    pub fn outcome(&self, model: &Model, sites: &Sites) -> Outcome {
        self.with(model, sites, self.others)
    }

    /// The same with table 5.3's product (1 - H_N/m) H_N(1-1/m) for the hits of other caches.
    pub fn as_printed(&self, model: &Model, sites: &Sites) -> Outcome {
        self.with(model, sites, (1.0 - self.own) * self.rest)
    }

    fn with(&self, model: &Model, sites: &Sites, others: f64) -> Outcome {
        let own_requests_s = model.requests_s(sites.each());
        let missed = (1.0 - self.any) * model.workload().server_s;
        Outcome {
            hit_rate: self.any,
            latency_s: missed + others * 2.0 * sites.between_s + self.own * sites.near_s,
            saved_bytes_s: saved_bytes_s(model, sites.clients, self.any),
            arrivals_s: vec![own_requests_s * (1.0 + others)],
            paper_store_bytes: self.own * model.whole_bytes(),
            valid_bytes: self.valid_bytes,
        }
    }
}

/// [`Directory`], put together.
///
/// # Errors
///
/// [`Invalid`] if the sites cannot be.
pub fn directory(model: &Model, sites: &Sites) -> Result<Outcome, Invalid> {
    Ok(Directory::new(model, sites)?.outcome(model, sites))
}

/// A request goes up a tree until it hits; a copy stays in every cache on its way. Levels from the top; the lowest serve clients.
///
/// Only for caches that hold all: what the upper ones see of a lower one that fills up are misses, which are not a Poisson
/// process, and no closed form is known.
///
/// # Errors
///
/// [`Invalid`] if there is no level, or one of them cannot be, or nobody is there.
pub fn hierarchical(model: &Model, clients: f64, levels: &[Level]) -> Result<Outcome, Invalid> {
    positive("clients", clients)?;
    let counts = counts(levels)?;
    let lowest = counts[counts.len() - 1];
    let hits: Vec<f64> = counts
        .iter()
        .map(|count| model.hit_rate(clients / count).value)
        .collect();
    // What the level below answers; nobody is below the lowest.
    let below = |level: usize| hits.get(level + 1).copied().unwrap_or(0.0);
    let found = |level: usize| (hits[level] - below(level)).max(0.0) * levels[level].hit_s;
    let answered: f64 = (0..levels.len()).map(found).sum();
    let store = |bytes: &dyn Fn(f64) -> f64| {
        let levels = counts.iter().map(|count| count * bytes(clients / count));
        levels.sum::<f64>() / lowest
    };
    Ok(Outcome {
        hit_rate: hits[0],
        latency_s: (1.0 - hits[0]) * model.workload().server_s + answered,
        saved_bytes_s: saved_bytes_s(model, clients, hits[0]),
        arrivals_s: (0..levels.len())
            .map(|level| model.requests_s(clients / counts[level]) * (1.0 - below(level)))
            .collect(),
        paper_store_bytes: store(&|clients| model.paper_store_bytes(clients)),
        valid_bytes: store(&|clients| model.valid_bytes(clients)),
    })
}

/// How many caches each level has.
fn counts(levels: &[Level]) -> Result<Vec<f64>, Invalid> {
    if levels.is_empty() {
        return Err(Invalid::new("tree", "must have a level"));
    }
    let mut caches = 1.0;
    let mut counts = Vec::with_capacity(levels.len());
    for level in levels {
        at_least("fanout", level.fanout as f64, 1.0)?;
        at_least("hit_s", level.hit_s, 0.0)?;
        caches *= level.fanout as f64;
        counts.push(caches);
    }
    positive("caches", caches)?;
    Ok(counts)
}

/// Below which latency between caches it pays to cooperate, rather than to be alone.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct BreakEven {
    /// For hashed caches; below 0 if it never pays, since a hit at home is nearer than any elsewhere.
    pub hashed_s: f64,
    /// For a root above all caches that is as far from each of them: a server's latency, since a hit there spares one; 0 as below.
    pub root_s: f64,
    /// For a directory: half of a server's latency, since another cache's hit takes twice L_c instead; 0 where no other cache
    /// has anything that the own one has not.
    pub directory_s: f64,
}

/// The latencies between caches up to which cooperating pays.
///
/// # Errors
///
/// [`Invalid`] if the sites cannot be.
pub fn break_even(model: &Model, sites: &Sites) -> Result<BreakEven, Invalid> {
    let (alone, hashed) = (alone(model, sites)?, hashed(model, sites)?);
    let missed_s = (1.0 - hashed.hit_rate) * model.workload().server_s;
    let directory = Directory::new(model, sites)?;
    let server_s = match directory.others > 0.0 {
        true => model.workload().server_s,
        false => 0.0,
    };
    Ok(BreakEven {
        hashed_s: match hashed.hit_rate > 0.0 {
            true => (alone.latency_s - missed_s) / hashed.hit_rate,
            false => 0.0,
        },
        root_s: server_s,
        directory_s: server_s / 2.0,
    })
}

#[cfg(test)]
mod tests {
    use super::super::finite::Stale;
    use super::super::model::Workload;
    use super::*;

    fn model() -> Model {
        Model::new(Workload::washington()).unwrap()
    }

    const CITY: Sites = Sites {
        clients: 5e5,
        caches: 10,
        near_s: 0.01,
        between_s: 0.05,
        store: None,
    };

    fn seeded(random: &mut fastrand::Rng) -> Sites {
        Sites {
            clients: 10f64.powf(random.f64() * 8.0),
            caches: random.u64(1..2000),
            near_s: random.f64() * 0.05,
            between_s: random.f64() * 0.6,
            store: random.bool().then(|| Store {
                documents: 10f64.powf(random.f64() * 8.0),
                stale: Stale::Lingers,
            }),
        }
    }

    #[test]
    fn one_cache_cooperates_with_nobody() {
        let one = Sites {
            caches: 1,
            between_s: 0.01,
            ..CITY
        };
        let alone = alone(&model(), &one).unwrap();
        assert_eq!(hashed(&model(), &one).unwrap(), alone);
        assert_eq!(directory(&model(), &one).unwrap(), alone);
        let root = Level {
            fanout: 1,
            hit_s: 0.01,
        };
        let tree = hierarchical(&model(), one.clients, &[root]).unwrap();
        assert!((tree.latency_s - alone.latency_s).abs() < 1e-12);
        assert_eq!(tree.arrivals_s, alone.arrivals_s);
    }

    /// Section 5.2.2: B_N = H_N E(S) of each of N λ requests. Half a million clients of the trace's ask for 26.3 MB a second.
    #[test]
    fn what_hits_need_not_be_sent_by_servers() {
        let (model, asked_s) = (model(), 5e5 * 590.0 / 86_400.0 * 7_700.0);
        let root = Level {
            fanout: 1,
            hit_s: 0.05,
        };
        let whole = hierarchical(&model, CITY.clients, &[root]).unwrap();
        for outcome in [
            alone(&model, &CITY).unwrap(),
            hashed(&model, &CITY).unwrap(),
            directory(&model, &CITY).unwrap(),
            whole,
        ] {
            let part = outcome.saved_bytes_s / asked_s;
            assert!((part - outcome.hit_rate).abs() < 1e-12, "{outcome:?}");
        }
    }

    #[test]
    fn a_level_that_no_cache_of_its_own_has_changes_nothing() {
        let level = |fanout, hit_s| Level { fanout, hit_s };
        let plain = [level(1, 0.05), level(10, 0.01)];
        let doubled = [level(1, 0.05), level(10, 0.03), level(1, 0.01)];
        let plain = hierarchical(&model(), 5e5, &plain).unwrap();
        let doubled = hierarchical(&model(), 5e5, &doubled).unwrap();
        assert_eq!(plain.latency_s, doubled.latency_s);
        assert_eq!(plain.hit_rate, doubled.hit_rate);
    }

    #[test]
    fn cooperating_hits_more_and_pays_up_to_the_break_even() {
        let (model, mut random) = (model(), fastrand::Rng::with_seed(54));
        for _ in 0..40 {
            let sites = seeded(&mut random);
            let own = alone(&model, &sites).unwrap();
            let pays = break_even(&model, &sites).unwrap();
            let hashed = hashed(&model, &sites).unwrap();
            let directory = directory(&model, &sites).unwrap();
            assert!(hashed.hit_rate >= own.hit_rate - 1e-9, "{sites:?}");
            assert!(directory.hit_rate >= own.hit_rate - 1e-9, "{sites:?}");
            let gain_s = own.latency_s - hashed.latency_s;
            assert!(
                gain_s.abs() < 1e-9 || (gain_s > 0.0) == (sites.between_s < pays.hashed_s),
                "{sites:?}"
            );
            let gain_s = own.latency_s - directory.latency_s;
            assert!(
                gain_s.abs() < 1e-9 || (gain_s > 0.0) == (sites.between_s < pays.directory_s),
                "{sites:?}"
            );
            if sites.store.is_none() {
                let level = |fanout, hit_s| Level { fanout, hit_s };
                let tree = [level(1, sites.between_s), level(sites.caches, sites.near_s)];
                let tree = hierarchical(&model, sites.clients, &tree).unwrap();
                let gain_s = own.latency_s - tree.latency_s;
                let is_near = sites.between_s < pays.root_s;
                assert!(
                    gain_s.abs() < 1e-9 || (gain_s > 0.0) == is_near,
                    "{sites:?}"
                );
            }
            assert!(directory.arrivals_s[0] >= own.arrivals_s[0], "{sites:?}");
            let room = sites.store.is_some();
            assert!(room || hashed.valid_bytes <= directory.valid_bytes * (1.0 + 1e-9));
        }
    }

    #[test]
    fn the_levels_of_a_tree_pass_on_what_they_miss() {
        let level = |fanout, hit_s| Level { fanout, hit_s };
        let levels = [level(2, 0.3), level(3, 0.1), level(7, 0.02)];
        let tree = hierarchical(&model(), 4.2e6, &levels).unwrap();
        let lowest = tree.arrivals_s[2] * 42.0;
        assert!((lowest - model().requests_s(4.2e6)).abs() < 1e-6 * lowest);
        let missed = lowest * (1.0 - model().hit_rate(1e5).value);
        assert!((tree.arrivals_s[1] * 6.0 - missed).abs() < 1e-6 * missed);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let model = model();
        assert!(hierarchical(&model, 5e5, &[]).is_err());
        let level = Level {
            fanout: 0,
            hit_s: 0.1,
        };
        assert!(hierarchical(&model, 5e5, &[level]).is_err());
        let wrongs = [
            Sites {
                clients: 0.0,
                ..CITY
            },
            Sites { caches: 0, ..CITY },
            Sites {
                near_s: -1.0,
                ..CITY
            },
            Sites {
                between_s: f64::NAN,
                ..CITY
            },
        ];
        for wrong in wrongs {
            assert!(alone(&model, &wrong).is_err() && hashed(&model, &wrong).is_err());
            assert!(directory(&model, &wrong).is_err() && break_even(&model, &wrong).is_err());
        }
    }
}
