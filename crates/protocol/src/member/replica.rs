//! What a member knows of one home, and how its pages follow the stream.

use crate::edge::upstream::Upstream;
use crate::member::overlay::Overlay;
use crate::member::recent_changes::RecentChanges;
use crate::member::resync::Resync;
use crate::member::{MemberAction, Outbox, Source};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, EntryNo, HomeId, Image, Note, OverlayUpdate, PageChange, PageId, PageSlots, Part,
    Position, Publish, Registration, RequestId, SegmentId, SlotChange, SlotSet, Stamp, Up, change,
    message, planted,
};

/// What a member knows of one home.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) up: Upstream<RequestId>,
    pub(super) pages: BTreeMap<PageId, Held>,
    pub(super) resync: Resync,
    /// Own values that lie over them (rule 3).
    pub(super) overlay: Overlay,
    /// What the last positions changed (rule 14).
    pub(super) recent_changes: RecentChanges,
    /// Who waits for pages into which own values do not fit.
    pub(super) covered: BTreeMap<PageId, Vec<RequestId>>,
    pub(super) registration: Option<Registration>,
    pub(super) registering: bool,
    /// What is watched, and by which request of the program.
    pub(super) watches: BTreeMap<SegmentId, RequestId>,
    #[cfg(feature = "planted-bugs")]
    pub(super) received: BTreeMap<PageId, u32>,
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) image: Image,
    pub(super) entry: EntryNo,
    /// All changes after this were heard of.
    pub(super) since: Position,
}

impl Replica {
    pub(super) fn new(home: HomeId) -> Self {
        Replica {
            up: Upstream::new(home),
            pages: BTreeMap::new(),
            resync: Resync::new(),
            overlay: Overlay::default(),
            recent_changes: RecentChanges::default(),
            covered: BTreeMap::new(),
            registration: None,
            registering: false,
            watches: BTreeMap::new(),
            #[cfg(feature = "planted-bugs")]
            received: BTreeMap::new(),
        }
    }

    /// Where this member stands, and nothing else.
    pub(super) fn publish(&self) -> Publish {
        Publish {
            home: self.up.home,
            overlay: OverlayUpdate::default(),
            touched: Vec::new(),
            evicted: Vec::new(),
            images: Vec::new(),
            position: self.up.position,
            watermark: self.up.watermark,
            heard: self.up.heard,
            missed: None,
        }
    }

    /// Takes in what the stream says of one position.
    pub(super) fn take_step(
        &mut self,
        commit: Option<CommitId>,
        changes: &[PageChange],
        at: (Position, Stamp),
        outbox: &mut Outbox,
    ) {
        if self.up.is_held() {
            return self.take_held(changes, at);
        }
        let mut publish = self.publish();
        // What a parent from behind tells once more changes nothing that is held or was read,
        // and would be told to watches as if it were of here.
        let is_new = at.0 >= self.up.position;
        if is_new {
            let stood_on = commit.and_then(|commit| self.overlay.stands_on(commit));
            let stood_on = stood_on.cloned().unwrap_or_default();
            self.recent_changes.note(at, (commit, stood_on), changes);
        }
        let mut left = self.overlay.step(commit, changes);
        if !left.withdrawn.is_empty() {
            outbox.note(Note::EarlyWithdrawn);
        }
        for change in changes {
            if is_new {
                publish.touched.push((change.page, change.slot_set()));
            }
            self.apply(change, at.0, at.1, &mut publish, outbox);
        }
        for change in changes {
            left.pages.remove(&change.page);
        }
        for page in &left.pages {
            self.show(*page, &mut publish);
        }
        publish.overlay.delivered.extend(left.delivered);
        publish.overlay.shown.extend(left.withdrawn);
        outbox.act(MemberAction::Publish(publish));
    }

    pub(super) fn apply(
        &mut self,
        change: &PageChange,
        position: Position,
        stamp: Stamp,
        publish: &mut Publish,
        outbox: &mut Outbox,
    ) {
        let Some(held) = self.pages.get_mut(&change.page) else {
            return;
        };
        let Some(image) = change::apply(&held.image, change, position, stamp) else {
            self.pages.remove(&change.page);
            publish.images.push((change.page, None));
            return;
        };
        if change.makes_holes() {
            outbox.note(Note::HoleMade);
        }
        held.image = image;
        self.show(change.page, publish);
    }

    pub(super) fn install(
        &mut self,
        page: PageId,
        image: Image,
        entry: EntryNo,
        outbox: &mut Outbox,
    ) {
        #[cfg(feature = "planted-bugs")]
        {
            *self.received.entry(page).or_default() += 1;
        }
        let since = self
            .pages
            .get(&page)
            .map_or(self.up.position, |held| held.since);
        let held = Held {
            image,
            entry,
            since,
        };
        self.pages.insert(page, held);
        let mut publish = self.publish();
        self.show(page, &mut publish);
        outbox.act(MemberAction::Publish(publish));
    }

    /// Where an image comes from that the parent sent in its stream, or that came beside it. A home
    /// has no neighbours: what comes beside its stream is its own.
    pub(super) fn source(&self, beside: bool) -> Source {
        if !self.up.helpers {
            Source::Home
        } else if beside {
            Source::Peer
        } else {
            Source::Site
        }
    }

    /// What the program sees of a held page: own values lie over it.
    pub(super) fn shown(&self, page: PageId) -> Option<Image> {
        let held = self.pages.get(&page)?;
        self.overlay.over(page, &held.image)
    }

    /// Who waits for pages.
    pub(super) fn waiting(&self) -> usize {
        let covered = self.covered.values().map(Vec::len);
        self.up.waiting().count() + covered.sum::<usize>()
    }

    /// Whether own values do not fit into a page that is here: its home will put them elsewhere.
    /// Until that is told the page cannot be shown, and another image of it would be no better.
    pub(super) fn is_covered(&self, page: PageId) -> bool {
        self.is_whole(page) && self.shown(page).is_none()
    }

    /// The same, or they patch what is not here, so that it is shown with holes: who asks for it has met one.
    pub(super) fn has_own_holes(&self, page: PageId) -> bool {
        let is_complete = |shown: Image| shown.is_complete();
        self.is_whole(page) && !self.shown(page).is_some_and(is_complete)
    }

    fn is_whole(&self, page: PageId) -> bool {
        let held = self.pages.get(&page);
        held.is_some_and(|held| held.image.is_complete())
    }

    /// The pages that can be shown again, or are not here any more: who waited looks again.
    pub(super) fn uncovered(&mut self) -> Vec<RequestId> {
        let mut covered = core::mem::take(&mut self.covered);
        let free = covered.extract_if(.., |page, _| !self.has_own_holes(*page));
        let waited = free.flat_map(|(_, requests)| requests).collect();
        self.covered = covered;
        waited
    }

    /// Shows a page as it is now, if it is held.
    pub(super) fn show(&self, page: PageId, publish: &mut Publish) {
        if !self.pages.contains_key(&page) {
            return;
        }
        let own = self.overlay.of(page);
        let values = own.map(|(slots, commit)| (page, slots, commit));
        publish.overlay.values.extend(values);
        publish.images.push((page, self.shown(page)));
    }

    /// A commit is known, and its part here is not delivered yet: its values are shown.
    pub(super) fn show_own(
        &mut self,
        commit: CommitId,
        stamp: Stamp,
        part: &Part,
        outbox: &mut Outbox,
    ) {
        outbox.note(Note::OwnShown);
        let shown = self.overlay.enter(commit, stamp, &part.writes);
        self.publish_shown(shown, outbox);
    }

    /// The epoch has ended: what was shown before its place is shown no more. Whoever has seen
    /// it would see older values beside it.
    pub(super) fn own_ended(&mut self, outbox: &mut Outbox) {
        let shown = self.overlay.clear();
        if !shown.is_empty() {
            self.publish_shown(shown, outbox);
        }
    }

    /// These slots show something else than before.
    pub(super) fn publish_shown(&self, shown: Vec<(PageId, SlotSet)>, outbox: &mut Outbox) {
        let mut publish = self.publish();
        self.show_all(&shown, &mut publish);
        publish.overlay.shown = shown;
        outbox.act(MemberAction::Publish(publish));
    }

    /// Each page once: of several commits' slots the same may be.
    fn show_all(&self, slots: &[(PageId, SlotSet)], publish: &mut Publish) {
        let pages: BTreeSet<PageId> = slots.iter().map(|(page, _)| *page).collect();
        for page in pages {
            self.show(page, publish);
        }
    }

    /// A commit has its place, and it was not delivered: nobody can say here what is there now.
    pub(super) fn own_passed(&mut self, commit: CommitId, publish: &mut Publish) {
        for (page, slots) in self.overlay.passed(commit) {
            let holes = slots.iter().map(|slot| (slot, SlotChange::Invalid));
            let change = PageChange {
                page,
                slots: PageSlots::Some(holes.collect()),
            };
            if let Some(held) = self.pages.get_mut(&page) {
                let (version, stamp) = (held.image.version(), held.image.stamp());
                if let Some(image) = change::apply(&held.image, &change, version, stamp) {
                    held.image = image;
                }
            }
            self.show(page, publish);
        }
    }

    pub(super) fn evict(&mut self, pages: &[PageId], outbox: &mut Outbox) {
        let mut publish = self.publish();
        let mut notices = Vec::new();
        let withdrawn = self.withdraw_resting_on(pages, outbox);
        for page in pages {
            if let Some(held) = self.pages.remove(page) {
                publish.evicted.push(*page);
                publish.images.push((*page, None));
                // The number of what was reported comes with the answer, and the notice then.
                if !self.resync.is_unsure(*page) {
                    notices.push((*page, self.notice_number(*page, held.entry)));
                }
            }
        }
        self.show_all(&withdrawn, &mut publish);
        publish.overlay.shown = withdrawn;
        if planted::is(Bug::EvictionNotTold) {
            publish.evicted.clear();
        }
        outbox.act(MemberAction::Publish(publish));
        let Some(edge) = self.up.edge else {
            return;
        };
        for (page, entry) in notices {
            let (home, epoch) = (self.up.home, self.up.epoch);
            outbox.up(
                edge,
                Up::Evict(message::Evict {
                    home,
                    epoch,
                    page,
                    entry,
                }),
            );
        }
    }

    /// Of these pages nothing will be heard: what rests on them and is not answered could not be taken back in time.
    fn withdraw_resting_on(
        &mut self,
        pages: &[PageId],
        outbox: &mut Outbox,
    ) -> Vec<(PageId, SlotSet)> {
        if planted::is(Bug::RestsOnEvicted) {
            return Vec::new();
        }
        let pages = pages.iter();
        let shown = pages.flat_map(|page| self.overlay.withdraw_resting_on(*page));
        let shown: Vec<_> = shown.collect();
        if !shown.is_empty() {
            outbox.note(Note::EarlyWithdrawn);
        }
        shown
    }

    /// The parent has entered pages whose images were dropped (rule 2).
    pub(super) fn settle_strays(&mut self, outbox: &mut Outbox) {
        for (page, entry) in self.up.take_strays() {
            if let Some(held) = self.pages.get_mut(&page) {
                held.entry = held.entry.max(entry);
            } else if let Some(edge) = self.up.edge {
                let (home, epoch) = (self.up.home, self.up.epoch);
                outbox.up(
                    edge,
                    Up::Evict(message::Evict {
                        home,
                        epoch,
                        page,
                        entry,
                    }),
                );
            }
        }
    }

    /// A notice carries the highest number received for the page (rule 2).
    #[cfg_attr(not(feature = "planted-bugs"), allow(clippy::unused_self))]
    pub(super) fn notice_number(&self, page: PageId, entry: EntryNo) -> EntryNo {
        #[cfg(feature = "planted-bugs")]
        if planted::is(Bug::NoticesCount) {
            return EntryNo(self.received.get(&page).copied().unwrap_or(0));
        }
        let _ = page;
        entry
    }

    /// A planted bug: a remembered answer is applied as if it were delivered.
    pub(super) fn apply_again(
        &mut self,
        part: &Part,
        position: Position,
        outbox: &mut Outbox,
    ) -> Publish {
        let mut publish = self.publish();
        for writes in &part.writes {
            let slots = writes.slots.iter().map(|(s, op)| (*s, op.effect()));
            let change = PageChange {
                page: writes.page,
                slots: PageSlots::Some(slots.collect()),
            };
            self.apply(&change, position, Stamp::default(), &mut publish, outbox);
        }
        publish
    }

    /// Asks the parent to tell the changes of a segment, or no longer.
    pub(super) fn tell_watch(&self, segment: SegmentId, on: bool, outbox: &mut Outbox) {
        if let Some(edge) = self.up.edge {
            let (home, epoch) = (self.up.home, self.up.epoch);
            outbox.up(
                edge,
                Up::Watch(message::Watch {
                    home,
                    epoch,
                    segment,
                    on,
                }),
            );
        }
    }

    /// Tells the parent how far everything was applied (rule 7).
    pub(super) fn acknowledge(&mut self, outbox: &mut Outbox) {
        if let Some(edge) = self.up.edge
            && self.up.acked < self.up.position
        {
            self.up.acked = self.up.position;
            let (home, epoch, position) = (self.up.home, self.up.epoch, self.up.position);
            outbox.up(
                edge,
                Up::Ack(message::Ack {
                    home,
                    epoch,
                    position,
                }),
            );
        }
    }
}
