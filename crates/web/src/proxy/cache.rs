//! The coherent cache: what a request does next, and what becomes of a fill (rules W3 to W6). It does no I/O and reads no clock, so
//! the simulator runs it, too.

use super::drops::{Dropped, Drops, Why};
use super::entries::{Entries, Stored, Weight};
use super::flights::{Flights, Landed, Moment, Ticket, Turn, Waiting};
use super::tally::Missed;
use crate::journal::{self, Cause};
use crate::source::{Said, Source};
use hyper::HeaderMap;
use std::cmp::Reverse;
use std::hash::Hash;
use std::sync::Arc;
use thorp_versions::{Bug, Denied, Evidence, Place, Versions, is_planted};

/// How often a request waits for fills of others before it asks for itself.
const WAITS_MAX: usize = 3;

/// The entries and the running fills of one proxy. Answers are shared.
#[derive(Debug)]
pub struct Cache<K: Hash + Eq, A, V: Versions> {
    versions: V,
    entries: Entries<K, A, V::Evidence>,
    flights: Arc<Flights<K, A>>,
    drops: Drops<K>,
}

/// An entry as the operator sees it.
#[derive(Clone, Debug)]
pub struct Seen<K, A> {
    /// Its name.
    pub name: K,
    /// What is stored.
    pub answer: Arc<A>,
    /// On what it rests.
    pub dependencies: Vec<Place>,
    /// How often it was served.
    pub hits: u64,
    /// What it takes of the budget.
    pub bytes: u64,
    /// Why it would not be served now. None: it would be.
    pub denied: Option<Denied>,
    /// If that is because of a key: the generation of the table, and the number of the key's word.
    pub changed: Option<(u64, u64)>,
}

/// A request that wants an answer of this name.
#[derive(Debug)]
pub struct Asked<K> {
    name: K,
    arrived: Moment,
    waits_left: usize,
}

/// An entry with its hits and its name.
type Found<K, A, E> = (u64, K, Arc<Stored<A, E>>);

impl<K> Asked<K> {
    /// The name of the answer.
    pub(crate) fn into_name(self) -> K {
        self.name
    }
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
            drops: Drops::new(),
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

    /// The answer of an entry whose check passes now, after the request has arrived (rule W5). Otherwise why there is none.
    ///
    /// # Errors
    ///
    /// There is no entry, or its check fails.
    pub fn hit(&self, asked: &Asked<K>, now_ms: impl FnOnce() -> u64) -> Result<Arc<A>, Missed> {
        let stored = self.entries.get(&asked.name).ok_or(Missed::Absent)?;
        let now_ms = now_ms();
        match self.passes(&stored, now_ms) {
            Ok(()) => {
                stored.is_served();
                Ok(Arc::clone(&stored.answer))
            }
            Err(denied) => {
                self.denied(&asked.name, &stored, denied, now_ms);
                Err(denied.into())
            }
        }
    }

    /// The check of an entry (rule W5).
    fn passes(&self, stored: &Stored<A, V::Evidence>, now_ms: u64) -> Result<(), Denied> {
        let evidence = &stored.evidence;
        if self.versions.still(stored.passed(), evidence, now_ms) {
            return Ok(());
        }
        let passed = self
            .versions
            .check(evidence, &stored.dependencies, now_ms)?;
        stored.passes(passed);
        Ok(())
    }

    /// Whether the entry of this name is this answer, and its check passes (rule W5).
    pub(crate) fn is_valid(&self, name: &K, answer: &Arc<A>, now_ms: impl FnOnce() -> u64) -> bool {
        let stored = self.entries.get(name);
        let stored = stored.filter(|stored| Arc::ptr_eq(&stored.answer, answer));
        stored.is_some_and(|stored| self.passes(&stored, now_ms()).is_ok())
    }

    /// The check of an entry has failed. One that can never pass again is dropped.
    fn denied(&self, name: &K, stored: &Arc<Stored<A, V::Evidence>>, denied: Denied, now_ms: u64) {
        let why = match denied {
            Denied::Changed(place) => {
                let generation = self.versions.generation(&stored.evidence, place);
                Why::Changed(generation, place, self.versions.number(place))
            }
            Denied::OtherGeneration => Why::Generation,
            Denied::Open(_) | Denied::Behind | Denied::NoBeat => return,
        };
        if self.entries.drop_this(name, stored) {
            let key = match why {
                Why::Changed(_, place, _) => stored.answer.key_at(place).map(journal::cut),
                Why::Generation => None,
            };
            self.drops.note(Dropped {
                name: name.clone(),
                why,
                key,
                at_ms: now_ms,
                hits: stored.hits(),
            });
        }
    }

    /// The entries whose names are wanted: at most so many, those with the most hits first. Each is checked, and none is changed.
    pub fn seen(
        &self,
        most: usize,
        now_ms: u64,
        is_wanted: impl Fn(&K) -> bool,
    ) -> Vec<Seen<K, A>> {
        let mut best = Vec::new();
        let keep_best = |best: &mut Vec<Found<K, A, V::Evidence>>| {
            best.sort_by_key(|(hits, ..)| Reverse(*hits));
            best.truncate(most);
        };
        for (name, stored) in self.entries.all().filter(|(name, _)| is_wanted(name)) {
            best.push((stored.hits(), name, stored));
            if best.len() >= 2 * most.max(1) {
                keep_best(&mut best);
            }
        }
        keep_best(&mut best);
        let seen = best.into_iter().map(|(hits, name, stored)| {
            let checked = self
                .versions
                .check(&stored.evidence, &stored.dependencies, now_ms);
            let denied = checked.err();
            let changed = match denied {
                Some(Denied::Changed(place) | Denied::Open(place)) => {
                    let generation = self.versions.generation(&stored.evidence, place);
                    Some((generation, self.versions.number(place)))
                }
                _ => None,
            };
            Seen {
                answer: Arc::clone(&stored.answer),
                dependencies: stored.dependencies.clone(),
                hits,
                bytes: stored.bytes(&name),
                denied,
                changed,
                name,
            }
        });
        seen.collect()
    }

    /// The last entries with such names that were dropped, the newest first.
    pub fn dropped(&self, is_wanted: impl Fn(&K) -> bool) -> Vec<Dropped<K>> {
        self.drops.of(is_wanted)
    }

    /// How many entries were dropped, with those that nobody remembers.
    pub fn dropped_in_all(&self) -> u64 {
        self.drops.all()
    }

    /// Whether any entry could be served now: there is a table with a young beat (rule W7).
    pub fn is_live(&self, now_ms: u64) -> bool {
        let checked = self.versions.check(&self.versions.evidence(), &[], now_ms);
        !matches!(checked, Err(Denied::NoBeat))
    }

    /// Forgets all entries. Fills that are under way may leave new ones.
    pub fn clear(&self) {
        self.entries.clear();
    }

    /// How many bytes it may take.
    pub fn budget(&self) -> u64 {
        self.entries.budget()
    }

    /// How many entries there are, and what they take of the budget.
    pub fn size(&self) -> (usize, u64) {
        (self.entries.count(), self.entries.bytes())
    }

    /// What a request does next. The clock is read after it has arrived. If it fills, no byte may have left for the origin yet.
    pub fn step(&self, asked: &Asked<K>, now_ms: impl FnOnce() -> u64) -> Next<K, A, V::Evidence> {
        if asked.waits_left == 0 {
            return Next::Fill(self.fill(&asked.name, None));
        }
        if let Ok(answer) = self.hit(asked, now_ms) {
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
            Landed::Alone | Landed::Failed(_) => asked.waits_left = 0,
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
    /// beside. Nobody joins this fill any more. Then the answer is an entry, or it is refused (rule W4).
    ///
    /// # Errors
    ///
    /// Its check fails: why.
    pub fn land(
        &self,
        mut filling: Filling<K, A, V::Evidence>,
        answer: &Arc<A>,
        dependencies: Dependencies,
        now_ms: impl FnOnce() -> u64,
    ) -> Result<(), Denied> {
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
        checked.map(|_| ())
    }

    /// The answer is for one client. Each of those who wait asks for itself.
    pub fn land_alone(&self, filling: Filling<K, A, V::Evidence>) {
        if let Some(ticket) = filling.ticket {
            ticket.land(Landed::Alone);
        }
    }

    /// The origin has failed with this status. Those who wait share that: asked by all of them at once, it would fail again.
    pub(crate) fn land_failed(&self, filling: Filling<K, A, V::Evidence>, status: u16) {
        if let Some(ticket) = filling.ticket {
            ticket.land(Landed::Failed(status));
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

impl<K: Hash + Eq + Clone + Weight, A: Weight, V: Source> Cache<K, A, V> {
    /// The names of places that the fields of an answer say.
    pub(super) fn names(&self, fields: &HeaderMap) -> Vec<(Place, String)> {
        self.versions.names(fields)
    }

    /// The Thorp homes on which answers rest, and whether each has a young beat.
    pub(crate) fn homes(&self, now_ms: u64) -> Vec<(String, bool)> {
        self.versions.homes(now_ms)
    }

    /// The update that changed a place, if the source says so itself.
    pub(crate) fn cause(&self, place: Place, number: u64) -> Option<Cause> {
        self.versions.cause(place, number)
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
