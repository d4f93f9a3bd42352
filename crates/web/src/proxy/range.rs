//! A part of a whole entry (RFC 9110, section 14).

use super::fields::seconds;
use std::ops::Range;

/// What a client wants of a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// All of it. So does a client that asks for several parts, or in words that nobody knows.
    Whole,
    /// These bytes.
    Part(Range<usize>),
    /// Bytes that it does not have.
    Beyond,
}

impl Wanted {
    /// Reads the field `Range` for a body of so many bytes.
    pub(crate) fn of(field: Option<&str>, length: usize) -> Self {
        let part = field.and_then(|field| field.strip_prefix("bytes="));
        let ends = part.and_then(|part| part.trim().split_once('-'));
        let Some((first, last)) = ends else {
            return Wanted::Whole;
        };
        match (number(first), number(last)) {
            (None, Some(suffix)) if first.is_empty() => match suffix.min(length) {
                0 => Wanted::Beyond,
                suffix => Wanted::Part(length - suffix..length),
            },
            (Some(first), None) if last.is_empty() => Wanted::between(first, length, length),
            (Some(first), Some(last)) if first <= last => {
                Wanted::between(first, last.saturating_add(1), length)
            }
            _ => Wanted::Whole,
        }
    }

    fn between(start: usize, end: usize, length: usize) -> Self {
        match start < length {
            true => Wanted::Part(start..end.min(length)),
            false => Wanted::Beyond,
        }
    }
}

/// A position. One that is larger than any body here counts as the largest.
fn number(text: &str) -> Option<usize> {
    usize::try_from(seconds(text)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_cut_to_what_is_there() {
        for (field, wanted) in [
            ("bytes=0-1", Wanted::Part(0..2)),
            ("bytes=1-", Wanted::Part(1..10)),
            ("bytes=-1", Wanted::Part(9..10)),
            ("bytes=-20", Wanted::Part(0..10)),
            ("bytes=8-99999999999999999999", Wanted::Part(8..10)),
            ("bytes=10-", Wanted::Beyond),
            ("bytes=-0", Wanted::Beyond),
            ("bytes=2-1", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
        ] {
            assert_eq!(Wanted::of(Some(field), 10), wanted, "{field}");
        }
        assert_eq!(Wanted::of(None, 10), Wanted::Whole);
        assert_eq!(Wanted::of(Some("bytes=0-"), 0), Wanted::Beyond);
    }
}
