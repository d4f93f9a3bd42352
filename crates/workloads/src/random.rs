//! Numbers that look random and follow from a seed.

/// SplitMix64: small, quick, the same everywhere, and without repetition within 2^64 calls.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A sequence of its own for one of many things, so that each can be made without the others.
    pub(crate) fn of(seed: u64, thing: u64) -> Self {
        let mut seeds = Self::new(seed ^ thing.rotate_left(32));
        Self::new(seeds.number())
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; zero if there is none.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        // The high half of the product is spread as evenly as 64 bits allow, without a division.
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u32
    }

    /// Whether something happens that does so in so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_sequence() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.number(), random.number()]
        };
        // The reference implementation's first numbers for seed 0.
        assert_eq!(numbers(0), [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        assert_ne!(numbers(0), numbers(1));
    }

    #[test]
    fn below_is_below_and_reaches_all() {
        let mut random = Random::of(7, 3);
        let mut met = [false; 10];
        for _ in 0..1000 {
            met[random.below(10) as usize] = true;
        }
        assert_eq!(met, [true; 10]);
        assert_eq!(random.below(0), 0);
        assert!(random.chance(100) && !random.chance(0));
    }
}
