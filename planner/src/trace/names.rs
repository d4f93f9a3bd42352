//! Dense numbers for whatever names objects and clients.

use std::collections::HashMap;

/// Which number each name has been given: 0 for the first, and so on.
#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<u64, u32>,
    texts: HashMap<Box<[u8]>, u32>,
}

impl Names {
    pub(super) fn number(&mut self, name: u64) -> u32 {
        let next = self.next();
        *self.numbers.entry(name).or_insert(next)
    }

    pub(super) fn text(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = decimal(name) {
            return self.number(number);
        }
        if let Some(&given) = self.texts.get(name) {
            return given;
        }
        let next = self.next();
        self.texts.insert(name.into(), next);
        next
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len() + self.texts.len()
    }

    /// How many of them are no numbers.
    pub(super) fn texts(&self) -> usize {
        self.texts.len()
    }

    /// A trace of more requests than there are numbers is refused while it is read.
    fn next(&self) -> u32 {
        u32::try_from(self.len()).expect("fewer than four billion objects")
    }
}

/// The number that a text is; texts that only look like the same number, as `7` and `007`, stay different names.
fn decimal(text: &[u8]) -> Option<u64> {
    let is_plain =
        text.iter().all(u8::is_ascii_digit) && (text.len() == 1 || text.first() != Some(&b'0'));
    if !is_plain {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_as_they_come() {
        let mut names = Names::default();
        let given = [
            &b"b"[..],
            b"7",
            b"b",
            b"007",
            b"",
            b"99999999999999999999",
            b"7",
        ]
        .map(|name| names.text(name));
        assert_eq!(given, [0, 1, 0, 2, 3, 4, 1]);
        assert_eq!((names.number(7), names.len()), (1, 5));
    }
}
