//! Thorp homes as a source: each home writes a table, and answers say what they have read there, as of which position (rule W3).

use crate::home_fields::HomeFields;
use crate::journal::Cause;
use crate::source::{Said, Source};
use hyper::HeaderMap;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use thorp_versions::{Denied, Evidence, Followed, Passed, Place, Terms, Versions};

/// Homes that one proxy follows.
pub const HOMES_MAX: usize = 64;

/// The tables of the homes on this machine.
///
/// Invariant: no two homes have one name. A place of the n-th home has its number.
#[derive(Debug)]
pub struct Homes(Vec<Home>);

#[derive(Debug)]
struct Home {
    name: String,
    table: Arc<Followed>,
}

/// Why homes cannot be followed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HomesError {
    /// Two have this name.
    Twice(String),
    /// There are more than [`HOMES_MAX`].
    TooMany,
}

impl fmt::Display for HomesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HomesError::Twice(name) => write!(f, "home {name} is named twice: name each once"),
            HomesError::TooMany => write!(f, "a proxy follows at most {HOMES_MAX} homes"),
        }
    }
}

impl std::error::Error for HomesError {}

/// As of when an answer was right at each home on which it rests: the number of the home, and its evidence there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AtHomes(Arc<[(u16, Evidence)]>);

impl Homes {
    /// Homes by their names, each with the file that names its table.
    ///
    /// # Errors
    ///
    /// See [`HomesError`].
    pub fn new(homes: impl IntoIterator<Item = (String, PathBuf)>) -> Result<Self, HomesError> {
        let mut names = BTreeSet::new();
        let homes = homes.into_iter().map(|(name, path)| {
            if !names.insert(name.clone()) {
                return Err(HomesError::Twice(name));
            }
            let table = Arc::new(Followed::new(path, Terms::of_home(&name)));
            Ok(Home { name, table })
        });
        let homes: Vec<Home> = homes.collect::<Result<_, _>>()?;
        match homes.len() <= HOMES_MAX {
            true => Ok(Homes(homes)),
            false => Err(HomesError::TooMany),
        }
    }

    /// The name and the table of each.
    pub fn tables(&self) -> impl Iterator<Item = (&str, Arc<Followed>)> {
        let homes = self.0.iter();
        homes.map(|home| (home.name.as_str(), Arc::clone(&home.table)))
    }

    fn numbered(&self) -> impl Iterator<Item = (u16, &Home)> {
        (0..).zip(&self.0)
    }

    fn find(&self, name: &str) -> Option<u16> {
        let mut homes = self.numbered();
        homes.find_map(|(number, home)| (home.name == name).then_some(number))
    }

    /// The evidence of an answer, and its places, if all of them are of homes that this proxy follows.
    fn read(&self, before: &AtHomes, fields: &HomeFields<'_>) -> Option<(AtHomes, Vec<Place>)> {
        let (mut evidence, mut places) = (Vec::new(), Vec::new());
        for home in fields.homes() {
            let number = self.find(home.name)?;
            let mut known = before.0.iter();
            let (_, then) = known.find(|(known, _)| *known == number)?;
            // The generation is the one of before the fill left; the position is the home's own word.
            let sequence = home.position;
            evidence.push((number, Evidence { sequence, ..*then }));
            match home.keys.is_empty() {
                true => places.push(Place::EVERYTHING.in_table(number)),
                false => {
                    let keys = home.keys.iter().map(|key| Place::of(key));
                    places.extend(keys.map(|place| place.in_table(number)));
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        Some((AtHomes(evidence.into()), places))
    }
}

impl Versions for Homes {
    type Evidence = AtHomes;

    fn evidence(&self) -> AtHomes {
        let homes = self.numbered();
        AtHomes(
            homes
                .map(|(number, home)| (number, home.table.evidence()))
                .collect(),
        )
    }

    fn check(
        &self,
        evidence: &AtHomes,
        dependencies: &[Place],
        now_ms: u64,
    ) -> Result<Passed, Denied> {
        let mut passed = Passed::default();
        let mut checked = 0;
        for (number, evidence) in evidence.0.iter() {
            let home = self.0.get(usize::from(*number)).ok_or(Denied::NoBeat)?;
            let places = dependencies.iter().copied();
            let places = places.filter(|place| place.table() == *number);
            let places = places.inspect(|_| checked += 1);
            let here = home.table.check_these(*evidence, places, now_ms);
            passed = passed.and(here.map_err(|denied| denied.in_table(*number))?);
        }
        // What is of a home without evidence was never checked.
        match checked == dependencies.len() && !evidence.0.is_empty() {
            true => Ok(passed),
            false => Err(Denied::Behind),
        }
    }

    fn still(&self, passed: Passed, evidence: &AtHomes, now_ms: u64) -> bool {
        let mut now = Passed::default();
        for (number, evidence) in evidence.0.iter() {
            let home = self.0.get(usize::from(*number));
            let here = home.and_then(|home| home.table.passed(*evidence, now_ms));
            match here {
                Some(here) => now = now.and(here),
                None => return false,
            }
        }
        now == passed
    }

    fn number(&self, place: Place) -> u64 {
        let home = self.0.get(usize::from(place.table()));
        home.map_or(0, |home| home.table.number(place.in_table(0)))
    }

    fn generation(&self, evidence: &AtHomes, place: Place) -> u64 {
        let mut homes = evidence.0.iter();
        let found = homes.find(|(number, _)| *number == place.table());
        found.map_or(0, |(_, evidence)| evidence.generation)
    }
}

impl Source for Homes {
    fn names(&self, fields: &HeaderMap) -> Vec<(Place, String)> {
        let read = HomeFields::in_answer(fields, |fields| {
            let homes = fields.homes().iter();
            let names = homes.flat_map(|home| {
                let number = self.find(home.name)?;
                let all = (Place::EVERYTHING.in_table(number), home.name.to_owned());
                let keys = home.keys.iter().map(move |key| {
                    let place = Place::of(key).in_table(number);
                    (place, format!("{} {key}", home.name))
                });
                Some(keys.chain(home.keys.is_empty().then_some(all)))
            });
            Some(names.flatten().collect())
        });
        read.flatten().unwrap_or_default()
    }

    fn homes(&self, now_ms: u64) -> Vec<(String, bool)> {
        let homes = self.0.iter();
        let homes = homes.map(|home| {
            let checked = home.table.check(&home.table.evidence(), &[], now_ms);
            let is_live = !matches!(checked, Err(Denied::NoBeat));
            (home.name.clone(), is_live)
        });
        homes.collect()
    }

    fn cause(&self, place: Place, number: u64) -> Option<Cause> {
        let home = self.0.get(usize::from(place.table()))?;
        Some(Cause::Commit {
            home: home.name.clone(),
            log_position: number,
        })
    }

    fn said(&self, before: &AtHomes, fields: &HeaderMap) -> Said<AtHomes> {
        match HomeFields::in_answer(fields, |fields| self.read(before, fields)) {
            None => Said::NoEvidence,
            Some(Some((evidence, places))) => Said::On(evidence, places),
            Some(None) => Said::Unreadable,
        }
    }
}

#[cfg(test)]
mod tests;
