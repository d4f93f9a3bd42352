//! What each name has of a table that all names share (rule R7).

use alloc::collections::BTreeMap;

/// The shares of a common table. A share may be no larger than what all shares leave free of the table (record 0009): one
/// greedy key gets half of it, two get a third each, and a key that wants little always finds space.
///
/// Invariant: a key is there if, and only if, its share is not zero. `taken` is the sum of all shares, and of what counts
/// for nobody.
#[derive(Debug)]
pub(crate) struct Shares<K> {
    taken: u64,
    by_key: BTreeMap<K, u64>,
}

impl<K: Ord + Copy> Default for Shares<K> {
    fn default() -> Self {
        Shares {
            taken: 0,
            by_key: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Copy> Shares<K> {
    /// Whether a key may have so much more of a table of this size, where no share is larger than `most`.
    pub(crate) fn allows(&self, key: K, amount: u64, (size, most): (u64, u64)) -> bool {
        let wanted = self.of(key).saturating_add(amount);
        let free = size.checked_sub(self.taken.saturating_add(amount));
        wanted <= most && free.is_some_and(|free| wanted <= free)
    }

    /// Adds to a share, whether or not that is allowed. What no key has counts for nobody.
    pub(crate) fn take(&mut self, key: Option<K>, amount: u64) {
        self.taken += amount;
        if let Some(key) = key.filter(|_| amount > 0) {
            *self.by_key.entry(key).or_default() += amount;
        }
    }

    /// Takes away what was added before.
    pub(crate) fn give_back(&mut self, key: Option<K>, amount: u64) {
        self.taken = self.taken.saturating_sub(amount);
        let Some(key) = key else {
            return;
        };
        if let Some(share) = self.by_key.get_mut(&key) {
            *share = share.saturating_sub(amount);
            if *share == 0 {
                self.by_key.remove(&key);
            }
        }
    }

    /// What a key has.
    pub(crate) fn of(&self, key: K) -> u64 {
        self.by_key.get(&key).copied().unwrap_or_default()
    }

    /// What is taken of the table.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The largest share.
    pub(crate) fn most(&self) -> u64 {
        self.by_key.values().copied().max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much a key gets, one unit at a time, until the table allows no more.
    fn fill(shares: &mut Shares<u8>, key: u8, of: (u64, u64)) -> u64 {
        while shares.allows(key, 1, of) {
            shares.take(Some(key), 1);
        }
        shares.of(key)
    }

    #[test]
    fn one_greedy_key_gets_half_and_the_next_half_of_the_rest() {
        let (mut shares, of) = (Shares::default(), (64, u64::MAX));
        assert_eq!(fill(&mut shares, 1, of), 32);
        assert_eq!(fill(&mut shares, 2, of), 16);
        assert_eq!(fill(&mut shares, 3, of), 8);
        // What comes back is for all, and each still has no more than it leaves free.
        shares.give_back(Some(1), 32);
        assert_eq!(fill(&mut shares, 2, of), 28);
    }

    #[test]
    fn a_share_has_a_limit_of_its_own() {
        let mut shares = Shares::default();
        assert_eq!(fill(&mut shares, 1, (64, 5)), 5);
        assert_eq!(fill(&mut shares, 2, (64, 100)), 29);
    }

    #[test]
    fn what_counts_for_nobody_leaves_less_for_all() {
        let mut shares = Shares::default();
        shares.take(None, 44);
        assert_eq!(fill(&mut shares, 1, (64, u64::MAX)), 10);
        shares.give_back(None, 44);
        shares.give_back(Some(1), 10);
        assert_eq!((shares.taken(), shares.by_key.len()), (0, 0));
    }
}
