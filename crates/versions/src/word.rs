//! One word of a table: when the data behind it last changed, and whether a change is under way (rule W2).

/// The state of all keys that share a place in the table.
///
/// The lowest bit is the mark *odd*: an update is open. The other 63 bits are the number: the source's sequence when the word last
/// changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word(u64);

impl Word {
    /// Nobody changes it; it last changed under this number.
    pub fn even(number: u64) -> Self {
        Word(number << 1)
    }

    /// An update of it is open since this number.
    pub fn odd(number: u64) -> Self {
        Word(number << 1 | 1)
    }

    /// As it is stored.
    pub(crate) fn of_bits(bits: u64) -> Self {
        Word(bits)
    }

    /// As it is stored.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// When it last changed.
    pub fn number(self) -> u64 {
        self.0 >> 1
    }

    /// Whether an update of it is open.
    pub fn is_odd(self) -> bool {
        self.0 & 1 == 1
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_a_number_and_a_mark() {
        for (word, is_odd) in [(Word::even(7), false), (Word::odd(7), true)] {
            assert_eq!((word.number(), word.is_odd()), (7, is_odd));
            assert_eq!(Word::of_bits(word.bits()), word);
        }
    }
}
