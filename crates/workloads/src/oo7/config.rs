//! How large a module is, and what must be counted in it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Counts, Traversal};

/// How large a module is. With the seed it decides every byte of the module's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Config {
    /// What all choices follow from.
    pub seed: u64,
    /// Composite parts of the module.
    pub composites: u32,
    /// Atomic parts of a composite.
    pub atomics_per_composite: u32,
    /// Connections that leave an atomic part.
    pub connections_per_atomic: u32,
    /// Bytes of a document's text.
    pub document_bytes: u32,
    /// Bytes of the manual's text.
    pub manual_bytes: u32,
    /// Levels of the assembly tree; the lowest is of base assemblies.
    pub levels: u32,
    /// Assemblies below a complex one.
    pub fan_out: u32,
    /// Composites that a base assembly uses.
    pub composites_per_base: u32,
}

/// A config that no module can be built from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadConfig(&'static str);

impl Config {
    /// The seed of published numbers.
    pub const SEED: u64 = 1993;

    /// OO7's small module: 10,000 atomic parts, about 5 MB.
    #[must_use]
    pub const fn small() -> Self {
        Config {
            seed: Self::SEED,
            composites: 500,
            atomics_per_composite: 20,
            connections_per_atomic: 3,
            document_bytes: 2_000,
            manual_bytes: 100_000,
            levels: 7,
            fan_out: 3,
            composites_per_base: 3,
        }
    }

    /// OO7's medium module: 100,000 atomic parts, about 43 MB.
    #[must_use]
    pub const fn medium() -> Self {
        Config {
            atomics_per_composite: 200,
            document_bytes: 20_000,
            manual_bytes: 1_000_000,
            ..Self::small()
        }
    }

    /// A module of the small one's shape, for quick tests: 200 atomic parts, 13 assemblies.
    #[must_use]
    pub const fn tiny() -> Self {
        Config {
            composites: 10,
            manual_bytes: 10_000,
            levels: 3,
            ..Self::small()
        }
    }

    /// Base assemblies of the module.
    #[must_use]
    pub fn bases(&self) -> u32 {
        self.fan_out.saturating_pow(self.levels.saturating_sub(1))
    }

    /// Complex assemblies of the module.
    #[must_use]
    pub fn complexes(&self) -> u32 {
        let levels = 1..self.levels.min(LEVELS_MAX);
        let of_level = |level: u32| self.fan_out.saturating_pow(level - 1);
        levels.map(of_level).fold(0, u32::saturating_add)
    }

    /// What a traversal must count in any module of this config; but for the assemblies of T7, of which there are as many
    /// as levels for each use of the composite.
    #[must_use]
    pub fn expected(&self, traversal: Traversal) -> Counts {
        let composite_visits = u64::from(self.bases()) * u64::from(self.composites_per_base);
        let parts = composite_visits * u64::from(self.atomics_per_composite);
        let (atomic_visits, swaps, dates) = match traversal {
            Traversal::T1 => (parts, 0, 0),
            Traversal::T2a => (parts, composite_visits, 0),
            Traversal::T2b => (parts, parts, 0),
            Traversal::T2c => (parts, 4 * parts, 0),
            Traversal::T3a => (parts, 0, composite_visits),
            Traversal::T3b => (parts, 0, parts),
            Traversal::T3c => (parts, 0, 4 * parts),
            Traversal::T6 => (composite_visits, 0, 0),
            Traversal::T7 => (1, 0, 0),
            Traversal::T8 | Traversal::T9 => (0, 0, 0),
        };
        Counts {
            atomic_visits,
            swaps,
            dates,
            assemblies: 0,
        }
    }

    /// Whether a module can be built.
    ///
    /// # Errors
    /// It would be empty somewhere, or larger than the layouts' numbers.
    pub fn check(&self) -> Result<(), BadConfig> {
        let numbers = [
            self.composites,
            self.atomics_per_composite,
            self.levels,
            self.fan_out,
            self.composites_per_base,
            self.manual_bytes,
        ];
        if numbers.contains(&0) {
            return Err(BadConfig(
                "every part of a module must be there at least once",
            ));
        }
        if self.composites_per_base > COUNT_MAX
            || self.levels > LEVELS_MAX
            || self.fan_out > COUNT_MAX
            || self.connections_per_atomic > COUNT_MAX
            || self.atomics_per_composite > ATOMICS_MAX
        {
            return Err(BadConfig(
                "too many parts in one object, or too many levels",
            ));
        }
        if u64::from(self.complexes()) + u64::from(self.bases()) > u64::from(ASSEMBLIES_MAX) {
            return Err(BadConfig("too many assemblies"));
        }
        if u64::from(self.composites) * u64::from(self.atomics_per_composite) > u64::from(u32::MAX)
        {
            return Err(BadConfig("too many atomic parts for their ids"));
        }
        Ok(())
    }
}

impl fmt::Display for BadConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl std::error::Error for BadConfig {}

/// Levels of the assembly tree.
const LEVELS_MAX: u32 = 32;
/// References of one kind in an assembly or a connection list.
const COUNT_MAX: u32 = 100;
/// Atomic parts of a composite: all are built by one transaction.
const ATOMICS_MAX: u32 = 2_000;
/// Assemblies of a module: all are made by one transaction.
const ASSEMBLIES_MAX: u32 = 50_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The counts that the benchmark's papers and ports give.
    #[test]
    fn counts_are_those_of_oo7() {
        let (small, medium) = (Config::small(), Config::medium());
        assert_eq!((small.bases(), small.complexes()), (729, 364));
        let visits = |config: Config, traversal| config.expected(traversal).atomic_visits;
        assert_eq!(visits(small, Traversal::T1), 43_740);
        assert_eq!(visits(medium, Traversal::T1), 437_400);
        assert_eq!(visits(small, Traversal::T6), 2_187);
        assert_eq!(small.expected(Traversal::T2a).swaps, 2_187);
        assert_eq!(small.expected(Traversal::T2b).swaps, 43_740);
        assert_eq!(small.expected(Traversal::T2c).swaps, 174_960);
        assert_eq!(medium.expected(Traversal::T2c).swaps, 1_749_600);
        assert_eq!(small.check(), Ok(()));
        assert_eq!(medium.check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        let empty = Config {
            fan_out: 0,
            ..Config::tiny()
        };
        let endless = Config {
            levels: u32::MAX,
            ..Config::tiny()
        };
        assert!(empty.check().is_err());
        assert!(endless.check().is_err());
    }
}
