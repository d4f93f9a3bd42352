//! What the program asks of its member for one home: pages and watches.

use crate::edge::upstream::Want;
use crate::member::replica::Replica;
use crate::member::{MemberAction, Outbox, Response};
use alloc::vec::Vec;
use thorp_model::limits::{
    FETCHES_MAX, HINT_PAGES_MAX, WAITING_PER_PAGE_MAX, WATCHES_PER_CHILD_MAX,
};
use thorp_model::{Millis, Note, PageId, Place, RequestId, SegmentId, message};

/// Asks a home for what the program wants, within the limits of a member.
#[derive(Debug)]
pub(super) struct Requests<'a> {
    pub(super) replica: &'a mut Replica,
}

impl Requests<'_> {
    /// The program wants a page.
    pub(super) fn fetch(
        &mut self,
        now: Millis,
        request_id: RequestId,
        page: PageId,
        outbox: &mut Outbox,
    ) {
        let Replica { up, pages, .. } = &mut *self.replica;
        if pages.shown(page).is_some_and(|shown| shown.is_complete()) {
            let there = Response::Fetched(None);
            return outbox.act(MemberAction::Respond(request_id, there));
        }
        if pages.has_own_holes(page) {
            if !pages.wait(page, request_id) {
                outbox.act(MemberAction::Respond(request_id, Response::Busy));
            }
            return;
        }
        let is_too_much = match up.is_fetching(page) {
            true => up.waiting_for(page).len() >= WAITING_PER_PAGE_MAX,
            false => up.fetches() >= FETCHES_MAX,
        };
        if is_too_much {
            return outbox.act(MemberAction::Respond(request_id, Response::Busy));
        }
        up.ask(page, Want::default(), request_id, now, outbox);
    }

    /// The program will want a page soon.
    pub(super) fn prefetch(&mut self, now: Millis, page: PageId, outbox: &mut Outbox) {
        let Replica { up, pages, .. } = &mut *self.replica;
        // What nobody waits for leaves space for what somebody does.
        if !pages.is_whole(page) && up.fetches() < FETCHES_MAX / 2 {
            up.ask_ahead(page, 0, now, outbox);
        }
    }

    /// What the parent holds to be likely (rule 9): the program knows how much of it it wants.
    pub(super) fn hinted(&self, hint: &message::Hint, outbox: &mut Outbox) {
        let Replica { up, pages, .. } = &*self.replica;
        let is_wanted = |page: &PageId| !pages.is_whole(*page) && !up.is_fetching(*page);
        let next = hint.next.iter().take(HINT_PAGES_MAX).copied();
        let wanted = next.filter(is_wanted);
        let home = hint.home;
        let likely: Vec<Place> = wanted.map(|page| Place { home, page }).collect();
        if !likely.is_empty() {
            outbox.act(MemberAction::Hint(likely));
        }
    }

    /// A neighbour gets a page, too, that was asked for ahead (rule 9). If it has come meanwhile, that is old news.
    pub(super) fn joined(&self, joined: &message::Joined, outbox: &mut Outbox) {
        let (home, page) = (joined.home, joined.page);
        if self.replica.up.is_fetching(page) {
            outbox.act(MemberAction::Joined(Place { home, page }));
        }
    }

    /// The program begins or ends to watch a segment.
    pub(super) fn watch(
        &mut self,
        request_id: RequestId,
        segment: SegmentId,
        on: bool,
        outbox: &mut Outbox,
    ) {
        let Replica { up, watches, .. } = &mut *self.replica;
        let is_new = on && !watches.contains_key(&segment);
        if is_new && watches.len() >= WATCHES_PER_CHILD_MAX {
            let home = up.home;
            outbox.note(Note::ChildLimited);
            return outbox.act(MemberAction::Respond(
                request_id,
                Response::Unwatched { home, segment },
            ));
        }
        if on {
            watches.insert(segment, request_id);
        } else {
            watches.remove(&segment);
        }
        up.watch(segment, on, outbox);
    }

    /// The parent does not send the changes of a segment: the program learns it.
    pub(super) fn unwatched(&mut self, segment: SegmentId, outbox: &mut Outbox) {
        let Replica { up, watches, .. } = &mut *self.replica;
        if let Some(request_id) = watches.remove(&segment) {
            let home = up.home;
            // Asked for anew meanwhile, it may be watched above: that is ended too.
            up.watch(segment, false, outbox);
            outbox.act(MemberAction::Respond(
                request_id,
                Response::Unwatched { home, segment },
            ));
        }
    }
}
