//! Header fields that are lists, numbers or dates.

use hyper::header::{HeaderMap, HeaderName};
use std::borrow::Cow;
use std::time::UNIX_EPOCH;

/// A number of seconds above this one counts as this one (RFC 9111, section 1.2.2).
pub(crate) const SECONDS_MAX: u64 = 1 << 31;

/// A field with all its lines. Bytes that are no text become `\u{fffd}`, which no directive and no number has.
pub(crate) fn joined<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, str>> {
    let mut lines = headers.get_all(name).iter();
    let first = String::from_utf8_lossy(lines.next()?.as_bytes());
    let more = lines.map(|line| String::from_utf8_lossy(line.as_bytes()));
    Some(more.fold(first, |all, line| Cow::Owned(format!("{all}, {line}"))))
}

/// The members of a list, without spaces around them. A comma within quotes divides nothing.
pub(crate) fn members(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    let parts = text.split(move |letter| {
        let was_escaped = std::mem::replace(&mut is_escaped, is_quoted && letter == '\\');
        if letter == '"' && !was_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped &= !was_escaped;
        letter == ',' && !is_quoted
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

/// Whether a word stands anywhere in a text, whatever is beside it: for directives that count also in doubt.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    let mut words = text.split(|letter: char| !is_inner(letter));
    words.any(|found| found.eq_ignore_ascii_case(word))
}

/// A number of seconds: digits alone.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // What does not fit is large.
    is_number.then(|| text.parse().unwrap_or(SECONDS_MAX).min(SECONDS_MAX))
}

/// A field that is a date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dated {
    /// There is none.
    Missing,
    /// It is no date, or there are two.
    Invalid,
    /// Seconds since 1970.
    At(u64),
}

impl Dated {
    /// Reads the date in a field.
    pub(crate) fn of(headers: &HeaderMap, name: &HeaderName) -> Self {
        match joined(headers, name) {
            Some(text) => date(&text).map_or(Dated::Invalid, Dated::At),
            None => Dated::Missing,
        }
    }

    /// The date, if it can be read.
    pub(crate) fn known(self) -> Option<u64> {
        match self {
            Dated::At(seconds) => Some(seconds),
            Dated::Missing | Dated::Invalid => None,
        }
    }
}

/// Seconds since 1970 of a date in one of HTTP's three forms.
pub(crate) fn date(text: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(text).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{self, HeaderValue};

    #[test]
    fn a_comma_in_quotes_divides_nothing() {
        let split = |text| members(text).collect::<Vec<_>>();
        assert_eq!(split("a, ,b ,c"), ["a", "b", "c"]);
        assert_eq!(split(r#"a="x,y", b"#), [r#"a="x,y""#, "b"]);
        assert_eq!(split(r#"a="x\",y", b"#), [r#"a="x\",y""#, "b"]);
        assert_eq!(split(r#"a="x\\", b"#), [r#"a="x\\""#, "b"]);
        assert_eq!(split(r#"a="open, b"#), [r#"a="open, b"#]);
    }

    #[test]
    fn a_word_is_found_whatever_is_beside_it() {
        for text in ["a", "b;A", "b=\"a\"", "\u{fffd}a=1", "b a", "{a}"] {
            assert!(has_word(text, "a"), "{text}");
        }
        for text in ["", "ab", "x-a", "a_b", "b"] {
            assert!(!has_word(text, "a"), "{text}");
        }
    }

    #[test]
    fn seconds_are_digits() {
        assert_eq!(seconds("003600"), Some(3_600));
        assert_eq!(
            seconds("99999999999999999999999999999999"),
            Some(SECONDS_MAX)
        );
        for text in ["", "-1", "1.0", "1s", " 1", "+1", "'1'"] {
            assert_eq!(seconds(text), None, "{text:?}");
        }
    }

    #[test]
    fn lines_are_joined_and_dates_are_read_in_three_forms() {
        let mut headers = HeaderMap::new();
        assert_eq!(Dated::of(&headers, &header::EXPIRES), Dated::Missing);
        for (text, dated) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Dated::At(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Dated::At(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Dated::At(784_111_777)),
            ("0", Dated::Invalid),
        ] {
            headers.insert(header::EXPIRES, HeaderValue::from_static(text));
            assert_eq!(Dated::of(&headers, &header::EXPIRES), dated, "{text}");
        }
        headers.append(header::EXPIRES, HeaderValue::from_static("1"));
        assert_eq!(joined(&headers, &header::EXPIRES).as_deref(), Some("0, 1"));
    }
}
