//! One cache, or caches that act as one, in its steady state (thesis, section 5.2.2).

use super::bounded::Bounded;
use super::change::Spacing;
use super::law::Law;
use super::zipf::{Counted, Zipf};
use crate::{Invalid, at_least, fraction, positive};
use serde::Serialize;
use std::ops::RangeInclusive;

/// What clients ask for, and how documents change.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Workload {
    /// n: how many documents there are.
    pub documents: u64,
    /// n_p: how many of them, the most popular ones, change as popular documents do. Not more than there are.
    pub popular_documents: u64,
    /// α: a document's popularity falls with this power of its rank.
    pub alpha: f64,
    /// λ: requests of one client in a second.
    pub requests_per_client_s: f64,
    /// 1/μ_p: seconds between two changes of a popular document on average; infinite if they never change, 0 if they always do.
    pub popular_change_s: f64,
    /// 1/μ_u: the same for the other documents.
    pub unpopular_change_s: f64,
    /// How the times between changes vary about that mean.
    pub spacing: Spacing,
    /// p_c: the part of the requests, and of the documents, that caches may keep.
    pub cacheable: f64,
    /// E(S): bytes of a document on average.
    pub document_bytes: f64,
    /// E(L): seconds until the last byte of a document has come from its server.
    pub server_s: f64,
}

/// Seconds of a day, in which most rates are told.
pub const DAY_S: f64 = 86_400.0;

impl Workload {
    /// Table 5.1: what a week's trace of the University of Washington gave in 1999, with the *mid slow* changes that were
    /// closest to it.
    pub fn washington() -> Self {
        Workload {
            documents: 3_200_000_000,
            popular_documents: 10_400_000,
            alpha: 0.8,
            requests_per_client_s: 590.0 / DAY_S,
            popular_change_s: DAY_S,
            unpopular_change_s: 186.0 * DAY_S,
            spacing: Spacing::Exponential,
            cacheable: 0.6,
            document_bytes: 7_700.0,
            server_s: 1.9,
        }
    }

    /// Refuses what cannot be.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the first parameter that makes no sense.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.popular_documents > self.documents {
            let (popular, all) = (self.popular_documents, self.documents);
            let why = format!("must not be more than all {all} documents, not {popular}");
            return Err(Invalid::new("popular_documents", why));
        }
        positive("requests_per_client_s", self.requests_per_client_s)?;
        interval("popular_change_s", self.popular_change_s)?;
        interval("unpopular_change_s", self.unpopular_change_s)?;
        self.spacing.check()?;
        fraction("cacheable", self.cacheable)?;
        positive("document_bytes", self.document_bytes)?;
        at_least("server_s", self.server_s, 0.0)
    }
}

fn interval(parameter: &'static str, value: f64) -> Result<(), Invalid> {
    match value >= 0.0 {
        true => Ok(()),
        false => {
            let why = format!("must be a time, or infinite, not {value}");
            Err(Invalid::new(parameter, why))
        }
    }
}

/// A workload with what was computed ahead for it. Each answer takes microseconds, whatever the number of documents.
///
/// Populations are told as numbers with a fraction, since half of a town asks half as much. What is below 0 or no number counts
/// as nobody.
#[derive(Clone, Debug)]
pub struct Model {
    workload: Workload,
    zipf: Zipf,
    law: Law,
}

impl Model {
    /// Prepares a workload.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if it cannot be.
    pub fn new(workload: Workload) -> Result<Self, Invalid> {
        workload.check()?;
        Self::with_law(workload, Law::new(workload.spacing)?)
    }

    /// Prepares a workload like this one, and computes nothing twice that is the same for both.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if it cannot be.
    pub fn with(&self, workload: Workload) -> Result<Self, Invalid> {
        workload.check()?;
        match workload.spacing == self.law.spacing() {
            true => Self::with_law(workload, self.law.clone()),
            false => Self::new(workload),
        }
    }

    fn with_law(workload: Workload, law: Law) -> Result<Self, Invalid> {
        let zipf = Zipf::new(workload.documents, workload.alpha)?;
        Ok(Model {
            workload,
            zipf,
            law,
        })
    }

    /// What it was made for.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// The popularity of its documents.
    pub fn zipf(&self) -> &Zipf {
        &self.zipf
    }

    /// C_N: the share of the requests for cacheable documents that hit, with so many clients. The exact sum.
    pub fn cacheable_hit_rate(&self, clients: f64) -> Bounded {
        self.sum(clients, f64::INFINITY, Counted::Requests)
            .as_share()
    }

    /// C_N as the integral that the thesis takes instead of the sum, and which is lower: the first document begins at 1, not
    /// at ½. Nothing for one document, where both its integrals are 0.
    pub fn cacheable_hit_rate_by_integral(&self, clients: f64) -> Option<Bounded> {
        let parts = self.classes().map(|(ranks, change_s)| {
            let hit = |p: f64| self.hit(self.requests_s(clients) * p, change_s, f64::INFINITY);
            self.zipf.paper_integral(ranks, hit)
        });
        let [popular, others] = parts;
        let mut both = popular? + others?;
        both.error += self.law.error();
        Some(both.as_share())
    }

    /// H_N = p_c C_N: the share of all requests that hit.
    pub fn hit_rate(&self, clients: f64) -> Bounded {
        self.cacheable_hit_rate(clients) * self.workload.cacheable
    }

    /// Seconds until the last byte of a document has come: (1 - H_N) E(L) + H_N lat_hit.
    pub fn latency_s(&self, clients: f64, hit_s: f64) -> f64 {
        let hits = self.hit_rate(clients).value;
        (1.0 - hits) * self.workload.server_s + hits * hit_s
    }

    /// n H_N E(S): what the thesis takes for the bytes in a cache. It weighs documents by how often they are asked for; see
    /// [`Model::valid_bytes`].
    pub fn paper_store_bytes(&self, clients: f64) -> f64 {
        self.whole_bytes() * self.hit_rate(clients).value
    }

    /// The bytes of the copies that are still valid at a moment: each document counts once, with the probability that it was
    /// asked for since it changed. That is E(S) p_c Σ h(λ N p_i).
    pub fn valid_bytes(&self, clients: f64) -> f64 {
        let valid = self.sum(clients, f64::INFINITY, Counted::Documents).value;
        valid * self.workload.cacheable * self.workload.document_bytes
    }

    /// n E(S): the bytes of all documents.
    pub fn whole_bytes(&self) -> f64 {
        self.workload.documents as f64 * self.workload.document_bytes
    }

    /// λ N: requests in a second.
    pub fn requests_s(&self, clients: f64) -> f64 {
        match clients > 0.0 {
            true => clients * self.workload.requests_per_client_s,
            false => 0.0,
        }
    }

    /// The sum of the probability to hit over all documents, in a cache that keeps a copy for so long after a request for it.
    pub(super) fn sum(&self, clients: f64, keep_s: f64, counted: Counted) -> Bounded {
        let requests_s = self.requests_s(clients);
        let fastest = requests_s * self.zipf.probability(1);
        let [popular, others] = self.classes().map(|(ranks, change_s)| {
            match self.law.window(change_s, keep_s, fastest) {
                Some(window) => self.zipf.sum_behind(FEW, ranks, counted, |probability| {
                    window.hit(requests_s * probability)
                }),
                None => self.zipf.sum(ranks, counted, |probability| {
                    self.hit(requests_s * probability, change_s, keep_s)
                }),
            }
        });
        let both = popular + others;
        let weight = match counted {
            Counted::Requests => 1.0,
            Counted::Documents => self.workload.documents as f64,
        };
        Bounded {
            value: both.value,
            error: both.error + self.law.error() * weight,
        }
    }

    /// The sum over all documents of what a document's probability gives.
    pub(super) fn over_all(&self, counted: Counted, of: impl Fn(f64) -> f64) -> Bounded {
        self.zipf.sum(1..=self.workload.documents, counted, of)
    }

    /// The popular and the other documents, each with the mean time between their changes.
    fn classes(&self) -> [(RangeInclusive<u64>, f64); 2] {
        let told = &self.workload;
        let popular = told.popular_documents;
        // No rank is above the last of all, so that this cannot overflow where it matters.
        let others = popular.saturating_add(1)..=told.documents;
        let others = match popular == told.documents {
            true => RangeInclusive::new(1, 0),
            false => others,
        };
        [
            (1..=popular, told.popular_change_s),
            (others, told.unpopular_change_s),
        ]
    }

    /// The probability to hit of a document that is asked for and changes so often.
    fn hit(&self, requests_s: f64, change_s: f64, keep_s: f64) -> f64 {
        if requests_s <= 0.0 || change_s == 0.0 || keep_s == 0.0 {
            return 0.0;
        }
        self.law
            .hit_within(requests_s * change_s, requests_s * keep_s)
    }
}

/// Documents that are taken one by one where each takes long: the bound of the error is some 10⁻⁶ then.
const FEW: u64 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    fn seeded(random: &mut fastrand::Rng) -> Workload {
        let documents = 10f64.powf(random.f64() * 12.0) as u64;
        let spacings = [
            Spacing::Exponential,
            Spacing::Regular,
            Spacing::Pareto { shape: 1.5 },
            Spacing::Lognormal { sigma: 1.5 },
        ];
        Workload {
            documents,
            popular_documents: random.u64(0..=documents),
            alpha: random.f64() * 1.6,
            requests_per_client_s: 10f64.powf(random.f64() * 6.0 - 5.0),
            popular_change_s: 10f64.powf(random.f64() * 8.0),
            unpopular_change_s: 10f64.powf(random.f64() * 8.0),
            spacing: spacings[random.usize(0..4)],
            ..Workload::washington()
        }
    }

    fn rate(workload: Workload, clients: f64) -> Bounded {
        Model::new(workload).unwrap().cacheable_hit_rate(clients)
    }

    #[test]
    fn hits_rise_with_requests_and_fall_with_changes() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..60 {
            let workload = seeded(&mut random);
            let clients = 10f64.powf(random.f64() * 9.0);
            let here = rate(workload, clients);
            let more = |other: Bounded| other.value >= here.value - here.error - other.error;
            assert!(more(rate(workload, clients * 1.5)), "{workload:?}");
            let mut other = workload;
            other.requests_per_client_s *= 1.5;
            assert!(more(rate(other, clients)), "{workload:?}");
            let mut other = workload;
            other.popular_change_s *= 3.0;
            assert!(more(rate(other, clients)), "{workload:?}");
            let mut other = workload;
            other.unpopular_change_s *= 3.0;
            assert!(more(rate(other, clients)), "{workload:?}");
        }
    }

    /// With one rate of change; with two, a document more may be one that changes less than the others.
    #[test]
    fn hits_fall_with_the_number_of_documents() {
        let mut random = fastrand::Rng::with_seed(12);
        for _ in 0..60 {
            let mut workload = seeded(&mut random);
            workload.popular_documents = 0;
            let clients = 10f64.powf(random.f64() * 9.0);
            let here = rate(workload, clients);
            workload.documents = workload.documents * 2 + 1;
            let there = rate(workload, clients);
            assert!(
                there.value <= here.value + here.error + there.error,
                "{workload:?}"
            );
        }
    }

    #[test]
    fn clients_and_their_requests_count_as_a_product() {
        let mut random = fastrand::Rng::with_seed(13);
        for _ in 0..20 {
            let workload = seeded(&mut random);
            let mut other = workload;
            other.requests_per_client_s *= 8.0;
            let (one, eight) = (rate(other, 1000.0), rate(workload, 8000.0));
            assert!((one.value - eight.value).abs() < 1e-12);
        }
    }

    #[test]
    fn limits_are_met() {
        let mut random = fastrand::Rng::with_seed(14);
        for _ in 0..20 {
            let mut never = seeded(&mut random);
            (never.popular_change_s, never.unpopular_change_s) = (f64::INFINITY, f64::INFINITY);
            assert!(rate(never, 1e-9).admits(1.0), "{never:?}");
            let mut always = never;
            (always.popular_change_s, always.unpopular_change_s) = (0.0, 0.0);
            assert_eq!(rate(always, 1e9).value, 0.0);
            let some = seeded(&mut random);
            assert_eq!(rate(some, 0.0).value, 0.0);
            assert!(rate(some, f64::INFINITY).admits(1.0));
            assert_eq!(rate(some, f64::NAN).value, 0.0);
        }
        // All alike: each is asked for by λN/n.
        let mut alike = Workload::washington();
        (alike.alpha, alike.popular_documents) = (0.0, 0);
        let per_change = 1e6 * alike.requests_per_client_s * alike.unpopular_change_s / 3.2e9;
        assert!(rate(alike, 1e6).admits(per_change / (1.0 + per_change)));
        // A single one.
        (alike.documents, alike.popular_documents, alike.alpha) = (1, 1, 0.8);
        let per_change = alike.requests_per_client_s * alike.popular_change_s;
        assert!(rate(alike, 1.0).admits(per_change / (1.0 + per_change)));
        let alone = Model::new(alike).unwrap();
        assert_eq!(alone.cacheable_hit_rate_by_integral(1.0), None);
    }

    /// Section 5.2.2: for α = 1 the integral can be evaluated exactly.
    #[test]
    fn the_integral_meets_its_closed_form_for_zipfs_law() {
        for (documents, clients) in [(1000, 1.0), (3_200_000_000, 1e4), (1_000_000_000_000, 1e9)] {
            let mut workload = Workload::washington();
            (
                workload.documents,
                workload.popular_documents,
                workload.alpha,
            ) = (documents, 0, 1.0);
            let scale = (documents as f64).ln();
            let b =
                scale / (clients * workload.requests_per_client_s * workload.unpopular_change_s);
            let closed = |x: f64| (x / (1.0 + b * x)).ln();
            let exact = (closed(documents as f64) - closed(1.0)) / scale;
            let model = Model::new(workload).unwrap();
            let found = model.cacheable_hit_rate_by_integral(clients).unwrap();
            assert!((found.value - exact).abs() < 1e-12, "{found:?} {exact}");
        }
    }

    #[test]
    fn the_bound_is_tight_enough_to_print() {
        let mut random = fastrand::Rng::with_seed(16);
        for _ in 0..100 {
            let workload = seeded(&mut random);
            let found = rate(workload, 10f64.powf(random.f64() * 9.0));
            assert!(found.error < 1e-6, "{found:?} {workload:?}");
            assert!((0.0..=1.0).contains(&found.value));
        }
    }

    #[test]
    fn a_heavier_tail_hits_more_at_the_same_mean() {
        let mut workload = Workload::washington();
        let mut before = rate(workload, 5e4).value;
        for shape in [8.0, 3.0, 1.5, 1.1] {
            workload.spacing = Spacing::Pareto { shape };
            let hits = rate(workload, 5e4).value;
            assert!(hits > before, "{shape}");
            before = hits;
        }
        workload.spacing = Spacing::Regular;
        assert!(rate(workload, 5e4).value < rate(Workload::washington(), 5e4).value);
    }

    #[test]
    fn no_more_is_valid_than_is_cacheable() {
        let model = Model::new(Workload::washington()).unwrap();
        let mut before = 0.0;
        for power in 0..14 {
            let valid = model.valid_bytes(10f64.powi(power));
            assert!(valid >= before && valid <= model.whole_bytes() * 0.6 * (1.0 + 1e-9));
            before = valid;
        }
        assert!(before > model.whole_bytes() * 0.59);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let good = Workload::washington();
        let wrongs: [fn(&mut Workload); 9] = [
            |w| w.documents = 0,
            |w| w.popular_documents = u64::MAX,
            |w| w.alpha = -1.0,
            |w| w.requests_per_client_s = 0.0,
            |w| w.popular_change_s = -1.0,
            |w| w.unpopular_change_s = f64::NAN,
            |w| w.spacing = Spacing::Pareto { shape: 1.0 },
            |w| w.cacheable = 1.5,
            |w| w.server_s = f64::INFINITY,
        ];
        assert!(Model::new(good).is_ok());
        for wrong in wrongs {
            let mut workload = good;
            wrong(&mut workload);
            assert!(Model::new(workload).is_err(), "{workload:?}");
        }
    }
}
