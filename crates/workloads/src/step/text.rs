//! Strings: the raw spelling of the file, and the text it stands for.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::spelling;

/// A string as it stands between its apostrophes in the file, escapes and all.
///
/// It is kept in bytes: files with the bytes of some local code page in their strings are not valid but common, and
/// they too must come out as they went in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "Vec<u8>", try_from = "Vec<u8>")]
pub struct RawText(Box<[u8]>);

impl RawText {
    /// The spelling of `content`: apostrophes and backslashes doubled, everything beyond ASCII as `\X2\` or `\X4\`.
    #[must_use]
    pub fn encode(content: &str) -> Self {
        let mut raw = String::with_capacity(content.len());
        let mut open = Escape::None;
        for character in content.chars() {
            let wanted = Escape::of(character);
            if wanted != open {
                raw.push_str(open.end());
                raw.push_str(wanted.begin());
                open = wanted;
            }
            wanted.push(character, &mut raw);
        }
        raw.push_str(open.end());
        Self(raw.into_bytes().into())
    }

    /// The text that the spelling stands for. What cannot be decoded is kept as it stands, or replaced by U+FFFD.
    #[must_use]
    pub fn decode(&self) -> String {
        let mut decoded = String::with_capacity(self.0.len());
        let mut rest: &[u8] = &self.0;
        while let Some(&byte) = rest.first() {
            let used = match byte {
                b'\'' => literal("'", 2, &mut decoded),
                b'\\' => decode_escape(rest, &mut decoded),
                _ => decode_plain(rest, &mut decoded),
            };
            rest = rest.get(used..).unwrap_or_default();
        }
        decoded
    }

    /// The spelling itself.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Wraps a spelling that the caller has found between two apostrophes.
    pub(super) fn from_spelling(raw: &[u8]) -> Self {
        debug_assert!(spelling::is_text(raw));
        Self(raw.into())
    }
}

impl fmt::Display for RawText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.decode())
    }
}

impl From<RawText> for Vec<u8> {
    fn from(text: RawText) -> Self {
        text.0.into()
    }
}

impl TryFrom<Vec<u8>> for RawText {
    type Error = &'static str;

    fn try_from(raw: Vec<u8>) -> Result<Self, Self::Error> {
        if spelling::is_text(&raw) {
            Ok(Self(raw.into()))
        } else {
            Err("a string is not spelled as STEP wants it")
        }
    }
}

/// Which escape a character needs; runs of the same kind share one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    TwoBytes,
    FourBytes,
}

impl Escape {
    fn of(character: char) -> Self {
        match u32::from(character) {
            0x20..=0x7e => Self::None,
            0..=0xffff => Self::TwoBytes,
            _ => Self::FourBytes,
        }
    }

    fn begin(self) -> &'static str {
        match self {
            Self::None => "",
            Self::TwoBytes => "\\X2\\",
            Self::FourBytes => "\\X4\\",
        }
    }

    fn end(self) -> &'static str {
        if self == Self::None { "" } else { "\\X0\\" }
    }

    fn push(self, character: char, raw: &mut String) {
        match self {
            Self::None if matches!(character, '\'' | '\\') => raw.extend([character, character]),
            Self::None => raw.push(character),
            Self::TwoBytes => raw.push_str(&format!("{:04X}", u32::from(character))),
            Self::FourBytes => raw.push_str(&format!("{:08X}", u32::from(character))),
        }
    }
}

fn literal(text: &str, used: usize, decoded: &mut String) -> usize {
    decoded.push_str(text);
    used
}

/// Decodes up to the next apostrophe or backslash.
fn decode_plain(rest: &[u8], decoded: &mut String) -> usize {
    let used = rest
        .iter()
        .position(|byte| matches!(byte, b'\'' | b'\\'))
        .unwrap_or(rest.len());
    decoded.push_str(&String::from_utf8_lossy(&rest[..used]));
    used
}

fn decode_escape(rest: &[u8], decoded: &mut String) -> usize {
    match rest {
        [_, b'\\', ..] => literal("\\", 2, decoded),
        // A character of the upper half of a code page; Latin-1 unless \P..\ chose another, which is rare enough.
        [_, b'S', b'\\', byte @ 0x20..=0x7e, ..] => push_code(u32::from(*byte) + 0x80, 4, decoded),
        [_, b'P', b'A'..=b'I', b'\\', ..] => 4,
        [_, b'X', b'\\', digits @ ..] if digits.len() >= 2 => match hexadecimal(&digits[..2]) {
            Some(code) => push_code(code, 5, decoded),
            None => literal("\\", 1, decoded),
        },
        [_, b'X', b'2', b'\\', digits @ ..] => decode_run(digits, 4, decoded),
        [_, b'X', b'4', b'\\', digits @ ..] => decode_run(digits, 8, decoded),
        _ => literal("\\", 1, decoded),
    }
}

fn push_code(code: u32, used: usize, decoded: &mut String) -> usize {
    decoded.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    used
}

/// Decodes groups of hexadecimal digits up to `\X0\`; pairs of surrogates occur in both widths.
fn decode_run(digits: &[u8], width: usize, decoded: &mut String) -> usize {
    let end = digits
        .iter()
        .position(|&byte| byte == b'\\')
        .unwrap_or(digits.len());
    let mut units = Vec::new();
    for code in digits[..end].chunks(width).filter_map(hexadecimal) {
        match u16::try_from(code) {
            Ok(unit) => units.push(unit),
            Err(_) => {
                let mut pair = [0; 2];
                let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                units.extend_from_slice(character.encode_utf16(&mut pair));
            }
        }
    }
    decoded.push_str(&String::from_utf16_lossy(&units));
    let closing = if digits[end..].starts_with(b"\\X0\\") {
        4
    } else {
        0
    };
    4 + end + closing
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(raw: &str) -> String {
        RawText::from_spelling(raw.as_bytes()).decode()
    }

    #[test]
    fn every_escape_is_understood() {
        assert_eq!(decoded("it''s"), "it's");
        assert_eq!(decoded(r"a\\b"), r"a\b");
        assert_eq!(decoded(r"\X2\00E400F6\X0\!"), "äö!");
        assert_eq!(decoded(r"\X4\0001F600\X0\"), "😀");
        assert_eq!(decoded(r"\X2\D83DDE00\X0\"), "😀");
        assert_eq!(decoded(r"\X\E4"), "ä");
        assert_eq!(decoded(r"\PA\\S\d"), "ä");
        assert_eq!(decoded("naïve"), "naïve");
    }

    #[test]
    fn damaged_escapes_do_no_harm() {
        for raw in [
            r"\",
            r"\X",
            r"\X\",
            r"\X\g1",
            r"\X2\",
            r"\X2\12",
            r"\X2\zzzz\X0\",
            r"\X4\FFFFFFFF\X0\",
            r"\S\",
            r"\Q\",
        ] {
            let _ = decoded(raw);
        }
        assert_eq!(decoded(r"C:\Users"), r"C:\Users");
    }

    #[test]
    fn encoding_reads_back() {
        for content in [
            "",
            "plain",
            "it's",
            r"back\slash",
            "äöü€",
            "mixed ä and 😀!",
            "\n\t",
            "''",
        ] {
            let raw = RawText::encode(content);
            assert!(spelling::is_text(raw.as_bytes()), "{raw:?}");
            assert_eq!(raw.decode(), content);
        }
    }
}
