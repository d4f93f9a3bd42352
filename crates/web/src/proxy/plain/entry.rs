//! A stored answer, and what it is good for.

use super::control::Directives;
use super::freshness::{Age, Lifetime, Now};
use super::selecting::Selecting;
use crate::proxy::answer::drop_fields_of_connection;
use crate::proxy::origin::Outgoing;
use crate::proxy::owned;
use crate::proxy::shape::shape;
use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

/// Statuses that the cache knows: `must-understand` lets it store no other.
const KNOWN: std::ops::Range<u16> = 200..506;

/// What an answer to a condition does not change: it is about the body, which stays.
const OF_THE_BODY: [HeaderName; 4] = [
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_RANGE,
    header::ETAG,
];

/// When the proxy asked for an answer, and when that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) asked: Now,
    pub(super) came: Now,
}

/// The head of an answer that is stored, once its body is here.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) directives: Directives,
    lifetime: Lifetime,
    age: Age,
    selecting: Selecting,
    /// Of two answers that one request could get, the one asked for later is the better one.
    pub(super) asked_ms: u64,
}

/// A stored answer.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) head: Head,
    body: Bytes,
}

impl Head {
    /// Looks at an answer to GET. None: it is not stored.
    pub(super) fn of(
        request: &HeaderMap,
        status: StatusCode,
        answer: &HeaderMap,
        times: Times,
    ) -> Option<Self> {
        let directives = Directives::of_answer(answer);
        let lifetime = Lifetime::of(status, answer, &directives, times.came);
        let head = Head {
            status,
            headers: owned::fields(answer),
            directives,
            lifetime,
            age: Age::of(answer, times.asked, times.came),
            selecting: Selecting::of(answer, request)?,
            asked_ms: times.asked.ms,
        };
        head.may_be_stored(request)
            .then(|| head.cleaned(times.came))
    }

    fn may_be_stored(&self, request: &HeaderMap) -> bool {
        let Directives {
            no_store,
            private,
            public,
            must_understand,
            s_maxage,
            ..
        } = self.directives;
        let wishes = Directives::of_request(request);
        let is_final = self.status.as_u16() >= 200
            && self.status != StatusCode::PARTIAL_CONTENT
            && self.status != StatusCode::NOT_MODIFIED;
        // What is wrong with a part that one client wants is no answer for others.
        let is_of_all = !request.contains_key(header::RANGE) || self.status == StatusCode::OK;
        let is_known = !must_understand || KNOWN.contains(&self.status.as_u16());
        let is_for_others = (!request.contains_key(header::AUTHORIZATION)
            || self.directives.are_for_all())
            && (!request.contains_key(header::COOKIE) || public || s_maxage.is_some());
        is_final
            && is_of_all
            && is_known
            && is_for_others
            && !(no_store || private || wishes.no_store)
            && !self.headers.contains_key(header::SET_COOKIE)
            && self.is_of_use()
    }

    /// Whether some request could get it: it is fresh for a time, or the origin can be asked whether it still is.
    fn is_of_use(&self) -> bool {
        let has_a_word =
            self.lifetime.is_explicit || self.directives.public || self.directives.no_cache;
        self.may_be_fresh()
            || (self.has_validator() && (has_a_word || self.status == StatusCode::OK))
    }

    /// Whether it can be fresh for a time at all.
    pub(super) fn may_be_fresh(&self) -> bool {
        self.lifetime.seconds > 0 && !self.directives.no_cache
    }

    /// Whether the origin can be asked whether it has changed.
    pub(super) fn has_validator(&self) -> bool {
        self.headers.contains_key(header::ETAG) || self.headers.contains_key(header::LAST_MODIFIED)
    }

    /// Without what is of one connection, or of one moment.
    fn cleaned(mut self, came: Now) -> Self {
        drop_fields_of_connection(&mut self.headers);
        self.headers.remove(header::AGE);
        if !self.headers.contains_key(header::DATE) {
            let date = std::time::UNIX_EPOCH + std::time::Duration::from_secs(came.date);
            if let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(date)) {
                self.headers.insert(header::DATE, date);
            }
        }
        self
    }

    /// Whether another request chooses it.
    pub(super) fn is_for(&self, request: &HeaderMap) -> bool {
        self.selecting.is_for(request)
    }

    /// Whether it may go to a request with credentials or cookies, without a question.
    pub(super) fn is_open_to(&self, request: &HeaderMap) -> bool {
        let is_open = |is_asked: bool, is_allowed: bool| !is_asked || is_allowed;
        is_open(
            request.contains_key(header::AUTHORIZATION),
            self.directives.are_for_all(),
        ) && is_open(
            request.contains_key(header::COOKIE),
            self.lifetime.is_explicit || self.directives.public,
        )
    }

    /// For how many milliseconds it is still fresh. Below 0: for how long it is stale.
    pub(super) fn left_ms(&self, now: Now) -> i64 {
        let lifetime = signed(self.lifetime.seconds * 1_000);
        lifetime - signed(self.age.ms(now))
    }

    pub(super) fn age_ms(&self, now: Now) -> u64 {
        self.age.ms(now)
    }

    fn bytes(&self) -> u64 {
        let fields = self.headers.iter();
        let fields: usize = fields
            .map(|(name, value)| name.as_str().len() + value.len() + 64)
            .sum();
        (fields + self.selecting.bytes() + 512) as u64
    }
}

impl Entry {
    pub(super) fn new(head: Head, body: Bytes) -> Self {
        Entry { head, body }
    }

    /// About how many bytes of memory it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.head.bytes() + self.body.len() as u64
    }

    /// The same body under what an answer 304 says. None: that answer is about another body (RFC 9111, section 4.3.4).
    pub(super) fn updated(&self, answer: &HeaderMap) -> Option<HeaderMap> {
        let is_strong = |tag: &&HeaderValue| tag.as_bytes().starts_with(b"\"");
        let tag = answer.get(header::ETAG).filter(is_strong);
        if tag.is_some_and(|tag| self.head.headers.get(header::ETAG) != Some(tag)) {
            return None;
        }
        let mut newer = answer.clone();
        drop_fields_of_connection(&mut newer);
        OF_THE_BODY.iter().for_each(|name| {
            newer.remove(name);
        });
        newer.remove("content-md5");
        let mut headers = self.head.headers.clone();
        // Without a date of its own it is of now.
        headers.remove(header::DATE);
        for name in newer.keys() {
            headers.remove(name);
        }
        for (name, value) in &newer {
            headers.append(name, value.clone());
        }
        Some(headers)
    }

    /// The same body under another head.
    pub(super) fn with(&self, head: Head) -> Self {
        Entry::new(head, self.body.clone())
    }

    /// Whether an answer to HEAD is about another body.
    pub(super) fn differs_from(&self, answer: &HeaderMap) -> bool {
        let length = answer.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        let differs = |name: &HeaderName| {
            let newer = answer.get(name);
            newer.is_some() && newer != self.head.headers.get(name)
        };
        length.is_some_and(|length| length != self.body.len())
            || differs(&header::ETAG)
            || differs(&header::LAST_MODIFIED)
    }

    /// What a client gets: all of it, a part, or the word that it has it already.
    pub(super) fn respond(
        &self,
        request: &HeaderMap,
        is_head: bool,
        now: Now,
    ) -> Response<Outgoing> {
        let mut headers = self.head.headers.clone();
        headers.insert(
            header::AGE,
            HeaderValue::from(self.head.age_ms(now) / 1_000),
        );
        shape(
            (self.head.status, headers, self.body.clone()),
            request,
            is_head,
        )
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
