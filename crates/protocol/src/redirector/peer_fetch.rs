//! How a redirector gets pages for its children (rule 9): from its own memory,
//! by a neighbour with a complete copy, or from above.

use crate::edge::upstream::{Fetched, Want};
use crate::redirector::{Outbox, Proxy};
use alloc::vec::Vec;
use thorp_model::limits::{
    FETCHES_AHEAD_PER_CHILD_MAX, FETCHES_MAX, FETCHES_PER_CHILD_MAX, HELPER_TRIES_MAX,
    PEER_FETCH_MS_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::{
    Attempt, Down, EdgeId, EntryNo, FetchRefusal, FetchResult, Millis, Note, PageChange, PageId,
    PeerImage, message, planted,
};

/// A child that waits for a page from above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) edge: EdgeId,
    pub(super) attempt: Attempt,
    /// Whether a neighbour may answer, beside the stream.
    pub(super) peers: bool,
    /// Whether nobody waits for it yet.
    pub(super) ahead: bool,
    /// Whether it shows that the page is wanted below (rule 8).
    pub(super) counts: bool,
}

const FIRST_PAGE: PageId = PageId::new(0, 0);
const LAST_PAGE: PageId = PageId::new(u32::MAX, u32::MAX);

/// A request that was passed to a helper.
#[derive(Debug)]
pub(super) struct Redirecting {
    requester: EdgeId,
    attempt: Attempt,
    ahead: bool,
    /// The helpers that were asked, and the requester: not to be asked again.
    asked: Vec<EdgeId>,
    entry: EntryNo,
    since: Millis,
    /// A planted bug only: requests joined onto this one.
    joined: Vec<(EdgeId, Waiter)>,
}

impl Proxy {
    /// A child asks for a page.
    pub(super) fn asked(
        &mut self,
        now: Millis,
        edge: EdgeId,
        fetch: &message::Fetch,
        outbox: &mut Outbox,
    ) {
        let waiter = Waiter {
            edge,
            attempt: fetch.attempt,
            peers: fetch.peers,
            ahead: fetch.ahead,
            // All values that are known here go to all holders anyway. A child that asks for
            // them is a site that refetches what its members want.
            counts: !fetch.ahead || fetch.updates > 0,
        };
        self.asked_by(fetch.page, edge, fetch.ahead, outbox);
        self.fetch(now, fetch.page, waiter, outbox);
        // What is waited for goes first.
        if !fetch.ahead {
            self.hint(now, fetch.page, edge, outbox);
        }
    }

    /// A child gives up a page.
    pub(super) fn evicted(&mut self, edge: EdgeId, evict: &message::Evict, outbox: &mut Outbox) {
        if self.children.evict(edge, evict.page, evict.entry, outbox) {
            self.give_up_if_unused(evict.page, outbox);
        }
    }

    pub(super) fn fetch(&mut self, now: Millis, page: PageId, waiter: Waiter, outbox: &mut Outbox) {
        self.asked_anew(page, waiter.edge);
        if !self.children.has_space(waiter.edge, page) {
            outbox.note(Note::ChildLimited);
            return self.answer(page, waiter, Err(FetchRefusal::Busy), outbox);
        }
        if waiter.counts {
            self.asked_below(page, outbox);
        }
        let own = self.images.peek(page).is_some_and(|i| i.is_complete());
        if own && let Some(image) = self.images.get(page) {
            outbox.note(Note::ServedFromMemory);
            return self.answer(page, waiter, Ok(image), outbox);
        }
        if planted::is(Bug::JoinedOntoRedirect) && self.join_redirect(page, waiter, outbox) {
            return;
        }
        if waiter.peers && !self.up.is_fetching(page) {
            let asked = alloc::vec![waiter.edge];
            if self.redirect(now, page, waiter, asked, outbox) {
                return;
            }
        }
        self.ask_above(now, page, waiter, outbox);
    }

    /// What was asked of a helper before is of no use. It did not answer in
    /// time: others are not sent to it.
    fn asked_anew(&mut self, page: PageId, requester: EdgeId) {
        let Some(child) = self.children.get(requester) else {
            return;
        };
        if let Some(redirecting) = self.redirecting.remove(&(child.node, page)) {
            self.helper_is_silent(page, &redirecting);
        }
    }

    fn helper_is_silent(&mut self, page: PageId, redirecting: &Redirecting) {
        if let Some(helper) = redirecting.asked.last() {
            self.children.set_complete(*helper, page, false);
        }
    }

    /// Asks above; requests for one page in flight upward are joined.
    fn ask_above(&mut self, now: Millis, page: PageId, waiter: Waiter, outbox: &mut Outbox) {
        if !self.may_ask(page, waiter) && !planted::is(Bug::ChildNotLimited) {
            outbox.note(Note::ChildLimited);
            return self.answer(page, waiter, Err(FetchRefusal::Busy), outbox);
        }
        if waiter.ahead && self.is_for_a_neighbour(page, waiter.edge) {
            self.tell_joined(page, waiter.edge, outbox);
        }
        let want = Want {
            ahead: waiter.ahead,
            updates: self.history.updates(page),
        };
        self.up.ask(page, want, waiter, now, outbox);
    }

    /// Whether a child may ask for one more page. All of them together are one
    /// child of the parent, and a child may have no more on its way than it
    /// leaves free: so there is always room for one that asks for little.
    fn may_ask(&self, page: PageId, waiter: Waiter) -> bool {
        let waiting = self.waiting_of(waiter.edge);
        let free = FETCHES_MAX.saturating_sub(self.up.fetches());
        let is_within = waiting < FETCHES_PER_CHILD_MAX
            && (!waiter.ahead || self.ahead_of(waiter.edge) < FETCHES_AHEAD_PER_CHILD_MAX);
        // What nobody waits for leaves room for what somebody does, also of other children; what joins takes none.
        let has_space =
            waiting < free && (!waiter.ahead || self.up.fetches_ahead() < FETCHES_MAX / 2);
        is_within && (has_space || self.up.is_fetching(page))
    }

    /// Requests of a child, on their way upward, for what nobody waits for there.
    fn ahead_of(&self, child: EdgeId) -> usize {
        let waiting = self.up.waiting();
        waiting
            .filter(|waiter| waiter.ahead && waiter.edge == child)
            .count()
    }

    fn waiting_of(&self, edge: EdgeId) -> usize {
        let above = self.up.waiting().filter(|waiter| waiter.edge == edge);
        above.count() + self.redirects_of(edge)
    }

    fn redirects_of(&self, edge: EdgeId) -> usize {
        self.children.get(edge).map_or(0, |child| {
            let all = (child.node, FIRST_PAGE)..=(child.node, LAST_PAGE);
            self.redirecting.range(all).count()
        })
    }

    /// Whether one more request of a child may go to a helper: it has no more
    /// there than it leaves free.
    fn may_redirect(&self, child: EdgeId) -> bool {
        let free = FETCHES_MAX.saturating_sub(self.redirecting.len());
        self.redirects_of(child) < free || (free > 0 && planted::is(Bug::ChildNotLimited))
    }

    /// Passes a request to a helper, in the helper's ordered stream. The
    /// requester is entered first, at every try: from here on it hears of the page.
    fn redirect(
        &mut self,
        now: Millis,
        page: PageId,
        waiter: Waiter,
        mut asked: Vec<EdgeId>,
        outbox: &mut Outbox,
    ) -> bool {
        let tries = asked.len() as u32;
        let helper = self.children.helper(page, &asked);
        let child = self.children.get(waiter.edge);
        let (Some(helper), Some(child)) = (helper, child) else {
            return false;
        };
        if tries > HELPER_TRIES_MAX || !self.may_redirect(waiter.edge) {
            return false;
        }
        let (requester, epoch) = (child.node, child.epoch);
        let Some(entry) = self.children.enter(waiter.edge, page, false) else {
            return false;
        };
        let (position, watermark) = (self.up.position, self.up.watermark);
        self.children
            .tell_position(waiter.edge, position, watermark, outbox);
        asked.push(helper);
        outbox.note(Note::Redirected);
        outbox.down(
            helper,
            Down::Redirect(message::Redirect {
                home: self.up.home,
                page,
                requester,
                epoch,
                attempt: waiter.attempt,
                entry,
            }),
        );
        let redirecting = Redirecting {
            requester: waiter.edge,
            attempt: waiter.attempt,
            ahead: waiter.ahead,
            asked,
            entry,
            since: now,
            joined: Vec::new(),
        };
        self.redirecting.insert((requester, page), redirecting);
        true
    }

    /// A helper's answer: passed on to the requester, or another try.
    pub(super) fn helper_answered(
        &mut self,
        now: Millis,
        helper: EdgeId,
        peer: PeerImage,
        outbox: &mut Outbox,
    ) {
        let key = (peer.requester, peer.page);
        let answers = |r: &Redirecting| {
            let is_asked = r.asked.last() == Some(&helper);
            is_asked && (r.attempt, r.entry) == (peer.attempt, peer.entry)
        };
        if !self.redirecting.get(&key).is_some_and(answers) {
            outbox.note(Note::OtherAttemptDropped);
            return;
        }
        let Some(redirecting) = self.redirecting.remove(&key) else {
            return;
        };
        if peer.image.is_none() {
            self.children.set_complete(helper, peer.page, false);
            return self.next_try(now, peer.page, redirecting, outbox);
        }
        self.children
            .set_complete(redirecting.requester, peer.page, true);
        for (edge, waiter) in &redirecting.joined {
            self.pass_joined(*edge, *waiter, &peer, outbox);
        }
        outbox.down(redirecting.requester, Down::Peer(peer));
    }

    fn next_try(
        &mut self,
        now: Millis,
        page: PageId,
        redirecting: Redirecting,
        outbox: &mut Outbox,
    ) {
        let waiter = Waiter {
            edge: redirecting.requester,
            attempt: redirecting.attempt,
            peers: true,
            ahead: redirecting.ahead,
            // It did when it came.
            counts: false,
        };
        let own = self.images.peek(page).is_some_and(|i| i.is_complete());
        if own || !self.redirect(now, page, waiter, redirecting.asked, outbox) {
            let waiter = Waiter {
                peers: false,
                ..waiter
            };
            self.fetch(now, page, waiter, outbox);
        }
    }

    /// A child went: what it was to help with goes to another, what it asked for is forgotten.
    pub(super) fn helper_went(&mut self, now: Millis, edge: EdgeId, outbox: &mut Outbox) {
        self.redirecting.retain(|_, r| r.requester != edge);
        let orphans: Vec<_> = self
            .redirecting
            .iter()
            .filter(|(_, r)| r.asked.last() == Some(&edge))
            .map(|(key, _)| *key)
            .collect();
        for key in orphans {
            if let Some(redirecting) = self.redirecting.remove(&key) {
                self.next_try(now, key.1, redirecting, outbox);
            }
        }
    }

    /// Requests that a silent helper left unanswered: by now their requesters
    /// have asked again, for an answer in the stream, or want it no more.
    pub(super) fn expire_redirects(&mut self, now: Millis) {
        let is_old = |r: &Redirecting| now.since(r.since) > 2 * PEER_FETCH_MS_MAX;
        let expired: Vec<_> = self
            .redirecting
            .extract_if(.., |_, redirecting| is_old(redirecting))
            .collect();
        for ((_, page), redirecting) in expired {
            self.helper_is_silent(page, &redirecting);
        }
    }

    /// A page came from above, as of this redirector's position.
    pub(super) fn arrived(&mut self, fetched: Fetched<Waiter>, outbox: &mut Outbox) {
        let page = fetched.page;
        let complete = fetched.result.as_ref().is_ok_and(|i| i.is_complete());
        self.history.came(page, complete);
        let was_ahead = self.successors.came(page);
        if let Ok(image) = &fetched.result {
            self.children.directory.set_above(page, fetched.entry);
            self.images.put(page, image.clone());
        }
        for waiter in fetched.waiting {
            self.answer(page, waiter, fetched.result.clone(), outbox);
            if was_ahead && planted::is(Bug::AheadNotEntered) {
                let any = EntryNo(u32::MAX);
                self.children
                    .evict(waiter.edge, page, any, &mut Outbox::new());
            }
        }
        if fetched.result.is_err() {
            self.forget_ahead(page, outbox);
        }
        self.shrink(outbox);
        self.give_up_if_unused(page, outbox);
    }

    /// Answers in the child's stream: the child is entered, then the image is
    /// taken (rule 2). It is as of this position, to which the stream was told.
    fn answer(
        &mut self,
        page: PageId,
        waiter: Waiter,
        result: Result<thorp_model::Image, FetchRefusal>,
        outbox: &mut Outbox,
    ) {
        if self.children.get(waiter.edge).is_none() {
            return;
        }
        let entered = result.map(|image| {
            let entry = self.children.enter(waiter.edge, page, image.is_complete());
            entry.map(|entry| (entry, FetchResult::Image(image)))
        });
        let (entry, answer) = match entered {
            Ok(Some(answer)) => answer,
            // It may be entered for a try that no image came of: the number says so.
            refused => (
                self.children.entry(waiter.edge, page),
                FetchResult::Refused(refused.err().unwrap_or(FetchRefusal::Busy)),
            ),
        };
        outbox.down(
            waiter.edge,
            Down::Image(message::FetchResponse {
                home: self.up.home,
                page,
                attempt: waiter.attempt,
                entry,
                position: self.up.position,
                watermark: self.up.watermark,
                result: answer,
            }),
        );
    }

    /// This node as a helper of its parent: only its own memory is looked at.
    pub(super) fn help(&self, edge: EdgeId, redirect: message::Redirect, outbox: &mut Outbox) {
        let own = self.images.peek(redirect.page);
        let image = own.filter(|image| image.is_complete()).cloned();
        self.up.help(edge, redirect, image, outbox);
    }

    /// Keeps within the memory given.
    pub(super) fn shrink(&mut self, outbox: &mut Outbox) {
        for page in self.images.shrink() {
            self.dropped_own(page, outbox);
            if planted::is(Bug::OwnCopyOnly) {
                self.give_up(page, outbox);
            }
            self.give_up_if_unused(page, outbox);
        }
    }

    /// Tells above that a page is held no more, once nobody in the whole
    /// subtree holds it or has asked for it (rule 2, trap 24).
    pub(super) fn give_up_if_unused(&mut self, page: PageId, outbox: &mut Outbox) {
        let used = self.children.directory.is_held(page)
            || self.images.has(page)
            || self.up.is_fetching(page);
        if !used {
            self.give_up(page, outbox);
        }
    }

    /// Pages that are entered above and whose images were dropped (rule 2).
    pub(super) fn settle_strays(&mut self, outbox: &mut Outbox) {
        for (page, entry) in self.up.take_strays() {
            let above = self.children.directory.above(page);
            let entry = above.map_or(entry, |above| above.max(entry));
            self.children.directory.set_above(page, entry);
            self.give_up_if_unused(page, outbox);
        }
    }

    fn give_up(&mut self, page: PageId, outbox: &mut Outbox) {
        let Some(entry) = self.children.directory.above(page) else {
            return;
        };
        self.forget_history(page, outbox);
        self.children.directory.clear_above(page);
        if self.up.edge.is_some() {
            outbox.note(Note::SubtreeEvicted);
            self.up.evict(page, entry, outbox);
        }
    }

    /// What the stream says of pages in this redirector's own memory.
    pub(super) fn apply_own(
        &mut self,
        change: &PageChange,
        at: (thorp_model::Position, thorp_model::Stamp),
    ) {
        let Some(image) = self.images.peek(change.page) else {
            return;
        };
        match thorp_model::change::apply(image, change, at.0, at.1) {
            Some(image) => self.images.replace(change.page, image),
            None => self.images.remove(change.page),
        }
    }

    /// A planted bug: a second request waits for the first one's helper.
    fn join_redirect(&mut self, page: PageId, waiter: Waiter, outbox: &mut Outbox) -> bool {
        let Some(redirecting) = self
            .redirecting
            .iter_mut()
            .find(|((_, p), r)| *p == page && r.requester != waiter.edge)
            .map(|(_, r)| r)
        else {
            return false;
        };
        outbox.note(Note::FetchJoined);
        redirecting.joined.push((waiter.edge, waiter));
        self.children.enter(waiter.edge, page, false);
        true
    }

    fn pass_joined(&mut self, edge: EdgeId, waiter: Waiter, peer: &PeerImage, outbox: &mut Outbox) {
        let Some(child) = self.children.get(edge) else {
            return;
        };
        let peer = PeerImage {
            requester: child.node,
            epoch: child.epoch,
            attempt: waiter.attempt,
            ..peer.clone()
        };
        outbox.down(edge, Down::Peer(peer));
    }
}
