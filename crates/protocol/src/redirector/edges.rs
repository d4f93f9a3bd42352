//! Children that come and go, and parents that are lost.

use crate::redirector::{Outbox, Redirector};
use alloc::vec::Vec;
use thorp_model::limits::CHILDREN_MAX;
use thorp_model::planted::Bug;
use thorp_model::{EdgeId, HomeId, MemberId, Millis, NodeKind, Note, Peer, planted};

impl Redirector {
    pub(super) fn child_came(
        &mut self,
        now: Millis,
        edge: EdgeId,
        peer: Peer,
        outbox: &mut Outbox,
    ) {
        if peer.kind == NodeKind::Home {
            return outbox.close(edge, "a home is no child of a site");
        }
        self.end_old_edge(now, peer.node, outbox);
        if self.below.len() >= CHILDREN_MAX {
            outbox.note(Note::ChildLimited);
            return outbox.close(edge, "too many children");
        }
        self.below.insert(edge, peer);
        self.neighbours.came(edge);
        let live: Vec<HomeId> = self
            .homes
            .iter()
            .filter(|(_, proxy)| proxy.up.edge.is_some())
            .map(|(home, _)| *home)
            .collect();
        for home in live {
            self.begin_child(now, home, edge, outbox);
        }
    }

    /// A child that comes again has lost its old edge: nobody reads there,
    /// nobody acknowledges, and no helper is to be found.
    fn end_old_edge(&mut self, now: Millis, node: MemberId, outbox: &mut Outbox) {
        let mut below = self.below.iter();
        let Some((old, _)) = below.find(|(_, peer)| peer.node == node) else {
            return;
        };
        let old = *old;
        outbox.note(Note::CameAgain);
        self.end_edge(now, old, "the same node has come again", outbox);
    }

    /// Ends a child's edge now: what still comes of it changes nothing.
    pub(super) fn end_edge(
        &mut self,
        now: Millis,
        edge: EdgeId,
        why: &'static str,
        outbox: &mut Outbox,
    ) {
        self.below.remove(&edge);
        self.neighbours.went(edge);
        self.child_went(now, edge, outbox);
        outbox.close(edge, why);
    }

    /// A neighbour says nothing. A child is struck: what it was asked for goes to another, and
    /// what it has committed is delivered to its neighbours as ever. A parent is left.
    pub(super) fn give_up(&mut self, now: Millis, edge: EdgeId, outbox: &mut Outbox) {
        const WHY: &str = "it says nothing";
        self.neighbours.went(edge);
        if !self.below.contains_key(&edge) {
            outbox.note(Note::ParentSilent);
            self.disconnected(now, edge, outbox);
            return outbox.close(edge, WHY);
        }
        outbox.note(Note::ChildSilent);
        if planted::is(Bug::StruckChildBelieved) {
            let homes = self.homes.values_mut();
            return homes.for_each(|proxy| proxy.children.strike_pages(edge));
        }
        self.end_edge(now, edge, WHY, outbox);
    }

    pub(super) fn worn_out(&self) -> Option<EdgeId> {
        let mut homes = self.homes.values();
        homes.find_map(|proxy| proxy.children.worn_out())
    }

    pub(super) fn begin_child(
        &mut self,
        now: Millis,
        home: HomeId,
        edge: EdgeId,
        outbox: &mut Outbox,
    ) {
        let (Some(proxy), Some(peer)) = (self.homes.get_mut(&home), self.below.get(&edge)) else {
            return;
        };
        let at = (proxy.up.position, proxy.up.watermark);
        let name = proxy.up.name.clone();
        let silent_ms = if planted::is(Bug::SilenceNotTold) {
            0
        } else {
            now.since(proxy.up.heard)
        };
        // The number of children was checked when the child came.
        proxy
            .children
            .begin(edge, peer, at, &name, silent_ms, outbox);
    }

    pub(super) fn disconnected(&mut self, now: Millis, edge: EdgeId, outbox: &mut Outbox) {
        self.neighbours.went(edge);
        if self.below.remove(&edge).is_some() {
            return self.child_went(now, edge, outbox);
        }
        self.above.remove(&edge);
        let homes = self.homes.iter_mut();
        let lost = homes.filter_map(|(home, proxy)| proxy.up.lost(edge).then_some(*home));
        for home in lost.collect::<Vec<HomeId>>() {
            self.end(home, outbox);
        }
    }

    fn child_went(&mut self, now: Millis, edge: EdgeId, outbox: &mut Outbox) {
        // What it wrote stays kept: its neighbours get that if it commits (rule 13).
        self.passed.child_went(edge);
        let homes: Vec<HomeId> = self.homes.keys().copied().collect();
        for home in homes {
            let Some(proxy) = self.homes.get_mut(&home) else {
                continue;
            };
            proxy.children.end(edge);
            proxy.successors.child_went(edge);
            proxy.reports.child_went(edge);
            proxy.up.retain_waiting(|waiter| waiter.edge != edge);
            proxy.helper_went(now, edge, outbox);
            proxy.follow_watches(outbox);
        }
    }
}
