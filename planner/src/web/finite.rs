//! Caches that fill up, by Che's approximation.
//!
//! A cache with room for K documents that puts out the least recently used one keeps a copy for nearly the same time T after
//! every request for it (Che, Tung and Wang 2002; it is near exact for many documents, and within a percent or two for some
//! hundred). T is where as many documents as there is room for were asked for within the last T. A request hits if the one
//! before it is younger than T, and nothing changed since: h(s) = ∫₀^T s e^(-st) P(A > t) dt.
//!
//! As in the rest of the model, a part p_c of the documents at each popularity may be kept; room counts documents of the average
//! size.

use super::bounded::Bounded;
use super::model::Model;
use super::root::rising;
use super::zipf::Counted;
use crate::{Invalid, at_least};
use serde::Serialize;

/// The room of a cache.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Store {
    /// K: documents of the average size that fit in.
    pub documents: f64,
    /// What becomes of copies that have changed.
    pub stale: Stale,
}

/// What becomes of a copy when its document changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub enum Stale {
    /// It takes up its place until it is put out, or asked for and fetched anew: nobody tells a cache of the Web.
    #[default]
    Lingers,
    /// It is dropped at once, as where servers tell of changes.
    IsDropped,
}

/// A cache of finite room in its steady state.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Filled {
    /// T: seconds for which a copy stays after a request for it; infinite where all fits in.
    pub keep_s: f64,
    /// The share of the requests for cacheable documents that hit. Its error is that of the sum, not of Che's approximation.
    pub cacheable_hit_rate: Bounded,
}

impl Store {
    /// Refuses a room below 0.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the room.
    pub fn check(&self) -> Result<(), Invalid> {
        match self.documents == f64::INFINITY {
            true => Ok(()),
            false => at_least("store_documents", self.documents, 0.0),
        }
    }

    /// The same cache, so many times as large.
    pub fn times(self, by: f64) -> Self {
        Store {
            documents: self.documents * by,
            ..self
        }
    }
}

/// A cache with that room for so many clients.
pub fn filled(model: &Model, clients: f64, store: Store) -> Filled {
    let keep_s = keep_s(model, clients, store);
    let hits = model.sum(clients, keep_s, Counted::Requests);
    Filled {
        keep_s,
        cacheable_hit_rate: hits.as_share(),
    }
}

/// T. A cache with no room, or no room for any document that may be kept, keeps nothing; one that nobody uses keeps all.
pub fn keep_s(model: &Model, clients: f64, store: Store) -> f64 {
    let (requests_s, cacheable) = (model.requests_s(clients), model.workload().cacheable);
    let room = store.documents / cacheable;
    if store.documents.is_nan() || store.documents <= 0.0 {
        return 0.0;
    }
    let held = |keep_s: f64| held(model, clients, keep_s, store.stale);
    // Copies that are dropped leave room for others, which then stay longer than where they linger: a start that is near.
    let soonest_s = match store.stale {
        Stale::Lingers => room / requests_s,
        Stale::IsDropped => {
            let stale = Stale::Lingers;
            keep_s(model, clients, Store { stale, ..store })
        }
    };
    // No more documents are asked for in a time than there are requests in it. Where that many are asked for anyhow, or the
    // room is that large that no time comes up to it, all fits in.
    let soonest = soonest_s.max(SHORTEST_S);
    if !soonest.is_finite() || requests_s.is_infinite() || held(f64::INFINITY) <= room {
        return f64::INFINITY;
    }
    let (mut latest, mut step) = (soonest, 1.1);
    while held(latest) < room {
        latest *= step;
        step *= step;
        if latest > LONGEST_S {
            return f64::INFINITY;
        }
    }
    rising(soonest.ln(), latest.ln(), |log| {
        held(log.exp()) / room - 1.0
    })
    .exp()
}

/// How many documents are held, if each is kept so long after a request for it.
fn held(model: &Model, clients: f64, keep_s: f64, stale: Stale) -> f64 {
    let requests_s = model.requests_s(clients);
    let sum = match stale {
        Stale::IsDropped => model.sum(clients, keep_s, Counted::Documents),
        Stale::Lingers => model.over_all(Counted::Documents, |probability| {
            -(-requests_s * probability * keep_s).exp_m1()
        }),
    };
    sum.value
}

/// No request comes so soon after another.
const SHORTEST_S: f64 = 1e-200;

/// No document is asked for so seldom.
const LONGEST_S: f64 = 1e200;

#[cfg(test)]
mod tests {
    use super::super::change::Spacing;
    use super::super::model::Workload;
    use super::*;

    fn model(change: impl Fn(&mut Workload)) -> Model {
        let mut workload = Workload::washington();
        change(&mut workload);
        Model::new(workload).unwrap()
    }

    fn store(documents: f64) -> Store {
        let stale = Stale::Lingers;
        Store { documents, stale }
    }

    #[test]
    fn room_for_all_is_a_cache_without_limit() {
        let model = model(|_| ());
        let all = filled(&model, 5e4, store(3.2e9 * 0.6));
        assert_eq!(all.keep_s, f64::INFINITY);
        assert_eq!(all.cacheable_hit_rate, model.cacheable_hit_rate(5e4));
        let dropped = Store {
            documents: model.valid_bytes(5e4) / 7700.0 * 1.001,
            stale: Stale::IsDropped,
        };
        assert_eq!(filled(&model, 5e4, dropped).keep_s, f64::INFINITY);
        assert_eq!(filled(&model, 0.0, store(10.0)).keep_s, f64::INFINITY);
        let nothing = filled(&model, 5e4, store(0.0));
        assert_eq!(nothing.cacheable_hit_rate.value, 0.0);
    }

    /// Documents that are all alike and never change hit as often as they are in the cache.
    #[test]
    fn alike_documents_have_a_closed_form() {
        let alike = model(|w| {
            (w.alpha, w.documents, w.popular_documents) = (0.0, 1_000_000, 0);
            (w.unpopular_change_s, w.cacheable) = (f64::INFINITY, 1.0);
        });
        for part in [1e-6, 0.01, 0.5, 0.999] {
            let found = filled(&alike, 1e3, store(1e6 * part)).cacheable_hit_rate;
            assert!((found.value - part).abs() < 1e-8, "{found:?} {part}");
        }
    }

    #[test]
    fn more_room_hits_more_and_dropping_stale_copies_too() {
        for spacing in [Spacing::Exponential, Spacing::Regular] {
            let model = model(|w| w.spacing = spacing);
            let mut before = 0.0;
            for power in 2..10 {
                let lingers = store(10f64.powi(power));
                let dropped = Store {
                    stale: Stale::IsDropped,
                    ..lingers
                };
                let lingers = filled(&model, 5e4, lingers).cacheable_hit_rate.value;
                let dropped = filled(&model, 5e4, dropped).cacheable_hit_rate.value;
                assert!(
                    lingers > before && dropped >= lingers - 1e-9,
                    "{lingers} {dropped}"
                );
                before = lingers;
            }
            assert!(before <= model.cacheable_hit_rate(5e4).value + 1e-9);
        }
    }

    #[test]
    fn no_extreme_yields_what_is_no_number() {
        let model = model(|_| ());
        for clients in [0.0, 1e-300, 1.0, 1e300, f64::INFINITY] {
            for room in [0.0, 1e-300, 1e-3, 1e8, 1e300, f64::INFINITY, f64::NAN] {
                let found = filled(&model, clients, store(room));
                let hits = found.cacheable_hit_rate.value;
                assert!((0.0..=1.0).contains(&hits), "{clients} {room} {found:?}");
                assert!(found.keep_s >= 0.0, "{clients} {room} {found:?}");
            }
        }
        assert!(store(-1.0).check().is_err() && store(f64::INFINITY).check().is_ok());
    }
}
