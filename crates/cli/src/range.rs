//! A range of bytes, as HTTP writes it: `0-99`, `100-`, and `-100` for the last hundred.

use std::num::NonZeroU64;
use std::ops::Range;
use std::str::FromStr;

/// Which bytes of a value somebody wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ByteRange {
    /// From the first to the last one. Those that are not there are left out.
    Between(u64, u64),
    /// From this one on.
    From(u64),
    /// So many at the end; all if there are fewer.
    Last(NonZeroU64),
}

impl ByteRange {
    /// The bytes of a value of this size. None: the range begins beyond the end.
    pub(crate) fn within(self, size: u64) -> Option<Range<u64>> {
        let (first, end) = match self {
            ByteRange::Between(first, last) => (first, last.saturating_add(1).min(size)),
            ByteRange::From(first) => (first, size),
            ByteRange::Last(count) => return Some(size.saturating_sub(count.get())..size),
        };
        (first < size).then_some(first..end)
    }
}

impl FromStr for ByteRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "{why}\n  -> write 0-99 for the first hundred bytes, 100- for all after these, -100 for the last hundred"
            )
        };
        let (first, last) = text
            .split_once('-')
            .ok_or_else(|| wrong("a range has a - in it"))?;
        match (first, last) {
            ("", "") => Err(wrong(
                "a range has a number before the -, after it, or both",
            )),
            ("", count) => {
                let count = number(count).ok_or_else(|| wrong(NO_NUMBER))?;
                let count = NonZeroU64::new(count);
                count
                    .map(ByteRange::Last)
                    .ok_or_else(|| wrong("the last 0 bytes are no range"))
            }
            (first, "") => number(first)
                .map(ByteRange::From)
                .ok_or_else(|| wrong(NO_NUMBER)),
            (first, last) => {
                let both = number(first).zip(number(last));
                let (first, last) = both.ok_or_else(|| wrong(NO_NUMBER))?;
                match first <= last {
                    true => Ok(ByteRange::Between(first, last)),
                    false => Err(wrong("the range ends before it begins")),
                }
            }
        }
    }
}

/// Digits and nothing else: `parse` alone would take a plus sign.
fn number(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

const NO_NUMBER: &str = "a range has numbers of at most 64 bits and one -";

#[cfg(test)]
mod tests {
    use super::*;

    fn within(text: &str, size: u64) -> Option<Range<u64>> {
        text.parse::<ByteRange>().unwrap().within(size)
    }

    #[test]
    fn ranges_are_those_of_http() {
        assert_eq!(within("0-99", 1000), Some(0..100));
        assert_eq!(within("0-0", 1000), Some(0..1));
        assert_eq!(within("900-2000", 1000), Some(900..1000));
        assert_eq!(within("999-", 1000), Some(999..1000));
        assert_eq!(within("-100", 1000), Some(900..1000));
        assert_eq!(within("-2000", 1000), Some(0..1000));
        assert_eq!(within("0-18446744073709551615", 10), Some(0..10));
    }

    #[test]
    fn what_begins_beyond_the_end_is_none() {
        for (text, size) in [("1000-", 1000), ("1000-1001", 1000), ("0-", 0), ("0-9", 0)] {
            assert_eq!(within(text, size), None, "{text} of {size}");
        }
        assert_eq!(within("-5", 0), Some(0..0));
    }

    #[test]
    fn what_is_no_range_says_how_one_is_written() {
        for text in [
            "",
            "-",
            "5",
            "9-3",
            "-0",
            "a-b",
            "1-2-3",
            "+1-2",
            " 1-2",
            "0-18446744073709551616",
        ] {
            let said = text.parse::<ByteRange>().unwrap_err();
            assert!(said.contains("\n  -> write 0-99"), "{text}: {said}");
        }
    }
}
