//! Compares a share of the hits with the origin. What a recipe forgets makes answers stale, and nothing else shows that (trap W17).

use super::answer::Answer;
use crate::noise::{self, Noise};
use crate::{clock, random};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderName};
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Comparisons at a time. A hit that would need one more is not compared: clients choose how many hits there are.
const COMPARISONS_MAX: usize = 4;

/// How long one may take.
pub(super) const COMPARES_WITHIN: Duration = Duration::from_secs(60);

/// Differences that are remembered. One more takes the place of the oldest.
const DIFFERENCES_MAX: usize = 64;

/// A longer address of a difference is cut.
const ADDRESS_BYTES_MAX: usize = 400;

/// So much is shown of each of two bodies that differ.
const EXCERPT_BYTES: usize = 60;

/// Fields that readers see, beside the body.
const COMPARED: [HeaderName; 2] = [header::CONTENT_TYPE, header::LOCATION];

/// A share of the hits: millionths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share(u32);

/// A text that is no share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShareError(String);

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no share: write 0% to 100%, with up to four digits behind the point, as 0.1%",
            self.0
        )
    }
}

impl std::error::Error for ShareError {}

/// Of these a share has so many.
const WHOLE: u32 = 1_000_000;
const PERCENT: u32 = WHOLE / 100;

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        let wrong = || ShareError(text.to_owned());
        let number = text.strip_suffix('%').ok_or_else(wrong)?.trim_end();
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(part) || part.len() > 4 {
            return Err(wrong());
        }
        let whole: u32 = whole.parse().map_err(|_| wrong())?;
        let part: u32 = format!("{part:0<4}").parse().map_err(|_| wrong())?;
        let millionths = whole
            .checked_mul(PERCENT)
            .and_then(|whole| whole.checked_add(part));
        millionths
            .filter(|millionths| *millionths <= WHOLE)
            .map(Share)
            .ok_or_else(wrong)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = format!("{:04}", self.0 % PERCENT);
        match part.trim_end_matches('0') {
            "" => write!(f, "{}%", self.0 / PERCENT),
            part => write!(f, "{}.{part}%", self.0 / PERCENT),
        }
    }
}

impl Share {
    /// After so many hits the next one is compared. Each hit has the same chance, whatever came before it.
    fn next_gap(self) -> u64 {
        let chance = f64::from(self.0) / f64::from(WHOLE);
        // From above 0 to 1.
        let drawn = ((random::number() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        let gap = (drawn.ln() / (1.0 - chance).ln()).ceil();
        // A gap that is no number is that of a share of 100 %.
        if gap.is_finite() {
            gap.max(1.0) as u64
        } else {
            1
        }
    }
}

/// What became of the comparisons.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Found {
    pub(crate) share: Share,
    pub(crate) same: u64,
    pub(crate) different: u64,
    /// The entry was no longer valid when the origin had answered: that proves nothing.
    pub(crate) changed: u64,
    /// The origin has not answered, or with an error of its own.
    pub(crate) failed: u64,
    /// There were too many at a time.
    pub(crate) skipped: u64,
    /// The last ones, the newest last.
    pub(crate) differences: VecDeque<Difference>,
}

/// A hit that was not as the origin's answer, while no data behind it had changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Difference {
    /// Host and path.
    pub(crate) address: String,
    /// When, in milliseconds since the machine started.
    pub(crate) at_ms: u64,
    /// What differs.
    pub(crate) what: String,
}

/// What the origin has answered to a comparison.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// None: it is too long to be compared.
    pub(super) body: Option<Bytes>,
}

/// Which hits are compared, and what that has shown.
#[derive(Debug)]
pub(crate) struct Audit {
    share: AtomicU32,
    /// Hits until the next one that is compared.
    left: AtomicU64,
    places: Arc<Semaphore>,
    found: Mutex<Found>,
}

impl Default for Audit {
    fn default() -> Self {
        Audit {
            share: AtomicU32::new(0),
            left: AtomicU64::new(0),
            places: Arc::new(Semaphore::new(COMPARISONS_MAX)),
            found: Mutex::default(),
        }
    }
}

impl Audit {
    /// From now on this share of the hits is compared.
    pub(crate) fn take(&self, share: Share) {
        self.left.store(share.next_gap(), Ordering::Relaxed);
        self.share.store(share.0, Ordering::Relaxed);
    }

    /// There was a hit. If it is to be compared: a place for that.
    pub(super) fn hit(&self) -> Option<OwnedSemaphorePermit> {
        let share = Share(self.share.load(Ordering::Relaxed));
        if share == Share(0) || self.left.fetch_sub(1, Ordering::Relaxed) != 1 {
            return None;
        }
        self.left.store(share.next_gap(), Ordering::Relaxed);
        let place = Arc::clone(&self.places).try_acquire_owned().ok();
        if place.is_none() {
            self.locked().skipped += 1;
        }
        place
    }

    /// The origin has answered. The entry is valid still: no data behind it have changed since it was stored.
    pub(super) fn compared(&self, address: &str, difference: Option<String>) {
        let Some(what) = difference else {
            self.locked().same += 1;
            return;
        };
        tracing::warn!("audit: {address} is not as at the origin, and no key has changed: {what}");
        let mut found = self.locked();
        found.different += 1;
        if found.differences.len() >= DIFFERENCES_MAX {
            found.differences.pop_front();
        }
        found.differences.push_back(Difference {
            address: excerpt(address.as_bytes(), ADDRESS_BYTES_MAX),
            at_ms: clock::now_ms(),
            what,
        });
    }

    /// The entry was no longer valid when the origin had answered.
    pub(super) fn changed(&self) {
        self.locked().changed += 1;
    }

    /// The origin has not answered.
    pub(super) fn failed(&self) {
        self.locked().failed += 1;
    }

    /// What it has found.
    pub(crate) fn found(&self) -> Found {
        let found = self.locked().clone();
        let share = Share(self.share.load(Ordering::Relaxed));
        Found { share, ..found }
    }

    fn locked(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What differs between a hit and the origin's answer. None: nothing but noise.
pub(super) fn difference(noise: &[Noise], hit: &Answer, fresh: &Fresh) -> Option<String> {
    if hit.status != fresh.status {
        return Some(format!(
            "status {}, at the origin {}",
            hit.status, fresh.status
        ));
    }
    for name in COMPARED {
        let value = |headers: &HeaderMap| {
            let value = headers
                .get(&name)
                .map_or(&b""[..], |value| value.as_bytes());
            excerpt(value, EXCERPT_BYTES)
        };
        if hit.headers.get(&name) != fresh.headers.get(&name) {
            let (one, other) = (value(&hit.headers), value(&fresh.headers));
            return Some(format!("{name} {one:?}, at the origin {other:?}"));
        }
    }
    let Some(body) = &fresh.body else {
        return Some(String::from(
            "a body that is too long at the origin to be stored",
        ));
    };
    if noise::are_alike(noise, &hit.body, body) {
        return None;
    }
    let (one, other) = (noise::quiet(noise, &hit.body), noise::quiet(noise, body));
    let at = one
        .iter()
        .zip(&other)
        .take_while(|(one, other)| one == other)
        .count();
    let from = at.saturating_sub(EXCERPT_BYTES / 3);
    let part = |body: &[u8]| excerpt(&body[from.min(body.len())..], EXCERPT_BYTES);
    Some(format!(
        "the body from byte {at} on: {:?}, at the origin {:?}",
        part(&one),
        part(&other)
    ))
}

/// The first bytes, as text.
fn excerpt(bytes: &[u8], most: usize) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn a_share_is_read_as_it_is_written() {
        for (text, written) in [
            ("0.1%", "0.1%"),
            ("100%", "100%"),
            ("0%", "0%"),
            ("12.3400 %", "12.34%"),
            ("0.0001%", "0.0001%"),
        ] {
            let share: Share = text.parse().expect(text);
            assert_eq!(share.to_string(), written);
            assert_eq!(written.parse(), Ok(share));
        }
        for text in [
            "",
            "%",
            "1",
            "-1%",
            "100.0001%",
            "101%",
            "1.%",
            ".1%",
            "1.00001%",
            "1e2%",
            "99999999999%",
        ] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }

    #[test]
    fn about_the_share_of_the_hits_is_compared() {
        let compared = |share: &str, hits: u32| {
            let audit = Audit::default();
            audit.take(share.parse().expect("a share"));
            (0..hits).filter(|_| audit.hit().is_some()).count()
        };
        assert_eq!(compared("100%", 50), 50);
        assert_eq!(compared("0%", 50), 0);
        // 1,000 are expected: so far away it is once in more than 10^12 runs.
        let compared = compared("10%", 10_000);
        assert!((780..1_220).contains(&compared), "{compared}");
    }

    #[test]
    fn too_many_at_a_time_are_skipped_and_counted() {
        let audit = Audit::default();
        audit.take(Share(WHOLE));
        let places: Vec<_> = (0..COMPARISONS_MAX).filter_map(|_| audit.hit()).collect();
        assert_eq!(places.len(), COMPARISONS_MAX);
        assert!(audit.hit().is_none() && audit.found().skipped == 1);
        drop(places);
        assert!(audit.hit().is_some());
    }

    fn hit(body: &'static str) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("text/plain"));
        Answer {
            status: StatusCode::OK,
            headers,
            body: Bytes::from_static(body.as_bytes()),
            named: Vec::new(),
        }
    }

    fn fresh(answer: Answer) -> Fresh {
        Fresh {
            status: answer.status,
            headers: answer.headers,
            body: Some(answer.body),
        }
    }

    #[test]
    fn what_differs_is_said() {
        let noise = [Noise::parse("id=*;").expect("noise")];
        let of = |change: &dyn Fn(&mut Answer)| {
            let mut answer = hit("price 1 id=7;");
            change(&mut answer);
            difference(&noise, &hit("price 1 id=8;"), &fresh(answer))
        };
        assert_eq!(of(&|_| {}), None);
        let body = of(&|answer| answer.body = Bytes::from_static(b"price 2 id=7;"));
        assert!(body.is_some_and(|what| what.contains("from byte 6 on")));
        let status = of(&|answer| answer.status = StatusCode::NOT_FOUND);
        assert!(status.is_some_and(|what| what.contains("404")));
        let kind = of(&|answer| answer.headers.clear());
        assert!(kind.is_some_and(|what| what.contains("content-type")));
        // What the proxy itself sets is none.
        let tag = HeaderValue::from_static("\"x\"");
        assert_eq!(
            of(&|answer| drop(answer.headers.insert("etag", tag.clone()))),
            None
        );
    }

    #[test]
    fn the_last_differences_are_remembered() {
        let audit = Audit::default();
        let long = "x".repeat(ADDRESS_BYTES_MAX + 1);
        for number in 0..DIFFERENCES_MAX + 2 {
            audit.compared(&long, Some(number.to_string()));
        }
        audit.compared("a", None);
        let found = audit.found();
        assert_eq!(
            (found.different, found.same),
            (DIFFERENCES_MAX as u64 + 2, 1)
        );
        assert_eq!(found.differences.len(), DIFFERENCES_MAX);
        assert_eq!(found.differences[0].what, "2");
        assert_eq!(found.differences[0].address.len(), ADDRESS_BYTES_MAX);
    }
}
