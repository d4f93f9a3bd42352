//! What the cache did, in words for the client: `Cache-Status` (RFC 9211).

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// What the cache did with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Done {
    /// It answered. The answer is fresh for so many milliseconds, or stale for as many below 0.
    Hit(i64),
    /// The origin was asked.
    Forwarded(Why, Then),
    /// The client wanted no question, and nothing was stored.
    Refused,
}

/// Why the origin was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// The request is none for a cache.
    Bypass,
    /// Its method is none that a cache answers.
    Method,
    /// Nothing is stored for the address.
    UriMiss,
    /// Nothing is stored for the address and such fields.
    VaryMiss,
    /// What is stored is stale.
    Stale,
    /// The client wants it.
    Request,
}

/// What became of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Then {
    /// It is the client's alone.
    Passed,
    /// It is being stored.
    Stored,
    /// It is that of another request.
    Collapsed,
    /// The origin answered with this status, and what is stored went to the client.
    Kept(Option<StatusCode>),
}

impl Done {
    pub(super) fn tell(self, headers: &mut HeaderMap) {
        if let Ok(words) = HeaderValue::from_str(&self.words()) {
            headers.append(CACHE_STATUS, words);
        }
    }

    fn words(self) -> String {
        match self {
            Done::Hit(left_ms) => format!("thorp; hit; ttl={}", left_ms.div_euclid(1_000)),
            Done::Refused => String::from("thorp; detail=only-if-cached"),
            Done::Forwarded(why, then) => format!("thorp; fwd={}{}", why.word(), then.words()),
        }
    }
}

impl Why {
    fn word(self) -> &'static str {
        match self {
            Why::Bypass => "bypass",
            Why::Method => "method",
            Why::UriMiss => "uri-miss",
            Why::VaryMiss => "vary-miss",
            Why::Stale => "stale",
            Why::Request => "request",
        }
    }
}

impl Then {
    fn words(self) -> String {
        match self {
            Then::Passed => String::new(),
            Then::Stored => String::from("; stored"),
            Then::Collapsed => String::from("; collapsed"),
            Then::Kept(None) => String::from("; detail=stale-if-error"),
            Then::Kept(Some(StatusCode::NOT_MODIFIED)) => String::from("; fwd-status=304; stored"),
            Then::Kept(Some(status)) => {
                format!("; fwd-status={}; detail=stale-if-error", status.as_u16())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_standard() {
        let why = Why::Stale;
        for (done, words) in [
            (Done::Hit(-1), "thorp; hit; ttl=-1"),
            (Done::Hit(59_999), "thorp; hit; ttl=59"),
            (
                Done::Forwarded(Why::UriMiss, Then::Stored),
                "thorp; fwd=uri-miss; stored",
            ),
            (
                Done::Forwarded(Why::Method, Then::Passed),
                "thorp; fwd=method",
            ),
            (
                Done::Forwarded(why, Then::Kept(Some(StatusCode::NOT_MODIFIED))),
                "thorp; fwd=stale; fwd-status=304; stored",
            ),
            (
                Done::Forwarded(why, Then::Kept(Some(StatusCode::BAD_GATEWAY))),
                "thorp; fwd=stale; fwd-status=502; detail=stale-if-error",
            ),
        ] {
            assert_eq!(done.words(), words);
        }
    }
}
