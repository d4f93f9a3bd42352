//! Pages that are invalidated, and asked for above again once for all who hold them (rule 8).

use crate::redirector::Outbox;
use crate::redirector::prefetch::note;
use crate::redirector::subtree::Subtree;
use alloc::vec::Vec;
use thorp_model::limits::FETCHES_MAX;
use thorp_model::{Millis, Note, PageChange, PageId, PageSlots};

/// The pages that have new holes after a step. One that is no more is not wanted again.
pub(in crate::redirector) fn invalidated(changes: &[PageChange]) -> Vec<PageId> {
    let holes = |change: &&PageChange| change.slots != PageSlots::Whole && change.makes_holes();
    changes.iter().filter(holes).map(|c| c.page).collect()
}

/// Those below have got the holes. What they asked for again after earlier ones is asked
/// for now, before they do; it comes into this node's memory, or to whoever asks meanwhile.
pub(in crate::redirector) fn refetch(
    subtree: &mut Subtree<'_>,
    now: Millis,
    invalidated: &[PageId],
    outbox: &mut Outbox,
) {
    for page in invalidated {
        // What is on its way is answered behind this step, or brought up to it when it comes.
        if subtree.up.is_fetching(*page) {
            continue;
        }
        if !subtree.children.directory.is_held(*page) {
            subtree.prefetch.forget(*page, outbox);
            continue;
        }
        let has_space = has_space(subtree);
        let history = &mut subtree.prefetch.history;
        note(history.invalidated(*page), outbox);
        if history.wants(*page) && has_space {
            history.refetched(*page);
            outbox.note(Note::Refetched);
            let updates = history.updates(*page);
            subtree.up.ask_ahead(*page, updates, now, outbox);
        }
    }
}

/// What is asked for by nobody leaves space for what is, and needs a place to come to.
fn has_space(subtree: &Subtree<'_>) -> bool {
    subtree.images.takes_pages() && subtree.up.fetches() < FETCHES_MAX / 2
}
