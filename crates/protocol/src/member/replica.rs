//! What a member knows of one home, and how it follows the home's stream.

use crate::edge::upstream::{Fetched, Upstream};
use crate::member::overlay;
use crate::member::pages::Pages;
use crate::member::recent_changes::RecentChanges;
use crate::member::rests::Rests;
use crate::member::resync::Resync;
use crate::member::speculation::Speculation;
use crate::member::{MemberAction, MemberConfig, Outbox, Response, Source};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, EdgeId, Epoch, HomeId, Image, Millis, Note, Outcome, OverlayUpdate, PageChange,
    PageId, Part, PeerImage, Place, Position, Publish, Registration, RequestId, SegmentId, SlotSet,
    Stamp, Step, TentativeChange, UpdateId, Verdict, message, planted,
};

/// What a member knows of one home.
///
/// Invariant: the page cache has what `pages` has at `up.position`. While `up` is held, what the stream says goes to
/// `resync` alone.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) up: Upstream<RequestId>,
    pub(super) pages: Pages,
    pub(super) resync: Resync,
    /// What the last positions changed (rule 14).
    recent_changes: RecentChanges,
    pub(super) registration: Option<Registration>,
    pub(super) registering: bool,
    /// When the member last signed for this home.
    pub(super) signed_at: Option<Millis>,
    /// When the member signs anew for this home; none: when it has something for it.
    pub(super) signs_at: Option<Millis>,
    /// How often the home has gone back, and this member has forgotten it (rule R9).
    pub(super) history: u64,
    /// What is watched, and by which request of the program.
    pub(super) watches: BTreeMap<SegmentId, RequestId>,
    /// What is to happen to shown updates when the member goes on (rule C6).
    tentative: TentativeChange,
}

impl Replica {
    pub(super) fn new(home: HomeId, config: &MemberConfig) -> Self {
        let mut up = Upstream::new(home);
        up.limit_kept_changes(config.kept_changes_max);
        up.images_beside = config.images_beside;
        Replica {
            up,
            pages: Pages::default(),
            resync: Resync::new(config.report_pages_max),
            recent_changes: RecentChanges::default(),
            registration: None,
            registering: false,
            signed_at: None,
            signs_at: None,
            history: 0,
            watches: BTreeMap::new(),
            tentative: TentativeChange::default(),
        }
    }

    /// The home knows this member no more: it signs and registers when it has something for the home.
    pub(super) fn is_forgotten(&mut self) {
        self.registration = None;
        self.signs_at = None;
    }

    /// Requests that wait for pages.
    pub(super) fn waiting(&self) -> usize {
        self.pages.waiting() + self.up.waiting().count()
    }

    /// Positions of which it is known what they changed.
    pub(super) fn recent(&self) -> usize {
        self.recent_changes.len()
    }

    /// The member's position, and nothing else.
    fn publish(&self) -> Publish {
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
            history: self.history,
            tentative: TentativeChange::default(),
        }
    }

    // --- The stream ---

    /// The stream begins: the member reports what it holds (rule 13).
    pub(super) fn begin(
        &mut self,
        now: Millis,
        edge: EdgeId,
        begin: message::Begin,
        (helpers, follows): (bool, Vec<SegmentId>),
        outbox: &mut Outbox,
    ) {
        let is_first = self.up.epoch == Epoch(0);
        self.own_ended(outbox);
        self.up.helpers = helpers;
        let forgets = begin.verdict == Verdict::Forget;
        let mut forgotten = Vec::new();
        if forgets {
            forgotten = self.forget(outbox);
        } else if self.up.is_reopened(&begin) {
            // What the home executes from now on names this incarnation.
            self.is_forgotten();
        }
        let held = self.report_all(follows);
        self.up.begin(edge, begin, held, now, outbox);
        self.recent_changes.begin_anew(self.up.position);
        self.send_reports(outbox);
        if !held {
            let mut publish = self.publish();
            publish.missed = (!is_first).then(Vec::new);
            publish.tentative = core::mem::take(&mut self.tentative);
            publish.images = forgotten.into_iter().map(|page| (page, None)).collect();
            outbox.act(MemberAction::Publish(publish));
        }
        for segment in self.watches.keys() {
            self.up.watch(*segment, true, outbox);
        }
    }

    /// The home has gone back, and what the member holds of it is of a history that is lost (rule R9).
    fn forget(&mut self, outbox: &mut Outbox) -> Vec<PageId> {
        outbox.note(Note::Forgot);
        outbox.act(MemberAction::WentBack(self.up.home));
        self.history += 1;
        self.up.forget();
        self.resync.clear();
        self.is_forgotten();
        self.pages.forget()
    }

    /// The stream has ended.
    pub(super) fn end(&mut self, outbox: &mut Outbox) {
        self.up.end(outbox);
        self.resync.clear();
    }

    /// Takes in everything of one position that concerns this member, but for the outcome of its commit.
    /// Updates that leave the view with it are named (rule C6).
    pub(super) fn step(
        &mut self,
        now: Millis,
        step: &Step,
        settled: Vec<UpdateId>,
        outbox: &mut Outbox,
    ) {
        let at = (step.position, step.stamp);
        self.up.advance_promised(step.position, step.watermark);
        self.up.keep(at, &step.changes, now, outbox);
        self.tentative.settled.extend(settled);
        self.take_step(step.commit, &step.changes, at, outbox);
    }

    fn take_step(
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
        publish.tentative = core::mem::take(&mut self.tentative);
        // What a parent from behind tells once more changes nothing that is held or was read,
        // and would be told to watches as if it were of here.
        let is_new = at.0 >= self.up.position;
        if is_new {
            let stood_on = commit.and_then(|commit| self.pages.overlay.stands_on(commit));
            let stood_on = stood_on.cloned().unwrap_or_default();
            self.recent_changes.note(at, (commit, stood_on), changes);
        }
        let mut left = self.pages.overlay.step(commit, changes);
        if !left.withdrawn.is_empty() {
            outbox.note(Note::EarlyWithdrawn);
        }
        for change in changes {
            if is_new {
                publish.touched.push((change.page, change.slot_set()));
            }
            self.pages.apply(change, at, &mut publish, outbox);
        }
        for change in changes {
            left.pages.remove(&change.page);
        }
        for page in &left.pages {
            self.pages.show(*page, &mut publish);
        }
        publish.overlay.delivered.extend(left.delivered);
        publish.overlay.shown.extend(left.withdrawn);
        outbox.act(MemberAction::Publish(publish));
    }

    /// Takes an image that came in the stream: the stream is complete up to there.
    pub(super) fn image(
        &mut self,
        now: Millis,
        response: message::FetchResponse,
        outbox: &mut Outbox,
    ) {
        if planted::is(Bug::MemoryIsNews) {
            self.up.heard = now;
        }
        if let Some(fetched) = self.up.take_in_stream(response, outbox) {
            self.fetched(fetched, outbox);
        }
        self.caught_up(now, outbox);
        self.settle_strays(outbox);
    }

    /// Takes an image that came beside the stream (rule 9).
    pub(super) fn peer_image(&mut self, now: Millis, peer: PeerImage, outbox: &mut Outbox) {
        if let Some(fetched) = self.up.take_peer(peer, now, outbox) {
            self.fetched(fetched, outbox);
        }
        self.settle_strays(outbox);
    }

    pub(super) fn heartbeat(
        &mut self,
        now: Millis,
        heartbeat: &message::Heartbeat,
        outbox: &mut Outbox,
    ) {
        self.up.beaten(heartbeat, now);
        let publish = self.publish();
        outbox.act(MemberAction::Publish(publish));
        self.caught_up(now, outbox);
    }

    /// Takes a remembered outcome. It is no delivery: its values fill nothing (rule 3), but the stream has come as far.
    pub(super) fn outcome_remembered(
        &mut self,
        commit: CommitId,
        position: Position,
        again: Option<Publish>,
        outbox: &mut Outbox,
    ) {
        self.up.advance(position);
        let mut publish = again.unwrap_or_else(|| self.publish());
        self.pages.own_passed(commit, &mut publish);
        outbox.act(MemberAction::Publish(publish));
    }

    /// A planted bug: the member applies a remembered outcome as if the stream delivered it.
    pub(super) fn apply_again(
        &mut self,
        part: &Part,
        position: Position,
        outbox: &mut Outbox,
    ) -> Publish {
        let mut publish = self.publish();
        self.pages.apply_again(part, position, &mut publish, outbox);
        publish
    }

    // --- Pages ---

    /// Takes the images that the stream has caught up with.
    pub(super) fn caught_up(&mut self, now: Millis, outbox: &mut Outbox) {
        for fetched in self.up.caught_up(now, outbox) {
            self.fetched(fetched, outbox);
        }
    }

    fn fetched(&mut self, fetched: Fetched<RequestId>, outbox: &mut Outbox) {
        let (home, page) = (self.up.home, fetched.page);
        let answer = match fetched.result {
            Ok(image) => {
                let position = self.up.position;
                self.pages.install(page, image, fetched.entry, position);
                let mut publish = self.publish();
                self.pages.show(page, &mut publish);
                outbox.act(MemberAction::Publish(publish));
                let source = self.source(fetched.beside);
                outbox.act(MemberAction::Arrived(Place { home, page }, source));
                Response::Fetched(Some(source))
            }
            Err(refusal) => Response::NotFetched(refusal),
        };
        if self.pages.is_covered(page) {
            return self.pages.wait_all(page, fetched.waiting);
        }
        for request_id in fetched.waiting {
            outbox.act(MemberAction::Respond(request_id, answer.clone()));
        }
    }

    /// Where an image comes from that the parent sent in its stream, or that came beside it. A home
    /// has no neighbours: what comes beside its stream is its own.
    fn source(&self, beside: bool) -> Source {
        if !self.up.helpers {
            Source::Home
        } else if beside {
            Source::Peer
        } else {
            Source::Site
        }
    }

    /// Answers a redirected request after everything before it, with the
    /// newest committed image (rule 9).
    pub(super) fn help(&self, edge: EdgeId, redirect: message::Redirect, outbox: &mut Outbox) {
        // What is not resynchronised is as of the old stream, and tells nothing of this one.
        let held = self.pages.get(redirect.page);
        let held = held.filter(|_| !self.up.is_held());
        let image = if planted::is(Bug::TentativeSent) {
            self.pages.shown(redirect.page)
        } else {
            held.map(|held| held.image.clone())
        };
        let image = image.filter(Image::is_complete);
        self.up.help(edge, redirect, image, outbox);
    }

    /// Gives up pages: running transactions that read them learn it first, by
    /// what is published (rule 2); then the parent.
    pub(super) fn evict(&mut self, pages: &[PageId], outbox: &mut Outbox) {
        let mut publish = self.publish();
        let mut notices = Vec::new();
        let withdrawn = self.withdraw_resting_on(pages, outbox);
        for page in pages {
            if let Some(entry) = self.pages.evict(*page) {
                publish.evicted.push(*page);
                publish.images.push((*page, None));
                // The number of what was reported comes with the answer, and the notice then.
                if !self.resync.is_unsure(*page) {
                    notices.push((*page, entry));
                }
            }
        }
        self.pages.show_all(&withdrawn, &mut publish);
        publish.overlay.shown = withdrawn;
        if planted::is(Bug::EvictionNotTold) {
            publish.evicted.clear();
        }
        outbox.act(MemberAction::Publish(publish));
        for (page, entry) in notices {
            self.up.evict(page, entry, outbox);
        }
    }

    /// The parent has entered pages whose images were dropped (rule 2).
    fn settle_strays(&mut self, outbox: &mut Outbox) {
        for (page, entry) in self.up.take_strays() {
            if !self.pages.raise_entry(page, entry) {
                self.up.evict(page, entry, outbox);
            }
        }
    }

    // --- Resynchronisation (rule 13) ---

    /// Reports every page to a new parent. True if there is any: then the
    /// member is held.
    fn report_all(&mut self, follows: Vec<SegmentId>) -> bool {
        self.resync.clear();
        let all = self.pages.report(self.up.position);
        self.resync.report(&all);
        self.resync.follow(follows);
        !self.resync.is_done()
    }

    fn send_reports(&mut self, outbox: &mut Outbox) {
        if let Some(edge) = self.up.edge {
            self.resync.send(self.up.home, edge, self.up.epoch, outbox);
        }
    }

    /// Takes what the stream says while the member is held.
    fn take_held(&mut self, changes: &[PageChange], at: (Position, Stamp)) {
        for change in changes {
            if let Some(held) = self.pages.get(change.page) {
                self.resync.take(&held.image, change, at);
            }
        }
    }

    /// The parent has answered for some pages. If these were the last, the member goes on, and the outcomes that were
    /// held back are due.
    pub(super) fn resynchronised(
        &mut self,
        answer: &message::Resynchronised,
        outbox: &mut Outbox,
    ) -> Option<BTreeMap<CommitId, Outcome>> {
        self.up.advance(answer.position);
        for reported in self.resync.answered(answer, outbox)? {
            self.up.drop_entered(reported.page, answer.entry);
        }
        self.settle_strays(outbox);
        self.send_reports(outbox);
        self.go_on_if_done(outbox)
    }

    /// If nothing is open any more, the member goes on.
    pub(super) fn go_on_if_done(
        &mut self,
        outbox: &mut Outbox,
    ) -> Option<BTreeMap<CommitId, Outcome>> {
        if !self.up.is_held() || !self.resync.is_done() {
            return None;
        }
        self.go_on(outbox);
        Some(self.resync.take_ended())
    }

    /// The home has told how far the logs of a segment are (rule C7), or will not.
    pub(super) fn followed(
        &mut self,
        segment: SegmentId,
        change: TentativeChange,
        is_over: bool,
        outbox: &mut Outbox,
    ) {
        if is_over {
            self.resync.followed(segment);
        }
        self.show_tentatively(change, outbox);
    }

    /// Updates are shown, or no more. While the member is held, what leaves waits until it goes on: the images of the old
    /// stream are without it.
    pub(super) fn show_tentatively(&mut self, change: TentativeChange, outbox: &mut Outbox) {
        let mut publish = self.publish();
        if self.up.is_held() {
            self.tentative.settled.extend(change.settled);
            publish.tentative.shown = change.shown;
        } else {
            publish.tentative = change;
        }
        if publish.tentative != TentativeChange::default() {
            outbox.act(MemberAction::Publish(publish));
        }
    }

    /// Goes on to where the parent stands, with all pages at once (rule 4).
    fn go_on(&mut self, outbox: &mut Outbox) {
        outbox.note(Note::Resynchronised);
        self.up.release();
        self.recent_changes.begin_anew(self.up.position);
        let mut publish = self.publish();
        let mut missed = Vec::new();
        for (page, image) in self.resync.take_next() {
            let Some(entry) = self.pages.replace(page, image.as_ref()) else {
                continue;
            };
            missed.push(page);
            if image.is_none() {
                // It is entered above for nothing.
                self.up.drop_entered(page, entry);
            }
            publish.images.push((page, image));
        }
        publish.missed = Some(missed);
        publish.tentative = core::mem::take(&mut self.tentative);
        outbox.act(MemberAction::Publish(publish));
        self.settle_strays(outbox);
    }

    // --- The overlay (rules 3 and 14) ---

    /// What is known here of values that are not delivered.
    pub(super) fn speculation(&self) -> Speculation<'_> {
        Speculation {
            overlay: &self.pages.overlay,
            recent_changes: &self.recent_changes,
        }
    }

    /// A commit is known, and its part here is not delivered yet: the program sees its values.
    pub(super) fn show_own(
        &mut self,
        commit: CommitId,
        stamp: Stamp,
        part: &Part,
        outbox: &mut Outbox,
    ) {
        outbox.note(Note::OwnShown);
        let shown = self.pages.overlay.enter(commit, stamp, &part.writes);
        self.publish_shown(shown, outbox);
    }

    /// The same of a commit that is not answered. True if the program sees its values from now on (rule 14).
    pub(super) fn show_early(
        &mut self,
        id: CommitId,
        part: &Part,
        rests: Rests,
        outbox: &mut Outbox,
    ) -> bool {
        self.recent_changes.begin(self.up.position);
        if !self.may_show(part, &rests) {
            return false;
        }
        let shown = self.pages.overlay.enter_early(id, rests, &part.writes);
        let mut pages = part.writes.iter().map(|writes| writes.page);
        if pages.any(|page| self.pages.is_covered(page)) {
            // It does not fit, and only its home can say where it goes.
            self.pages.overlay.withdraw(id);
            return false;
        }
        outbox.note(Note::EarlyShown);
        outbox.act(MemberAction::Showing(id));
        self.publish_shown(shown, outbox);
        true
    }

    /// Whether a commit stands, as far as that is known here: of all that it has read or written, everything later would be
    /// heard here, and nothing has been.
    fn may_show(&self, part: &Part, rests: &Rests) -> bool {
        let is_live = self.up.edge.is_some() && !self.up.is_held();
        let heard = |page| self.pages.get(page).map(|held| held.since);
        let holds = |page| heard(page).is_some_and(|since| since <= part.evidence);
        is_live
            && !part.writes.is_empty()
            && overlay::can_be_shown(part)
            && rests.pages().all(holds)
            && (self.speculation().is_as_read(part, rests) || planted::is(Bug::ShownTooLate))
            && part.writes.iter().all(|writes| {
                let shown = self.pages.shown(writes.page);
                // A page that was never written to may lie beyond its segment's end, which only the home moves.
                let written = shown.filter(|image| image.version() > Position(0));
                let mut slots = writes.slots.iter();
                written
                    .is_some_and(|image| slots.all(|(slot, op)| overlay::fits(&image, *slot, op)))
            })
    }

    /// The program sees a commit that is not answered, if it is one, no more.
    pub(super) fn withdraw(&mut self, id: CommitId, outbox: &mut Outbox) {
        let shown = self.pages.overlay.withdraw(id);
        if !shown.is_empty() {
            outbox.note(Note::EarlyWithdrawn);
            self.publish_shown(shown, outbox);
        }
    }

    /// An operator has refused what all homes voted for (rule R7): its values never come.
    pub(super) fn never_delivered(&mut self, id: CommitId, outbox: &mut Outbox) {
        let shown = self.pages.overlay.passed(id);
        if !shown.is_empty() {
            self.publish_shown(shown, outbox);
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
        let shown = pages.flat_map(|page| self.pages.overlay.withdraw_resting_on(*page));
        let shown: Vec<_> = shown.collect();
        if !shown.is_empty() {
            outbox.note(Note::EarlyWithdrawn);
        }
        shown
    }

    /// The epoch has ended, and with it the overlay. Whoever has seen
    /// it would see older values beside it.
    fn own_ended(&mut self, outbox: &mut Outbox) {
        let shown = self.pages.overlay.clear();
        if !shown.is_empty() {
            self.publish_shown(shown, outbox);
        }
    }

    /// These slots show something else than before.
    fn publish_shown(&self, shown: Vec<(PageId, SlotSet)>, outbox: &mut Outbox) {
        let mut publish = self.publish();
        self.pages.show_all(&shown, &mut publish);
        publish.overlay.shown = shown;
        outbox.act(MemberAction::Publish(publish));
    }
}
