//! How a redirector gets pages for its children (rule 9): from its own memory,
//! by a neighbour with a complete copy, or from above.

use crate::edge::downstream::Child;
use crate::edge::upstream::{Fetched, Want};
use crate::redirector::Outbox;
use crate::redirector::digests::{Verdict, WrongHelpers};
use crate::redirector::prefetch::hints;
use crate::redirector::redirects::{Redirecting, Redirects};
use crate::redirector::subtree::Subtree;
use crate::redirector::waiter::Waiter;
use alloc::vec::Vec;
use thorp_model::limits::{
    FETCHES_AHEAD_PER_CHILD_MAX, FETCHES_MAX, FETCHES_PER_CHILD_MAX, HELPER_TRIES_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::{
    Down, EdgeId, EntryNo, FetchRefusal, FetchResult, Image, Millis, Note, PageId, PeerImage,
    message, planted,
};

/// Answers the requests of children.
///
/// A child is entered for a page before an image of it goes to the child, or a helper is asked for one (rule 2).
#[derive(Debug)]
pub(super) struct Serve<'a> {
    pub(super) subtree: Subtree<'a>,
    pub(super) redirects: &'a mut Redirects,
    pub(super) wrong_helpers: &'a mut WrongHelpers,
}

impl Serve<'_> {
    /// A child asks for a page.
    pub(super) fn fetch(&mut self, now: Millis, page: PageId, waiter: Waiter, outbox: &mut Outbox) {
        self.asked_anew(page, waiter.edge);
        if !self.subtree.children.may_read(waiter.edge, page.segment) {
            return self.deny(page, waiter, outbox);
        }
        if !self.subtree.children.has_space(waiter.edge, page) {
            outbox.note(Note::ChildLimited);
            return self.answer(page, waiter, Err(FetchRefusal::Busy), outbox);
        }
        if waiter.counts {
            self.subtree.prefetch.wanted_below(page, outbox);
        }
        if self.subtree.has_own(page)
            && let Some(image) = self.subtree.images.get(page)
        {
            outbox.note(Note::ServedFromMemory);
            return self.answer(page, waiter, Ok(image), outbox);
        }
        if planted::is(Bug::JoinedOntoRedirect) && self.join_redirect(page, waiter, outbox) {
            return;
        }
        if waiter.peers && !self.subtree.up.is_fetching(page) {
            let asked = alloc::vec![waiter.edge];
            if self.redirect(now, page, waiter, asked, outbox) {
                return;
            }
        }
        self.ask_above(now, page, waiter, outbox);
    }

    /// A child may not have a page. For a member there is no such segment then (rule R5).
    fn deny(&mut self, page: PageId, waiter: Waiter, outbox: &mut Outbox) {
        let children = &mut self.subtree.children;
        children.deny(waiter.edge, page.segment, outbox);
        let refusal = children.refusal(waiter.edge);
        self.answer(page, waiter, Err(refusal), outbox);
    }

    /// What was asked of a helper before is of no use. It did not answer in
    /// time: others are not sent to it.
    fn asked_anew(&mut self, page: PageId, requester: EdgeId) {
        let Some(child) = self.subtree.children.get(requester) else {
            return;
        };
        if let Some(redirecting) = self.redirects.take(child.node, page) {
            self.helper_is_silent(page, &redirecting);
        }
    }

    fn helper_is_silent(&mut self, page: PageId, redirecting: &Redirecting) {
        if let Some(helper) = redirecting.asked.last() {
            self.subtree.children.set_complete(*helper, page, false);
        }
    }

    /// Asks above; requests for one page in flight upward are joined.
    fn ask_above(&mut self, now: Millis, page: PageId, waiter: Waiter, outbox: &mut Outbox) {
        if !self.may_ask(page, waiter) && !planted::is(Bug::ChildNotLimited) {
            outbox.note(Note::ChildLimited);
            return self.answer(page, waiter, Err(FetchRefusal::Busy), outbox);
        }
        let up = &mut *self.subtree.up;
        if waiter.ahead && hints::is_for_a_neighbour(up, page, waiter.edge) {
            hints::tell_joined(up, page, waiter.edge, outbox);
        }
        let want = Want {
            ahead: waiter.ahead,
            updates: self.subtree.prefetch.updates(page),
        };
        up.ask(page, want, waiter, now, outbox);
    }

    /// Whether a child may ask for one more page. All of them together are one child of the parent, and the children of a
    /// name may have no more on its way than they leave free (rule R7): so there is always space for a name that asks for
    /// little.
    fn may_ask(&self, page: PageId, waiter: Waiter) -> bool {
        let waiting = self.waiting_of(waiter.edge);
        let free = FETCHES_MAX.saturating_sub(self.subtree.up.fetches());
        let is_within = waiting < FETCHES_PER_CHILD_MAX
            && (!waiter.ahead || self.ahead_of(waiter.edge) < FETCHES_AHEAD_PER_CHILD_MAX);
        // What nobody waits for leaves room for what somebody does, also of other children; what joins takes none.
        let of_name = self.waiting_of_name(waiter.edge);
        let has_space =
            of_name < free && (!waiter.ahead || self.subtree.up.fetches_ahead() < FETCHES_MAX / 2);
        is_within && (has_space || self.subtree.up.is_fetching(page))
    }

    /// Requests of a child, on their way upward, for what nobody waits for there.
    fn ahead_of(&self, child: EdgeId) -> usize {
        let waiting = self.subtree.up.waiting();
        waiting
            .filter(|waiter| waiter.ahead && waiter.edge == child)
            .count()
    }

    fn waiting_of(&self, edge: EdgeId) -> usize {
        let above = self
            .subtree
            .up
            .waiting()
            .filter(|waiter| waiter.edge == edge);
        let child = self.subtree.children.get(edge);
        above.count() + child.map_or(0, |child| self.redirects.of(child.node))
    }

    /// What all children of this child's name wait for.
    fn waiting_of_name(&self, edge: EdgeId) -> usize {
        let Some(child) = self.subtree.children.get(edge) else {
            return 0;
        };
        let edges = self.subtree.children.edges_of_name(child);
        let above = self.subtree.up.waiting();
        let above = above.filter(|waiter| edges.contains(&waiter.edge));
        above.count() + self.redirects.of_name(child.node.name())
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
        let wrong = &*self.wrong_helpers;
        let may_help = |child: &Child| wrong.may_help(child.node.name());
        let helper = self.subtree.children.helper(page, &asked, may_help);
        let child = self.subtree.children.get(waiter.edge);
        let (Some(helper), Some(child)) = (helper, child) else {
            return false;
        };
        if !self.subtree.digests.can_judge(page) {
            outbox.note(Note::DigestUnknown);
            return false;
        }
        if tries > HELPER_TRIES_MAX || !self.redirects.has_space(child.node) {
            return false;
        }
        let (requester, epoch) = (child.node, child.epoch);
        let Some(entry) = self.subtree.children.enter(waiter.edge, page, false) else {
            return false;
        };
        let (position, watermark) = (self.subtree.up.position, self.subtree.up.watermark);
        self.subtree
            .children
            .tell_position(waiter.edge, position, watermark, outbox);
        asked.push(helper);
        outbox.note(Note::Redirected);
        outbox.down(
            helper,
            Down::Redirect(message::Redirect {
                home: self.subtree.up.home,
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
        self.redirects.insert(requester, page, redirecting);
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
        let Some(redirecting) = self.redirects.take_answered(helper, &peer) else {
            return outbox.note(Note::OtherAttemptDropped);
        };
        let Some(image) = &peer.image else {
            self.subtree.children.set_complete(helper, peer.page, false);
            return self.next_try(now, peer.page, redirecting, outbox);
        };
        // What this node knows of rights is as of its position: nothing of a later image (rule R4).
        let is_ahead = peer.position > self.subtree.up.position;
        if is_ahead || !self.may_be_given(redirecting.requester, peer.page) {
            return self.next_try(now, peer.page, redirecting, outbox);
        }
        match self.subtree.digests.judge(&peer, image) {
            Verdict::Right => {}
            Verdict::Old => {
                outbox.note(Note::OldImageDropped);
                return self.next_try(now, peer.page, redirecting, outbox);
            }
            Verdict::Wrong => {
                self.helped_wrongly(helper, outbox);
                return self.next_try(now, peer.page, redirecting, outbox);
            }
        }
        self.subtree
            .children
            .set_complete(redirecting.requester, peer.page, true);
        for (edge, waiter) in &redirecting.joined {
            self.pass_joined(*edge, *waiter, &peer, outbox);
        }
        outbox.down(redirecting.requester, Down::Peer(peer));
    }

    /// A helper sent an image that is not the page of the home: it is asked no more (rule R6).
    fn helped_wrongly(&mut self, helper: EdgeId, outbox: &mut Outbox) {
        outbox.note(Note::WrongImageDropped);
        if let Some(child) = self.subtree.children.get(helper) {
            self.wrong_helpers.add(child.node.name());
        }
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
        // It is entered for the next helper, too: from then on it would hear of the page (rule R4).
        if !self.may_be_given(waiter.edge, page) {
            return self.deny(page, waiter, outbox);
        }
        if self.subtree.has_own(page)
            || !self.redirect(now, page, waiter, redirecting.asked, outbox)
        {
            let waiter = Waiter {
                peers: false,
                ..waiter
            };
            self.fetch(now, page, waiter, outbox);
        }
    }

    /// A child went: what it was to help with goes to another, what it asked for is forgotten.
    pub(super) fn helper_went(&mut self, now: Millis, edge: EdgeId, outbox: &mut Outbox) {
        self.redirects.requester_went(edge);
        for (requester, page) in self.redirects.at(edge) {
            if let Some(redirecting) = self.redirects.take(requester, page) {
                self.next_try(now, page, redirecting, outbox);
            }
        }
    }

    /// Gives up the requests that silent helpers left unanswered.
    pub(super) fn expire_redirects(&mut self, now: Millis) {
        for (page, redirecting) in self.redirects.take_expired(now) {
            self.helper_is_silent(page, &redirecting);
        }
    }

    /// A page came from above, as of this redirector's position.
    pub(super) fn arrived(&mut self, fetched: Fetched<Waiter>, outbox: &mut Outbox) {
        let page = fetched.page;
        let complete = fetched.result.as_ref().is_ok_and(|i| i.is_complete());
        let was_ahead = self.subtree.prefetch.came(page, complete);
        if let Ok(image) = &fetched.result {
            self.subtree
                .children
                .directory
                .set_above(page, fetched.entry);
            let as_of = self.subtree.up.position;
            self.subtree.digests.set_image(page, as_of, image);
            self.subtree.images.put(page, image.clone());
        }
        for waiter in fetched.waiting {
            self.answer(page, waiter, fetched.result.clone(), outbox);
            if was_ahead && planted::is(Bug::AheadNotEntered) {
                let any = EntryNo(u32::MAX);
                self.subtree
                    .children
                    .evict(waiter.edge, page, any, &mut Outbox::new());
            }
        }
        if fetched.result.is_err() {
            self.subtree.prefetch.forget_ahead(page, outbox);
        }
        self.subtree.shrink(outbox);
        self.subtree.give_up_if_unused(page, outbox);
    }

    /// Whether a child may have an image that is about to be given (rule R4): it may have lost the
    /// right since it asked.
    fn may_be_given(&self, edge: EdgeId, page: PageId) -> bool {
        let children = &self.subtree.children;
        children.may_read(edge, page.segment) || planted::is(Bug::JoinedNotChecked)
    }

    /// Answers in the child's stream: the child is entered, then the image is
    /// taken (rule 2). It is as of this position, to which the stream was told.
    fn answer(
        &mut self,
        page: PageId,
        waiter: Waiter,
        result: Result<Image, FetchRefusal>,
        outbox: &mut Outbox,
    ) {
        if self.subtree.children.get(waiter.edge).is_none() {
            return;
        }
        let reveals = match &result {
            Ok(_) => true,
            // A site knows it. A member that may not read the segment does not hear that it is there (rule R5).
            Err(FetchRefusal::NotCarried) => self.subtree.children.is_member(waiter.edge),
            Err(_) => false,
        };
        if reveals && !self.may_be_given(waiter.edge, page) {
            return self.deny(page, waiter, outbox);
        }
        let entered = result.map(|image| {
            let entry = self
                .subtree
                .children
                .enter(waiter.edge, page, image.is_complete());
            entry.map(|entry| (entry, FetchResult::Image(image)))
        });
        let (entry, answer) = match entered {
            Ok(Some(answer)) => answer,
            // It may be entered for a try that no image came of: the number says so.
            refused => (
                self.subtree.children.entry(waiter.edge, page),
                FetchResult::Refused(refused.err().unwrap_or(FetchRefusal::Busy)),
            ),
        };
        outbox.down(
            waiter.edge,
            Down::Image(message::FetchResponse {
                home: self.subtree.up.home,
                page,
                attempt: waiter.attempt,
                entry,
                position: self.subtree.up.position,
                watermark: self.subtree.up.watermark,
                result: answer,
            }),
        );
    }

    /// A planted bug: a second request waits for the first one's helper.
    fn join_redirect(&mut self, page: PageId, waiter: Waiter, outbox: &mut Outbox) -> bool {
        let Some(redirecting) = self.redirects.of_another(page, waiter.edge) else {
            return false;
        };
        outbox.note(Note::FetchJoined);
        redirecting.joined.push((waiter.edge, waiter));
        self.subtree.children.enter(waiter.edge, page, false);
        true
    }

    fn pass_joined(&mut self, edge: EdgeId, waiter: Waiter, peer: &PeerImage, outbox: &mut Outbox) {
        let Some(child) = self.subtree.children.get(edge) else {
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
