//! A home's stream through a redirector: applied here, then told below in the
//! same order (rules 1, 7 and 8).

use crate::edge::downstream::{Children, News, Values};
use crate::edge::reply_routes::ReplyRoutes;
use crate::edge::reports::Reports;
use crate::edge::upstream::Upstream;
use crate::redirector::prefetch::history::History;
use crate::redirector::prefetch::refetch;
use crate::redirector::prefetch::successors::Successors;
use crate::redirector::standby::Images;
use crate::redirector::{Outbox, Proxy, Redirector, RedirectorConfig, tell};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, Down, EdgeId, Epoch, HomeId, Millis, NodeKind, Note, Outcome, PageChange, PageSlots,
    PeerImage, Position, SlotChange, Stamp, Step, Up, message, planted,
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
            return self.cut_off(edge, "a child sent down", outbox);
        }
        if !self.above.contains_key(&edge) {
            return outbox.note(Note::OtherEpochDropped);
        }
        let is_heard = match self.homes.get_mut(&message.home()) {
            Some(proxy) => proxy.up.hears(edge, &message, outbox),
            None => matches!(message, Down::Begin(_)),
        };
        if !is_heard {
            return;
        }
        match message {
            Down::Begin(message::Begin {
                home,
                name,
                epoch,
                position,
                watermark,
                silent_ms,
            }) => {
                let heard = now.before(u64::from(silent_ms));
                self.begin(
                    now,
                    home,
                    name,
                    edge,
                    epoch,
                    (position, watermark, heard),
                    outbox,
                );
            }
            Down::End(message::End { home }) => self.end(home, outbox),
            Down::Step(step) => self.step(now, step, outbox),
            Down::Image(message::FetchResponse {
                home,
                page,
                attempt,
                entry,
                position,
                watermark,
                result: answer,
            }) => {
                let Some(proxy) = self.homes.get_mut(&home) else {
                    return;
                };
                proxy.up.advance_promised(position, watermark);
                if let Some(fetched) = proxy
                    .up
                    .take_in_stream(page, attempt, entry, answer, outbox)
                {
                    proxy.arrived(fetched, outbox);
                }
                proxy.caught_up(now, outbox);
                proxy.settle_strays(outbox);
            }
            Down::Peer(peer) => {
                let Some(proxy) = self.homes.get_mut(&peer.home) else {
                    return;
                };
                if let Some(fetched) = proxy.up.take_peer(peer, now, outbox) {
                    proxy.arrived(fetched, outbox);
                }
                proxy.settle_strays(outbox);
            }
            Down::Redirect(message::Redirect {
                home,
                page,
                requester,
                epoch,
                attempt,
                entry,
            }) => {
                let answer = PeerImage {
                    home,
                    page,
                    requester,
                    epoch,
                    attempt,
                    entry,
                    position: Position(0),
                    image: None,
                };
                if let Some(proxy) = self.homes.get_mut(&home) {
                    proxy.help(edge, answer, outbox);
                }
            }
            Down::Hint(message::Hint { home, page, next }) => {
                if let Some(proxy) = self.homes.get_mut(&home) {
                    proxy.pass_hint(page, next, outbox);
                }
            }
            Down::Joined(message::Joined { home, page }) => {
                if let Some(proxy) = self.homes.get_mut(&home) {
                    proxy.joined_above(page, outbox);
                }
            }
            Down::Voted(message::Voted { home, commit, .. }) => {
                self.passing.commit_ended(home, commit);
                if let Some(from) = self.commits.get(&(home, commit)) {
                    for edge in from.iter() {
                        outbox.down(edge, message.clone());
                    }
                }
            }
            Down::Refused(message::Refused {
                home,
                commit,
                refusal,
            }) => self.told(now, home, commit, Outcome::Refused(refusal), outbox),
            Down::Committed(message::Committed {
                home,
                commit,
                position,
                stamp,
            }) => self.told(
                now,
                home,
                commit,
                Outcome::Committed { position, stamp },
                outbox,
            ),
            Down::Heartbeat(message::Heartbeat {
                home,
                position,
                watermark,
            }) => {
                if let Some(proxy) = self.homes.get_mut(&home) {
                    proxy.heartbeat(now, position, watermark, outbox);
                }
            }
            Down::CallResult(message::CallResult { home, call, result }) => {
                self.passing.call_answered(call);
                let asked = (call, EdgeId(0))..=(call, EdgeId(u64::MAX));
                for ((call, edge), _) in self.calls.extract_if(asked, |_, _| true) {
                    let result = result.clone();
                    outbox.down(
                        edge,
                        Down::CallResult(message::CallResult { home, call, result }),
                    );
                }
            }
            Down::Resynchronised(message::Resynchronised {
                home,
                report,
                entry,
                position,
                changed,
                open,
            }) => {
                if let Some(proxy) = self.homes.get_mut(&home) {
                    proxy.up.advance(position);
                    proxy.resynchronised((report, entry), changed, open, outbox);
                    proxy.caught_up(now, outbox);
                    proxy.settle_strays(outbox);
                }
            }
            Down::Unwatched(message::Unwatched { home, segment }) => {
                if let Some(proxy) = self.homes.get_mut(&home) {
                    proxy.unwatched(segment, outbox);
                }
            }
        }
    }

    /// A stream begins: what is cached here is reported (rule 13), and the streams
    /// below begin anew (rule 1), so that those below report in their turn.
    #[allow(clippy::too_many_arguments, reason = "the fields of one message")]
    fn begin(
        &mut self,
        now: Millis,
        home: HomeId,
        name: String,
        edge: EdgeId,
        epoch: Epoch,
        at: (Position, Stamp, Millis),
        outbox: &mut Outbox,
    ) {
        outbox.note(Note::StreamBegan);
        self.passing.forget(home);
        if !self.homes.contains_key(&home) {
            self.homes.insert(home, Proxy::new(home, &self.config));
            self.share_memory(outbox);
        }
        let Some(proxy) = self.homes.get_mut(&home) else {
            return;
        };
        proxy.up.name = name;
        proxy.up.kept_changes_max = self.config.kept_changes_max;
        proxy.up.images_beside = self.config.images_beside;
        proxy.up.helpers = self.above.get(&edge) == Some(&NodeKind::Redirector);
        proxy.reports.limit(self.config.report_pages_max);
        let as_of = proxy.up.position;
        if planted::is(Bug::OldDirectoryKept) && proxy.up.epoch != Epoch(0) {
            return proxy.up.begin(edge, epoch, at, false, now, outbox);
        }
        proxy.children.end_all();
        proxy.history.clear();
        proxy.successors.stream_ended();
        proxy.redirecting.clear();
        proxy.watched.clear();
        proxy.up.retain_waiting(|_| false);
        proxy.up.begin(edge, epoch, at, false, now, outbox);
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
        self.forget_requests(home);
    }

    /// Answers that are lost with the stream are asked for again by the members.
    fn forget_requests(&mut self, home: HomeId) {
        self.commits.retain(|(of, _), _| *of != home);
        self.pending_writes.forget_home(home);
        self.calls.retain(|_, of| *of != home);
        self.passing.forget(home);
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
        let from = commit.and_then(|id| self.commits.remove(&(home, id)));
        let last = from.as_ref().and_then(ReplyRoutes::last);
        let origin = last.zip(commit);
        if let Some(commit) = commit {
            self.passing.commit_ended(home, commit);
            self.pending_writes.fill(home, commit, &mut changes);
        }
        note_delivery(&changes, outbox);
        let Some(proxy) = self.homes.get_mut(&home) else {
            return;
        };
        let invalidated = refetch::invalidated(&changes);
        proxy.up.advance_promised(position, watermark);
        proxy.up.keep(position, stamp, &changes, now, outbox);
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
                tell(edge, home, commit, outcome.clone(), outbox);
            }
        }
        proxy.refetch(now, &invalidated, outbox);
        // New values may be longer than the old ones (rule 15).
        proxy.shrink(outbox);
        proxy.caught_up(now, outbox);
    }

    /// An outcome that has no delivery: forwarded, never applied (rule 11).
    fn told(
        &mut self,
        now: Millis,
        home: HomeId,
        commit: CommitId,
        outcome: Outcome,
        outbox: &mut Outbox,
    ) {
        if let (Outcome::Committed { position, .. }, Some(proxy)) =
            (&outcome, self.homes.get_mut(&home))
        {
            proxy.up.advance(*position);
            proxy.caught_up(now, outbox);
        }
        self.passing.commit_ended(home, commit);
        self.pending_writes.drop_commit(home, commit);
        if let Some(from) = self.commits.remove(&(home, commit)) {
            for edge in from.iter() {
                tell(edge, home, commit, outcome.clone(), outbox);
            }
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

    fn heartbeat(
        &mut self,
        now: Millis,
        position: Position,
        watermark: Stamp,
        outbox: &mut Outbox,
    ) {
        self.up.beaten(position, watermark, now);
        self.children
            .heartbeat(self.up.position, self.up.watermark, outbox);
        self.caught_up(now, outbox);
    }

    fn caught_up(&mut self, now: Millis, outbox: &mut Outbox) {
        for fetched in self.up.caught_up(now, outbox) {
            self.arrived(fetched, outbox);
        }
    }

    /// The group acknowledgement: what every child has acknowledged, and this
    /// node has applied (rule 7).
    pub(super) fn acknowledge(&mut self, outbox: &mut Outbox) {
        let below = self.children.acknowledged();
        let position = below.map_or(self.up.position, |below| below.min(self.up.position));
        let Some(edge) = self.up.edge else {
            return;
        };
        if position > self.up.acked {
            self.up.acked = position;
            let (home, epoch) = (self.up.home, self.up.epoch);
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
