//! A member's pages under a new parent (rule 13). Until all of them are
//! resynchronised the member stays where its old stream ended: its pages are
//! right there, and can be read as while the home was out of reach. Then it goes
//! on to where its parent stands, in one step.

use crate::edge::reports::Reports;
use crate::member::Outbox;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, EdgeId, Epoch, HomeId, Image, Note, Outcome, PageChange, PageId, Position, Reported,
    SegmentId, Stamp, change, message, planted,
};

/// What is known of a member's pages while it is held.
///
/// Invariant: a page is `unsure` from its report to the answer. `next` has only pages that are not: what the stream says
/// of an unsure page is in the answer, too.
#[derive(Debug)]
pub(super) struct Resync {
    reports: Reports<()>,
    /// Pages that no answer has come for.
    unsure: BTreeSet<PageId>,
    /// What other pages will be when the member goes on: nothing, if they have changed.
    next: BTreeMap<PageId, Option<Image>>,
    /// What the program will be told then: it would look for its writes in vain before.
    ended: BTreeMap<CommitId, Outcome>,
    /// Segments of which the home has not told how far their logs are (rule C7).
    follows: BTreeSet<SegmentId>,
}

impl Resync {
    /// Nothing is reported. A piece of a report has at most so many pages.
    pub(super) fn new(pages_max: usize) -> Self {
        let mut reports = Reports::new();
        reports.limit(pages_max);
        Resync {
            reports,
            unsure: BTreeSet::new(),
            next: BTreeMap::new(),
            ended: BTreeMap::new(),
            follows: BTreeSet::new(),
        }
    }

    /// The stream has ended. Outcomes that were held back are asked for again.
    pub(super) fn clear(&mut self) {
        self.reports.clear();
        self.unsure.clear();
        self.next.clear();
        self.ended.clear();
        self.follows.clear();
    }

    /// The member goes on when it follows these segments, too.
    pub(super) fn follow(&mut self, segments: Vec<SegmentId>) {
        if !planted::is(Bug::FollowNotAwaited) {
            self.follows.extend(segments);
        }
    }

    /// The member follows a segment, or cannot.
    pub(super) fn followed(&mut self, segment: SegmentId) {
        self.follows.remove(&segment);
    }

    /// Reports these pages.
    pub(super) fn report(&mut self, pages: &[Reported]) {
        self.unsure
            .extend(pages.iter().map(|reported| reported.page));
        self.reports.push_all((), pages);
    }

    /// Sends what may be under way of the reports.
    pub(super) fn send(&mut self, home: HomeId, edge: EdgeId, epoch: Epoch, outbox: &mut Outbox) {
        self.reports.send(home, edge, epoch, outbox);
    }

    /// Pages that are reported and not answered.
    pub(super) fn reported(&self) -> usize {
        let pieces = self.reports.pieces();
        pieces.map(|piece| piece.pages.len()).sum()
    }

    pub(super) fn is_unsure(&self, page: PageId) -> bool {
        self.unsure.contains(&page)
    }

    pub(super) fn hold_back(&mut self, commit: CommitId, outcome: Outcome) {
        self.ended.insert(commit, outcome);
    }

    /// Takes in what the stream says of a page that the member holds.
    pub(super) fn take(&mut self, held: &Image, change: &PageChange, at: (Position, Stamp)) {
        let page = change.page;
        if self.is_unsure(page) {
            return;
        }
        let image = match self.next.get(&page) {
            None => held,
            Some(Some(image)) => image,
            Some(None) => return,
        };
        let image = change::apply(image, change, at.0, at.1);
        self.next.insert(page, image);
    }

    /// A piece of the report is answered: its pages. None if nobody waited for that.
    pub(super) fn answered(
        &mut self,
        answer: &message::Resynchronised,
        outbox: &mut Outbox,
    ) -> Option<Vec<Reported>> {
        let changed = &answer.changed;
        let Some(piece) = self.reports.answered(answer.report, &answer.open) else {
            outbox.note(Note::OtherEpochDropped);
            return None;
        };
        for reported in &piece.pages {
            self.unsure.remove(&reported.page);
        }
        for page in changed {
            outbox.note(Note::PageChanged);
            self.next.insert(*page, None);
        }
        for _ in changed.len()..piece.pages.len() {
            outbox.note(Note::PageUnchanged);
        }
        Some(piece.pages)
    }

    /// Whether everything that was reported is answered.
    pub(super) fn is_done(&self) -> bool {
        self.reports.is_empty() && self.follows.is_empty()
    }

    /// What the pages are from now on, where that is something else than before.
    pub(super) fn take_next(&mut self) -> BTreeMap<PageId, Option<Image>> {
        core::mem::take(&mut self.next)
    }

    /// The outcomes that were held back.
    pub(super) fn take_ended(&mut self) -> BTreeMap<CommitId, Outcome> {
        core::mem::take(&mut self.ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{EntryNo, ImageEdit, PageSlots, ReportNo, Slot, SlotChange};

    const SAME: PageId = PageId::new(1, 1);
    const CHANGED: PageId = PageId::new(1, 2);

    fn image() -> Image {
        ImageEdit::default().finish(Position(1), Stamp::default())
    }

    fn reporting() -> Resync {
        let mut resync = Resync::new(10);
        let reported = [SAME, CHANGED].map(|page| Reported {
            page,
            as_of: Position(1),
            complete: true,
        });
        resync.report(&reported);
        resync.send(HomeId(1), EdgeId(1), Epoch(1), &mut Outbox::new());
        resync
    }

    fn invalid(page: PageId) -> PageChange {
        let slots = PageSlots::Some(vec![(Slot(0), SlotChange::Invalid)]);
        PageChange { page, slots }
    }

    fn answer() -> message::Resynchronised {
        message::Resynchronised {
            home: HomeId(1),
            report: ReportNo(1),
            entry: EntryNo(1),
            position: Position(2),
            changed: vec![CHANGED],
            open: Vec::new(),
            digests: Vec::new(),
        }
    }

    #[test]
    fn what_the_stream_says_counts_only_after_the_answer() {
        let (mut resync, at) = (reporting(), (Position(2), Stamp::default()));
        resync.take(&image(), &invalid(SAME), at);
        assert!(resync.next.is_empty() && resync.is_unsure(SAME) && !resync.is_done());
        let answered = resync.answered(&answer(), &mut Outbox::new());
        assert_eq!(answered.map(|pages| pages.len()), Some(2));
        assert!(resync.is_done() && !resync.is_unsure(SAME));
        resync.take(&image(), &invalid(SAME), at);
        resync.take(&image(), &invalid(CHANGED), at);
        let next = resync.take_next();
        assert!(next[&SAME].is_some(), "the stream goes on from its image");
        assert!(next[&CHANGED].is_none(), "its image is right nowhere");
    }

    #[test]
    fn an_answer_that_nobody_waits_for_changes_nothing() {
        let mut resync = reporting();
        resync.clear();
        assert!(resync.answered(&answer(), &mut Outbox::new()).is_none());
        assert!(resync.take_next().is_empty());
    }
}
