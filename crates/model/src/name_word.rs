//! A word of a rights list that names one node.

use crate::ids::NameId;

/// A node, named by its name or by the id of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NameWord<'a> {
    /// Lower-case letters, digits, hyphens and full stops.
    Name(&'a str),
    /// Of `#` and 16 hexadecimal digits.
    Id(NameId),
}

impl<'a> NameWord<'a> {
    /// None if the word names no node.
    pub(crate) fn parse(word: &'a str) -> Option<Self> {
        let in_names = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        let is_name = !word.is_empty() && word.bytes().all(in_names);
        match word.strip_prefix('#') {
            Some(id) if id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()) => {
                let id = u64::from_str_radix(id, 16).ok()?;
                Some(NameWord::Id(NameId(id)))
            }
            _ => is_name.then_some(NameWord::Name(word)),
        }
    }
}
