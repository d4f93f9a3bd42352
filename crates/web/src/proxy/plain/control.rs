//! `Cache-Control` of requests and answers, and `CDN-Cache-Control` (RFC 9213).

use crate::proxy::fields::{SECONDS_MAX, has_word, joined, members, seconds};
use hyper::header::{self, HeaderMap, HeaderName};

/// The field that is for caches like this one. It stands in for `Cache-Control` and `Expires`.
const TARGETED: HeaderName = HeaderName::from_static("cdn-cache-control");

/// The directives of a message. One that is there twice counts with its lower number; one that cannot be read counts as 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Directives {
    pub(super) no_store: bool,
    pub(super) no_cache: bool,
    pub(super) private: bool,
    pub(super) public: bool,
    pub(super) must_revalidate: bool,
    pub(super) proxy_revalidate: bool,
    pub(super) must_understand: bool,
    pub(super) only_if_cached: bool,
    pub(super) max_age: Option<u64>,
    pub(super) s_maxage: Option<u64>,
    pub(super) min_fresh: Option<u64>,
    pub(super) max_stale: Option<u64>,
    pub(super) stale_if_error: Option<u64>,
    pub(super) stale_while_revalidate: Option<u64>,
    /// They stood in the field for caches like this one, so `Expires` does not count.
    pub(super) are_targeted: bool,
}

impl Directives {
    /// Those of a request. `Pragma: no-cache` counts where nothing newer stands.
    pub(super) fn of_request(headers: &HeaderMap) -> Self {
        match joined(headers, &header::CACHE_CONTROL) {
            Some(text) => Directives::parse(&text),
            None => Directives {
                no_cache: joined(headers, &header::PRAGMA)
                    .is_some_and(|text| members(&text).any(|word| word == "no-cache")),
                ..Directives::default()
            },
        }
    }

    /// Those of an answer.
    pub(super) fn of_answer(headers: &HeaderMap) -> Self {
        let targeted = joined(headers, &TARGETED);
        if let Some(directives) = targeted.as_deref().and_then(Directives::targeted) {
            return directives;
        }
        let text = joined(headers, &header::CACHE_CONTROL);
        text.map_or_else(Directives::default, |text| Directives::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut directives = Directives::default();
        for member in members(text) {
            let (name, value) = match member.split_once('=') {
                Some((name, value)) => (name, Some(unquoted(value))),
                None => (member, None),
            };
            directives.take(&name.to_ascii_lowercase(), value);
            directives.doubt(member);
        }
        directives
    }

    /// A member that is no directive, and has a word in it that keeps answers out, does so. Only a string that a known form says is a string
    /// may have it.
    fn doubt(&mut self, member: &str) {
        let is_string = |value: &str| {
            let inner = value
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            inner.is_some_and(|inner| !inner.contains(['"', '\\']))
        };
        let doubtful = match member.split_once('=') {
            Some((name, value)) if is_string(value) => name,
            Some(_) | None => member,
        };
        self.no_store |= has_word(doubtful, "no-store");
        self.private |= has_word(doubtful, "private");
    }

    /// A dictionary of structured fields (RFC 8941). None: it is none, or it is empty, and the field does not count.
    fn targeted(text: &str) -> Option<Self> {
        let mut directives = Directives {
            are_targeted: true,
            ..Directives::default()
        };
        let mut is_empty = true;
        for member in members(text) {
            let (item, parameters) = member.split_once(';').unwrap_or((member, ""));
            let item = item.trim_end();
            directives.doubt(parameters);
            let (name, value) = match item.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (item, None),
            };
            if !is_key(name) || !value.is_none_or(is_item) {
                return None;
            }
            is_empty = false;
            match value {
                Some("?0") => {}
                Some("?1") | None => directives.take(name, None),
                Some(value) => directives.take(name, Some(value)),
            }
        }
        (!is_empty).then_some(directives)
    }

    fn take(&mut self, name: &str, value: Option<&str>) {
        match name {
            "no-store" => self.no_store = true,
            // With a list of fields they are rarer than mistakes about them: they count for the whole answer.
            "no-cache" => self.no_cache = true,
            "private" => self.private = true,
            "public" => self.public = true,
            "must-revalidate" => self.must_revalidate = true,
            "proxy-revalidate" => self.proxy_revalidate = true,
            "must-understand" => self.must_understand = true,
            "only-if-cached" => self.only_if_cached = true,
            "max-age" => least(&mut self.max_age, value),
            "s-maxage" => least(&mut self.s_maxage, value),
            "min-fresh" => least(&mut self.min_fresh, value),
            // Without a number the client takes an answer of any age.
            "max-stale" if value.is_none() => self.max_stale = Some(SECONDS_MAX),
            "max-stale" => least(&mut self.max_stale, value),
            "stale-if-error" => least(&mut self.stale_if_error, value),
            "stale-while-revalidate" => least(&mut self.stale_while_revalidate, value),
            _ => {}
        }
    }

    /// Whether the origin lets nobody use the answer once it is stale.
    pub(super) fn forbids_stale(&self) -> bool {
        self.must_revalidate || self.proxy_revalidate || self.no_cache || self.s_maxage.is_some()
    }

    /// Whether the origin says that the answer is everybody's, whoever has asked for it (RFC 9111, section 3.5).
    pub(super) fn are_for_all(&self) -> bool {
        self.public || self.must_revalidate || self.s_maxage.is_some()
    }
}

fn least(known: &mut Option<u64>, value: Option<&str>) {
    let found = value.and_then(seconds).unwrap_or(0);
    *known = Some(known.map_or(found, |known| known.min(found)));
}

fn unquoted(value: &str) -> &str {
    let inner = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    inner.unwrap_or(value)
}

fn is_key(name: &str) -> bool {
    let is_inner =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte);
    name.starts_with(|first: char| first.is_ascii_lowercase() || first == '*')
        && name.bytes().all(is_inner)
}

/// Whether it is an integer, a boolean, a token or a string.
fn is_item(value: &str) -> bool {
    let is_integer = |text: &str| {
        !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
    match value.as_bytes().first() {
        Some(b'?') => value == "?0" || value == "?1",
        Some(b'"') => value.len() >= 2 && value.ends_with('"'),
        Some(b'-') => is_integer(&value[1..]),
        Some(first) if first.is_ascii_digit() => is_integer(value),
        Some(first) if first.is_ascii_alphabetic() || *first == b'*' => value.bytes().all(is_token),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn of(fields: &[(&'static str, &'static str)]) -> Directives {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        Directives::of_answer(&headers)
    }

    fn control(text: &'static str) -> Directives {
        of(&[("cache-control", text)])
    }

    #[test]
    fn directives_are_read_in_any_case_and_quotes() {
        let found = control(r#"No-Store, MAX-AGE="60", x="max-age=9", s-maxage=5"#);
        assert!(found.no_store && !found.no_cache);
        assert_eq!((found.max_age, found.s_maxage), (Some(60), Some(5)));
        assert!(control(r#"no-cache="set-cookie""#).no_cache);
    }

    #[test]
    fn in_doubt_an_answer_is_kept_out() {
        for text in [
            "no-store; max-age=60",
            "max-age=60;no-store",
            "no-store private",
            "\"no-store\"",
            "no-store=1",
            "no-store =\"1\"",
            "x=\"a\\\"no-store\"",
            "max-age=60 no-store",
        ] {
            assert!(control(text).no_store, "{text}");
        }
        assert!(control("max-age=60; Private").private);
        let found = control("x=\"a, no-store\", y=\"private\", max-age=60");
        assert!(!found.no_store && !found.private);
        let targeted = of(&[("cdn-cache-control", "max-age=60;no-store")]);
        assert!(targeted.no_store && targeted.are_targeted);
        let no_text = HeaderValue::from_bytes(b"max-age=60\xa0,no-store").expect("a value");
        let headers: HeaderMap = [(header::CACHE_CONTROL, no_text)].into_iter().collect();
        assert!(Directives::of_answer(&headers).no_store);
    }

    #[test]
    fn in_doubt_a_number_is_the_lower_one() {
        assert_eq!(control("max-age=60, max-age=5").max_age, Some(5));
        let lines = [
            ("cache-control", "max-age=5"),
            ("cache-control", "max-age=60"),
        ];
        assert_eq!(of(&lines).max_age, Some(5));
        for text in ["max-age", "max-age=-1", "max-age=1.5", "max-age='60'"] {
            assert_eq!(control(text).max_age, Some(0), "{text}");
        }
    }

    #[test]
    fn the_field_for_caches_like_this_one_goes_first() {
        let both = |text| of(&[("cache-control", "no-store"), ("cdn-cache-control", text)]);
        let found = both("max-age=60, must-revalidate;x=1");
        assert!(!found.no_store && found.must_revalidate && found.are_targeted);
        assert_eq!(found.max_age, Some(60));
        for broken in ["", "max-age=", "Max-Age=60", "max-age=60 x", "a=(1 2"] {
            assert!(both(broken).no_store, "{broken:?}");
        }
        assert!(!both("private=?0, max-age=1").private);
    }

    #[test]
    fn a_request_says_what_it_takes() {
        let mut headers = HeaderMap::new();
        headers.insert("pragma", HeaderValue::from_static("no-cache"));
        assert!(Directives::of_request(&headers).no_cache);
        headers.insert(
            "cache-control",
            HeaderValue::from_static("max-stale, min-fresh=3"),
        );
        let found = Directives::of_request(&headers);
        assert!(!found.no_cache);
        assert_eq!(
            (found.max_stale, found.min_fresh),
            (Some(SECONDS_MAX), Some(3))
        );
    }
}
