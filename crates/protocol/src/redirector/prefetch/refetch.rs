//! Pages that are invalidated, and asked for above again once for all who hold them (rule 8).

use crate::redirector::prefetch::history::Fate;
use crate::redirector::{Outbox, Proxy};
use alloc::vec::Vec;
use thorp_model::limits::FETCHES_MAX;
use thorp_model::{Millis, Note, PageChange, PageId, PageSlots};

/// The pages that have new holes after a step. One that is no more is not wanted again.
pub(in crate::redirector) fn invalidated(changes: &[PageChange]) -> Vec<PageId> {
    let holes = |change: &&PageChange| change.slots != PageSlots::Whole && change.makes_holes();
    changes.iter().filter(holes).map(|c| c.page).collect()
}

impl Proxy {
    /// Those below have been told of the holes. What they asked for again after earlier ones is asked
    /// for now, before they do; it comes into this node's memory, or to whoever asks meanwhile.
    pub(in crate::redirector) fn refetch(
        &mut self,
        now: Millis,
        invalidated: &[PageId],
        outbox: &mut Outbox,
    ) {
        for page in invalidated {
            // What is on its way is answered behind this step, or brought up to it when it comes.
            if self.up.is_fetching(*page) {
                continue;
            }
            if !self.children.directory.is_held(*page) {
                self.forget_history(*page, outbox);
                continue;
            }
            let fate = self.history.invalidated(*page);
            note(fate, outbox);
            if self.history.wants(*page) && self.has_space_to_refetch() {
                self.history.refetched(*page);
                outbox.note(Note::Refetched);
                let updates = self.history.updates(*page);
                self.up.ask_ahead(*page, updates, now, outbox);
            }
        }
    }

    /// What is asked for by nobody leaves room for what is, and needs a place to come to.
    fn has_space_to_refetch(&self) -> bool {
        self.images.takes_pages() && self.up.fetches() < FETCHES_MAX / 2
    }

    /// Somebody below asks for a page.
    pub(in crate::redirector) fn asked_below(&mut self, page: PageId, outbox: &mut Outbox) {
        note(self.history.asked(page), outbox);
    }

    /// A page went out of this node's memory.
    pub(in crate::redirector) fn dropped_own(&mut self, page: PageId, outbox: &mut Outbox) {
        note(self.history.dropped(page), outbox);
        self.dropped_ahead(page, outbox);
    }

    /// Nobody below holds a page.
    pub(in crate::redirector) fn forget_history(&mut self, page: PageId, outbox: &mut Outbox) {
        note(self.history.forget(page), outbox);
        self.forget_ahead(page, outbox);
    }
}

fn note(fate: Option<Fate>, outbox: &mut Outbox) {
    match fate {
        Some(Fate::Used) => outbox.note(Note::RefetchUsed),
        Some(Fate::Wasted) => outbox.note(Note::RefetchWasted),
        None => {}
    }
}
