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
use crate::redirector::{Proxy, Redirector, RedirectorConfig, tell};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, Down, EdgeId, Epoch, HomeId, Millis, NodeKind, Note, Outbox, Outcome, PageChange,
    PageSlots, PeerImage, Position, SlotChange, Stamp, Step, Up, planted,
};

impl Redirector {
    pub(super) fn received_down(
        &mut self,
        now: Millis,
        edge: EdgeId,
        message: Down,
        out: &mut Outbox,
    ) {
        if self.below.contains_key(&edge) {
            return self.cut_off(edge, "a child sent down", out);
        }
        if !self.above.contains_key(&edge) {
            return out.note(Note::OtherEpochDropped);
        }
        let is_heard = match self.homes.get_mut(&message.home()) {
            Some(proxy) => proxy.up.hears(edge, &message, out),
            None => matches!(message, Down::Begin { .. }),
        };
        if !is_heard {
            return;
        }
        match message {
            Down::Begin {
                home,
                name,
                epoch,
                position,
                watermark,
                silent_ms,
            } => {
                let heard = now.before(u64::from(silent_ms));
                self.begin(
                    now,
                    home,
                    name,
                    edge,
                    epoch,
                    (position, watermark, heard),
                    out,
                );
            }
            Down::End { home } => self.end(home, out),
            Down::Step(step) => self.step(now, step, out),
            Down::Image {
                home,
                page,
                attempt,
                entry,
                position,
                watermark,
                answer,
            } => {
                let Some(proxy) = self.homes.get_mut(&home) else {
                    return;
                };
                proxy.up.advance_promised(position, watermark);
                if let Some(fetched) = proxy.up.take_in_stream(page, attempt, entry, answer, out) {
                    proxy.arrived(fetched, out);
                }
                proxy.caught_up(now, out);
                proxy.settle_strays(out);
            }
            Down::Peer(peer) => {
                let Some(proxy) = self.homes.get_mut(&peer.home) else {
                    return;
                };
                if let Some(fetched) = proxy.up.take_peer(peer, now, out) {
                    proxy.arrived(fetched, out);
                }
                proxy.settle_strays(out);
            }
            Down::Redirect {
                home,
                page,
                requester,
                epoch,
                attempt,
                entry,
            } => {
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
                    proxy.help(edge, answer, out);
                }
            }
            Down::Hint { home, page, next } => {
                if let Some(proxy) = self.homes.get_mut(&home) {
                    proxy.pass_hint(page, next, out);
                }
            }
            Down::Joined { home, page } => {
                if let Some(proxy) = self.homes.get_mut(&home) {
                    proxy.joined_above(page, out);
                }
            }
            Down::Voted { home, commit, .. } => {
                self.passing.commit_ended(home, commit);
                if let Some(from) = self.commits.get(&(home, commit)) {
                    for edge in from.iter() {
                        out.down(edge, message.clone());
                    }
                }
            }
            Down::Refused {
                home,
                commit,
                refusal,
            } => self.told(now, home, commit, Outcome::Refused(refusal), out),
            Down::Told {
                home,
                commit,
                position,
                stamp,
            } => self.told(
                now,
                home,
                commit,
                Outcome::Committed { position, stamp },
                out,
            ),
            Down::Heartbeat {
                home,
                position,
                watermark,
            } => {
                if let Some(proxy) = self.homes.get_mut(&home) {
                    proxy.heartbeat(now, position, watermark, out);
                }
            }
            Down::Answer { home, call, result } => {
                self.passing.call_answered(call);
                let asked = (call, EdgeId(0))..=(call, EdgeId(u64::MAX));
                for ((call, edge), _) in self.calls.extract_if(asked, |_, _| true) {
                    let result = result.clone();
                    out.down(edge, Down::Answer { home, call, result });
                }
            }
            Down::Resynchronised {
                home,
                report,
                entry,
                position,
                changed,
                open,
            } => {
                if let Some(proxy) = self.homes.get_mut(&home) {
                    proxy.up.advance(position);
                    proxy.resynchronised((report, entry), changed, open, out);
                    proxy.caught_up(now, out);
                    proxy.settle_strays(out);
                }
            }
            Down::Unwatched { home, segment } => {
                if let Some(proxy) = self.homes.get_mut(&home) {
                    proxy.unwatched(segment, out);
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
        out: &mut Outbox,
    ) {
        out.note(Note::StreamBegan);
        self.passing.forget(home);
        if !self.homes.contains_key(&home) {
            self.homes.insert(home, Proxy::new(home, &self.config));
            self.share_memory(out);
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
            return proxy.up.begin(edge, epoch, at, false, now, out);
        }
        proxy.children.end_all();
        proxy.history.clear();
        proxy.sequels.stream_ended();
        proxy.redirecting.clear();
        proxy.watched.clear();
        proxy.up.retain_waiting(|_| false);
        proxy.up.begin(edge, epoch, at, false, now, out);
        proxy.report_own(as_of, out);
        let children: Vec<EdgeId> = self.below.keys().copied().collect();
        for child in children {
            self.begin_child(now, home, child, out);
        }
    }

    /// Every home has an equal share of the memory for images.
    fn share_memory(&mut self, out: &mut Outbox) {
        let share = self.config.cache_bytes / self.homes.len().max(1);
        for proxy in self.homes.values_mut() {
            proxy.images.limit(share);
            proxy.shrink(out);
        }
    }

    /// The home is out of reach: those below are told, and keep what they have
    /// as of where the stream ended.
    pub(super) fn end(&mut self, home: HomeId, out: &mut Outbox) {
        let Some(proxy) = self.homes.get_mut(&home) else {
            return;
        };
        if proxy.up.edge.is_none() {
            return;
        }
        out.note(Note::StreamEnded);
        proxy.up.end(out);
        if planted::is(Bug::OldDirectoryKept) {
            return;
        }
        for edge in proxy.children.edges() {
            out.down(edge, Down::End { home });
        }
        proxy.children.end_all();
        proxy.history.clear();
        proxy.sequels.stream_ended();
        proxy.redirecting.clear();
        proxy.reports.clear();
        self.forget_requests(home);
    }

    /// Answers that are lost with the stream are asked for again by the members.
    fn forget_requests(&mut self, home: HomeId) {
        self.commits.retain(|(of, _), _| *of != home);
        self.kept.forget_home(home);
        self.calls.retain(|_, of| *of != home);
        self.passing.forget(home);
    }

    /// One position: applied here, then told below as one step. The values
    /// that were kept of the commit are put in here and nowhere else (rule 8).
    fn step(&mut self, now: Millis, step: Step, out: &mut Outbox) {
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
            self.kept.fill(home, commit, &mut changes);
        }
        note_delivery(&changes, out);
        let Some(proxy) = self.homes.get_mut(&home) else {
            return;
        };
        let invalidated = refetch::invalidated(&changes);
        proxy.up.advance_promised(position, watermark);
        proxy.up.keep(position, stamp, &changes, now, out);
        for change in &changes {
            proxy.apply_own(change, (position, stamp));
            if change.slots == PageSlots::Whole {
                proxy.children.directory.clear_above(change.page);
                proxy.forget_history(change.page, out);
            }
        }
        if planted::is(Bug::RefetchedNotTold) {
            changes.retain(|change| !change.makes_holes() || !proxy.history.wants(change.page));
        }
        proxy.deliver(position, stamp, changes, origin, out);
        if let Some((commit, mut from)) = commit.zip(from) {
            let outcome = Outcome::Committed { position, stamp };
            for edge in from.take_others() {
                tell(edge, home, commit, outcome.clone(), out);
            }
        }
        proxy.refetch(now, &invalidated, out);
        // New values may be longer than the old ones (rule 15).
        proxy.shrink(out);
        proxy.caught_up(now, out);
    }

    /// An outcome that has no delivery: forwarded, never applied (rule 11).
    fn told(
        &mut self,
        now: Millis,
        home: HomeId,
        commit: CommitId,
        outcome: Outcome,
        out: &mut Outbox,
    ) {
        if let (Outcome::Committed { position, .. }, Some(proxy)) =
            (&outcome, self.homes.get_mut(&home))
        {
            proxy.up.advance(*position);
            proxy.caught_up(now, out);
        }
        self.passing.commit_ended(home, commit);
        self.kept.drop_commit(home, commit);
        if let Some(from) = self.commits.remove(&(home, commit)) {
            for edge in from.iter() {
                tell(edge, home, commit, outcome.clone(), out);
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
            sequels: Successors::new(config.sequel_pages_max),
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
        out: &mut Outbox,
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
        self.children.deliver(news, out);
    }

    fn heartbeat(&mut self, now: Millis, position: Position, watermark: Stamp, out: &mut Outbox) {
        self.up.beaten(position, watermark, now);
        self.children
            .heartbeat(self.up.position, self.up.watermark, out);
        self.caught_up(now, out);
    }

    fn caught_up(&mut self, now: Millis, out: &mut Outbox) {
        for fetched in self.up.caught_up(now, out) {
            self.arrived(fetched, out);
        }
    }

    /// The group acknowledgement: what every child has acknowledged, and this
    /// node has applied (rule 7).
    pub(super) fn acknowledge(&mut self, out: &mut Outbox) {
        let below = self.children.acknowledged();
        let position = below.map_or(self.up.position, |below| below.min(self.up.position));
        let Some(edge) = self.up.edge else {
            return;
        };
        if position > self.up.acked {
            self.up.acked = position;
            let (home, epoch) = (self.up.home, self.up.epoch);
            out.up(
                edge,
                Up::Ack {
                    home,
                    epoch,
                    position,
                },
            );
        }
    }
}

fn note_delivery(changes: &[PageChange], out: &mut Outbox) {
    for change in changes {
        let PageSlots::Some(slots) = &change.slots else {
            continue;
        };
        for (_, slot_change) in slots {
            match slot_change {
                SlotChange::Invalid => out.note(Note::InvalidationDelivered),
                SlotChange::Value { .. } | SlotChange::Patch { .. } => {
                    out.note(Note::UpdateDelivered);
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
