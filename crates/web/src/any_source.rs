//! The source that an operator has chosen when the proxy starts: the table of a keeper, or those of Thorp homes.

use crate::homes::{AtHomes, Homes};
use crate::journal::Cause;
use crate::source::{Said, Source};
use hyper::HeaderMap;
use std::sync::Arc;
use thorp_versions::{Denied, Evidence, Followed, Passed, Place, Versions};

/// One of the sources.
#[derive(Clone, Debug)]
pub enum AnySource {
    /// The table of a keeper.
    Table(Arc<Followed>),
    /// The tables of Thorp homes.
    Homes(Arc<Homes>),
}

/// As of when an answer was right, at one of the sources. At the other one it is worth nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AnyEvidence {
    /// Of the table of a keeper.
    Table(Evidence),
    /// Of the tables of Thorp homes.
    Homes(AtHomes),
}

impl Versions for AnySource {
    type Evidence = AnyEvidence;

    fn evidence(&self) -> AnyEvidence {
        match self {
            AnySource::Table(table) => AnyEvidence::Table(table.evidence()),
            AnySource::Homes(homes) => AnyEvidence::Homes(homes.evidence()),
        }
    }

    fn check(
        &self,
        evidence: &AnyEvidence,
        dependencies: &[Place],
        now_ms: u64,
    ) -> Result<Passed, Denied> {
        match (self, evidence) {
            (AnySource::Table(table), AnyEvidence::Table(evidence)) => {
                table.check(evidence, dependencies, now_ms)
            }
            (AnySource::Homes(homes), AnyEvidence::Homes(evidence)) => {
                homes.check(evidence, dependencies, now_ms)
            }
            _ => Err(Denied::OtherGeneration),
        }
    }

    fn still(&self, passed: Passed, evidence: &AnyEvidence, now_ms: u64) -> bool {
        match (self, evidence) {
            (AnySource::Table(table), AnyEvidence::Table(evidence)) => {
                table.still(passed, evidence, now_ms)
            }
            (AnySource::Homes(homes), AnyEvidence::Homes(evidence)) => {
                homes.still(passed, evidence, now_ms)
            }
            _ => false,
        }
    }

    fn number(&self, place: Place) -> u64 {
        match self {
            AnySource::Table(table) => table.number(place),
            AnySource::Homes(homes) => homes.number(place),
        }
    }

    fn generation(&self, evidence: &AnyEvidence, place: Place) -> u64 {
        match (self, evidence) {
            (AnySource::Table(table), AnyEvidence::Table(evidence)) => {
                table.generation(evidence, place)
            }
            (AnySource::Homes(homes), AnyEvidence::Homes(evidence)) => {
                homes.generation(evidence, place)
            }
            _ => 0,
        }
    }
}

impl Source for AnySource {
    fn said(&self, before: &AnyEvidence, fields: &HeaderMap) -> Said<AnyEvidence> {
        let (AnySource::Homes(homes), AnyEvidence::Homes(before)) = (self, before) else {
            return Said::Nothing;
        };
        match homes.said(before, fields) {
            Said::Nothing => Said::Nothing,
            Said::On(evidence, places) => Said::On(AnyEvidence::Homes(evidence), places),
            Said::NoEvidence => Said::NoEvidence,
            Said::Unreadable => Said::Unreadable,
        }
    }

    fn names(&self, fields: &HeaderMap) -> Vec<(Place, String)> {
        match self {
            AnySource::Table(table) => table.names(fields),
            AnySource::Homes(homes) => homes.names(fields),
        }
    }

    fn homes(&self, now_ms: u64) -> Vec<(String, bool)> {
        match self {
            AnySource::Table(table) => table.homes(now_ms),
            AnySource::Homes(homes) => homes.homes(now_ms),
        }
    }

    fn cause(&self, place: Place, number: u64) -> Option<Cause> {
        match self {
            AnySource::Table(table) => table.cause(place, number),
            AnySource::Homes(homes) => homes.cause(place, number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use thorp_versions::Terms;

    #[test]
    fn evidence_of_another_source_is_worth_nothing() {
        let table = Followed::new(PathBuf::new(), Terms::of_home("alps"));
        let table = AnySource::Table(Arc::new(table));
        let homes = Homes::new([(String::from("alps"), PathBuf::new())]);
        let homes = AnySource::Homes(Arc::new(homes.expect("one home")));
        for (source, other) in [(&table, &homes), (&homes, &table)] {
            let evidence = other.evidence();
            let checked = source.check(&evidence, &[], 1);
            assert_eq!(checked, Err(Denied::OtherGeneration));
            assert!(!source.still(Passed::default(), &evidence, 1));
        }
    }
}
