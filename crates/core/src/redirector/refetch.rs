//! Pages that are invalidated, and asked for above again once for all who hold them (rule 8).

use super::Proxy;
use super::history::Fate;
use crate::change::{PageChange, PageSlots};
use crate::door::Out;
use crate::ids::{Millis, PageId};
use crate::limits::FETCHES_MAX;
use crate::note::Note;
use alloc::vec::Vec;

/// The pages that have new holes after a step. One that is no more is not wanted again.
pub(super) fn invalidated(changes: &[PageChange]) -> Vec<PageId> {
    let holes = |change: &&PageChange| change.slots != PageSlots::Whole && change.makes_holes();
    changes.iter().filter(holes).map(|c| c.page).collect()
}

impl Proxy {
    /// Those below have been told of the holes. What they asked for again after earlier ones is asked
    /// for now, before they do; it comes into this node's memory, or to whoever asks meanwhile.
    pub(super) fn refetch(&mut self, now: Millis, invalidated: &[PageId], out: &mut Out) {
        for page in invalidated {
            // What is on its way is answered behind this step, or brought up to it when it comes.
            if self.up.is_fetching(*page) {
                continue;
            }
            if !self.children.directory.is_held(*page) {
                self.forget_history(*page, out);
                continue;
            }
            let fate = self.history.invalidated(*page);
            note(fate, out);
            if self.history.wants(*page) && self.has_room_to_refetch() {
                self.history.refetched(*page);
                out.note(Note::Refetched);
                let updates = self.history.updates(*page);
                self.up.ask_ahead(*page, updates, now, out);
            }
        }
    }

    /// What is asked for by nobody leaves room for what is, and needs a place to come to.
    fn has_room_to_refetch(&self) -> bool {
        self.images.takes_pages() && self.up.fetches() < FETCHES_MAX / 2
    }

    /// Somebody below asks for a page.
    pub(super) fn asked_below(&mut self, page: PageId, out: &mut Out) {
        note(self.history.asked(page), out);
    }

    /// A page went out of this node's memory.
    pub(super) fn dropped_own(&mut self, page: PageId, out: &mut Out) {
        note(self.history.dropped(page), out);
        self.dropped_ahead(page, out);
    }

    /// Nobody below holds a page.
    pub(super) fn forget_history(&mut self, page: PageId, out: &mut Out) {
        note(self.history.forget(page), out);
        self.forget_ahead(page, out);
    }
}

fn note(fate: Option<Fate>, out: &mut Out) {
    match fate {
        Some(Fate::Used) => out.note(Note::RefetchUsed),
        Some(Fate::Wasted) => out.note(Note::RefetchWasted),
        None => {}
    }
}
