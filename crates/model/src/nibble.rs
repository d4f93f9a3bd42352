//! Numbers in nibbles: a small one takes one nibble, of which three bits are the number's and
//! one says that more follow. Each number has one form only.

use alloc::vec::Vec;

/// Nibbles that are written one after the other.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    /// Whether the last byte's upper nibble is free.
    has_free_nibble: bool,
}

/// Nibbles that are read one after the other.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// The nibble that is read next.
    at: usize,
}

impl Writer {
    /// Writes a nibble, of which the upper four bits are left out.
    pub(crate) fn put_nibble(&mut self, nibble: u8) {
        match self.bytes.last_mut() {
            Some(last) if self.has_free_nibble => *last |= nibble << 4,
            _ => self.bytes.push(nibble & 0xf),
        }
        self.has_free_nibble = !self.has_free_nibble;
    }

    /// Writes a number, its lowest bits first.
    pub(crate) fn put(&mut self, number: u32) {
        let mut rest = number;
        while rest > LAST_MAX {
            self.put_nibble((rest & LAST_MAX) as u8 | MORE);
            rest >>= NUMBER_BITS;
        }
        self.put_nibble(rest as u8);
    }

    /// The bytes; a nibble that is left over is zero.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

impl<'a> Reader<'a> {
    /// Reads bytes from their beginning.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// Whether nothing follows but the nibble that may be left over in the last byte.
    pub(crate) fn is_at_end(&self) -> bool {
        let left = self.bytes.len() * 2 - self.at;
        left == 0 || (left == 1 && self.bytes.last().is_some_and(|last| last >> 4 == 0))
    }

    /// Reads a nibble, if there is one.
    pub(crate) fn nibble(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at / 2)?;
        let nibble = byte >> (self.at % 2 * 4) & 0xf;
        self.at += 1;
        Some(nibble)
    }

    /// Reads a number, if it is there, in its shortest form, and no longer than 32 bits.
    pub(crate) fn number(&mut self) -> Option<u32> {
        let mut number = 0;
        for shift in (0..u32::BITS).step_by(NUMBER_BITS as usize) {
            let nibble = self.nibble()?;
            let bits = u32::from(nibble & !MORE);
            number |= bits.checked_shl(shift)?;
            if (number >> shift) != bits {
                return None;
            }
            if nibble & MORE == 0 {
                return (bits != 0 || shift == 0).then_some(number);
            }
        }
        None
    }
}

/// Nibbles that a number takes.
pub(crate) fn nibbles_of(number: u32) -> u32 {
    (u32::BITS - number.leading_zeros())
        .div_ceil(NUMBER_BITS)
        .max(1)
}

/// Bits of a number in one nibble.
const NUMBER_BITS: u32 = 3;

/// Set in a nibble that is not a number's last one.
const MORE: u8 = 1 << NUMBER_BITS;

/// The largest number that one nibble holds.
const LAST_MAX: u32 = MORE as u32 - 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(numbers: &[u32]) -> Vec<u8> {
        let mut writer = Writer::default();
        numbers.iter().for_each(|number| writer.put(*number));
        writer.finish()
    }

    #[test]
    fn numbers_come_back_in_as_many_nibbles_as_said() {
        let powers = (0..32).map(|bit| 1_u32 << bit);
        let numbers: Vec<u32> = powers.flat_map(|n| [n - 1, n, n | 1]).collect();
        for number in numbers.into_iter().chain([u32::MAX]) {
            let bytes = bytes_of(&[number]);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.number(), Some(number));
            assert!(reader.is_at_end());
            assert_eq!(reader.at as u32, nibbles_of(number), "{number}");
        }
        assert_eq!(bytes_of(&[0, 7, 8, 63]), [0x70, 0x18, 0x7f]);
    }

    #[test]
    fn no_number_has_two_forms_or_too_many_bits() {
        // Eight, with a zero after its last nibble; 2^33, in whose last nibble one bit is too many;
        // nibbles without an end; and nothing at all.
        let long: [u8; 2] = [0x98, 0x00];
        let too_large = [0x88, 0x88, 0x88, 0x88, 0x88, 0x04];
        let endless = [0xff; 9];
        for wrong in [&long[..], &too_large, &endless, &[]] {
            assert_eq!(Reader::new(wrong).number(), None, "{wrong:x?}");
        }
        let largest = bytes_of(&[u32::MAX]);
        assert_eq!(largest, [0xff, 0xff, 0xff, 0xff, 0xff, 0x03]);
    }

    #[test]
    fn what_is_left_over_is_zero() {
        assert!(Reader::new(&[]).is_at_end());
        let mut reader = Reader::new(&[0x12]);
        assert_eq!((reader.nibble(), reader.is_at_end()), (Some(2), false));
        let mut reader = Reader::new(&[0x02]);
        assert_eq!((reader.nibble(), reader.is_at_end()), (Some(2), true));
    }
}
