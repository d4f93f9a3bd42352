//! A member's pages under a new parent (rule 13). Until all of them are
//! resynchronised the member stays where its old stream ended: its pages are
//! right there, and can be read as while the home was out of reach. Then it goes
//! on to where its parent stands, in one step.

use crate::edge::reports::Reports;
use crate::member::replica::{Held, Replica};
use crate::member::{Member, MemberAction, Outbox};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, EdgeId, EntryNo, Epoch, Image, Millis, Note, Outcome, PageChange, PageId, Position,
    Reported, Stamp, change, message, planted,
};

/// What is known of a member's pages while it is held.
#[derive(Debug)]
pub(super) struct Resync {
    pub(super) reports: Reports<()>,
    /// Pages that no answer has come for. What the stream says of them is in the answer, too.
    unsure: BTreeSet<PageId>,
    /// What other pages will be when the member goes on: nothing, if they have changed.
    next: BTreeMap<PageId, Option<Image>>,
    /// What the program will be told then: it would look for its writes in vain before.
    ended: BTreeMap<CommitId, Outcome>,
}

impl Resync {
    pub(super) fn new() -> Self {
        Resync {
            reports: Reports::new(),
            unsure: BTreeSet::new(),
            next: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    /// The stream has ended. Outcomes that were held back are asked for again.
    pub(super) fn clear(&mut self) {
        self.reports.clear();
        self.unsure.clear();
        self.next.clear();
        self.ended.clear();
    }

    pub(super) fn is_unsure(&self, page: PageId) -> bool {
        self.unsure.contains(&page)
    }

    pub(super) fn hold_back(&mut self, commit: CommitId, outcome: Outcome) {
        self.ended.insert(commit, outcome);
    }

    /// Takes in what the stream says of a page that is held.
    pub(super) fn take(&mut self, held: &Held, change: &PageChange, at: (Position, Stamp)) {
        let page = change.page;
        if self.is_unsure(page) {
            return;
        }
        let image = match self.next.get(&page) {
            None => &held.image,
            Some(Some(image)) => image,
            Some(None) => return,
        };
        let image = change::apply(image, change, at.0, at.1);
        self.next.insert(page, image);
    }
}

impl Replica {
    /// Reports every page to a new parent. True if there is any: then the
    /// member is held. A page that a transaction has read and that was given
    /// up needs no report: its evidence stands still where that was (rule 2).
    pub(super) fn report_all(&mut self) -> bool {
        self.resync.clear();
        let as_of = self.up.position;
        let mut all = Vec::new();
        for (page, held) in &mut self.pages {
            // Numbers of an epoch that has ended mean nothing.
            held.entry = EntryNo(0);
            if planted::is(Bug::ReadsNotReported) && page.page.0 % 2 == 1 {
                continue;
            }
            self.resync.unsure.insert(*page);
            all.push(Reported {
                page: *page,
                as_of,
                complete: held.image.is_complete(),
            });
        }
        self.resync.reports.push_all((), &all);
        !all.is_empty()
    }

    pub(super) fn send_reports(&mut self, edge: EdgeId, epoch: Epoch, outbox: &mut Outbox) {
        self.resync.reports.send(self.up.home, edge, epoch, outbox);
    }

    /// What the stream says while the member is held.
    pub(super) fn take_held(&mut self, changes: &[PageChange], at: (Position, Stamp)) {
        for change in changes {
            if let Some(held) = self.pages.get(&change.page) {
                self.resync.take(held, change, at);
            }
        }
    }

    /// A piece of the report is answered. False if nobody waited for that.
    fn take_answer(&mut self, answer: &message::Resynchronised, outbox: &mut Outbox) -> bool {
        let changed = &answer.changed;
        let Some(piece) = self.resync.reports.answered(answer.report, &answer.open) else {
            outbox.note(Note::OtherEpochDropped);
            return false;
        };
        for reported in &piece.pages {
            self.resync.unsure.remove(&reported.page);
            self.up.drop_entered(reported.page, answer.entry);
        }
        for page in changed {
            outbox.note(Note::PageChanged);
            self.resync.next.insert(*page, None);
        }
        for _ in changed.len()..piece.pages.len() {
            outbox.note(Note::PageUnchanged);
        }
        true
    }

    /// Goes on to where the parent stands, with all pages at once (rule 4).
    fn go_on(&mut self, outbox: &mut Outbox) {
        outbox.note(Note::Resynchronised);
        self.up.release();
        self.recent_changes.begin_anew(self.up.position);
        let mut publish = self.publish();
        let mut missed = Vec::new();
        for (page, image) in core::mem::take(&mut self.resync.next) {
            let Some(held) = self.pages.get_mut(&page) else {
                continue;
            };
            missed.push(page);
            match &image {
                Some(image) => held.image = image.clone(),
                None => {
                    // It is entered above for nothing.
                    self.up.drop_entered(page, held.entry);
                    self.pages.remove(&page);
                }
            }
            publish.images.push((page, image));
        }
        publish.missed = Some(missed);
        outbox.act(MemberAction::Publish(publish));
        self.settle_strays(outbox);
    }
}

impl Member {
    /// The parent has answered for some pages.
    pub(super) fn resynchronised(
        &mut self,
        now: Millis,
        answer: &message::Resynchronised,
        outbox: &mut Outbox,
    ) {
        let home = answer.home;
        let state = self.at(home);
        state.up.advance(answer.position);
        if !state.take_answer(answer, outbox) {
            return;
        }
        state.settle_strays(outbox);
        if let Some(edge) = state.up.edge {
            let epoch = state.up.epoch;
            state.send_reports(edge, epoch, outbox);
        }
        if !state.resync.reports.is_empty() {
            return;
        }
        state.go_on(outbox);
        for (commit, outcome) in core::mem::take(&mut state.resync.ended) {
            self.ended(home, commit, outcome, outbox);
        }
        self.caught_up(now, home, outbox);
    }
}
