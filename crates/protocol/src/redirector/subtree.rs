//! What this node and those below it hold of one home.

use crate::edge::downstream::Children;
use crate::edge::upstream::Upstream;
use crate::redirector::Outbox;
use crate::redirector::digests::Digests;
use crate::redirector::prefetch::Prefetch;
use crate::redirector::standby::Images;
use crate::redirector::waiter::Waiter;
use thorp_model::planted::Bug;
use thorp_model::{Note, PageChange, PageDigest, PageId, Position, Stamp, change, planted};

/// Keeps the node's own memory right, and gives up above what nobody in the subtree needs (rule 2).
#[derive(Debug)]
pub(super) struct Subtree<'a> {
    pub(super) up: &'a mut Upstream<Waiter>,
    pub(super) children: &'a mut Children,
    pub(super) images: &'a mut Images,
    pub(super) digests: &'a mut Digests,
    pub(super) prefetch: &'a mut Prefetch,
}

impl Subtree<'_> {
    /// Whether the node's own memory has the page without holes.
    pub(super) fn has_own(&self, page: PageId) -> bool {
        let own = self.images.peek(page);
        own.is_some_and(|image| image.is_complete())
    }

    /// Keeps within the memory given.
    pub(super) fn shrink(&mut self, outbox: &mut Outbox) {
        for page in self.images.shrink() {
            self.prefetch.dropped(page, outbox);
            if planted::is(Bug::OwnCopyOnly) {
                self.give_up(page, outbox);
            }
            self.give_up_if_unused(page, outbox);
        }
    }

    /// Sends above that a page is held no more, once nobody in the whole
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
        self.prefetch.forget(page, outbox);
        self.forget_above(page);
        if self.up.edge.is_some() {
            outbox.note(Note::SubtreeEvicted);
            self.up.evict(page, entry, outbox);
        }
    }

    /// The subtree is not entered above for a page any more.
    pub(super) fn forget_above(&mut self, page: PageId) {
        self.children.directory.clear_above(page);
        self.digests.forget(page);
    }

    /// What the home vouches for of a page that has changed (rule R6). A parent that lags sends what is older than what
    /// children here may hold: nothing of it says which image is right.
    pub(super) fn take_digest(&mut self, page: PageId, since: Position, digest: PageDigest) {
        let is_entered = self.children.directory.above(page).is_some();
        if is_entered && !self.up.lags() {
            self.digests.set(page, since, digest);
        } else {
            self.digests.forget(page);
        }
    }

    /// What the stream says of pages in this redirector's own memory.
    pub(super) fn apply_own(&mut self, change: &PageChange, at: (Position, Stamp)) {
        let Some(image) = self.images.peek(change.page) else {
            return;
        };
        match change::apply(image, change, at.0, at.1) {
            Some(image) => self.images.replace(change.page, image),
            None => self.images.remove(change.page),
        }
    }
}
