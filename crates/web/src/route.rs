//! Paths with holes: `/items/{id}` takes one segment, `/wiki/{title*}` takes all that follows.

use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Segment {
    Text(String),
    One(String),
    Rest(String),
}

/// A pattern of paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern(Vec<Segment>);

/// A pattern that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatternError(String);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no path of a route: one begins with /, a hole is a whole segment, and {{name*}} is the last",
            self.0
        )
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// It does not begin with `/`, or a hole is not where one may be.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let error = || PatternError(text.to_owned());
        let path = text.strip_prefix('/').ok_or_else(error)?;
        let segments = path.split('/').map(Segment::parse);
        let segments: Vec<Segment> = segments.collect::<Option<_>>().ok_or_else(error)?;
        let (_, before) = segments.split_last().ok_or_else(error)?;
        let is_rest = |segment: &Segment| matches!(segment, Segment::Rest(_));
        match before.iter().any(is_rest) {
            true => Err(error()),
            false => Ok(Pattern(segments)),
        }
    }

    /// Whether it has a hole of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|segment| match segment {
            Segment::Text(_) => false,
            Segment::One(hole) | Segment::Rest(hole) => hole == name,
        })
    }

    /// What stands in the holes of a path, decoded. None: the path is none of these.
    pub fn matches(&self, path: &str) -> Option<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        let mut rest = Some(path.strip_prefix('/')?);
        for segment in &self.0 {
            let left = rest?;
            let (first, behind) = match left.split_once('/') {
                Some((first, behind)) => (first, Some(behind)),
                None => (left, None),
            };
            rest = behind;
            match segment {
                Segment::Text(text) if text == first => {}
                Segment::Text(_) => return None,
                Segment::One(name) => {
                    found.insert(name.clone(), decoded(first)?);
                }
                Segment::Rest(name) => {
                    found.insert(name.clone(), decoded(left)?);
                    rest = None;
                }
            }
        }
        rest.is_none().then_some(found)
    }
}

impl Segment {
    fn parse(text: &str) -> Option<Self> {
        let inner = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        match inner {
            Some(name) => {
                let (name, is_rest) = match name.strip_suffix('*') {
                    Some(name) => (name, true),
                    None => (name, false),
                };
                let is_name = !name.is_empty() && !name.contains(['{', '}', '*']);
                let name = is_name.then(|| name.to_owned())?;
                Some(match is_rest {
                    true => Segment::Rest(name),
                    false => Segment::One(name),
                })
            }
            None => (!text.contains(['{', '}'])).then(|| Segment::Text(text.to_owned())),
        }
    }
}

/// Whether an origin may take a path for another one than it looks like: it joins segments, drops some of them, or decodes what nobody has to
/// encode (RFC 3986, section 6.2.2).
pub(crate) fn has_another_reading(path: &str) -> bool {
    let is_dropped = |segment: &str| matches!(segment, "" | "." | "..");
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/');
    let last = segments.next_back().unwrap_or_default();
    let drops = segments.any(is_dropped) || matches!(last, "." | "..");
    let is_divided = path.contains([';', '\\']);
    let mut codes = path.split('%').skip(1).map(|code| {
        let digits = code.get(..2)?;
        u8::from_str_radix(digits, 16).ok()
    });
    drops || is_divided || codes.any(|code| code.is_none_or(|byte| !has_to_be_encoded(byte)))
}

/// Whether a byte in a path is encoded, and means itself. A divider is encoded so that it means something else.
fn has_to_be_encoded(byte: u8) -> bool {
    let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_divider = b"/\\;".contains(&byte);
    !is_plain && !is_divider && !byte.is_ascii_control()
}

/// Percent-decoded text. None: it is empty, or it is no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = match (first, behind) {
            (b'%', [high, low, behind @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push((digit(high)? * 16 + digit(low)?) as u8);
                behind
            }
            (b'%', _) => return None,
            _ => {
                bytes.push(*first);
                behind
            }
        };
    }
    let text = String::from_utf8(bytes).ok()?;
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, path: &str) -> Option<Vec<(String, String)>> {
        let pattern = Pattern::parse(pattern).expect("a pattern");
        Some(pattern.matches(path)?.into_iter().collect())
    }

    #[test]
    fn holes_take_a_segment_or_the_rest() {
        let one = |name: &str, value: &str| Some(vec![(name.to_owned(), value.to_owned())]);
        assert_eq!(found("/items/{id}", "/items/7"), one("id", "7"));
        assert_eq!(found("/items/{id}", "/items/a%20b"), one("id", "a b"));
        assert_eq!(found("/wiki/{title*}", "/wiki/A/B"), one("title", "A/B"));
        assert_eq!(found("/", "/"), Some(vec![]));
    }

    #[test]
    fn other_paths_do_not_match() {
        for path in [
            "/items",
            "/items/",
            "/items/7/",
            "/items/7/edit",
            "/item/7",
            "items/7",
        ] {
            assert_eq!(found("/items/{id}", path), None, "{path}");
        }
        for path in ["/items/%zz", "/items/%4", "/items/%ff"] {
            assert_eq!(found("/items/{id}", path), None, "{path}");
        }
    }

    #[test]
    fn a_path_that_an_origin_may_read_otherwise_is_found() {
        for path in [
            "/items/../admin/1",
            "/items/.",
            "/a//b",
            "//a",
            "/items/7;v=1",
            "/items/7%3Bv=1",
            "/items/..%2fa",
            "/items/a%5Cb",
            "/items/a\\b",
            "/item%73/7",
            "/items/%2e%2e",
            "/items/7%00",
            "/items/%zz",
            "/items/%",
        ] {
            assert!(has_another_reading(path), "{path}");
        }
        for path in [
            "/",
            "/items/7",
            "/items/",
            "/wiki/A%20B:%C3%BC...",
            "/a%3Fb",
        ] {
            assert!(!has_another_reading(path), "{path}");
        }
    }

    #[test]
    fn a_pattern_says_where_its_holes_are() {
        for text in ["items", "/a{b}", "/{}", "/{a*}/b", "/{a{b}}", "/{*}"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }
}
