//! What a redirector asks for, or names to its children, before anybody waits
//! for it: invalidated pages that are wanted again, and likely successors.

pub(in crate::redirector) mod hints;
mod history;
pub(in crate::redirector) mod refetch;
mod successors;

use crate::redirector::Outbox;
use crate::redirector::prefetch::history::{Fate, History};
use crate::redirector::prefetch::successors::Successors;
use thorp_model::{EdgeId, Note, PageId};

/// What is known of the pages of one home that may be wanted.
///
/// Both parts only predict: all of it may be lost, and none of it promises anything. Each page that was asked for in
/// vain is noted once.
#[derive(Debug)]
pub(in crate::redirector) struct Prefetch {
    pub(in crate::redirector) history: History,
    pub(in crate::redirector) successors: Successors,
}

impl Prefetch {
    pub(in crate::redirector) fn new(history_pages: usize, successor_pages: usize) -> Self {
        Prefetch {
            history: History::new(history_pages),
            successors: Successors::new(successor_pages),
        }
    }

    /// Of how many of a page's next changes the values are wanted (rule 8).
    pub(in crate::redirector) fn updates(&self, page: PageId) -> u8 {
        self.history.updates(page)
    }

    /// Whether an invalidated page is to be asked for above at once.
    pub(in crate::redirector) fn wants(&self, page: PageId) -> bool {
        self.history.wants(page)
    }

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

    /// Somebody below wants a page.
    pub(in crate::redirector) fn wanted_below(&mut self, page: PageId, outbox: &mut Outbox) {
        note(self.history.asked(page), outbox);
    }

    /// An answer for a page came from above. True if it was asked for ahead.
    pub(in crate::redirector) fn came(&mut self, page: PageId, is_complete: bool) -> bool {
        self.history.came(page, is_complete);
        self.successors.came(page)
    }

    /// A page went out of this node's memory.
    pub(in crate::redirector) fn dropped(&mut self, page: PageId, outbox: &mut Outbox) {
        note(self.history.dropped(page), outbox);
        if self.successors.dropped(page) {
            outbox.note(Note::AheadWasted);
        }
    }

    /// Nobody below holds a page.
    pub(in crate::redirector) fn forget(&mut self, page: PageId, outbox: &mut Outbox) {
        note(self.history.forget(page), outbox);
        self.forget_ahead(page, outbox);
    }

    /// A page is here no more, or not as it was.
    pub(in crate::redirector) fn forget_ahead(&mut self, page: PageId, outbox: &mut Outbox) {
        if self.successors.no_more_unasked(page) {
            outbox.note(Note::AheadWasted);
        }
    }

    /// A child went.
    pub(in crate::redirector) fn child_went(&mut self, child: EdgeId) {
        self.successors.child_went(child);
    }

    /// The stream has ended.
    pub(in crate::redirector) fn stream_ended(&mut self) {
        self.history.clear();
        self.successors.stream_ended();
    }
}

fn note(fate: Option<Fate>, outbox: &mut Outbox) {
    match fate {
        Some(Fate::Used) => outbox.note(Note::RefetchUsed),
        Some(Fate::Wasted) => outbox.note(Note::RefetchWasted),
        None => {}
    }
}
