//! The two fields of an answer that say what it has read at Thorp homes. They come from the origin, and nobody else gets them.

use hyper::HeaderMap;
use hyper::header::HeaderName;

/// As of which position of each home the answer was right: `alps=7, dale=9`.
pub(crate) const EVIDENCE: HeaderName = HeaderName::from_static("thorp-evidence");

/// What it has read there: `alps 3/0.4 3/7, dale 5`. A home without keys stands for all that it has.
pub(crate) const READS: HeaderName = HeaderName::from_static("thorp-reads");

/// Bytes that each of the two fields may have. With more, an answer is not kept.
pub(crate) const HOME_FIELD_BYTES_MAX: usize = 32 << 10;

/// Homes that one answer may name.
pub(crate) const HOMES_OF_ANSWER_MAX: usize = 16;

/// Keys that one answer may name at each home. An application folds more to pages and segments.
pub(crate) const KEYS_AT_HOME_MAX: usize = 64;

/// What the fields of one answer say.
///
/// Invariant: each home is there once, and has a position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HomeFields<'a>(Vec<AtHome<'a>>);

/// What an answer has read at one home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AtHome<'a> {
    pub(crate) name: &'a str,
    pub(crate) position: u64,
    /// None: it rests on all that the home has.
    pub(crate) keys: Vec<&'a str>,
}

impl HomeFields<'_> {
    /// Hands over what the fields of an answer say. None: there is no evidence. `Some(None)`: they cannot be read, or the reader says so.
    pub(crate) fn in_answer<T>(
        headers: &HeaderMap,
        read: impl FnOnce(&HomeFields<'_>) -> Option<T>,
    ) -> Option<Option<T>> {
        let length = |name| headers.get_all(name).iter().map(|line| line.len()).sum();
        if [EVIDENCE, READS].map(length).into_iter().any(is_too_long) {
            return Some(None);
        }
        if !headers.contains_key(EVIDENCE) {
            return None;
        }
        let [evidence, reads] = [EVIDENCE, READS].map(|name| joined(headers, &name));
        let fields = HomeFields::of(&evidence, &reads);
        Some(fields.and_then(|fields| read(&fields)))
    }
}

impl<'a> HomeFields<'a> {
    fn of(evidence: &'a str, reads: &'a str) -> Option<Self> {
        let mut homes: Vec<AtHome<'a>> = Vec::new();
        for member in evidence.split(',') {
            let (name, position) = member.trim().split_once('=')?;
            let is_new = homes.iter().all(|home| home.name != name);
            if !is_name(name) || !is_new || homes.len() == HOMES_OF_ANSWER_MAX {
                return None;
            }
            homes.push(AtHome {
                name,
                position: number(position)?,
                keys: Vec::new(),
            });
        }
        let mut read: Vec<&str> = Vec::new();
        let is_none = reads.trim().is_empty();
        for member in reads.split(',').filter(|_| !is_none) {
            let mut words = member.trim().split(' ');
            let name = words.next()?;
            let home = homes.iter_mut().find(|home| home.name == name)?;
            if read.contains(&name) {
                return None;
            }
            read.push(name);
            for key in words {
                if !is_key(key) || home.keys.len() == KEYS_AT_HOME_MAX {
                    return None;
                }
                home.keys.push(key);
            }
        }
        Some(HomeFields(homes))
    }

    pub(crate) fn homes(&self) -> &[AtHome<'a>] {
        &self.0
    }
}

/// A field with all its lines. Bytes that are no text become `\u{fffd}`, which is in no name and no number.
fn joined(headers: &HeaderMap, name: &HeaderName) -> String {
    let lines = headers.get_all(name).iter();
    let lines = lines.map(|line| String::from_utf8_lossy(line.as_bytes()));
    lines.collect::<Vec<_>>().join(",")
}

fn is_too_long(bytes: usize) -> bool {
    bytes > HOME_FIELD_BYTES_MAX
}

/// A name that a certificate may have (rule R1).
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    !name.is_empty() && name.bytes().all(plain)
}

/// An object, a page or a segment, written as its home writes it: another spelling would be another key.
fn is_key(key: &str) -> bool {
    let Some((segment, rest)) = key.split_once('/') else {
        return number(key).is_some();
    };
    let (page, slot) = rest.split_once('.').unwrap_or((rest, "0"));
    [segment, page, slot]
        .iter()
        .all(|part| number(part).is_some())
}

/// Digits alone, and no zero before others.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = text == "0" || !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain && is_short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn read(evidence: &str, reads: &str) -> Option<Vec<(String, u64, usize)>> {
        let found = HomeFields::of(evidence, reads)?;
        let home = |home: &AtHome<'_>| (home.name.to_owned(), home.position, home.keys.len());
        Some(found.homes().iter().map(home).collect())
    }

    #[test]
    fn each_home_has_a_position_and_keys() {
        let found = read("alps=7, dale=0", "alps 3/0.4 3/7 5,dale");
        let expected = [("alps", 7, 3), ("dale", 0, 0)];
        let expected = expected.map(|(name, position, keys)| (name.to_owned(), position, keys));
        assert_eq!(found, Some(expected.to_vec()));
        assert_eq!(read("alps=7", "").map(|homes| homes[0].2), Some(0));
    }

    #[test]
    fn anything_else_says_nothing() {
        let many = |count: usize, one: &dyn Fn(usize) -> String, between: &str| {
            (0..count).map(one).collect::<Vec<_>>().join(between)
        };
        let key = |number: usize| format!("1/2.{number}");
        let home = |number: usize| format!("home{number}=1");
        let keys = |count| format!("alps {}", many(count, &key, " "));
        assert!(read("alps=7", &keys(KEYS_AT_HOME_MAX)).is_some());
        assert!(read(&many(HOMES_OF_ANSWER_MAX, &home, ","), "").is_some());
        let too_many_homes = many(HOMES_OF_ANSWER_MAX + 1, &home, ",");
        let too_many_keys = keys(KEYS_AT_HOME_MAX + 1);
        for (evidence, reads) in [
            ("", ""),
            ("alps", ""),
            ("alps=", ""),
            ("alps=-1", ""),
            ("alps=+1", ""),
            ("alps=07", ""),
            ("alps=7 ", "alps 1, "),
            ("alps=18446744073709551616", ""),
            ("alps=7,alps=8", ""),
            ("alps=7,", ""),
            ("a lps=7", ""),
            ("alps=7", "dale 1"),
            ("alps=7", "alps 1, alps 2"),
            ("alps=7", "alps  1"),
            ("alps=7", "alps 01"),
            ("alps=7", "alps 1/2.03"),
            ("alps=7", "alps 1/"),
            ("alps=7", "alps 1.2"),
            ("alps=7", "alps 1/2/3"),
            ("alps=7", "alps x"),
            ("alps=7\u{fffd}", "alps 1"),
            (&too_many_homes, ""),
            ("alps=7", &too_many_keys),
        ] {
            assert_eq!(read(evidence, reads), None, "{evidence:?} {reads:?}");
        }
    }

    #[test]
    fn without_evidence_there_is_nothing_to_read_and_huge_fields_are_not_read() {
        let mut headers = HeaderMap::new();
        let seen = |headers: &HeaderMap| HomeFields::in_answer(headers, |_| Some(()));
        headers.insert(READS, HeaderValue::from_static("alps 1"));
        assert_eq!(seen(&headers), None);
        headers.insert(EVIDENCE, HeaderValue::from_static("alps=1"));
        assert_eq!(seen(&headers), Some(Some(())));
        let half = HeaderValue::from_str(&"1".repeat(HOME_FIELD_BYTES_MAX)).expect("text");
        headers.append(READS, half);
        assert_eq!(seen(&headers), Some(None));
    }
}
