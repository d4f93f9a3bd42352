//! What is likely to be wanted next is asked for above, and its child is told (rule 9). A hint promises nothing, and may be lost.

use crate::redirector::{Outbox, Proxy};
use alloc::vec::Vec;
use thorp_model::limits::{FETCHES_MAX, HINT_PAGES_MAX, SUCCESSORS_UNDER_WAY_MAX};
use thorp_model::{Down, EdgeId, Millis, Note, PageId, message};

impl Proxy {
    /// A child asks for a page, and waits for it or not.
    pub(in crate::redirector) fn asked_by(
        &mut self,
        page: PageId,
        child: EdgeId,
        ahead: bool,
        outbox: &mut Outbox,
    ) {
        if self.successors.no_more_unasked(page) {
            outbox.note(Note::AheadUsed);
        }
        if ahead {
            self.successors.heeded(child);
        }
    }

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
        let children = &self.children;
        let has = |other| children.holds_complete(child, other);
        let asks_above = self.images.takes_pages();
        let next = self.successors.waited(child, page, now, asks_above, has);
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
        for child in self.successors.children_at(page) {
            self.tell_hint(page, next.clone(), child, outbox);
        }
    }

    fn tell_hint(&self, page: PageId, next: Vec<PageId>, child: EdgeId, outbox: &mut Outbox) {
        let home = self.up.home;
        outbox.note(Note::Hinted);
        outbox.down(child, Down::Hint(message::Hint { home, page, next }));
    }

    /// Whether a page is on its way as a neighbour of this child has asked for it, and not the child itself.
    pub(in crate::redirector) fn is_for_a_neighbour(&self, page: PageId, child: EdgeId) -> bool {
        let mut waiting = self.up.waiting_for(page);
        waiting.len() > 0 && waiting.all(|waiter| waiter.edge != child)
    }

    /// A child has asked ahead for what is on its way: it may ask for something else with what that
    /// would have cost (record 0018).
    pub(in crate::redirector) fn tell_joined(
        &self,
        page: PageId,
        child: EdgeId,
        outbox: &mut Outbox,
    ) {
        let home = self.up.home;
        outbox.note(Note::JoinedAhead);
        outbox.down(child, Down::Joined(message::Joined { home, page }));
    }

    /// Another site gets the page, too: that is news to the child that asked for it first. Those that joined it know.
    pub(in crate::redirector) fn joined_above(&self, page: PageId, outbox: &mut Outbox) {
        let first = self.up.waiting_for(page).next();
        if let Some(waiter) = first.filter(|waiter| waiter.ahead) {
            self.tell_joined(page, waiter.edge, outbox);
        }
    }

    /// Asks above for a page that nobody below has asked for, unless it can be had here.
    fn fetch_ahead(&mut self, now: Millis, page: PageId, child: EdgeId, outbox: &mut Outbox) {
        let own = self.images.peek(page).is_some_and(|i| i.is_complete());
        let is_near = own || self.children.helper(page, &[child]).is_some();
        if is_near || self.up.is_fetching(page) || !self.has_space_for_successors() {
            return;
        }
        outbox.note(Note::FetchedAhead);
        if self.successors.asked_ahead(page) {
            outbox.note(Note::AheadWasted);
        }
        let updates = self.history.updates(page);
        self.up.ask_ahead(page, updates, now, outbox);
    }

    /// What nobody waits for leaves room for what somebody does, and needs a place to come to.
    fn has_space_for_successors(&self) -> bool {
        let is_space = self.images.takes_pages() && self.up.fetches() < FETCHES_MAX / 2;
        is_space && self.successors.under_way() < SUCCESSORS_UNDER_WAY_MAX
    }

    /// This node's memory had no room for a page.
    pub(in crate::redirector) fn dropped_ahead(&mut self, page: PageId, outbox: &mut Outbox) {
        if self.successors.dropped(page) {
            outbox.note(Note::AheadWasted);
        }
    }

    /// A page is here no more, or not as it was.
    pub(in crate::redirector) fn forget_ahead(&mut self, page: PageId, outbox: &mut Outbox) {
        if self.successors.no_more_unasked(page) {
            outbox.note(Note::AheadWasted);
        }
    }
}
