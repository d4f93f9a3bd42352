//! GlobalIds: 128 bits in 22 characters of IFC's own base 64.

use thorp_model::SplitMix64;

const ALPHABET: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$";

/// How many characters a GlobalId has.
const CHARS: usize = 22;

/// A sequence of GlobalIds that depends on nothing but its seed.
#[derive(Clone, Debug)]
pub struct GlobalIds {
    random: SplitMix64,
}

impl GlobalIds {
    /// The sequence of that seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            random: SplitMix64::new(seed),
        }
    }

    /// The next number of the sequence.
    pub fn next_number(&mut self) -> u64 {
        self.random.bits()
    }

    /// The next GlobalId: a UUID marked as a random one.
    pub fn next_id(&mut self) -> String {
        let bits = u128::from(self.next_number()) << 64 | u128::from(self.next_number());
        let version = 0xf << 76;
        let variant = 0x3 << 62;
        spell(bits & !version & !variant | 0x4 << 76 | 0x2 << 62)
    }
}

/// Whether the bytes are a GlobalId. The first character holds only two bits.
pub(super) fn is_global_id(bytes: &[u8]) -> bool {
    bytes.len() == CHARS
        && matches!(bytes[0], b'0'..=b'3')
        && bytes.iter().all(|byte| ALPHABET.contains(byte))
}

fn spell(bits: u128) -> String {
    (0..CHARS)
        .rev()
        .map(|place| char::from(ALPHABET[(bits >> (6 * place)) as usize & 63]))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn bits_are_spelled_as_ifc_wants_it() {
        assert_eq!(spell(0), "0".repeat(22));
        assert_eq!(spell(u128::MAX), format!("3{}", "$".repeat(21)));
        // The pair of a UUID and its GlobalId is from ifcopenshell.guid.compress.
        assert_eq!(
            spell(0x0123_4567_89ab_4def_8123_4567_89ab_cdef),
            "018qLdYQjDxu4ZHMU9gytl"
        );
    }

    #[test]
    fn ids_are_valid_distinct_and_repeatable() {
        let mut ids = GlobalIds::new(7);
        let many: Vec<String> = (0..10_000).map(|_| ids.next_id()).collect();
        assert!(many.iter().all(|id| is_global_id(id.as_bytes())));
        assert_eq!(many.iter().collect::<BTreeSet<_>>().len(), many.len());
        assert_eq!(GlobalIds::new(7).next_id(), many[0]);
        assert_ne!(GlobalIds::new(8).next_id(), many[0]);
    }

    #[test]
    fn other_strings_are_not_ids() {
        for other in [
            "",
            "4nxdYR2RHCDBiKJulbA_QU",
            "2nxdYR2RHCDBiKJulbA_Q",
            "2nxdYR2RHCDBiKJulbA-QU",
        ] {
            assert!(!is_global_id(other.as_bytes()), "{other}");
        }
    }
}
