//! How old an answer is, and how long it may be used (RFC 9111, section 4.2).

use super::control::Directives;
use crate::proxy::fields::{Dated, SECONDS_MAX, joined, seconds};
use hyper::StatusCode;
use hyper::header::{self, HeaderMap};
use std::time::{SystemTime, UNIX_EPOCH};

/// Without a word of the origin an answer is fresh for this share of the time since it was changed ...
const HEURISTIC_SHARE: u64 = 10;

/// ... and for at most so many seconds: a day.
const HEURISTIC_SECONDS_MAX: u64 = 86_400;

/// Statuses that may be fresh without a word of the origin.
const HEURISTIC: [StatusCode; 11] = [
    StatusCode::OK,
    StatusCode::NON_AUTHORITATIVE_INFORMATION,
    StatusCode::NO_CONTENT,
    StatusCode::MULTIPLE_CHOICES,
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::PERMANENT_REDIRECT,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::GONE,
    StatusCode::URI_TOO_LONG,
    StatusCode::NOT_IMPLEMENTED,
];

/// A moment on two clocks: dates are compared on the first, durations on the second, which nobody sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Now {
    /// Seconds since 1970.
    pub(super) date: u64,
    /// Milliseconds since the machine started.
    pub(super) ms: u64,
}

impl Now {
    /// This moment.
    pub(super) fn read() -> Self {
        let date = SystemTime::now().duration_since(UNIX_EPOCH);
        Now {
            date: date.map_or(0, |since| since.as_secs()),
            ms: crate::clock::now_ms(),
        }
    }
}

/// How long an answer may be used, counted from the moment at which the origin made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lifetime {
    /// So many seconds.
    pub(super) seconds: u64,
    /// The origin has said it. Otherwise the cache guesses.
    pub(super) is_explicit: bool,
}

impl Lifetime {
    /// The lifetime of an answer that has come now.
    pub(super) fn of(
        status: StatusCode,
        headers: &HeaderMap,
        directives: &Directives,
        now: Now,
    ) -> Self {
        let explicit = |seconds| Lifetime {
            seconds,
            is_explicit: true,
        };
        if let Some(seconds) = directives.s_maxage.or(directives.max_age) {
            return explicit(seconds);
        }
        let date = Dated::of(headers, &header::DATE)
            .known()
            .unwrap_or(now.date);
        match Dated::of(headers, &header::EXPIRES) {
            Dated::At(end) if !directives.are_targeted => {
                return explicit(end.saturating_sub(date).min(SECONDS_MAX));
            }
            Dated::Invalid if !directives.are_targeted => return explicit(0),
            _ => {}
        }
        let may_guess = HEURISTIC.contains(&status) || directives.public;
        let changed = Dated::of(headers, &header::LAST_MODIFIED).known();
        let guessed = changed.map(|changed| date.saturating_sub(changed) / HEURISTIC_SHARE);
        let guessed = guessed.filter(|_| may_guess).unwrap_or(0);
        Lifetime {
            seconds: guessed.min(HEURISTIC_SECONDS_MAX),
            is_explicit: false,
        }
    }
}

/// The age of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Age {
    /// Its age when it came.
    initial_ms: u64,
    came_ms: u64,
}

impl Age {
    /// The age of an answer for which the proxy has asked then, and that has come now.
    pub(super) fn of(headers: &HeaderMap, asked: Now, came: Now) -> Self {
        // Two values, or none that can be read: some cache on the way is broken. The answer counts as old.
        let said = match joined(headers, &header::AGE) {
            Some(text) => seconds(&text).unwrap_or(SECONDS_MAX),
            None => 0,
        };
        let date = Dated::of(headers, &header::DATE).known();
        let apparent = date.map_or(0, |date| came.date.saturating_sub(date));
        let said_ms = said * 1_000 + came.ms.saturating_sub(asked.ms);
        Age {
            initial_ms: said_ms.max(apparent * 1_000),
            came_ms: came.ms,
        }
    }

    /// How old it is now.
    pub(super) fn ms(self, now: Now) -> u64 {
        self.initial_ms + now.ms.saturating_sub(self.came_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    /// Sun, 06 Nov 1994 08:49:37 GMT
    const DATE: u64 = 784_111_777;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let fields = fields.iter().map(|(name, value)| {
            let name = name.parse().expect("a name");
            (name, HeaderValue::from_static(value))
        });
        fields.collect()
    }

    fn now(after: u64) -> Now {
        Now {
            date: DATE + after,
            ms: (1_000 + after) * 1_000,
        }
    }

    fn lifetime(status: u16, fields: &[(&'static str, &'static str)]) -> (u64, bool) {
        let headers = headers(fields);
        let status = StatusCode::from_u16(status).expect("a status");
        let directives = Directives::of_answer(&headers);
        let found = Lifetime::of(status, &headers, &directives, now(0));
        (found.seconds, found.is_explicit)
    }

    #[test]
    fn the_word_for_shared_caches_goes_before_others() {
        let expires = ("expires", "Sun, 06 Nov 1994 08:50:37 GMT");
        assert_eq!(lifetime(200, &[expires]), (60, true));
        assert_eq!(
            lifetime(200, &[expires, ("cache-control", "max-age=5")]),
            (5, true)
        );
        let both = ("cache-control", "max-age=5, s-maxage=7");
        assert_eq!(lifetime(200, &[expires, both]), (7, true));
        assert_eq!(lifetime(200, &[("expires", "0")]), (0, true));
        let date = ("date", "Sun, 06 Nov 1994 08:50:00 GMT");
        assert_eq!(lifetime(200, &[expires, date]), (37, true));
        assert_eq!(
            lifetime(200, &[expires, ("cdn-cache-control", "public")]),
            (0, false)
        );
    }

    #[test]
    fn a_guess_is_a_tenth_and_at_most_a_day() {
        let changed = ("last-modified", "Sun, 06 Nov 1994 08:39:37 GMT");
        assert_eq!(lifetime(200, &[changed]), (60, false));
        assert_eq!(lifetime(201, &[changed]), (0, false));
        assert_eq!(
            lifetime(599, &[changed, ("cache-control", "public")]),
            (60, false)
        );
        let long_ago = ("last-modified", "Sun, 06 Nov 1904 08:39:37 GMT");
        assert_eq!(lifetime(200, &[long_ago]), (0, false));
        let long_ago = ("last-modified", "Tue, 06 Nov 1984 08:39:37 GMT");
        assert_eq!(lifetime(200, &[long_ago]), (86_400, false));
        assert_eq!(lifetime(200, &[]), (0, false));
    }

    #[test]
    fn an_age_counts_all_the_way() {
        let age = |fields: &[(&'static str, &'static str)]| {
            let age = Age::of(&headers(fields), now(0), now(2));
            age.ms(now(5)) / 1_000
        };
        // The answer may have been made when the request left.
        assert_eq!(age(&[]), 5);
        assert_eq!(age(&[("age", "10")]), 15);
        assert_eq!(age(&[("date", "Sun, 06 Nov 1994 08:48:37 GMT")]), 65);
        for broken in ["x", "-1", "1.5", "0, 0", "7;a=b"] {
            assert!(age(&[("age", broken)]) >= SECONDS_MAX, "{broken}");
        }
    }
}
