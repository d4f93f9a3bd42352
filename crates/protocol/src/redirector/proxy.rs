//! What a redirector knows of one home: that home's stream is applied here, then
//! goes to those below in the same order (rules 1, 7 and 8).

use crate::edge::downstream::{Beginning, Children, News, Values};
use crate::edge::reports::Reports;
use crate::edge::upstream::Upstream;
use crate::redirector::digests::{Digests, WrongHelpers};
use crate::redirector::passed_claims::{Passed, PassedClaims};
use crate::redirector::peer_fetch::Serve;
use crate::redirector::prefetch::Prefetch;
use crate::redirector::prefetch::hints::Hints;
use crate::redirector::prefetch::refetch;
use crate::redirector::readers::{Readers, Reading};
use crate::redirector::redirects::Redirects;
use crate::redirector::resync::{Resync, Whose, reported};
use crate::redirector::standby::Images;
use crate::redirector::subtree::Subtree;
use crate::redirector::unanswered::Unanswered;
use crate::redirector::waiter::Waiter;
use crate::redirector::watch::{Watched, Watching};
use crate::redirector::writers::{Writers, Writing};
use crate::redirector::{Outbox, RedirectorConfig};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::SITES_ON_WAY_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    Audience, Carriers, Claim, CommitId, Down, EdgeId, Epoch, HomeId, Millis, NameId, Note,
    PageChange, PageDigest, PageId, PageSlots, Peer, PeerImage, SegmentId, SlotChange, SlotSet,
    Step, Up, UpdateId, Verdict, message, planted,
};

/// What a step delivers: the commit of a child, the slots in which a procedure of it ran, and the update that it saved.
pub(super) type Delivered = (
    Option<(EdgeId, CommitId)>,
    BTreeMap<PageId, SlotSet>,
    Option<UpdateId>,
);

/// What a redirector knows of one home.
///
/// It wires the parts: those above (`up`), those below (`children`), the node's own memory, and what is on its way
/// between them.
#[derive(Debug)]
pub(super) struct Proxy {
    /// This site, as certificates name it.
    name: NameId,
    pub(super) up: Upstream<Waiter>,
    pub(super) children: Children,
    pub(super) images: Images,
    pub(super) digests: Digests,
    pub(super) wrong_helpers: WrongHelpers,
    pub(super) prefetch: Prefetch,
    pub(super) redirects: Redirects,
    pub(super) watched: Watched,
    /// Claims of nodes below that were passed up (rule R9).
    passed_claims: PassedClaims,
    unanswered: Unanswered,
    pub(super) writers: Writers,
    pub(super) readers: Readers,
    reports: Reports<Whose>,
    reported_max: usize,
}

impl Proxy {
    pub(super) fn new(home: HomeId, config: &RedirectorConfig) -> Self {
        let mut up = Upstream::new(home);
        up.limit_kept_changes(config.kept_changes_max);
        up.images_beside = config.images_beside;
        let mut reports = Reports::new();
        reports.limit(config.report_pages_max);
        Proxy {
            name: config.node.name(),
            up,
            children: Children::new(home, Epoch(0), config.per_child),
            images: Images::new(config.cache_bytes),
            digests: Digests::default(),
            wrong_helpers: WrongHelpers::default(),
            prefetch: Prefetch::new(config.history_pages_max, config.successor_pages_max),
            redirects: Redirects::default(),
            watched: Watched::default(),
            passed_claims: PassedClaims::default(),
            unanswered: Unanswered::default(),
            writers: Writers::kept_by(config.log_keeper),
            readers: Readers::default(),
            reports,
            reported_max: config.reported_max,
        }
    }

    /// Whether a message from above is of the live stream.
    pub(super) fn hears(
        &mut self,
        now: Millis,
        edge: EdgeId,
        message: &Down,
        outbox: &mut Outbox,
    ) -> bool {
        self.unanswered.heard(now);
        self.up.hears(edge, message, outbox)
    }

    /// Passes on what a child of this name says and nobody answers. What is above the limits is lost, as if on the way: the
    /// homes find out about outcomes by themselves (rule 10).
    pub(super) fn pass_unanswered(&mut self, name: NameId, message: Up, outbox: &mut Outbox) {
        match self.unanswered.may_pass(name) {
            true => self.up.pass(message, outbox),
            false => outbox.note(Note::NameLimited),
        }
    }

    /// A child of this name begins or ends to watch a segment. A watch that begins above, too, is answered by nobody there.
    pub(super) fn watch(
        &mut self,
        (edge, name): (EdgeId, NameId),
        watch: &message::Watch,
        outbox: &mut Outbox,
    ) {
        let begins = watch.on && !self.watched.has(watch.segment);
        if begins && !self.unanswered.may_pass(name) {
            outbox.note(Note::NameLimited);
            return self.watching().refuse(edge, watch.segment, outbox);
        }
        self.watching().watch(edge, watch, outbox);
    }

    /// Whether everything that was reported, here or below, is answered (rule 13).
    pub(super) fn is_resynchronised(&self) -> bool {
        self.reports.is_empty()
    }

    /// Pages that were reported and not answered.
    pub(super) fn reported(&self) -> usize {
        reported(&self.reports)
    }

    // --- Beginnings and ends ---

    /// A stream begins: what is cached here is reported (rule 13). True if the streams
    /// below have to begin anew (rule 1).
    pub(super) fn begin(
        &mut self,
        now: Millis,
        edge: EdgeId,
        begin: message::Begin,
        helpers: bool,
        outbox: &mut Outbox,
    ) -> bool {
        self.up.helpers = helpers;
        if begin.verdict == Verdict::Forget {
            self.forget(outbox);
        }
        let as_of = self.up.position;
        if planted::is(Bug::OldDirectoryKept) && self.up.epoch != Epoch(0) {
            self.up.begin(edge, begin, false, now, outbox);
            return false;
        }
        self.children.end_all();
        self.digests.clear();
        self.children.set_readers(readers_of(&begin));
        self.prefetch.stream_ended();
        self.redirects.clear();
        self.watched.clear();
        self.writers.stream_began();
        self.readers.stream_ended();
        self.up.retain_waiting(|_| false);
        self.up.begin(edge, begin, false, now, outbox);
        self.resync().report_own(as_of, outbox);
        true
    }

    /// The home has gone back, and what this node holds of it is of a history that is lost (rule R9). The streams below
    /// have ended, and each child makes its own claim.
    fn forget(&mut self, outbox: &mut Outbox) {
        outbox.note(Note::Forgot);
        self.up.forget();
        self.images.forget();
        self.reports.clear();
    }

    /// The home is out of reach: those below learn it, and keep what they have
    /// as of where the stream ended. False if the stream had ended before.
    pub(super) fn end(&mut self, outbox: &mut Outbox) -> bool {
        if self.up.edge.is_none() {
            return false;
        }
        outbox.note(Note::StreamEnded);
        self.up.end(outbox);
        if planted::is(Bug::OldDirectoryKept) {
            return false;
        }
        self.passed_claims.clear();
        self.writers.stream_ended();
        self.readers.stream_ended();
        let home = self.up.home;
        for edge in self.children.edges() {
            outbox.down(edge, Down::End(message::End { home }));
        }
        self.children.end_all();
        self.digests.clear();
        self.prefetch.stream_ended();
        self.redirects.clear();
        self.reports.clear();
        true
    }

    /// Begins a child's stream, where this node stands.
    pub(super) fn begin_child(
        &mut self,
        now: Millis,
        edge: EdgeId,
        peer: &Peer,
        verdict: Verdict,
        outbox: &mut Outbox,
    ) {
        let up = &self.up;
        let Some(receipt) = up.receipt() else {
            return;
        };
        let silent_ms = if planted::is(Bug::SilenceNotTold) {
            0
        } else {
            now.since(up.heard)
        };
        let beginning = Beginning {
            at: (up.position, up.watermark),
            name: &up.name,
            sites: self.sites_on_way(),
            silent_ms,
            receipt,
            verdict,
        };
        // The number of children was checked when the child came.
        self.children.begin(edge, peer, beginning, outbox);
        self.writing().came(peer.node, outbox);
        self.reading().came(peer.node, outbox);
    }

    /// A child claims what it holds of this home: its stream begins, or the claim goes up (rule R9).
    pub(super) fn claimed(
        &mut self,
        now: Millis,
        (edge, peer): (EdgeId, &Peer),
        claim: Option<Claim>,
        outbox: &mut Outbox,
    ) {
        match claim {
            // It is of another home: nothing is known of it.
            Some(claim) if claim.receipt.home != self.up.home => {
                self.begin_child(now, edge, peer, Verdict::Forget, outbox);
            }
            Some(claim) if !self.is_known(&claim) => {
                let passed = Passed::OfChild(edge);
                self.passed_claims.pass(&self.up, passed, claim, outbox);
            }
            _ => self.begin_child(now, edge, peer, Verdict::Known, outbox),
        }
    }

    /// Nothing of a life is lost while it runs.
    fn is_known(&self, claim: &Claim) -> bool {
        self.up.is_of_this_life(claim) || planted::is(Bug::ClaimsNotPassed)
    }

    /// A site below, of this name, passes up what it cannot judge. False: it has passed as many as may be.
    pub(super) fn judge(
        &mut self,
        (edge, name): (EdgeId, NameId),
        judge: &message::Judge,
        outbox: &mut Outbox,
    ) -> bool {
        if self.is_known(&judge.claim) {
            let (home, question) = (self.up.home, judge.question);
            let verdict = Verdict::Known;
            let judged = message::Judged {
                home,
                question,
                verdict,
            };
            outbox.down(edge, Down::Judged(judged));
            return true;
        }
        let passed = Passed::OfSite {
            edge,
            name,
            question: judge.question,
        };
        self.passed_claims
            .pass(&self.up, passed, judge.claim, outbox)
    }

    /// Whether the stream of this home can begin at a child, once the child has claimed.
    pub(super) fn awaits(&self, edge: EdgeId) -> bool {
        let is_there = self.children.get(edge).is_some() || self.passed_claims.is_waiting(edge);
        self.up.edge.is_some() && !is_there
    }

    /// The home's word on a claim that was passed up: whose it was.
    pub(super) fn judged(&mut self, question: u64) -> Option<Passed> {
        self.passed_claims.judged(question)
    }

    /// What this child is sent next rests on what came from above (rule R9).
    pub(super) fn vouch(&mut self, edge: EdgeId, outbox: &mut Outbox) {
        if let Some(receipt) = self.up.receipt() {
            self.children.vouch(edge, receipt, outbox);
        }
    }

    /// The sites that carry what children send to the home. The home looks at the first one; so where
    /// there are too many, the last ones may be left out.
    fn sites_on_way(&self) -> Vec<NameId> {
        if planted::is(Bug::UpperSitesNotTold) {
            return Vec::from([self.name]);
        }
        let above = self.up.sites.iter().copied();
        above.chain([self.name]).take(SITES_ON_WAY_MAX).collect()
    }

    /// A child went: what it was to help with goes to another.
    pub(super) fn child_went(&mut self, now: Millis, edge: EdgeId, outbox: &mut Outbox) {
        self.children.end(edge);
        self.writers.child_went(edge);
        self.passed_claims.child_went(edge);
        self.prefetch.child_went(edge);
        self.reports.child_went(edge);
        self.up.retain_waiting(|waiter| waiter.edge != edge);
        self.serve().helper_went(now, edge, outbox);
        self.watching().follow(outbox);
        self.writing().give_back_recalled(now, outbox);
    }

    /// Gives up above what only children that have gone held.
    pub(super) fn sweep(&mut self, outbox: &mut Outbox) {
        for page in self.children.sweep() {
            self.subtree().give_up_if_unused(page, outbox);
        }
    }

    /// Every home has a share of the memory for images.
    pub(super) fn limit_memory(&mut self, bytes: usize, outbox: &mut Outbox) {
        self.images.limit(bytes);
        self.subtree().shrink(outbox);
    }

    /// Updates and pulls.
    pub(super) fn writing(&mut self) -> Writing<'_> {
        Writing {
            writers: &mut self.writers,
            leases: &mut self.readers.leases,
            up: &mut self.up,
            children: &mut self.children,
        }
    }

    /// What those below show.
    pub(super) fn reading(&mut self) -> Reading<'_> {
        Reading {
            readers: &mut self.readers,
            up: &mut self.up,
            children: &mut self.children,
        }
    }

    // --- Up ---

    /// A child asks for a page.
    pub(super) fn asked(
        &mut self,
        now: Millis,
        edge: EdgeId,
        fetch: &message::Fetch,
        outbox: &mut Outbox,
    ) {
        let (page, ahead) = (fetch.page, fetch.ahead);
        self.prefetch.asked_by(page, edge, ahead, outbox);
        let waiter = Waiter::of(edge, fetch);
        self.serve().fetch(now, page, waiter, outbox);
        // What is waited for goes first.
        if !ahead {
            self.hints().hint(now, page, edge, outbox);
        }
    }

    /// A child gives up a page.
    pub(super) fn evicted(&mut self, edge: EdgeId, evict: &message::Evict, outbox: &mut Outbox) {
        if self.children.evict(edge, evict.page, evict.entry, outbox) {
            self.subtree().give_up_if_unused(evict.page, outbox);
        }
    }

    /// The group acknowledgement: what every child has acknowledged, and this
    /// node has applied (rule 7).
    pub(super) fn acknowledge(&mut self, outbox: &mut Outbox) {
        let below = self.children.acknowledged();
        let position = below.map_or(self.up.position, |below| below.min(self.up.position));
        self.up.acknowledge(position, outbox);
    }

    // --- The stream ---

    /// One position: applied here, then sent below as one step. Returns the pages that have new holes.
    pub(super) fn step(
        &mut self,
        now: Millis,
        step: Step,
        (origin, run, update): Delivered,
        outbox: &mut Outbox,
    ) -> Vec<PageId> {
        let at = (step.position, step.stamp);
        let mut changes = step.changes;
        note_delivery(&changes, outbox);
        let invalidated = refetch::invalidated(&changes);
        self.up.advance_promised(step.position, step.watermark);
        self.up.keep(at, &changes, now, outbox);
        let digests = by_page(&changes, &step.digests);
        for change in &changes {
            self.subtree().apply_own(change, at);
            let digest = digests.get(&change.page).copied();
            let digest = digest.unwrap_or(PageDigest::UNKNOWN);
            self.subtree()
                .take_digest(change.page, step.position, digest);
            if change.slots == PageSlots::Whole {
                self.subtree().forget_above(change.page);
                self.prefetch.forget(change.page, outbox);
            }
        }
        if planted::is(Bug::RefetchedNotTold) {
            changes.retain(|change| !change.makes_holes() || !self.prefetch.wants(change.page));
        }
        if planted::is(Bug::DroppedNotInvalidated) {
            changes.iter_mut().for_each(drop_invalid);
        }
        let restricts = !step.readers.is_empty();
        if let Some((edge, _)) = origin {
            self.vouch(edge, outbox);
        }
        let news = News {
            position: step.position,
            stamp: step.stamp,
            watermark: self.up.promised(),
            changes,
            values: Values::ToHolders,
            origin,
            readers: taken(step.readers),
            digests,
            executed: step.executed,
            run,
            update: update.map(|update| (update, self.writers.followers(update.segment))),
        };
        let changed: Vec<SegmentId> = news.readers.iter().map(|(of, _)| *of).collect();
        for page in self.children.deliver(news, outbox) {
            self.subtree().give_up_if_unused(page, outbox);
        }
        for segment in changed {
            self.writers.rights_changed(segment, &self.children);
            self.readers.rights_changed(segment, &self.children, now);
        }
        if restricts {
            // A child that may not read any more watches no more.
            self.watching().follow(outbox);
        }
        invalidated
    }

    /// A position has gone to those below: what they will want again is asked for.
    pub(super) fn after_step(&mut self, now: Millis, invalidated: &[PageId], outbox: &mut Outbox) {
        let mut subtree = self.subtree();
        refetch::refetch(&mut subtree, now, invalidated, outbox);
        // New values may be longer than the old ones (rule 15).
        subtree.shrink(outbox);
        self.caught_up(now, outbox);
        // Nobody waits for a child that may not read any more.
        self.reading().finish(now, outbox);
    }

    /// An image came in the stream: the stream is complete up to there.
    pub(super) fn image(
        &mut self,
        now: Millis,
        response: message::FetchResponse,
        outbox: &mut Outbox,
    ) {
        if let Some(fetched) = self.up.take_in_stream(response, outbox) {
            self.serve().arrived(fetched, outbox);
        }
        self.caught_up(now, outbox);
        self.subtree().settle_strays(outbox);
    }

    /// An image came beside the stream (rule 9).
    pub(super) fn peer_image(&mut self, now: Millis, peer: PeerImage, outbox: &mut Outbox) {
        if let Some(fetched) = self.up.take_peer(peer, now, outbox) {
            self.serve().arrived(fetched, outbox);
        }
        self.subtree().settle_strays(outbox);
    }

    pub(super) fn heartbeat(
        &mut self,
        now: Millis,
        heartbeat: &message::Heartbeat,
        outbox: &mut Outbox,
    ) {
        self.up.beaten(heartbeat, now);
        if let Some(receipt) = self.up.receipt() {
            self.children.vouch_all(receipt, outbox);
        }
        self.children
            .heartbeat(self.up.position, self.up.watermark, outbox);
        self.caught_up(now, outbox);
    }

    /// Tells the home who was denied what, here and below (rule R8).
    pub(super) fn report_denials(&mut self, outbox: &mut Outbox) {
        let Some(edge) = self.up.edge else {
            return;
        };
        let home = self.up.home;
        for ((name, segment), count) in self.children.take_denials() {
            let denied = message::Denied {
                home,
                name,
                segment,
                count,
                site: None,
            };
            outbox.up(edge, Up::Denied(denied));
        }
    }

    pub(super) fn caught_up(&mut self, now: Millis, outbox: &mut Outbox) {
        for fetched in self.up.caught_up(now, outbox) {
            self.serve().arrived(fetched, outbox);
        }
    }

    /// This node as a helper of its parent: only its own memory is looked at.
    pub(super) fn help(&self, edge: EdgeId, redirect: message::Redirect, outbox: &mut Outbox) {
        let own = self.images.peek(redirect.page);
        let image = own.filter(|image| image.is_complete()).cloned();
        self.up.help(edge, redirect, image, outbox);
    }

    /// The parent has answered for a piece of a report.
    pub(super) fn resynchronised(
        &mut self,
        now: Millis,
        answer: message::Resynchronised,
        outbox: &mut Outbox,
    ) {
        self.up.advance(answer.position);
        self.resync().settle_report(answer, outbox);
        self.caught_up(now, outbox);
        self.subtree().settle_strays(outbox);
    }

    // --- Views of the parts ---

    pub(super) fn subtree(&mut self) -> Subtree<'_> {
        self.serve().subtree
    }

    pub(super) fn serve(&mut self) -> Serve<'_> {
        Serve {
            subtree: Subtree {
                up: &mut self.up,
                children: &mut self.children,
                images: &mut self.images,
                digests: &mut self.digests,
                prefetch: &mut self.prefetch,
            },
            redirects: &mut self.redirects,
            wrong_helpers: &mut self.wrong_helpers,
        }
    }

    pub(super) fn hints(&mut self) -> Hints<'_> {
        Hints {
            subtree: self.subtree(),
        }
    }

    pub(super) fn watching(&mut self) -> Watching<'_> {
        Watching {
            up: &mut self.up,
            children: &mut self.children,
            watched: &mut self.watched,
        }
    }

    pub(super) fn resync(&mut self) -> Resync<'_> {
        Resync {
            up: &mut self.up,
            children: &mut self.children,
            images: &mut self.images,
            digests: &mut self.digests,
            reports: &mut self.reports,
            reported_max: self.reported_max,
        }
    }
}

/// Who may read and carry what, as of where a stream begins: it is known before anything is given (rule R4).
fn readers_of(begin: &message::Begin) -> Vec<(SegmentId, Audience)> {
    if planted::is(Bug::ReadersNotTold) {
        return Vec::new();
    }
    taken(begin.readers.clone())
}

/// What a redirector takes of who may read and carry what: all of it.
fn taken(mut readers: Vec<(SegmentId, Audience)>) -> Vec<(SegmentId, Audience)> {
    if planted::is(Bug::LowerSiteNotChecked) {
        for (_, audience) in &mut readers {
            audience.carriers = Carriers::ALL_SITES;
        }
    }
    readers
}

/// The digests that a step brings, by page. A list that does not fit its changes says nothing.
fn by_page(changes: &[PageChange], digests: &[PageDigest]) -> BTreeMap<PageId, PageDigest> {
    if changes.len() != digests.len() {
        return BTreeMap::new();
    }
    let pages = changes.iter().map(|change| change.page);
    pages.zip(digests.iter().copied()).collect()
}

fn note_delivery(changes: &[PageChange], outbox: &mut Outbox) {
    for change in changes {
        let PageSlots::Some(slots) = &change.slots else {
            continue;
        };
        for (_, slot_change) in slots {
            match slot_change {
                SlotChange::Invalid => outbox.note(Note::InvalidationDelivered),
                SlotChange::Value { .. } | SlotChange::Patch { .. } => {
                    outbox.note(Note::UpdateDelivered);
                }
                SlotChange::Overflow { .. } | SlotChange::Deleted { .. } => {}
            }
        }
    }
}

/// A planted bug: what was not kept is not told.
fn drop_invalid(change: &mut PageChange) {
    if let PageSlots::Some(slots) = &mut change.slots {
        slots.retain(|(_, slot_change)| *slot_change != SlotChange::Invalid);
    }
}
