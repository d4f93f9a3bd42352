//! A reader of the table of whichever keeper lives (rule W8): keepers come and go, and each has a table of its own.

use crate::address::{Address, TableError, Terms};
use crate::mapped::Mapped;
use crate::place::Place;
use crate::reader::{Denied, Evidence, Passed, Reader, Versions};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

/// Evidence of no table. No table has this generation.
const NONE: Evidence = Evidence {
    generation: 0,
    sequence: 0,
};

/// Reads the table whose address is in a file.
///
/// Invariant: each call reads one table. What a call says of one is worth nothing with another: generations are random.
#[derive(Debug)]
pub struct Followed {
    path: PathBuf,
    terms: Terms,
    current: RwLock<Option<Arc<Reader<Mapped>>>>,
}

impl Followed {
    /// A reader that has no table yet: no hits.
    pub fn new(path: PathBuf, terms: Terms) -> Self {
        Followed {
            path,
            terms,
            current: RwLock::new(None),
        }
    }

    /// Looks whether there is a new table, and reads that from now on. The address of the table that is read.
    ///
    /// # Errors
    ///
    /// There is no table to go on with: why. The one of before is read on; without its keeper, its beat grows old.
    pub fn look(&self) -> Result<Address, TableError> {
        let named = Address::read(&self.path)?;
        let before = self.current();
        let before = before.filter(|reader| reader.cells().address() == named);
        if let Some(reader) = before {
            return match reader.cells().is_kept() {
                true => Ok(named),
                false => Err(TableError::Gone(self.path.clone())),
            };
        }
        let table = Mapped::open(&self.path, self.terms)?;
        let address = table.address();
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(Arc::new(Reader::new(table)));
        Ok(address)
    }

    fn current(&self) -> Option<Arc<Reader<Mapped>>> {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Followed {
    /// As [`Versions::check`].
    ///
    /// # Errors
    ///
    /// As [`Versions::check`].
    pub fn check_these(
        &self,
        evidence: Evidence,
        dependencies: impl Iterator<Item = Place>,
        now_ms: u64,
    ) -> Result<Passed, Denied> {
        let reader = self.current().ok_or(Denied::NoBeat)?;
        reader.check_these(evidence, dependencies, now_ms)
    }

    /// As [`Reader::passed`].
    pub fn passed(&self, evidence: Evidence, now_ms: u64) -> Option<Passed> {
        self.current()?.passed(evidence, now_ms)
    }
}

impl Versions for Followed {
    type Evidence = Evidence;

    fn evidence(&self) -> Evidence {
        self.current().map_or(NONE, |reader| reader.evidence())
    }

    fn check(
        &self,
        evidence: &Evidence,
        dependencies: &[Place],
        now_ms: u64,
    ) -> Result<Passed, Denied> {
        self.check_these(*evidence, dependencies.iter().copied(), now_ms)
    }

    fn still(&self, passed: Passed, evidence: &Evidence, now_ms: u64) -> bool {
        let reader = self.current();
        reader.is_some_and(|reader| (*reader).still(passed, *evidence, now_ms))
    }

    fn number(&self, place: Place) -> u64 {
        self.current().map_or(0, |reader| reader.number(place))
    }

    fn generation(&self, evidence: &Evidence, _place: Place) -> u64 {
        evidence.generation
    }
}
