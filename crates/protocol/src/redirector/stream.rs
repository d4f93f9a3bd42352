//! A home's stream through a redirector: applied here, then told below in the
//! same order (rules 1, 7 and 8).

use crate::edge::downstream::{Children, News, Values, cut_off};
use crate::edge::reply_routes::ReplyRoutes;
use crate::edge::reports::Reports;
use crate::edge::upstream::Upstream;
use crate::redirector::prefetch::history::History;
use crate::redirector::prefetch::refetch;
use crate::redirector::prefetch::successors::Successors;
use crate::redirector::standby::Images;
use crate::redirector::{Outbox, Proxy, Redirector, RedirectorConfig};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, Down, EdgeId, Epoch, HomeId, Millis, NodeKind, Note, Outcome, PageChange, PageSlots,
    PeerImage, Position, SlotChange, Stamp, Step, message, planted,
};

impl Redirector {
    pub(super) fn received_down(
        &mut self,
        now: Millis,
        edge: EdgeId,
        message: Down,
        outbox: &mut Outbox,
    ) {
        if self.below.contains_key(&edge) {
            return cut_off(edge, "a child sent down", outbox);
        }
        if !self.above.contains_key(&edge) {
            return outbox.note(Note::OtherEpochDropped);
        }
        let home = message.home();
        let is_heard = match self.homes.get_mut(&home) {
            Some(proxy) => proxy.up.hears(edge, &message, outbox),
            None => matches!(message, Down::Begin(_)),
        };
        if !is_heard {
            return;
        }
        let proxy = self.homes.get_mut(&home);
        match (message, proxy) {
            (Down::Begin(begin), _) => self.begin(now, edge, begin, outbox),
            (Down::End(_), _) => self.end(home, outbox),
            (Down::Step(step), _) => self.step(now, step, outbox),
            (Down::Voted(voted), _) => self.voted(&voted, outbox),
            (Down::Refused(refused), _) => self.refused(refused, outbox),
            (Down::Committed(committed), _) => self.committed(now, committed, outbox),
            (Down::CallResult(result), _) => self.call_result(&result, outbox),
            (Down::Image(response), Some(proxy)) => proxy.image(now, response, outbox),
            (Down::Peer(peer), Some(proxy)) => proxy.peer_image(now, peer, outbox),
            (Down::Redirect(redirect), Some(proxy)) => proxy.help(edge, redirect, outbox),
            (Down::Hint(hint), Some(proxy)) => proxy.pass_hint(hint, outbox),
            (Down::Joined(joined), Some(proxy)) => proxy.joined_above(joined.page, outbox),
            (Down::Heartbeat(heartbeat), Some(proxy)) => proxy.heartbeat(now, &heartbeat, outbox),
            (Down::Unwatched(unwatched), Some(proxy)) => {
                proxy.unwatched(unwatched.segment, outbox);
            }
            (Down::Resynchronised(answer), Some(proxy)) => {
                proxy.resynchronised(now, answer, outbox);
            }
            (_, None) => {}
        }
    }

    /// A stream begins: what is cached here is reported (rule 13), and the streams
    /// below begin anew (rule 1), so that those below report in their turn.
    fn begin(&mut self, now: Millis, edge: EdgeId, begin: message::Begin, outbox: &mut Outbox) {
        let home = begin.home;
        outbox.note(Note::StreamBegan);
        self.passed.stream_began(home);
        if !self.homes.contains_key(&home) {
            self.homes.insert(home, Proxy::new(home, &self.config));
            self.share_memory(outbox);
        }
        let Some(proxy) = self.homes.get_mut(&home) else {
            return;
        };
        proxy.up.limit_kept_changes(self.config.kept_changes_max);
        proxy.up.images_beside = self.config.images_beside;
        proxy.up.helpers = self.above.get(&edge) == Some(&NodeKind::Redirector);
        proxy.reports.limit(self.config.report_pages_max);
        let as_of = proxy.up.position;
        if planted::is(Bug::OldDirectoryKept) && proxy.up.epoch != Epoch(0) {
            return proxy.up.begin(edge, begin, false, now, outbox);
        }
        proxy.children.end_all();
        proxy.history.clear();
        proxy.successors.stream_ended();
        proxy.redirecting.clear();
        proxy.watched.clear();
        proxy.up.retain_waiting(|_| false);
        proxy.up.begin(edge, begin, false, now, outbox);
        proxy.report_own(as_of, outbox);
        let children: Vec<EdgeId> = self.below.keys().copied().collect();
        for child in children {
            self.begin_child(now, home, child, outbox);
        }
    }

    /// Every home has an equal share of the memory for images.
    fn share_memory(&mut self, outbox: &mut Outbox) {
        let share = self.config.cache_bytes / self.homes.len().max(1);
        for proxy in self.homes.values_mut() {
            proxy.images.limit(share);
            proxy.shrink(outbox);
        }
    }

    /// The home is out of reach: those below are told, and keep what they have
    /// as of where the stream ended.
    pub(super) fn end(&mut self, home: HomeId, outbox: &mut Outbox) {
        let Some(proxy) = self.homes.get_mut(&home) else {
            return;
        };
        if proxy.up.edge.is_none() {
            return;
        }
        outbox.note(Note::StreamEnded);
        proxy.up.end(outbox);
        if planted::is(Bug::OldDirectoryKept) {
            return;
        }
        for edge in proxy.children.edges() {
            outbox.down(edge, Down::End(message::End { home }));
        }
        proxy.children.end_all();
        proxy.history.clear();
        proxy.successors.stream_ended();
        proxy.redirecting.clear();
        proxy.reports.clear();
        self.passed.stream_ended(home);
        self.pending_writes.forget_home(home);
    }

    /// One position: applied here, then told below as one step. The values
    /// that were kept of the commit are put in here and nowhere else (rule 8).
    fn step(&mut self, now: Millis, step: Step, outbox: &mut Outbox) {
        let Step {
            home,
            position,
            stamp,
            watermark,
            commit,
            mut changes,
        } = step;
        let from = commit.map(|id| self.passed.commit_ended(home, id));
        let last = from.as_ref().and_then(ReplyRoutes::last);
        let origin = last.zip(commit);
        if let Some(commit) = commit {
            self.pending_writes.fill(home, commit, &mut changes);
        }
        note_delivery(&changes, outbox);
        let Some(proxy) = self.homes.get_mut(&home) else {
            return;
        };
        let invalidated = refetch::invalidated(&changes);
        proxy.up.advance_promised(position, watermark);
        proxy.up.keep((position, stamp), &changes, now, outbox);
        for change in &changes {
            proxy.apply_own(change, (position, stamp));
            if change.slots == PageSlots::Whole {
                proxy.children.directory.clear_above(change.page);
                proxy.forget_history(change.page, outbox);
            }
        }
        if planted::is(Bug::RefetchedNotTold) {
            changes.retain(|change| !change.makes_holes() || !proxy.history.wants(change.page));
        }
        proxy.deliver(position, stamp, changes, origin, outbox);
        if let Some((commit, mut from)) = commit.zip(from) {
            let outcome = Outcome::Committed { position, stamp };
            for edge in from.take_others() {
                outbox.down(edge, Down::outcome(home, commit, outcome.clone()));
            }
        }
        proxy.refetch(now, &invalidated, outbox);
        // New values may be longer than the old ones (rule 15).
        proxy.shrink(outbox);
        proxy.caught_up(now, outbox);
    }

    /// A vote answers what was sent up; it goes to every child that the commit came from (rule 10).
    fn voted(&mut self, voted: &message::Voted, outbox: &mut Outbox) {
        for edge in self.passed.voted(voted.home, voted.commit) {
            outbox.down(edge, Down::Voted(voted.clone()));
        }
    }

    fn refused(&mut self, refused: message::Refused, outbox: &mut Outbox) {
        let outcome = Outcome::Refused(refused.refusal);
        self.pass_outcome(refused.home, refused.commit, &outcome, outbox);
    }

    fn committed(&mut self, now: Millis, committed: message::Committed, outbox: &mut Outbox) {
        let message::Committed {
            home,
            commit,
            position,
            stamp,
        } = committed;
        if let Some(proxy) = self.homes.get_mut(&home) {
            proxy.up.advance(position);
            proxy.caught_up(now, outbox);
        }
        let outcome = Outcome::Committed { position, stamp };
        self.pass_outcome(home, commit, &outcome, outbox);
    }

    /// An outcome that has no delivery: forwarded, never applied (rule 11).
    fn pass_outcome(
        &mut self,
        home: HomeId,
        commit: CommitId,
        outcome: &Outcome,
        outbox: &mut Outbox,
    ) {
        self.pending_writes.drop_commit(home, commit);
        for edge in self.passed.commit_ended(home, commit).iter() {
            outbox.down(edge, Down::outcome(home, commit, outcome.clone()));
        }
    }

    /// The result of a call goes to every edge that the call came up.
    fn call_result(&mut self, result: &message::CallResult, outbox: &mut Outbox) {
        for edge in self.passed.call_answered(result.call) {
            outbox.down(edge, Down::CallResult(result.clone()));
        }
    }
}

impl Proxy {
    fn new(home: HomeId, config: &RedirectorConfig) -> Self {
        Proxy {
            up: Upstream::new(home),
            children: Children::new(home, Epoch(0), config.per_child),
            images: Images::new(config.cache_bytes),
            history: History::new(config.history_pages_max),
            successors: Successors::new(config.successor_pages_max),
            redirecting: BTreeMap::new(),
            watched: BTreeSet::new(),
            reports: Reports::new(),
            reported_max: config.reported_max,
        }
    }

    fn deliver(
        &mut self,
        position: Position,
        stamp: Stamp,
        mut changes: Vec<PageChange>,
        origin: Option<(EdgeId, CommitId)>,
        outbox: &mut Outbox,
    ) {
        if planted::is(Bug::DroppedNotInvalidated) {
            changes.iter_mut().for_each(drop_invalid);
        }
        let news = News {
            position,
            stamp,
            watermark: self.up.promised(),
            changes,
            values: Values::ToHolders,
            origin,
        };
        self.children.deliver(news, outbox);
    }

    /// An image came in the stream: the stream is complete up to there.
    fn image(&mut self, now: Millis, response: message::FetchResponse, outbox: &mut Outbox) {
        if let Some(fetched) = self.up.take_in_stream(response, outbox) {
            self.arrived(fetched, outbox);
        }
        self.caught_up(now, outbox);
        self.settle_strays(outbox);
    }

    /// An image came beside the stream (rule 9).
    fn peer_image(&mut self, now: Millis, peer: PeerImage, outbox: &mut Outbox) {
        if let Some(fetched) = self.up.take_peer(peer, now, outbox) {
            self.arrived(fetched, outbox);
        }
        self.settle_strays(outbox);
    }

    fn heartbeat(&mut self, now: Millis, heartbeat: &message::Heartbeat, outbox: &mut Outbox) {
        self.up.beaten(heartbeat, now);
        self.children
            .heartbeat(self.up.position, self.up.watermark, outbox);
        self.caught_up(now, outbox);
    }

    pub(super) fn caught_up(&mut self, now: Millis, outbox: &mut Outbox) {
        for fetched in self.up.caught_up(now, outbox) {
            self.arrived(fetched, outbox);
        }
    }

    /// The group acknowledgement: what every child has acknowledged, and this
    /// node has applied (rule 7).
    pub(super) fn acknowledge(&mut self, outbox: &mut Outbox) {
        let below = self.children.acknowledged();
        let position = below.map_or(self.up.position, |below| below.min(self.up.position));
        self.up.acknowledge(position, outbox);
    }
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
