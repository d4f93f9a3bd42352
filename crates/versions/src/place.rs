//! Where the word of a key lies. Nothing is registered: a key is hashed. Two keys that share a word cost a miss, never a stale hit.

use crate::limits::WORDS;

/// The place of a word in a table. Whoever reads several tables also says which one: its number is 0 where there is one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    table: u16,
    word: u32,
}

impl Place {
    /// Each update of the source changes it. An answer without a list of keys depends on it.
    pub const EVERYTHING: Place = Place { table: 0, word: 0 };
    /// A change that no rule names changes it (rule W9). Every answer depends on it.
    pub const UNKNOWN: Place = Place { table: 0, word: 1 };

    /// The place of a key, for example `page:0:Main_Page`.
    pub fn of(key: &str) -> Self {
        let own = 2;
        let hash = xxhash_rust::xxh3::xxh3_64(key.as_bytes());
        let named = hash.checked_rem(WORDS as u64 - u64::from(own));
        let word = named.map_or(0, |named| own + named as u32);
        Place { table: 0, word }
    }

    /// The same place in the table of this number.
    #[must_use]
    pub fn in_table(self, table: u16) -> Self {
        Place { table, ..self }
    }

    /// In which table it is.
    pub fn table(self) -> u16 {
        self.table
    }

    /// Its number in the table.
    pub(crate) fn index(self) -> usize {
        self.word as usize
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn no_key_lies_where_the_two_of_the_source_lie() {
        let places = (0..10_000).map(|number| Place::of(&format!("page:0:{number}")));
        let own = [Place::EVERYTHING, Place::UNKNOWN];
        assert!(places.into_iter().all(|place| !own.contains(&place)));
        assert_eq!(Place::of("a"), Place::of("a"));
        let elsewhere = Place::of("a").in_table(3);
        assert_eq!(
            (elsewhere.table(), elsewhere.in_table(0)),
            (3, Place::of("a"))
        );
        assert_ne!(Place::of("a"), Place::of("b"));
    }
}
