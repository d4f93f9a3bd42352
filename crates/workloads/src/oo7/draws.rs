//! What is random in a database and in the work on it, all of which follows from a seed.

use thorp_model::SplitMix64;

/// Draws the numbers of OO7, all of 32 bits.
///
/// A seed's draws never change: a database of that seed would be another one.
#[derive(Clone, Debug)]
pub(super) struct Draws(SplitMix64);

impl Draws {
    /// The draws of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// The draws of one thing of a database: each thing can be made without the others. Its id is added to its sequence.
    pub(super) fn of(seed: u64, thing: u64) -> Self {
        Self::new(Self::new(seed ^ thing.rotate_left(32)).0.bits())
    }

    /// A number below `bound`; zero if the bound is zero.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        self.0.below(u64::from(bound)) as u32
    }

    /// True in `percent` of a hundred cases.
    pub(super) fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// A build date of the thousand that begins at `from`.
    pub(super) fn date(&mut self, from: u32) -> u32 {
        from + self.below(1000)
    }

    pub(super) fn type_no(&mut self) -> u32 {
        self.below(TYPES)
    }
}

/// The sequences of a database's things. [`Draws::of`] takes one with an id added.
pub(super) struct Sequence;

impl Sequence {
    pub(super) const MODULE: u64 = 1 << 32;
    pub(super) const USES: u64 = 2 << 32;
    pub(super) const ASSEMBLIES: u64 = 3 << 32;
    pub(super) const COMPOSITES: u64 = 4 << 32;
    pub(super) const WIRING: u64 = 5 << 32;
    pub(super) const CONNECTIONS: u64 = 6 << 32;
    pub(super) const ATOMICS: u64 = 7 << 32;
    pub(super) const SHARED: u64 = 8 << 32;
}

const TYPES: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_draws_without_the_others() {
        let draws = |seed, thing| {
            let mut draws = Draws::of(seed, thing);
            [(); 4].map(|()| draws.below(1 << 31))
        };
        assert_eq!(draws(7, 3), draws(7, 3));
        assert_ne!(draws(7, 3), draws(7, 4));
        assert_ne!(draws(7, 3), draws(8, 3));
    }

    #[test]
    fn chance_is_of_a_hundred() {
        let mut draws = Draws::of(7, 3);
        assert_eq!(draws.below(0), 0);
        assert!(draws.chance(100) && !draws.chance(0));
    }
}
