//! Requests that went to helpers, and are not answered (rule 9).

use crate::redirector::waiter::Waiter;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::{FETCHES_MAX, PEER_FETCH_MS_MAX};
use thorp_model::planted::Bug;
use thorp_model::{Attempt, EdgeId, EntryNo, MemberId, Millis, NameId, PageId, PeerImage, planted};

const FIRST_PAGE: PageId = PageId::new(0, 0);
const LAST_PAGE: PageId = PageId::new(u32::MAX, u32::MAX);

/// A request that was passed to a helper.
#[derive(Debug)]
pub(super) struct Redirecting {
    pub(super) requester: EdgeId,
    pub(super) attempt: Attempt,
    pub(super) ahead: bool,
    /// The helpers that were asked, and the requester: not to be asked again.
    pub(super) asked: Vec<EdgeId>,
    pub(super) entry: EntryNo,
    pub(super) since: Millis,
    /// A planted bug only: requests joined onto this one.
    pub(super) joined: Vec<(EdgeId, Waiter)>,
}

impl Redirecting {
    /// Whether the helper that was asked last has this edge.
    fn is_at(&self, helper: EdgeId) -> bool {
        self.asked.last() == Some(&helper)
    }
}

/// What helpers were asked for, by requester and page.
///
/// Invariant: one try for each page of a requester. A name has no more of them than it leaves free (rule R7).
#[derive(Debug, Default)]
pub(super) struct Redirects(BTreeMap<(MemberId, PageId), Redirecting>);

impl Redirects {
    /// Requests at helpers.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Those of one requester.
    pub(super) fn of(&self, requester: MemberId) -> usize {
        let all = (requester, FIRST_PAGE)..=(requester, LAST_PAGE);
        self.0.range(all).count()
    }

    /// Those of all requesters of a name.
    pub(super) fn of_name(&self, name: NameId) -> usize {
        let first = (MemberId::new(name, u64::MIN), FIRST_PAGE);
        let last = (MemberId::new(name, u64::MAX), LAST_PAGE);
        self.0.range(first..=last).count()
    }

    /// Whether one more request of a child may go to a helper.
    pub(super) fn has_space(&self, requester: MemberId) -> bool {
        let free = FETCHES_MAX.saturating_sub(self.len());
        self.of_name(requester.name()) < free || (free > 0 && planted::is(Bug::ChildNotLimited))
    }

    /// A request went to a helper.
    pub(super) fn insert(&mut self, requester: MemberId, page: PageId, redirecting: Redirecting) {
        self.0.insert((requester, page), redirecting);
    }

    /// A request is not at its helper any more.
    pub(super) fn take(&mut self, requester: MemberId, page: PageId) -> Option<Redirecting> {
        self.0.remove(&(requester, page))
    }

    /// A helper has answered. None if its answer belongs to no request there.
    pub(super) fn take_answered(
        &mut self,
        helper: EdgeId,
        peer: &PeerImage,
    ) -> Option<Redirecting> {
        let key = (peer.requester, peer.page);
        let found = self.0.get(&key)?;
        let answers = (found.attempt, found.entry) == (peer.attempt, peer.entry);
        if !found.is_at(helper) || !answers {
            return None;
        }
        self.0.remove(&key)
    }

    /// A child went: what it asked for is forgotten.
    pub(super) fn requester_went(&mut self, edge: EdgeId) {
        self.0.retain(|_, r| r.requester != edge);
    }

    /// The requests at a helper.
    pub(super) fn at(&self, helper: EdgeId) -> Vec<(MemberId, PageId)> {
        let there = self.0.iter().filter(|(_, r)| r.is_at(helper));
        there.map(|(key, _)| *key).collect()
    }

    /// Gives up the requests that silent helpers left unanswered: by now their requesters
    /// have asked again, for an answer in the stream, or want it no more.
    pub(super) fn take_expired(&mut self, now: Millis) -> Vec<(PageId, Redirecting)> {
        let is_old = |r: &Redirecting| now.since(r.since) > 2 * PEER_FETCH_MS_MAX;
        let expired = self.0.extract_if(.., |_, redirecting| is_old(redirecting));
        expired
            .map(|((_, page), redirecting)| (page, redirecting))
            .collect()
    }

    /// The stream has ended.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A planted bug: the request of another requester for a page.
    pub(super) fn of_another(&mut self, page: PageId, edge: EdgeId) -> Option<&mut Redirecting> {
        let mut all = self.0.iter_mut();
        let found = all.find(|((_, p), r)| *p == page && r.requester != edge);
        found.map(|(_, redirecting)| redirecting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{Epoch, HomeId, Position};

    const REQUESTER: EdgeId = EdgeId(1);
    const HELPER: EdgeId = EdgeId(2);
    const NODE: MemberId = MemberId(1);

    fn page(number: u32) -> PageId {
        PageId::new(1, number)
    }

    fn redirecting() -> Redirecting {
        Redirecting {
            requester: REQUESTER,
            attempt: Attempt(3),
            ahead: false,
            asked: vec![REQUESTER, HELPER],
            entry: EntryNo(5),
            since: Millis(0),
            joined: Vec::new(),
        }
    }

    fn answer(attempt: u64) -> PeerImage {
        PeerImage {
            home: HomeId(1),
            page: page(1),
            requester: NODE,
            epoch: Epoch(1),
            attempt: Attempt(attempt),
            entry: EntryNo(5),
            position: Position(1),
            image: None,
        }
    }

    #[test]
    fn only_the_last_helper_answers_and_only_its_own_try() {
        let mut redirects = Redirects::default();
        redirects.insert(NODE, page(1), redirecting());
        assert!(redirects.take_answered(REQUESTER, &answer(3)).is_none());
        assert!(redirects.take_answered(HELPER, &answer(2)).is_none());
        assert!(redirects.take_answered(HELPER, &answer(3)).is_some());
        assert!(redirects.take_answered(HELPER, &answer(3)).is_none());
    }

    #[test]
    fn a_name_has_no_more_at_helpers_than_it_leaves_free() {
        let mut redirects = Redirects::default();
        for page in (0..FETCHES_MAX as u32).map(page) {
            if redirects.has_space(NODE) {
                redirects.insert(NODE, page, redirecting());
            }
        }
        assert_eq!(redirects.len(), FETCHES_MAX.div_ceil(2));
        assert!(!redirects.has_space(MemberId::new(NODE.name(), 99)));
        assert!(redirects.has_space(MemberId::new(NameId(99), 1)));
    }

    #[test]
    fn what_a_helper_leaves_unanswered_is_given_up() {
        let mut redirects = Redirects::default();
        redirects.insert(NODE, page(1), redirecting());
        assert_eq!(redirects.at(HELPER), [(NODE, page(1))]);
        let late = Millis(2 * PEER_FETCH_MS_MAX);
        assert!(redirects.take_expired(late).is_empty());
        assert_eq!(redirects.take_expired(late.plus(1)).len(), 1);
        assert_eq!(redirects.of(NODE), 0);
    }
}
