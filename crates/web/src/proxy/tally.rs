//! What became of requests, counted by reason. The operator sees it; no decision rests on it.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use thorp_versions::Denied;

/// One of the reasons of a kind.
pub(crate) trait Reason: Copy + 'static {
    /// All of them, in the order of their numbers.
    const ALL: &'static [Self];

    /// Its number.
    fn number(self) -> usize;

    /// The word for it, in metrics.
    fn word(self) -> &'static str;
}

/// Declares reasons, each with its word.
macro_rules! reasons {
    ($(#[$of:meta])* $seen:vis $kind:ident { $($(#[$one:meta])* $name:ident = $word:literal,)+ }) => {
        $(#[$of])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $seen enum $kind { $($(#[$one])* $name,)+ }

        impl Reason for $kind {
            const ALL: &'static [Self] = &[$($kind::$name,)+];

            fn number(self) -> usize {
                self as usize
            }

            fn word(self) -> &'static str {
                match self { $($kind::$name => $word,)+ }
            }
        }
    };
}

reasons! {
    /// Why a request of a route was no hit.
    pub Missed {
        /// Nothing is stored for it.
        Absent = "absent",
        /// A key has changed since.
        Changed = "changed",
        /// An update of a key is open.
        Open = "open",
        /// The table is behind the entry.
        Behind = "behind",
        /// The keeper is away (rule W7).
        NoBeat = "keeper_away",
        /// The keeper has begun anew (rule W8).
        Generation = "keeper_new",
    }
}

reasons! {
    /// Why a request of a route went past the cache.
    pub(crate) Bypassed {
        /// It is neither GET nor HEAD.
        Method = "method",
        /// It has credentials, or wants another protocol.
        Credentials = "credentials",
        /// It has a parameter that the route does not name.
        Query = "query",
        /// It has a cookie that the route does not name.
        Cookie = "cookie",
        /// Its host or its fields cannot be part of a name.
        Name = "name",
        /// It wants a part of what is not stored.
        Range = "range",
    }
}

reasons! {
    /// Why the answer to a fill did not become an entry.
    pub(crate) Refused {
        /// A key has changed since its evidence (rule W4).
        Changed = "changed",
        /// An update of a key is open.
        Open = "open",
        /// The table is behind its evidence.
        Behind = "behind",
        /// The keeper is away.
        NoBeat = "keeper_away",
        /// The keeper has begun anew.
        Generation = "keeper_new",
        /// Its status is none that is stored.
        Status = "status",
        /// A cut in its body would not show.
        NoEnd = "no_end",
        /// It sets a cookie.
        SetCookie = "set_cookie",
        /// The origin says `no-store`.
        NoStore = "no_store",
        /// It varies by what its route does not name.
        Varies = "vary",
        /// It has too many bytes or comes too slowly, or all that are being stored have too many.
        Large = "large",
        /// The origin has not answered, or not to the end.
        Failed = "origin",
        /// It does not say as of when it is right, and its source are Thorp homes (rule W3).
        NoEvidence = "no_evidence",
        /// What it says of Thorp homes cannot be read.
        Unreadable = "unreadable_evidence",
    }
}

reasons! {
    /// What became of an unsafe request, where requests are the source.
    pub(crate) Updated {
        /// The origin has answered.
        Answered = "answered",
        /// No keeper has noted it, so it was not sent on.
        NoKeeper = "keeper_away",
        /// Too many were under way, so it was not sent on.
        TooMany = "too_many",
        /// Its body did not come, so it was not sent on.
        Upload = "upload",
        /// It was sent on, and the origin has not answered.
        Failed = "origin",
    }
}

impl From<Denied> for Missed {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Changed(_) => Missed::Changed,
            Denied::Open(_) => Missed::Open,
            Denied::Behind => Missed::Behind,
            Denied::NoBeat => Missed::NoBeat,
            Denied::OtherGeneration => Missed::Generation,
        }
    }
}

impl From<Denied> for Refused {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Changed(_) => Refused::Changed,
            Denied::Open(_) => Refused::Open,
            Denied::Behind => Refused::Behind,
            Denied::NoBeat => Refused::NoBeat,
            Denied::OtherGeneration => Refused::Generation,
        }
    }
}

/// How often each reason of a kind was met.
#[derive(Debug)]
pub(crate) struct Counts<R> {
    counts: Box<[AtomicU64]>,
    of: PhantomData<R>,
}

impl<R: Reason> Counts<R> {
    /// One more.
    pub(crate) fn count(&self, reason: R) {
        if let Some(count) = self.counts.get(reason.number()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often this reason was met.
    pub(crate) fn of(&self, reason: R) -> u64 {
        let count = self.counts.get(reason.number());
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Each reason's word and count.
    pub(crate) fn read(&self) -> Vec<(&'static str, u64)> {
        let reasons = R::ALL.iter().zip(&self.counts);
        reasons
            .map(|(reason, count)| (reason.word(), count.load(Ordering::Relaxed)))
            .collect()
    }
}

impl<R: Reason> Default for Counts<R> {
    fn default() -> Self {
        Counts {
            counts: R::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            of: PhantomData,
        }
    }
}

/// What became of the requests of routes.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    hits: AtomicU64,
    joined: AtomicU64,
    /// Requests that were no hits.
    pub(crate) missed: Counts<Missed>,
    /// Requests that went past the cache.
    pub(crate) bypassed: Counts<Bypassed>,
    /// Answers that did not become entries.
    pub(crate) refused: Counts<Refused>,
    /// Unsafe requests, where they are the source.
    pub(crate) updated: Counts<Updated>,
}

impl Tally {
    /// One more hit.
    pub(crate) fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// One more request got the answer to another's fill.
    pub(crate) fn joined(&self) {
        self.joined.fetch_add(1, Ordering::Relaxed);
    }

    /// Hits.
    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Those of the misses that got the answer to another's fill.
    pub(crate) fn joins(&self) -> u64 {
        self.joined.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_count_and_a_word_of_its_own() {
        fn each<R: Reason>() {
            let counts = Counts::<R>::default();
            for (number, reason) in R::ALL.iter().enumerate() {
                assert_eq!(reason.number(), number);
                (0..=number).for_each(|_| counts.count(*reason));
            }
            let read = counts.read();
            let counted: Vec<u64> = read.iter().map(|(_, count)| *count).collect();
            let expected: Vec<u64> = (1..=R::ALL.len() as u64).collect();
            assert_eq!(counted, expected);
            let mut words: Vec<&str> = read.iter().map(|(word, _)| *word).collect();
            words.sort_unstable();
            words.dedup();
            assert_eq!(words.len(), R::ALL.len());
        }
        each::<Missed>();
        each::<Bypassed>();
        each::<Refused>();
        each::<Updated>();
    }
}
