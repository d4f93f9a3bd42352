//! Numbers that look random and that a seed repeats, the same on every machine.
//!
//! Tests, the simulator, the workloads and the tools draw from here. Two algorithms are enough:
//!
//! - [`Xoshiro256`] (xoshiro256\*\*) is the one to take. The simulator draws its villages from it, and tests their cases.
//! - [`SplitMix64`] needs 64 bits of state, so a stream of its own for each of many things costs nothing. OO7 databases
//!   are drawn from it. It also spreads a seed over the state of the other.
//!
//! A seed's numbers never change: reported seeds of the simulator and built databases would mean something else. Nothing
//! here is fit for keys or tokens.

/// The generator xoshiro256\*\* of Blackman and Vigna, seeded by [`SplitMix64`].
///
/// Its state is never zero throughout: four successive outputs of [`SplitMix64`] are not all zero.
#[derive(Clone, Debug)]
pub struct Xoshiro256([u64; 4]);

impl Xoshiro256 {
    /// The generator that belongs to a seed.
    pub fn new(seed: u64) -> Self {
        let mut seeds = SplitMix64::new(seed);
        Xoshiro256([(); 4].map(|()| seeds.bits()))
    }

    /// An independent generator. Draws from it do not shift the draws from this one.
    #[must_use]
    pub fn fork(&mut self) -> Xoshiro256 {
        Xoshiro256::new(self.bits())
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

    /// 128 random bits.
    pub fn wide(&mut self) -> u128 {
        (u128::from(self.bits()) << 64) | u128::from(self.bits())
    }

    /// A number below `bound`; zero if the bound is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        scale(self.bits(), bound)
    }

    /// A number from `first` to `last`, both included.
    pub fn range(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// An index of a collection of this length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// One of several, or `None` of none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.index(from.len()))
    }

    /// A number from zero to below one.
    pub fn unit(&mut self) -> f64 {
        // As many bits as a float holds exactly.
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True in `chance` of a hundred cases.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// True in `chance` of a thousand cases.
    pub fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }
}

/// The generator SplitMix64 of Steele, Lea and Flood: small, and it repeats nothing within 2^64 draws.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The generator that belongs to a seed.
    pub fn new(seed: u64) -> Self {
        SplitMix64(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; zero if the bound is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        scale(self.bits(), bound)
    }

    /// An index of a collection of this length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }
}

/// The high half of a product: without a division, and its bias is far below what a checker could see.
fn scale(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the authors' `xoshiro256starstar.c` for the state 1, 2, 3, 4.
    #[test]
    fn xoshiro_draws_what_the_reference_draws() {
        let mut random = Xoshiro256([1, 2, 3, 4]);
        let published = [
            11520,
            0,
            1509978240,
            1215971899390074240,
            1216172134540287360,
            607988272756665600,
            16172922978634559625,
            8476171486693032832,
            10595114339597558777,
            2904607092377533576,
        ];
        assert_eq!([(); 10].map(|()| random.bits()), published);
    }

    /// The first outputs of the authors' `splitmix64.c` for the seeds 0 and 1234567.
    #[test]
    fn split_mix_draws_what_the_reference_draws() {
        let mut random = SplitMix64::new(0);
        let published = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4];
        assert_eq!([(); 2].map(|()| random.bits()), published);
        let mut random = SplitMix64::new(1_234_567);
        let published = [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
            4593380528125082431,
            16408922859458223821,
        ];
        assert_eq!([(); 5].map(|()| random.bits()), published);
    }

    /// As the authors recommend it: `splitmix64.c` fills the state. The number is the first one of the seed 0.
    #[test]
    fn a_seed_is_spread_over_the_state() {
        assert_eq!(Xoshiro256::new(0).bits(), 0x99ec_5f36_cb75_f2b4);
    }

    #[test]
    fn a_seed_always_gives_the_same_numbers() {
        let mut a = Xoshiro256::new(7);
        let mut b = Xoshiro256::new(7);
        assert!((0..100).all(|_| a.bits() == b.bits()));
        assert_ne!(Xoshiro256::new(8).bits(), Xoshiro256::new(7).bits());
    }

    #[test]
    fn draws_from_a_fork_shift_nothing() {
        let (mut one, mut other) = (Xoshiro256::new(7), Xoshiro256::new(7));
        let (mut fork, _) = (one.fork(), other.fork());
        fork.wide();
        assert_eq!(one.bits(), other.bits());
    }

    #[test]
    fn numbers_keep_within_their_range() {
        let mut random = Xoshiro256::new(1);
        assert!((0..1000).all(|_| (3..=5).contains(&random.range(3, 5))));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
        assert!(random.percent(100) && !random.percent(0));
        assert!(random.per_mille(1000) && !random.per_mille(0));
        assert_eq!(random.below(0), 0);
        assert_eq!(random.pick::<u8>(&[]), None);
        assert_eq!(SplitMix64::new(1).below(0), 0);
    }

    #[test]
    fn below_is_below_and_reaches_all() {
        let (mut one, mut other) = (Xoshiro256::new(7), SplitMix64::new(7));
        let mut met = [[false; 10]; 2];
        for _ in 0..1000 {
            met[0][one.index(10)] = true;
            met[1][other.index(10)] = true;
        }
        assert_eq!(met, [[true; 10]; 2]);
    }
}
