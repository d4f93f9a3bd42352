//! Pages for a home's children: from memory, or from disk.

use crate::edge::downstream::Children;
use crate::home::log::Log;
use crate::home::log::queue::OnDurable;
use crate::home::pages::waiters::{Waiter, Waiters};
use crate::home::tables::Tables;
use crate::home::{HomeAction, LoadResult, Outbox};
use thorp_model::limits::UPDATES_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    Down, EdgeId, EntryNo, FetchRefusal, FetchResult, HomeId, Image, Note, PageId, PeerImage,
    SegmentId, Stamp, message, planted,
};

/// Serves pages to children.
///
/// A child is entered before its image is taken (rule 2), and every fetch is answered once: at
/// once, or when its page has come.
#[derive(Debug)]
pub(super) struct Serve<'a> {
    pub(super) home: HomeId,
    pub(super) children: &'a mut Children,
    pub(super) log: &'a mut Log,
    pub(super) tables: &'a mut Tables,
    pub(super) waiters: &'a mut Waiters,
}

impl Serve<'_> {
    /// Answers a fetch, or lets it wait for the disk.
    pub(super) fn fetch(&mut self, page: PageId, waiter: Waiter, outbox: &mut Outbox) {
        if !self.may_read(waiter.edge, page.segment) {
            self.children.deny(waiter.edge, page.segment, outbox);
            let refusal = self.children.refusal(waiter.edge);
            self.refuse_fetch(page, waiter, refusal, outbox);
        } else if self.tables.segments.is_removing(page.segment) {
            // The removal may not be durable yet (rule 1).
            if self.log.is_busy() {
                return self.refuse_fetch(page, waiter, FetchRefusal::Busy, outbox);
            }
            self.log.after_all(OnDurable::NoPage(page, waiter));
        } else if self.tables.segments.get(page.segment).is_none()
            || self.tables.is_not_named_yet(page)
        {
            self.refuse_fetch(page, waiter, FetchRefusal::NoSuchSegment, outbox);
        } else if self.tables.pages.is_loaded(page) {
            outbox.note(Note::ServedFromMemory);
            self.answer_fetch(page, waiter, outbox);
        } else if self.tables.pages.is_damaged(page) {
            self.refuse_fetch(page, waiter, FetchRefusal::Damaged, outbox);
        } else if self.waiters.add(page, waiter) {
            self.tables.pages.load(page, outbox);
        } else {
            outbox.note(Note::ChildLimited);
            self.refuse_fetch(page, waiter, FetchRefusal::Busy, outbox);
        }
    }

    /// Whether a child may have a segment, as of where its stream stands (rule R4). A member that may
    /// not is answered as if there were no such segment (rule R5).
    pub(super) fn may_read(&self, edge: EdgeId, segment: SegmentId) -> bool {
        self.children.may_read(edge, segment) || planted::is(Bug::RightsNotChecked)
    }

    /// Takes the store's answer. False if the page was asked for again.
    pub(super) fn loaded(&mut self, page: PageId, result: LoadResult, outbox: &mut Outbox) -> bool {
        match result {
            LoadResult::Found(image) => {
                if !self.tables.pages.loaded(page, image, self.log.durable()) {
                    outbox.act(HomeAction::Load(page));
                    return false;
                }
            }
            LoadResult::Damaged if planted::is(Bug::DamagedIsEmpty) => {
                self.tables.pages.loaded(page, None, self.log.durable());
            }
            LoadResult::Damaged => {
                outbox.note(Note::PageDamaged);
                self.tables.pages.load_failed(page);
            }
        }
        outbox.note(Note::PageLoaded);
        true
    }

    /// Enters the child, then takes the image (rule 2). The image is as of the durable end: the
    /// child's stream has come so far.
    fn answer_fetch(&mut self, page: PageId, waiter: Waiter, outbox: &mut Outbox) {
        let Some(entry) = self.children.enter(waiter.edge, page, true) else {
            outbox.note(Note::ChildLimited);
            return self.refuse_fetch(page, waiter, FetchRefusal::Busy, outbox);
        };
        let Some(image) = self.tables.pages.durable(page) else {
            return;
        };
        self.children
            .tell_updates(waiter.edge, page, waiter.updates.min(UPDATES_MAX));
        if waiter.beside {
            self.tell_beside(page, waiter, entry, image, outbox);
        } else {
            self.tell_fetch(page, waiter, entry, FetchResult::Image(image), outbox);
        }
    }

    /// An image that the stream may overtake, and that may overtake it: its label says where it belongs (rule 9).
    fn tell_beside(
        &mut self,
        page: PageId,
        waiter: Waiter,
        entry: EntryNo,
        image: Image,
        outbox: &mut Outbox,
    ) {
        let promised = self.promised();
        self.children
            .tell_position(waiter.edge, self.log.durable(), promised, outbox);
        let Some(child) = self.children.get(waiter.edge) else {
            return;
        };
        outbox.note(Note::ImageBeside);
        outbox.down(
            waiter.edge,
            Down::Peer(PeerImage {
                home: self.home,
                page,
                requester: child.node,
                epoch: waiter.epoch,
                attempt: waiter.attempt,
                entry,
                position: self.log.durable(),
                image: Some(image),
            }),
        );
    }

    /// What may be promised now.
    pub(super) fn promised(&self) -> Stamp {
        self.log.promised(self.tables.votes.lowest_stamp())
    }

    /// Refuses a fetch.
    pub(super) fn refuse_fetch(
        &self,
        page: PageId,
        waiter: Waiter,
        why: FetchRefusal,
        outbox: &mut Outbox,
    ) {
        let entry = EntryNo(0);
        self.tell_fetch(page, waiter, entry, FetchResult::Refused(why), outbox);
    }

    fn tell_fetch(
        &self,
        page: PageId,
        waiter: Waiter,
        entry: EntryNo,
        answer: FetchResult,
        outbox: &mut Outbox,
    ) {
        outbox.down(
            waiter.edge,
            Down::Image(message::FetchResponse {
                home: self.home,
                page,
                attempt: waiter.attempt,
                entry,
                position: self.log.durable(),
                watermark: self.promised(),
                result: answer,
            }),
        );
    }
}
