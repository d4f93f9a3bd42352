//! The coherent cache: what a request does next, and what becomes of a fill (rules W3 to W6). It does no I/O and reads no clock, so
//! the simulator runs it, too.

use super::entries::{Entries, Stored, Weight};
use super::flights::{Flights, Landed, Moment, Ticket, Turn, Waiting};
use crate::source::{Said, Source};
use hyper::HeaderMap;
use std::hash::Hash;
use std::sync::Arc;
use thorp_versions::{Bug, Evidence, Place, Versions, is_planted};

/// How often a request waits for fills of others before it asks for itself.
const WAITS_MAX: usize = 3;

/// The entries and the running fills of one proxy. Answers are shared.
#[derive(Debug)]
pub struct Cache<K: Hash + Eq, A, V: Versions> {
    versions: V,
    entries: Entries<K, A, V::Evidence>,
    flights: Arc<Flights<K, A>>,
}

/// A request that wants an answer of this name.
#[derive(Debug)]
pub struct Asked<K> {
    name: K,
    arrived: Moment,
    waits_left: usize,
}

/// What a request does next.
#[derive(Debug)]
pub enum Next<K: Hash + Eq, A, E = Evidence> {
    /// It gets the answer of an entry.
    Hit(Arc<A>),
    /// It waits, and calls [`Cache::waited`].
    Wait(Waiting<A>),
    /// It asks the origin.
    Fill(Filling<K, A, E>),
}

/// A fill. If it is dropped, those who wait for it ask for themselves.
#[derive(Debug)]
pub struct Filling<K: Hash + Eq, A, E = Evidence> {
    name: K,
    evidence: E,
    ticket: Option<Ticket<K, A>>,
}

impl<K: Hash + Eq + Clone + Weight, A: Weight, V: Versions> Cache<K, A, V> {
    /// An empty cache of so many bytes.
    pub fn new(versions: V, bytes: u64) -> Self {
        Cache {
            versions,
            entries: Entries::holding(bytes),
            flights: Flights::new(),
        }
    }

    /// A request has arrived.
    pub fn arrive(&self, name: K) -> Asked<K> {
        Asked {
            name,
            arrived: self.flights.arrive(),
            waits_left: WAITS_MAX,
        }
    }

    /// The answer of an entry whose check passes now, after the request has arrived (rule W5).
    pub fn hit(&self, asked: &Asked<K>, now_ms: impl FnOnce() -> u64) -> Option<Arc<A>> {
        let stored = self.entries.get(&asked.name)?;
        let now_ms = now_ms();
        let passed = stored.passed();
        if self.versions.still(passed, &stored.evidence, now_ms) {
            return Some(Arc::clone(&stored.answer));
        }
        let checked = self
            .versions
            .check(&stored.evidence, &stored.dependencies, now_ms);
        match checked {
            Ok(passed) => {
                stored.passes(passed);
                Some(Arc::clone(&stored.answer))
            }
            Err(denied) => {
                if denied.is_for_good() {
                    self.entries.drop_this(&asked.name, &stored);
                }
                None
            }
        }
    }

    /// What a request does next. The clock is read after it has arrived. If it fills, no byte may have left for the origin yet.
    pub fn step(&self, asked: &Asked<K>, now_ms: impl FnOnce() -> u64) -> Next<K, A, V::Evidence> {
        if asked.waits_left == 0 {
            return Next::Fill(self.fill(&asked.name, None));
        }
        if let Some(answer) = self.hit(asked, now_ms) {
            return Next::Hit(answer);
        }
        match self.flights.join(&asked.name) {
            Turn::Fill(ticket) => Next::Fill(self.fill(&asked.name, Some(ticket))),
            Turn::Wait(_) if is_planted(Bug::NobodyJoins) => {
                Next::Fill(self.fill(&asked.name, None))
            }
            Turn::Wait(waiting) => Next::Wait(waiting),
        }
    }

    /// The fill of another is over. Its answer, if this request may have it. Otherwise the request goes on with [`Cache::step`].
    pub fn waited(&self, asked: &mut Asked<K>, waiting: &Waiting<A>) -> Option<Arc<A>> {
        match waiting.landed(asked.arrived) {
            Landed::Shared(answer, true) => return Some(answer),
            Landed::Shared(_, false) => {
                asked.waits_left = asked.waits_left.saturating_sub(1);
            }
            Landed::Alone => asked.waits_left = 0,
        }
        None
    }

    /// What the fields of an answer to a fill say.
    pub(super) fn said(
        &self,
        filling: &Filling<K, A, V::Evidence>,
        fields: &HeaderMap,
    ) -> Said<V::Evidence>
    where
        V: Source,
    {
        self.versions.said(&filling.evidence, fields)
    }

    /// The fill asks the origin once more: its last try has brought no answer. No byte of the new one may have left yet (rule W3).
    pub fn try_again(&self, filling: &mut Filling<K, A, V::Evidence>) {
        filling.evidence = self.versions.evidence();
    }

    /// A whole answer has come, and others may have it. Its dependencies are known by now: those of the request, and what the answer shows
    /// beside. Nobody joins this fill any more. Whether the answer is an entry now (rule W4).
    pub fn land(
        &self,
        mut filling: Filling<K, A, V::Evidence>,
        answer: &Arc<A>,
        dependencies: Dependencies,
        now_ms: impl FnOnce() -> u64,
    ) -> bool {
        if let Some(ticket) = &mut filling.ticket
            && !is_planted(Bug::JoinedAfterCheck)
        {
            ticket.close();
        }
        if is_planted(Bug::EvidenceAfterAnswer) {
            filling.evidence = self.versions.evidence();
        }
        let evidence = filling.evidence;
        let checked = match is_planted(Bug::LearnedNotChecked) {
            true => self
                .versions
                .check(&evidence, &dependencies.known, now_ms()),
            false => self
                .versions
                .check(&evidence, &dependencies.all(), now_ms()),
        };
        if let Ok(passed) = checked {
            let rests = (evidence, dependencies.all());
            let stored = Stored::new(Arc::clone(answer), rests, passed);
            self.entries.insert(filling.name, stored);
        }
        let is_kept = checked.is_ok();
        if let Some(ticket) = filling.ticket {
            ticket.land(Landed::Shared(Arc::clone(answer), is_kept));
        }
        is_kept
    }

    /// The answer is for one client. Each of those who wait asks for itself.
    pub fn land_alone(&self, filling: Filling<K, A, V::Evidence>) {
        if let Some(ticket) = filling.ticket {
            ticket.land(Landed::Alone);
        }
    }

    /// A fill begins: its evidence is of before the first byte leaves (rule W3).
    fn fill(&self, name: &K, ticket: Option<Ticket<K, A>>) -> Filling<K, A, V::Evidence> {
        Filling {
            name: name.clone(),
            evidence: self.versions.evidence(),
            ticket,
        }
    }
}

impl<K: Hash + Eq, A, E> Filling<K, A, E> {
    /// The source itself says as of when the answer was right (rule W3).
    pub(super) fn rests_on(&mut self, evidence: E) {
        self.evidence = evidence;
    }
}

/// On what an answer rests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dependencies {
    /// What the request says.
    pub known: Vec<Place>,
    /// What the answer says.
    pub learned: Vec<Place>,
}

impl Dependencies {
    fn all(&self) -> Vec<Place> {
        [&self.known[..], &self.learned].concat()
    }
}
