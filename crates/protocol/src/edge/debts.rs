//! What children still owe to pulls for which nobody waits any more (rule C4).

use crate::edge::leases::Leases;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::PULL_SEGMENTS_MAX;
use thorp_model::planted::Bug;
use thorp_model::{LogHead, MemberId, Millis, SegmentId, planted};

/// A question that a child has not answered, or logs that it has named and not sent.
#[derive(Debug)]
struct Debt {
    since: Millis,
    question: u64,
    /// The logs of this segment that the child has named.
    named: Option<Vec<LogHead>>,
}

/// The debts of children to pulls that were given up. Readers are less patient than leases: without them, a child that answers
/// nothing would have its leases renewed between two pulls.
///
/// Invariant: there is one for each child and segment at most, and only while the child holds a lease there.
#[derive(Debug, Default)]
pub(crate) struct Debts(BTreeMap<(MemberId, SegmentId), Debt>);

impl Debts {
    /// Nobody waits any more for what a child was asked about these segments. The first debt counts from its beginning.
    pub(super) fn keep(
        &mut self,
        (child, segments): (MemberId, &[SegmentId]),
        (since, now): (Millis, Millis),
        (question, named): (u64, Option<&Vec<LogHead>>),
        leases: &Leases,
    ) {
        for segment in segments.iter().filter(|_| !planted::is(Bug::DebtForgiven)) {
            if leases.until(child, &[*segment], now).is_none() {
                continue;
            }
            let of = |heads: &Vec<LogHead>| {
                let heads = heads.iter().filter(|head| head.segment == *segment);
                heads.copied().collect()
            };
            let debt = Debt {
                since,
                question,
                named: named.map(of),
            };
            let kept = self.0.entry((child, *segment)).or_insert(debt);
            kept.since = since.min(kept.since);
        }
    }

    /// A child has answered a question late.
    pub(super) fn answered(&mut self, child: MemberId, question: u64, heads: &[LogHead]) {
        let of_child = (child, SegmentId(0))..=(child, SegmentId(u32::MAX));
        for ((_, segment), debt) in self.0.range_mut(of_child) {
            let of = heads.iter().filter(|head| head.segment == *segment);
            if debt.question == question {
                debt.named.get_or_insert_with(|| of.copied().collect());
            }
        }
    }

    /// A child has come by a new edge: it is asked again about what it has not answered. Each question gets the next number.
    pub(super) fn ask_again(
        &mut self,
        child: MemberId,
        last_question: &mut u64,
    ) -> Vec<(u64, Vec<SegmentId>)> {
        let of_child = (child, SegmentId(0))..=(child, SegmentId(u32::MAX));
        let open = self.0.range_mut(of_child);
        let mut unnamed: Vec<_> = open.filter(|(_, debt)| debt.named.is_none()).collect();
        let ask = |debts: &mut [(&(MemberId, SegmentId), &mut Debt)]| {
            *last_question += 1;
            let segments = debts.iter_mut().map(|((_, segment), debt)| {
                debt.question = *last_question;
                *segment
            });
            (*last_question, segments.collect())
        };
        let chunks = unnamed.chunks_mut(PULL_SEGMENTS_MAX);
        chunks.map(ask).collect()
    }

    /// Forgets what is settled. Returns the children whose lease was over before they had settled, and since when they owed.
    pub(super) fn settle(
        &mut self,
        now: Millis,
        leases: &Leases,
        is_saved: impl Fn(&LogHead) -> bool,
    ) -> BTreeSet<(MemberId, Millis)> {
        let mut over = BTreeSet::new();
        self.0.retain(|(child, segment), debt| {
            if leases.is_over(*child, &[*segment], now) {
                over.insert((*child, debt.since));
            }
            let holds = leases.until(*child, &[*segment], now).is_some();
            let is_settled = debt
                .named
                .as_ref()
                .is_some_and(|of| of.iter().all(&is_saved));
            holds && !is_settled
        });
        over
    }

    /// Since when a child owes an answer about one of these segments.
    pub(super) fn since(&self, child: MemberId, segments: &[SegmentId]) -> Option<Millis> {
        let debts = segments.iter().filter_map(|of| self.0.get(&(child, *of)));
        debts.map(|debt| debt.since).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::LogId;

    const CHILD: MemberId = MemberId(7);
    const ONE: SegmentId = SegmentId(1);
    const TWO: SegmentId = SegmentId(2);

    fn leased() -> Leases {
        let mut leases = Leases::default();
        assert!(leases.grant(CHILD, &[ONE], Millis(100)));
        leases
    }

    fn owed() -> Debts {
        let mut debts = Debts::default();
        let when = (Millis(10), Millis(20));
        debts.keep((CHILD, &[ONE, TWO]), when, (5, None), &leased());
        debts
    }

    fn head(number: u64) -> LogHead {
        LogHead {
            log: LogId(CHILD),
            segment: ONE,
            number,
        }
    }

    #[test]
    fn a_debt_lasts_until_what_was_named_is_saved() {
        let (mut debts, leases) = (owed(), leased());
        assert_eq!(debts.since(CHILD, &[ONE]), Some(Millis(10)));
        assert_eq!(debts.since(CHILD, &[TWO]), None, "it holds no lease there");
        debts.answered(CHILD, 4, &[]);
        debts.answered(CHILD, 5, &[head(3)]);
        assert!(
            debts
                .settle(Millis(30), &leases, |head| head.number <= 2)
                .is_empty()
        );
        assert_eq!(debts.since(CHILD, &[ONE]), Some(Millis(10)));
        assert!(
            debts
                .settle(Millis(30), &leases, |head| head.number <= 3)
                .is_empty()
        );
        assert_eq!(debts.since(CHILD, &[ONE]), None);
    }

    #[test]
    fn a_debt_at_the_end_of_its_lease_is_named() {
        let (mut debts, leases) = (owed(), leased());
        let over = debts.settle(Millis(100), &leases, |_| true);
        assert_eq!(
            over.into_iter().collect::<Vec<_>>(),
            vec![(CHILD, Millis(10))]
        );
        assert_eq!(debts.since(CHILD, &[ONE]), None);
    }

    #[test]
    fn a_new_edge_is_asked_again() {
        let (mut debts, leases, mut last) = (owed(), leased(), 8);
        assert_eq!(debts.ask_again(CHILD, &mut last), vec![(9, vec![ONE])]);
        debts.answered(CHILD, 5, &[]);
        debts.settle(Millis(30), &leases, |_| true);
        assert!(debts.since(CHILD, &[ONE]).is_some(), "that answer is old");
        debts.answered(CHILD, 9, &[]);
        debts.settle(Millis(30), &leases, |_| true);
        assert_eq!(debts.since(CHILD, &[ONE]), None);
        assert_eq!(debts.ask_again(CHILD, &mut last), vec![]);
    }
}
