//! What a member knows of its hard reads: how often it pulls, and which read leases it holds (rules C1, C3 and C4).

use crate::member::lease::Lease;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::{
    LEASED_SEGMENTS_MAX, LEASES_PER_CHILD_MAX, READ_LEASE_AFTER_PULLS, READ_LEASE_WITHIN_MS,
};
use thorp_model::{HomeId, Millis, Position, RequestId, SegmentId};

/// Hard reads in one segment.
#[derive(Debug, Default)]
struct InSegment {
    lease: Lease,
    /// The bound of the lease.
    mods: u32,
    /// The tightest bound that was wanted since the lease was asked for.
    wanted: Option<u32>,
    /// Pulls that followed each other closely.
    pulls: u32,
    last: Millis,
}

/// A program that waits for a hard read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pulling {
    pub(super) request_id: RequestId,
    pub(super) home: HomeId,
    pub(super) segments: Vec<SegmentId>,
    /// Whoever is awaited for longer is named.
    pub(super) patience_ms: u32,
    /// Answered changes that it may miss.
    pub(super) mods: u32,
}

/// A request for read leases that is not answered.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) segments: Vec<SegmentId>,
    pub(super) mods: u32,
    sent: Millis,
    /// The program that waits for it, if it is not a refresh.
    pub(super) program: Option<Pulling>,
}

/// How a hard read is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// The member shows all that it may not miss.
    Leased,
    /// It asks for a read lease, which is a pull, too.
    AskLease,
    /// It pulls.
    Pull,
}

/// The hard reads of a member.
///
/// Invariant: the member believes in a read lease for less long than its home, and only if it stood where its parent did when it was granted.
#[derive(Debug, Default)]
pub(super) struct HardReads {
    of: BTreeMap<(HomeId, SegmentId), InSegment>,
    asked: BTreeMap<HomeId, Asked>,
    /// Positions that parents want to know to be shown here, when the member goes on.
    pub(super) seen_due: BTreeMap<HomeId, Position>,
}

impl HardReads {
    /// How a hard read is served now.
    pub(super) fn way(&mut self, now: Millis, pulling: &Pulling, stands: bool) -> Way {
        let home = pulling.home;
        let is_held = |here: &InSegment| here.lease.is_held(now) && here.mods <= pulling.mods;
        let mut segments = pulling.segments.iter();
        let of = &self.of;
        let leased = segments.all(|segment| of.get(&(home, *segment)).is_some_and(is_held));
        let mut is_repeated = pulling.segments.len() <= LEASED_SEGMENTS_MAX;
        for segment in &pulling.segments {
            let here = self.of.entry((home, *segment)).or_default();
            let is_close = now.since(here.last) < READ_LEASE_WITHIN_MS;
            here.pulls = if is_close {
                here.pulls.saturating_add(1)
            } else {
                1
            };
            here.last = now;
            here.wanted = Some(here.wanted.unwrap_or(u32::MAX).min(pulling.mods));
            is_repeated &= here.pulls >= READ_LEASE_AFTER_PULLS && here.lease.is_due(now);
        }
        match leased && stands {
            true => Way::Leased,
            false if is_repeated && !self.asked.contains_key(&home) => Way::AskLease,
            false => Way::Pull,
        }
    }

    /// The member asks for read leases now.
    pub(super) fn ask(
        &mut self,
        now: Millis,
        (home, segments, mods): (HomeId, Vec<SegmentId>, u32),
        program: Option<Pulling>,
    ) {
        for segment in &segments {
            if let Some(here) = self.of.get_mut(&(home, *segment)) {
                here.lease.ask();
                here.wanted = None;
            }
        }
        let asked = Asked {
            segments,
            mods,
            sent: now,
            program,
        };
        self.asked.insert(home, asked);
    }

    /// The home has answered, or its answer is lost.
    pub(super) fn take_asked(&mut self, home: HomeId) -> Option<Asked> {
        self.asked.remove(&home)
    }

    /// The home grants what was asked for.
    pub(super) fn granted(&mut self, now: Millis, home: HomeId, asked: &Asked, lease_ms: u64) {
        for segment in &asked.segments {
            if let Some(here) = self.of.get_mut(&(home, *segment)) {
                here.mods = match here.lease.is_held(now) {
                    true => here.mods.min(asked.mods),
                    false => asked.mods,
                };
                here.lease.granted(asked.sent, lease_ms, now);
            }
        }
    }

    /// The home does not grant it.
    pub(super) fn refused(&mut self, now: Millis, home: HomeId, asked: &Asked, is_denied: bool) {
        for segment in &asked.segments {
            if let Some(here) = self.of.get_mut(&(home, *segment)) {
                here.lease.refused(now, is_denied);
            }
        }
    }

    /// Read leases of a home that are used and are to be asked for again, and the tightest bound of them.
    pub(super) fn to_refresh(&self, now: Millis, home: HomeId) -> (Vec<SegmentId>, u32) {
        let here = self.of.iter().filter(|((of, _), _)| *of == home);
        let due = here.filter(|(_, here)| {
            here.wanted.is_some() && here.lease.is_held(now) && here.lease.is_due(now)
        });
        let due = due.take(LEASED_SEGMENTS_MAX);
        let (segments, mods): (Vec<SegmentId>, Vec<u32>) = due
            .map(|((_, segment), here)| (*segment, here.mods))
            .unzip();
        (segments, mods.into_iter().min().unwrap_or_default())
    }

    /// Read leases of a home that nobody has used since they were granted: they are given back. And all, if the program leaves. What an
    /// answer grants that is under way to the member ends with that, too.
    pub(super) fn take_unused(
        &mut self,
        now: Millis,
        home: HomeId,
        leaves: bool,
    ) -> Vec<SegmentId> {
        let mut unused = Vec::new();
        for ((_, segment), here) in self.of.iter_mut().filter(|((of, _), _)| *of == home) {
            let is_over = leaves || (here.wanted.is_none() && here.lease.is_due(now));
            if here.lease.is_held(now) && is_over {
                here.lease = Lease::default();
                here.pulls = 0;
                unused.push(*segment);
            }
        }
        if let Some(asked) = self.asked.get_mut(&home) {
            asked.segments.retain(|segment| !unused.contains(segment));
        }
        unused
    }

    /// The homes of which something is known.
    pub(super) fn homes(&self) -> Vec<HomeId> {
        let mut homes: Vec<HomeId> = self.of.keys().map(|(home, _)| *home).collect();
        homes.dedup();
        homes
    }

    /// The stream of a home has ended: a request is lost. What was granted lasts.
    pub(super) fn stream_ended(&mut self, home: HomeId) {
        self.seen_due.remove(&home);
        for (_, here) in self.of.iter_mut().filter(|((of, _), _)| *of == home) {
            here.lease.stream_ended();
        }
    }

    /// The home has gone back in time: it knows of no lease (rule R9).
    pub(super) fn went_back(&mut self, home: HomeId) {
        self.of.retain(|(of, _), _| *of != home);
    }

    /// Forgets segments that nobody has read for long.
    pub(super) fn sweep(&mut self, now: Millis) {
        let is_full = self.of.len() > LEASES_PER_CHILD_MAX;
        self.of.retain(|_, here| {
            let is_used = now.since(here.last) < READ_LEASE_WITHIN_MS && !is_full;
            is_used || here.lease.is_held(now)
        });
    }

    /// Whether the member serves hard reads of a segment without asking.
    pub(super) fn holds(&self, home: HomeId, segment: SegmentId, now: Millis) -> bool {
        let here = self.of.get(&(home, segment));
        here.is_some_and(|here| here.lease.is_held(now))
    }

    /// When something is due.
    pub(super) fn deadline(
        &self,
        now: Millis,
        is_reached: impl Fn(HomeId) -> bool,
    ) -> Option<Millis> {
        let held = self.of.iter().filter(|((home, _), here)| {
            here.lease.is_held(now) && is_reached(*home) && !self.asked.contains_key(home)
        });
        held.filter_map(|(_, here)| here.lease.due()).min()
    }

    /// The sizes of its tables, by name.
    pub(super) fn sizes(&self) -> [(&'static str, usize); 1] {
        [("hard_reads", self.of.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const HOME: HomeId = HomeId(1);
    const SEGMENT: SegmentId = SegmentId(1);

    fn pulling(mods: u32) -> Pulling {
        Pulling {
            request_id: RequestId(1),
            home: HOME,
            segments: vec![SEGMENT],
            patience_ms: 0,
            mods,
        }
    }

    /// Reads that follow each other closely, until the member asks for a lease, which is granted.
    fn leased() -> HardReads {
        let mut reads = HardReads::default();
        for at in 0..u64::from(READ_LEASE_AFTER_PULLS) - 1 {
            assert_eq!(reads.way(Millis(at), &pulling(5), true), Way::Pull);
        }
        assert_eq!(reads.way(Millis(9), &pulling(5), true), Way::AskLease);
        reads.ask(Millis(10), (HOME, vec![SEGMENT], 5), None);
        assert_eq!(reads.way(Millis(11), &pulling(5), true), Way::Pull);
        let asked = reads.take_asked(HOME).expect("it is asked for");
        reads.granted(Millis(20), HOME, &asked, 1_600);
        reads
    }

    #[test]
    fn a_lease_that_is_given_back_is_not_revived_by_the_answer_to_a_refresh() {
        let mut reads = leased();
        reads.ask(Millis(420), (HOME, vec![SEGMENT], 5), None);
        assert_eq!(reads.take_unused(Millis(430), HOME, true), [SEGMENT]);
        // The home has granted it before it gets it back.
        let asked = reads.take_asked(HOME).expect("it is asked for");
        reads.granted(Millis(440), HOME, &asked, 1_600);
        assert!(!reads.holds(HOME, SEGMENT, Millis(441)));
    }

    #[test]
    fn repeated_pulls_earn_a_lease_that_counts_where_the_member_stands() {
        let mut reads = leased();
        assert_eq!(reads.way(Millis(21), &pulling(5), true), Way::Leased);
        assert_eq!(reads.way(Millis(21), &pulling(5), false), Way::Pull);
        assert_eq!(reads.way(Millis(21), &pulling(4), true), Way::Pull);
        assert_eq!(reads.way(Millis(1_509), &pulling(5), true), Way::Leased);
        assert_eq!(reads.way(Millis(1_510), &pulling(5), true), Way::AskLease);
    }

    #[test]
    fn a_lease_that_nobody_uses_is_given_back() {
        let mut reads = leased();
        assert_eq!(reads.way(Millis(30), &pulling(5), true), Way::Leased);
        assert_eq!(reads.to_refresh(Millis(409), HOME).0, []);
        let (segments, mods) = reads.to_refresh(Millis(410), HOME);
        assert_eq!((segments.clone(), mods), (vec![SEGMENT], 5));
        assert_eq!(reads.take_unused(Millis(410), HOME, false), []);
        reads.ask(Millis(410), (HOME, segments, mods), None);
        let asked = reads.take_asked(HOME).expect("it is asked for");
        reads.granted(Millis(420), HOME, &asked, 1_600);
        assert_eq!(reads.to_refresh(Millis(810), HOME).0, [], "nobody has read");
        assert_eq!(reads.take_unused(Millis(810), HOME, false), [SEGMENT]);
        assert!(!reads.holds(HOME, SEGMENT, Millis(811)));
        reads.sweep(Millis(20_000));
        assert_eq!(reads.homes(), []);
    }
}
