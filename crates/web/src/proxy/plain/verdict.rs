//! What to do with a request, by what is stored for it (RFC 9111, section 4).

use super::control::Directives;
use super::entry::Entry;
use super::freshness::Now;
use super::status::Why;
use crate::proxy::fields::SECONDS_MAX;
use hyper::header::HeaderMap;

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Answer with the entry.
    Serve,
    /// Answer with the entry, and ask the origin beside that.
    ServeAndAsk,
    /// Ask the origin first.
    Ask(Why),
}

impl Verdict {
    /// Looks at an entry that the request chooses.
    pub(super) fn of(entry: &Entry, request: &HeaderMap, now: Now) -> Self {
        let wishes = Directives::of_request(request);
        let own = &entry.head.directives;
        let left_ms = entry.head.left_ms(now);
        if wishes.no_cache || wishes.no_store || is_too_old(entry, &wishes, now) {
            return Verdict::Ask(Why::Request);
        }
        if own.no_cache {
            return Verdict::Ask(Why::Stale);
        }
        if left_ms > 0 {
            let wanted_ms = millis(wishes.min_fresh.unwrap_or(0));
            return match left_ms >= wanted_ms {
                true => Verdict::Serve,
                false => Verdict::Ask(Why::Request),
            };
        }
        if own.forbids_stale() {
            return Verdict::Ask(Why::Stale);
        }
        let stale_ms = -left_ms;
        let is_within = |limit: Option<u64>| limit.is_some_and(|limit| stale_ms <= millis(limit));
        match () {
            () if is_within(own.stale_while_revalidate) => Verdict::ServeAndAsk,
            () if is_within(wishes.max_stale) && wishes.min_fresh.is_none() => Verdict::Serve,
            () => Verdict::Ask(Why::Stale),
        }
    }
}

/// Whether an entry may stand in for an origin that fails (RFC 5861). The origin has to have said so.
pub(super) fn may_stand_in(entry: &Entry, now: Now) -> bool {
    let own = &entry.head.directives;
    let stale_ms = -entry.head.left_ms(now);
    let limit = own.stale_if_error;
    !own.forbids_stale() && limit.is_some_and(|limit| stale_ms <= millis(limit))
}

fn is_too_old(entry: &Entry, wishes: &Directives, now: Now) -> bool {
    let limit = wishes.max_age.unwrap_or(SECONDS_MAX);
    wishes.max_age.is_some()
        && signed(entry.head.age_ms(now)) > millis(limit)
        && wishes.max_stale.is_none()
        || wishes.max_age == Some(0)
}

fn millis(seconds: u64) -> i64 {
    signed(seconds.saturating_mul(1_000))
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Head, Times};
    use super::*;
    use bytes::Bytes;
    use hyper::StatusCode;
    use hyper::header::HeaderValue;

    fn now(second: u64) -> Now {
        Now {
            date: 1_000_000 + second,
            ms: second * 1_000,
        }
    }

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn entry(control: &'static str) -> Entry {
        let answer = headers(&[("cache-control", control), ("etag", "\"a\"")]);
        let times = Times {
            asked: now(0),
            came: now(0),
        };
        let head = Head::of(&headers(&[]), StatusCode::OK, &answer, times);
        Entry::new(head.expect("it is stored"), Bytes::new())
    }

    fn verdict(control: &'static str, wish: &'static str, second: u64) -> Verdict {
        let request = headers(&[("cache-control", wish)]);
        Verdict::of(&entry(control), &request, now(second))
    }

    const STALE: Verdict = Verdict::Ask(Why::Stale);
    const WISH: Verdict = Verdict::Ask(Why::Request);

    #[test]
    fn a_fresh_answer_is_served_and_a_stale_one_is_not() {
        assert_eq!(verdict("max-age=10", "", 9), Verdict::Serve);
        assert_eq!(verdict("max-age=10", "", 10), STALE);
        assert_eq!(verdict("max-age=10, no-cache", "", 0), STALE);
    }

    #[test]
    fn a_client_may_want_better_and_take_worse() {
        assert_eq!(verdict("max-age=10", "no-cache", 1), WISH);
        assert_eq!(verdict("max-age=10", "max-age=0", 0), WISH);
        assert_eq!(verdict("max-age=10", "max-age=3", 4), WISH);
        assert_eq!(verdict("max-age=10", "max-age=3", 2), Verdict::Serve);
        assert_eq!(verdict("max-age=10", "min-fresh=5", 4), Verdict::Serve);
        assert_eq!(verdict("max-age=10", "min-fresh=5", 6), WISH);
        assert_eq!(verdict("max-age=10", "max-stale=5", 15), Verdict::Serve);
        assert_eq!(verdict("max-age=10", "max-stale", 99), Verdict::Serve);
        assert_eq!(verdict("max-age=10", "max-stale=5", 16), STALE);
        for strict in [
            "must-revalidate",
            "proxy-revalidate",
            "s-maxage=10",
            "no-cache",
        ] {
            let control: &'static str = format!("max-age=10, {strict}").leak();
            assert_eq!(verdict(control, "max-stale=5", 11), STALE, "{strict}");
        }
    }

    #[test]
    fn the_origin_may_allow_a_stale_answer() {
        let while_asking = "max-age=10, stale-while-revalidate=5";
        assert_eq!(verdict(while_asking, "", 15), Verdict::ServeAndAsk);
        assert_eq!(verdict(while_asking, "", 16), STALE);
        let on_error = entry("max-age=10, stale-if-error=5");
        assert!(may_stand_in(&on_error, now(15)) && !may_stand_in(&on_error, now(16)));
        assert!(!may_stand_in(&entry("max-age=10"), now(11)));
        assert!(!may_stand_in(
            &entry("max-age=1, must-revalidate, stale-if-error=9"),
            now(2)
        ));
    }
}
