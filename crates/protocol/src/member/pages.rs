//! The pages that a member holds of one home, and what its program sees of them.

use crate::member::Outbox;
use crate::member::overlay::Overlay;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::WAITING_PER_PAGE_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, EntryNo, Image, Note, PageChange, PageId, PageSlots, Part, Position, Publish,
    Reported, RequestId, SlotChange, SlotSet, Stamp, change, planted,
};

/// A page that the member holds.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) image: Image,
    /// The number of its last entering at the parent.
    pub(super) entry: EntryNo,
    /// The stream has brought all changes of the page after this position.
    pub(super) since: Position,
}

/// The pages of one home, and the overlay over them (rule 3).
///
/// Invariant: an image has only what the home has committed. The program sees each page under the overlay; it sees
/// nothing of a page into which the overlay does not fit. Only for such pages do requests wait here.
#[derive(Debug, Default)]
pub(super) struct Pages {
    held: BTreeMap<PageId, Held>,
    pub(super) overlay: Overlay,
    /// Requests that wait for pages into which the overlay does not fit.
    covered: BTreeMap<PageId, Vec<RequestId>>,
    #[cfg(feature = "planted-bugs")]
    received: BTreeMap<PageId, u32>,
}

impl Pages {
    /// How many pages the member holds.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// A page that the member holds.
    pub(super) fn get(&self, page: PageId) -> Option<&Held> {
        self.held.get(&page)
    }

    /// All pages that the member holds.
    pub(super) fn images(&self) -> Vec<(PageId, Image)> {
        let held = self.held.iter();
        held.map(|(page, held)| (*page, held.image.clone()))
            .collect()
    }

    /// All pages as the program sees them.
    pub(super) fn all_shown(&self) -> Vec<(PageId, Image)> {
        let pages = self.held.keys();
        pages
            .filter_map(|page| Some((*page, self.shown(*page)?)))
            .collect()
    }

    /// What the program sees of a page: its image under the overlay.
    pub(super) fn shown(&self, page: PageId) -> Option<Image> {
        let held = self.held.get(&page)?;
        self.overlay.over(page, &held.image)
    }

    /// Whether the overlay does not fit into a page that is here: its home will put the values elsewhere. Until the
    /// stream brings that, the program cannot see the page, and another image of it would be no better.
    pub(super) fn is_covered(&self, page: PageId) -> bool {
        self.is_whole(page) && self.shown(page).is_none()
    }

    /// The same, or the overlay patches what is not here, so that the program sees holes: a request for the page has
    /// met one.
    pub(super) fn has_own_holes(&self, page: PageId) -> bool {
        let is_complete = |shown: Image| shown.is_complete();
        self.is_whole(page) && !self.shown(page).is_some_and(is_complete)
    }

    /// Whether the member holds the page without holes.
    pub(super) fn is_whole(&self, page: PageId) -> bool {
        let held = self.held.get(&page);
        held.is_some_and(|held| held.image.is_complete())
    }

    /// Requests that wait for pages under the overlay.
    pub(super) fn waiting(&self) -> usize {
        self.covered.values().map(Vec::len).sum()
    }

    /// Lets a request wait for a page that is covered, if fewer than may be wait for it.
    pub(super) fn wait(&mut self, page: PageId, request_id: RequestId) -> bool {
        let waiting = self.covered.entry(page).or_default();
        let has_space = waiting.len() < WAITING_PER_PAGE_MAX;
        if has_space {
            waiting.push(request_id);
        }
        has_space
    }

    /// Lets requests wait whose page has come, and is covered.
    pub(super) fn wait_all(&mut self, page: PageId, requests: Vec<RequestId>) {
        self.covered.entry(page).or_default().extend(requests);
    }

    /// The program does not want the response to a request any more.
    pub(super) fn forget_request(&mut self, request_id: RequestId) {
        for waiting in self.covered.values_mut() {
            waiting.retain(|waiting| *waiting != request_id);
        }
    }

    /// The home has gone back: nothing that is here is known to be right. Requests that wait look again. Returns the pages
    /// that were here.
    pub(super) fn forget(&mut self) -> Vec<PageId> {
        self.overlay = Overlay::default();
        core::mem::take(&mut self.held).into_keys().collect()
    }

    /// The requests for pages that the program can see again, or that are not here any more: it looks again.
    pub(super) fn uncovered(&mut self) -> Vec<RequestId> {
        if self.covered.is_empty() {
            return Vec::new();
        }
        let mut covered = core::mem::take(&mut self.covered);
        let free = covered.extract_if(.., |page, _| !self.has_own_holes(*page));
        let waited = free.flat_map(|(_, requests)| requests).collect();
        self.covered = covered;
        waited
    }

    /// Publishes a page as it is now, if the member holds it.
    pub(super) fn show(&self, page: PageId, publish: &mut Publish) {
        if !self.held.contains_key(&page) {
            return;
        }
        let own = self.overlay.of(page);
        let values = own.map(|(slots, commit)| (page, slots, commit));
        publish.overlay.values.extend(values);
        publish.images.push((page, self.shown(page)));
    }

    /// The same of each page once: slots of several commits may lie in one.
    pub(super) fn show_all(&self, slots: &[(PageId, SlotSet)], publish: &mut Publish) {
        let pages: BTreeSet<PageId> = slots.iter().map(|(page, _)| *page).collect();
        for page in pages {
            self.show(page, publish);
        }
    }

    /// Takes a page in. All changes after this position come in the stream, if the page was not here before.
    pub(super) fn install(
        &mut self,
        page: PageId,
        image: Image,
        entry: EntryNo,
        position: Position,
    ) {
        #[cfg(feature = "planted-bugs")]
        {
            *self.received.entry(page).or_default() += 1;
        }
        let since = self.held.get(&page).map_or(position, |held| held.since);
        let held = Held {
            image,
            entry,
            since,
        };
        self.held.insert(page, held);
    }

    /// Applies what the stream says of a page.
    pub(super) fn apply(
        &mut self,
        change: &PageChange,
        at: (Position, Stamp),
        publish: &mut Publish,
        outbox: &mut Outbox,
    ) {
        let Some(held) = self.held.get_mut(&change.page) else {
            return;
        };
        let Some(image) = change::apply(&held.image, change, at.0, at.1) else {
            self.held.remove(&change.page);
            publish.images.push((change.page, None));
            return;
        };
        if change.makes_holes() {
            outbox.note(Note::HoleMade);
        }
        held.image = image;
        self.show(change.page, publish);
    }

    /// Replaces the image of a page, or gives the page up.
    pub(super) fn replace(&mut self, page: PageId, image: Option<&Image>) -> Option<EntryNo> {
        let held = self.held.get_mut(&page)?;
        let entry = held.entry;
        match image {
            Some(image) => held.image = image.clone(),
            None => {
                self.held.remove(&page);
            }
        }
        Some(entry)
    }

    /// Gives a page up. The number for its notice.
    pub(super) fn evict(&mut self, page: PageId) -> Option<EntryNo> {
        let held = self.held.remove(&page)?;
        Some(self.notice_number(page, held.entry))
    }

    /// A notice carries the highest number received for the page (rule 2).
    #[cfg_attr(not(feature = "planted-bugs"), allow(clippy::unused_self))]
    fn notice_number(&self, page: PageId, entry: EntryNo) -> EntryNo {
        #[cfg(feature = "planted-bugs")]
        if planted::is(Bug::NoticesCount) {
            return EntryNo(self.received.get(&page).copied().unwrap_or(0));
        }
        let _ = page;
        entry
    }

    /// The parent has entered a page whose image the member dropped. False if the member does not hold the page.
    pub(super) fn raise_entry(&mut self, page: PageId, entry: EntryNo) -> bool {
        let held = self.held.get_mut(&page);
        if let Some(held) = held {
            held.entry = held.entry.max(entry);
            return true;
        }
        false
    }

    /// All pages, for the report to a new parent (rule 13). A page that a transaction has read and that was given up
    /// needs no report: its evidence stands still where that was (rule 2).
    pub(super) fn report(&mut self, as_of: Position) -> Vec<Reported> {
        let mut all = Vec::new();
        for (page, held) in &mut self.held {
            // Numbers of an epoch that has ended mean nothing.
            held.entry = EntryNo(0);
            if planted::is(Bug::ReadsNotReported) && page.page.0 % 2 == 1 {
                continue;
            }
            all.push(Reported {
                page: *page,
                as_of,
                complete: held.image.is_complete(),
            });
        }
        all
    }

    /// A commit has its place, and the stream did not deliver it: nobody can say here what is there now.
    pub(super) fn own_passed(&mut self, commit: CommitId, publish: &mut Publish) {
        for (page, slots) in self.overlay.passed(commit) {
            let holes = slots.iter().map(|slot| (slot, SlotChange::Invalid));
            let change = PageChange {
                page,
                slots: PageSlots::Some(holes.collect()),
            };
            if let Some(held) = self.held.get_mut(&page) {
                let (version, stamp) = (held.image.version(), held.image.stamp());
                if let Some(image) = change::apply(&held.image, &change, version, stamp) {
                    held.image = image;
                }
            }
            self.show(page, publish);
        }
    }

    /// A planted bug: the member applies a remembered answer as if the stream delivered it.
    pub(super) fn apply_again(
        &mut self,
        part: &Part,
        position: Position,
        publish: &mut Publish,
        outbox: &mut Outbox,
    ) {
        for writes in &part.writes {
            let slots = writes.slots.iter().map(|(s, op)| (*s, op.effect()));
            let change = PageChange {
                page: writes.page,
                slots: PageSlots::Some(slots.collect()),
            };
            self.apply(&change, (position, Stamp::default()), publish, outbox);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{
        Generation, HomeId, ImageEdit, MemberId, NewValue, PageWrites, Slot, WriteOp,
    };

    const PAGE: PageId = PageId::new(1, 1);
    const COMMIT: CommitId = CommitId {
        member: MemberId(1),
        sequence: 1,
    };

    /// One page, which is empty.
    fn pages() -> Pages {
        let mut pages = Pages::default();
        let image = ImageEdit::default().finish(Position(1), Stamp::default());
        pages.install(PAGE, image, EntryNo(1), Position(1));
        pages
    }

    /// The overlay has a value so large that few of them fit into a page.
    fn cover(pages: &mut Pages) {
        let value = |slot| WriteOp::Create {
            generation: Generation(1),
            value: NewValue::Inline(vec![slot as u8; 4_000][..].into()),
        };
        let writes = PageWrites {
            page: PAGE,
            slots: (0..3).map(|slot| (Slot(slot), value(slot))).collect(),
        };
        let shown = pages.overlay.enter(COMMIT, Stamp::default(), &[writes]);
        assert_eq!(shown.len(), 1);
    }

    #[test]
    fn a_request_waits_until_the_overlay_does_not_cover_its_page() {
        let mut pages = pages();
        cover(&mut pages);
        assert!(pages.is_covered(PAGE) && pages.shown(PAGE).is_none());
        assert!(pages.wait(PAGE, RequestId(1)));
        pages.wait_all(PAGE, vec![RequestId(2), RequestId(3)]);
        pages.forget_request(RequestId(2));
        assert_eq!((pages.waiting(), pages.uncovered()), (2, vec![]));
        pages.overlay.clear();
        assert_eq!(pages.uncovered(), [RequestId(1), RequestId(3)]);
        assert_eq!(pages.waiting(), 0);
    }

    #[test]
    fn no_more_requests_wait_for_a_covered_page_than_may() {
        let mut pages = pages();
        cover(&mut pages);
        let wait = |number| pages.wait(PAGE, RequestId(number));
        let waiting = (0..=WAITING_PER_PAGE_MAX as u64).map(wait);
        assert_eq!(waiting.filter(|waits| *waits).count(), WAITING_PER_PAGE_MAX);
    }

    #[test]
    fn an_image_never_has_what_only_the_overlay_has() {
        let mut pages = pages();
        let write = WriteOp::Create {
            generation: Generation(1),
            value: NewValue::Inline([7][..].into()),
        };
        let part = Part {
            home: HomeId(1),
            evidence: Position(1),
            reads: Vec::new(),
            writes: vec![PageWrites {
                page: PAGE,
                slots: vec![(Slot(0), write)],
            }],
            under: None,
        };
        pages.overlay.enter(COMMIT, Stamp::default(), &part.writes);
        let held = pages.get(PAGE).map(|held| held.image.clone());
        assert_ne!(pages.shown(PAGE), held);
        assert_eq!(pages.images(), [(PAGE, held.expect("the member holds it"))]);
    }

    #[test]
    fn a_notice_has_the_highest_number_that_came_for_the_page() {
        let mut pages = pages();
        assert!(pages.raise_entry(PAGE, EntryNo(3)) && pages.raise_entry(PAGE, EntryNo(2)));
        assert_eq!(pages.evict(PAGE), Some(EntryNo(3)));
        assert!(!pages.raise_entry(PAGE, EntryNo(4)));
    }
}
