//! What each name, or each address, has of a table that all of them share.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// The shares of a common table. A share may be no larger than what all shares leave free of the table (record 0009): one
/// greedy key gets half of it, two get a third each, and a key that wants little always finds space. Only an empty table
/// gives a key all that it wants.
#[derive(Debug)]
pub(crate) struct Shares<K> {
    max: usize,
    taken: usize,
    /// Only keys that have something.
    by_key: HashMap<K, usize>,
}

impl<K: Hash + Eq> Shares<K> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            taken: 0,
            by_key: HashMap::new(),
        }
    }

    /// Whether a key may have so much more.
    pub(crate) fn allows<Q>(&self, key: &Q, amount: usize) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let taken = self.taken.saturating_add(amount);
        let free = self.max.checked_sub(taken);
        free.is_some_and(|free| self.taken == 0 || self.of(key) + amount <= free)
    }

    /// Adds to a key's share, whether or not that is allowed: some users come by right.
    pub(crate) fn take(&mut self, key: K, amount: usize) {
        self.taken += amount;
        *self.by_key.entry(key).or_default() += amount;
    }

    /// Takes away from a key's share what was added before.
    pub(crate) fn give_back<Q>(&mut self, key: &Q, amount: usize)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let Some(share) = self.by_key.get_mut(key) else {
            debug_assert!(amount == 0, "a key gives back what it took");
            return;
        };
        debug_assert!(*share >= amount, "a key gives back what it took");
        let amount = amount.min(*share);
        *share -= amount;
        self.taken -= amount;
        if *share == 0 {
            self.by_key.remove(key);
        }
    }

    /// What a key has.
    pub(crate) fn of<Q>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.by_key.get(key).copied().unwrap_or_default()
    }

    /// All of the table, free or not.
    pub(crate) fn max(&self) -> usize {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many keys get in, one unit at a time, until the table allows no more.
    fn fill(shares: &mut Shares<String>, key: &str) -> usize {
        while shares.allows(key, 1) {
            shares.take(key.to_owned(), 1);
        }
        shares.of(key)
    }

    #[test]
    fn one_greedy_key_gets_half_and_the_next_half_of_the_rest() {
        let mut shares = Shares::new(64);
        assert_eq!(fill(&mut shares, "mallory"), 32);
        assert_eq!(fill(&mut shares, "eve"), 16);
        assert_eq!(fill(&mut shares, "anna"), 8);
        // What comes back is for all, and each still has no more than it leaves free.
        shares.give_back("mallory", 32);
        assert_eq!(fill(&mut shares, "eve"), 28);
    }

    #[test]
    fn a_key_that_wants_little_finds_space_beside_one_that_wants_all() {
        let mut shares = Shares::new(100);
        for unit in 0.. {
            if !shares.allows("mallory", 7) {
                assert_eq!(unit, 7, "49 of 100");
                break;
            }
            shares.take("mallory".to_owned(), 7);
        }
        assert!(shares.allows("anna", 25));
        assert!(!shares.allows("anna", 26));
    }

    #[test]
    fn an_empty_table_gives_a_key_all_and_no_table_gives_more_than_it_has() {
        let mut shares = Shares::<String>::new(1);
        assert!(shares.allows("anna", 1));
        assert!(!shares.allows("anna", 2));
        shares.take("anna".to_owned(), 1);
        assert!(!shares.allows("bert", 1));
        shares.give_back("anna", 1);
        assert!(shares.allows("bert", 1));
        // A key that comes by right may fill the table beyond its end.
        shares.take("alps".to_owned(), 3);
        assert!(!shares.allows("bert", 0));
        shares.give_back("alps", 3);
        assert_eq!((shares.by_key.len(), shares.taken), (0, 0));
    }
}
