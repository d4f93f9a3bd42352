//! An answer that may be given to several clients, and what has to be so for that.

use super::entries::Weight;
use super::fields::{has_word, joined};
use super::origin::Outgoing;
use super::owned;
use super::shape::shape;
use super::tally::Refused;
use crate::home_fields;
use crate::key_field::KeyField;
use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use thorp_versions::Place;

/// Header fields of one connection.
const OF_CONNECTION: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// What would let a copy behind the proxy be used without asking (rule W10).
const OF_COPIES: [HeaderName; 4] = [
    header::EXPIRES,
    header::AGE,
    header::LAST_MODIFIED,
    header::CACHE_CONTROL,
];
const OF_COPIES_BY_NAME: [&str; 2] = ["cdn-cache-control", "surrogate-control"];

/// Statuses whose answers are stored.
const STORED: [StatusCode; 6] = [
    StatusCode::OK,
    StatusCode::NON_AUTHORITATIVE_INFORMATION,
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::PERMANENT_REDIRECT,
    StatusCode::NOT_FOUND,
    StatusCode::GONE,
];

/// A whole answer of the origin, as clients get it.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Keys that the origin's fields have named, for people who ask on what it rests. Clients do not get them.
    pub(crate) named: Vec<(Place, String)>,
}

impl Answer {
    /// An answer of a coherent route. No other answer has this ETag.
    pub(crate) fn coherent(status: StatusCode, headers: HeaderMap, body: Bytes, tag: &str) -> Self {
        let mut headers = owned::fields(&headers);
        make_coherent(&mut headers, tag);
        headers.remove(header::CONTENT_LENGTH);
        Answer {
            status,
            headers,
            body,
            named: Vec::new(),
        }
    }

    /// The same with the keys that the origin's fields have named.
    pub(crate) fn naming(mut self, named: Vec<(Place, String)>) -> Self {
        self.named = named;
        self
    }

    /// What a client gets of it.
    pub(crate) fn shaped(&self, wishes: &HeaderMap, is_head: bool) -> Response<Outgoing> {
        let whole = (self.status, self.headers.clone(), self.body.clone());
        shape(whole, wishes, is_head)
    }
}

impl Weight for Answer {
    fn bytes(&self) -> u64 {
        let fields = self.headers.iter();
        let fields: usize = fields
            .map(|(name, value)| name.as_str().len() + value.len() + 64)
            .sum();
        let named: usize = self.named.iter().map(|(_, key)| key.len() + 40).sum();
        (fields + named + self.body.len() + 256) as u64
    }

    fn key_at(&self, place: Place) -> Option<&str> {
        let mut named = self.named.iter();
        let found = named.find(|(named, _)| *named == place);
        found.map(|(_, key)| key.as_str())
    }
}

/// What leaves of a coherent route becomes no stale copy (rule W10).
pub(crate) fn make_coherent(headers: &mut HeaderMap, tag: &str) {
    drop_fields_of_connection(headers);
    // What the origin lets nobody else keep, nobody else may keep.
    let is_said = |directive| has_directive(headers, directive);
    let control = match (is_said("no-store"), is_said("private")) {
        (true, _) => "no-store",
        (false, true) => "private, no-cache",
        (false, false) => "no-cache",
    };
    OF_COPIES.iter().for_each(|name| {
        headers.remove(name);
    });
    OF_COPIES_BY_NAME.iter().for_each(|name| {
        headers.remove(*name);
    });
    // Copies behind the proxy ask each time. Nobody there purges them by keys, which say how the application is made.
    KeyField::ALL.iter().for_each(|field| {
        headers.remove(field.name());
    });
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(control));
    let is_strong = |tag: &HeaderValue| tag.as_bytes().starts_with(b"\"");
    if !headers.get(header::ETAG).is_some_and(is_strong)
        && let Ok(tag) = HeaderValue::from_str(tag)
    {
        headers.insert(header::ETAG, tag);
    }
}

/// Drops what is only for the next node.
pub(crate) fn drop_fields_of_connection(headers: &mut HeaderMap) {
    let named = headers.get_all(header::CONNECTION).iter();
    let named = named.filter_map(|value| value.to_str().ok());
    let named: Vec<HeaderName> = named
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // Without it the origin would take its own address for the host that the client means.
        .filter(|name| name != header::HOST)
        .collect();
    if headers.contains_key(header::TRANSFER_ENCODING) {
        // The coding says where the body ends (RFC 9112, section 6.3).
        headers.remove(header::CONTENT_LENGTH);
    }
    for name in named.iter().chain(&OF_CONNECTION) {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
    headers.remove("proxy-authentication-info");
    // They are for this proxy, and only its origin's count.
    headers.remove(home_fields::EVIDENCE);
    headers.remove(home_fields::READS);
}

/// Why an answer to a request without cookies or credentials may not be given to others. Its body must say where it ends.
pub(crate) fn refusal<B>(answer: &Response<B>, keyed: &[HeaderName]) -> Option<Refused> {
    let headers = answer.headers();
    let reasons = [
        (!STORED.contains(&answer.status()), Refused::Status),
        (!says_its_end(headers), Refused::NoEnd),
        (headers.contains_key(header::SET_COOKIE), Refused::SetCookie),
        (has_directive(headers, "no-store"), Refused::NoStore),
        (varies(headers, keyed), Refused::Varies),
    ];
    let mut met = reasons.into_iter().filter(|(is_met, _)| *is_met);
    met.next().map(|(_, reason)| reason)
}

/// Whether a cut in the body could be seen. Any other last coding ends with the connection.
pub(crate) fn says_its_end(headers: &HeaderMap) -> bool {
    let last = words(headers, &header::TRANSFER_ENCODING).last();
    match last {
        Some(coding) => coding.eq_ignore_ascii_case("chunked"),
        None => headers.contains_key(header::CONTENT_LENGTH),
    }
}

/// Whether the origin says so to caches, or to those of its operator alone (RFC 9213), in whatever form. `private="set-cookie"` counts as
/// `private`.
fn has_directive(headers: &HeaderMap, directive: &str) -> bool {
    let targeted = HeaderName::from_static("cdn-cache-control");
    let fields = [header::CACHE_CONTROL, targeted];
    fields.iter().any(|field| {
        let text = joined(headers, field);
        text.is_some_and(|text| has_word(&text, directive))
    })
}

/// Whether the answer depends on a field that the proxy forwards as the client sent it, and that is not in its name.
fn varies(headers: &HeaderMap, keyed: &[HeaderName]) -> bool {
    let is_fixed = |word: &str| {
        ["accept-encoding", "cookie"]
            .iter()
            .any(|fixed| word.eq_ignore_ascii_case(fixed))
    };
    let is_keyed = |word: &str| {
        keyed
            .iter()
            .any(|name| word.eq_ignore_ascii_case(name.as_str()))
    };
    words(headers, &header::VARY).any(|word| !is_fixed(word) && !is_keyed(word))
}

/// The words of a field that is a list. A field that is no text has one word that nobody knows.
fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter();
    let texts = values.map(|value| value.to_str().unwrap_or("?"));
    texts
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_be_shared(answer: &Response<()>, keyed: &[HeaderName]) -> bool {
        refusal(answer, keyed).is_none()
    }

    fn answer(fields: &[(&'static str, &'static str)]) -> Response<()> {
        let mut answer = Response::new(());
        answer
            .headers_mut()
            .insert("content-length", HeaderValue::from_static("1"));
        for (name, value) in fields {
            answer
                .headers_mut()
                .append(*name, HeaderValue::from_static(value));
        }
        answer
    }

    #[test]
    fn only_what_is_everybodys_is_shared() {
        let shared = [
            ("vary", "Accept-Encoding, Cookie"),
            ("cache-control", "private, max-age=0"),
        ];
        assert!(may_be_shared(&answer(&shared), &[]));
        for field in [
            ("set-cookie", "a=b"),
            ("cache-control", "private, No-Store"),
            ("cache-control", "no-store; private"),
            ("cache-control", "private no-store"),
            ("cache-control", "\"no-store\""),
            ("cache-control", "no-store=1"),
            ("cdn-cache-control", "no-store"),
            ("vary", "*"),
            ("vary", "accept-encoding, accept-language"),
        ] {
            assert!(!may_be_shared(&answer(&[field]), &[]), "{field:?}");
        }
        let no_text = HeaderValue::from_bytes(b"max-age=60\xa0,no-store").expect("a value");
        let mut doubtful = answer(&[]);
        doubtful.headers_mut().insert("cache-control", no_text);
        assert!(!may_be_shared(&doubtful, &[]));
        let mut endless = answer(&[]);
        endless.headers_mut().remove("content-length");
        assert!(
            !may_be_shared(&endless, &[]),
            "its end cannot be told from a cut"
        );
        let coding = HeaderValue::from_static("gzip");
        endless.headers_mut().insert("transfer-encoding", coding);
        assert!(!may_be_shared(&endless, &[]), "so does this coding");
        let mut failed = answer(&[]);
        *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        assert!(!may_be_shared(&failed, &[]));
        let varies = answer(&[("vary", "Accept-Language, Cookie")]);
        assert!(may_be_shared(&varies, &[header::ACCEPT_LANGUAGE]));
        assert!(!may_be_shared(&varies, &[header::ACCEPT]));
    }

    #[test]
    fn a_field_of_the_connection_takes_no_host_and_leaves_no_wrong_length() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "host, x-own"),
            ("host", "shop"),
            ("x-own", "1"),
            ("transfer-encoding", "chunked"),
            ("content-length", "0"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        drop_fields_of_connection(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["host"]);
    }

    #[test]
    fn no_copy_behind_the_proxy_is_used_without_asking() {
        let mut headers = answer(&[
            ("cache-control", "public, max-age=60"),
            ("expires", "Thu, 01 Jan 2099 00:00:00 GMT"),
            ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
            ("cdn-cache-control", "max-age=60"),
            ("etag", "W/\"weak\""),
            ("connection", "x-own"),
            ("x-own", "1"),
            ("surrogate-key", "a"),
            ("xkey", "a"),
            ("cache-tag", "a"),
            ("cache-groups", "\"a\""),
        ]);
        for (origin, left) in [
            ("private, max-age=9", "private, no-cache"),
            ("private=\"set-cookie\"", "private, no-cache"),
            ("No-Store", "no-store"),
        ] {
            let mut answer = answer(&[("cache-control", origin)]);
            make_coherent(answer.headers_mut(), "\"a\"");
            let control = answer.headers().get("cache-control");
            assert_eq!(control.map(HeaderValue::as_bytes), Some(left.as_bytes()));
        }
        let headers = headers.headers_mut();
        make_coherent(headers, "\"thorp-2a\"");
        assert_eq!(
            headers.get("cache-control").map(HeaderValue::as_bytes),
            Some(&b"no-cache"[..])
        );
        assert_eq!(
            headers.get("etag").map(HeaderValue::as_bytes),
            Some(&b"\"thorp-2a\""[..])
        );
        for name in [
            "expires",
            "last-modified",
            "cdn-cache-control",
            "x-own",
            "connection",
            "surrogate-key",
            "xkey",
            "cache-tag",
            "cache-groups",
        ] {
            assert!(!headers.contains_key(name), "{name}");
        }
        let answer = Answer::coherent(StatusCode::OK, headers.clone(), Bytes::new(), "\"thorp-1\"");
        let known = |tags: &'static str| {
            let condition = (header::IF_NONE_MATCH, HeaderValue::from_static(tags));
            let shaped = answer.shaped(&[condition].into_iter().collect(), false);
            shaped.status() == StatusCode::NOT_MODIFIED
        };
        assert!(known("\"a\", \"thorp-2a\"") && known("W/\"thorp-2a\"") && known("*"));
        assert!(!known("\"thorp-2b\""));
        assert_eq!(
            answer.shaped(&HeaderMap::new(), false).status(),
            StatusCode::OK
        );
    }
}
