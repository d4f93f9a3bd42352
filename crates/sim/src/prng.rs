//! Random numbers that are the same everywhere: xoshiro256** seeded by splitmix64.

/// A source of random numbers; all of a village's chance comes from its seed.
#[derive(Clone, Debug)]
pub struct Prng([u64; 4]);

impl Prng {
    /// The source that belongs to a seed.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Prng([(); 4].map(|()| splitmix(&mut state)))
    }

    /// An independent source. What draws from it does not shift what draws from this one.
    #[must_use]
    pub fn fork(&mut self) -> Prng {
        Prng::new(self.bits())
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number below `bound`; zero if the bound is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of a 128-bit product is far below what any checker could see.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `first` to `last`, both included.
    pub fn range(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// An index of a collection of this length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// True so many times in a thousand.
    pub fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }

    /// One of several, or `None` of none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.index(from.len()))
    }

    /// 128 random bits.
    pub fn wide(&mut self) -> u128 {
        (u128::from(self.bits()) << 64) | u128::from(self.bits())
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_numbers() {
        let mut a = Prng::new(7);
        let mut b = Prng::new(7);
        assert!((0..100).all(|_| a.bits() == b.bits()));
        assert_ne!(Prng::new(8).bits(), Prng::new(7).bits());
    }

    #[test]
    fn numbers_keep_within_their_range() {
        let mut prng = Prng::new(1);
        assert!((0..1000).all(|_| (3..=5).contains(&prng.range(3, 5))));
        assert_eq!(prng.below(0), 0);
        assert_eq!(prng.pick::<u8>(&[]), None);
    }
}
