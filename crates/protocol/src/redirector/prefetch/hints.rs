//! What is likely to be wanted next is asked for above, and its child gets a hint (rule 9). A hint promises nothing, and may be lost.

use crate::edge::upstream::Upstream;
use crate::redirector::Outbox;
use crate::redirector::subtree::Subtree;
use crate::redirector::waiter::Waiter;
use alloc::vec::Vec;
use thorp_model::limits::{FETCHES_MAX, HINT_PAGES_MAX, SUCCESSORS_UNDER_WAY_MAX};
use thorp_model::{Down, EdgeId, Millis, Note, PageId, message};

/// Acts on what is likely to be wanted next.
#[derive(Debug)]
pub(in crate::redirector) struct Hints<'a> {
    pub(in crate::redirector) subtree: Subtree<'a>,
}

impl Hints<'_> {
    /// A child waits for a page, and is answered.
    pub(in crate::redirector) fn hint(
        &mut self,
        now: Millis,
        page: PageId,
        child: EdgeId,
        outbox: &mut Outbox,
    ) {
        // A large object's pages are asked for all at once anyway.
        if page.page.is_overflow() {
            return;
        }
        let children = &self.subtree.children;
        let has = |other| children.holds_complete(child, other);
        let asks_above = self.subtree.images.takes_pages();
        let successors = &mut self.subtree.prefetch.successors;
        let next = successors.waited(child, page, now, asks_above, has);
        for likely in &next.pages {
            self.fetch_ahead(now, *likely, child, outbox);
        }
        if next.is_told {
            self.tell_hint(page, next.pages, child, outbox);
        }
    }

    /// A hint from above is for those who wait for that page here. They ask for what they want of it.
    pub(in crate::redirector) fn pass_hint(&mut self, hint: message::Hint, outbox: &mut Outbox) {
        let (page, mut next) = (hint.page, hint.next);
        next.truncate(HINT_PAGES_MAX);
        for child in self.subtree.prefetch.successors.children_at(page) {
            self.tell_hint(page, next.clone(), child, outbox);
        }
    }

    fn tell_hint(&self, page: PageId, next: Vec<PageId>, child: EdgeId, outbox: &mut Outbox) {
        // What neighbours read is hidden from a child that may not read it (rule R4).
        let children = &self.subtree.children;
        let shown = next.into_iter();
        let next: Vec<PageId> = shown
            .filter(|next| children.may_read(child, next.segment))
            .collect();
        if next.is_empty() {
            return;
        }
        let home = self.subtree.up.home;
        outbox.note(Note::Hinted);
        outbox.down(child, Down::Hint(message::Hint { home, page, next }));
    }

    /// Asks above for a page that nobody below has asked for, unless it can be had here.
    fn fetch_ahead(&mut self, now: Millis, page: PageId, child: EdgeId, outbox: &mut Outbox) {
        let Subtree {
            up,
            children,
            digests,
            ..
        } = &self.subtree;
        let has_helper = || children.helper(page, &[child], |_| true).is_some();
        let is_near = self.subtree.has_own(page) || (digests.can_judge(page) && has_helper());
        if is_near || up.is_fetching(page) || !self.has_space() {
            return;
        }
        outbox.note(Note::FetchedAhead);
        let prefetch = &mut self.subtree.prefetch;
        if prefetch.successors.asked_ahead(page) {
            outbox.note(Note::AheadWasted);
        }
        let updates = prefetch.updates(page);
        self.subtree.up.ask_ahead(page, updates, now, outbox);
    }

    /// What nobody waits for leaves space for what somebody does, and needs a place to come to.
    fn has_space(&self) -> bool {
        let Subtree {
            up,
            images,
            prefetch,
            ..
        } = &self.subtree;
        let is_space = images.takes_pages() && up.fetches() < FETCHES_MAX / 2;
        is_space && prefetch.successors.under_way() < SUCCESSORS_UNDER_WAY_MAX
    }
}

/// Whether a page is on its way as a neighbour of this child has asked for it, and not the child itself.
pub(in crate::redirector) fn is_for_a_neighbour(
    up: &Upstream<Waiter>,
    page: PageId,
    child: EdgeId,
) -> bool {
    let mut waiting = up.waiting_for(page);
    waiting.len() > 0 && waiting.all(|waiter| waiter.edge != child)
}

/// A child has asked ahead for what is on its way: it may ask for something else with what that
/// would have cost (record 0018).
pub(in crate::redirector) fn tell_joined(
    up: &Upstream<Waiter>,
    page: PageId,
    child: EdgeId,
    outbox: &mut Outbox,
) {
    let home = up.home;
    outbox.note(Note::JoinedAhead);
    outbox.down(child, Down::Joined(message::Joined { home, page }));
}

/// Another site gets the page, too: that is news to the child that asked for it first. Those that joined it know.
pub(in crate::redirector) fn joined_above(
    up: &Upstream<Waiter>,
    page: PageId,
    outbox: &mut Outbox,
) {
    let first = up.waiting_for(page).next();
    if let Some(waiter) = first.filter(|waiter| waiter.ahead) {
        tell_joined(up, page, waiter.edge, outbox);
    }
}
