//! Read leases below a site, and what those below say that they show (rules C1, C2 and C4).

use crate::edge::downstream::Children;
use crate::edge::read_leases::ReadLeases;
use crate::edge::unseen::{Shown, Unseen};
use crate::edge::upstream::Upstream;
use crate::redirector::Outbox;
use crate::redirector::waiter::Waiter;
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    Down, EdgeId, HomeId, MemberId, Millis, NodeKind, Note, Peer, Position, SegmentId, Up, message,
    planted,
};

/// What a site knows of readers with hard bounds below it, of one home.
///
/// Invariant: the home has granted each of `leases`, and the site has told its parent of no position that a child below with a read lease
/// in its segments has not seen.
#[derive(Debug, Default)]
pub(super) struct Readers {
    pub(super) leases: ReadLeases,
    unseen: Unseen,
}

impl Readers {
    /// The stream has ended, or another one begins: the parent asks again. Leases stay (rule C4).
    pub(super) fn stream_ended(&mut self) {
        self.unseen = Unseen::default();
    }

    /// When it is to be looked at next whom the parent awaits.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.unseen.deadline(&self.leases)
    }

    /// Forgets leases that have ended.
    pub(super) fn sweep(&mut self, now: Millis) {
        self.leases.sweep(now);
    }

    /// Others may read a segment from now on.
    pub(super) fn rights_changed(&mut self, segment: SegmentId, children: &Children, now: Millis) {
        for child in self.leases.holders(&[segment], now) {
            let edge = children.edge_of(child);
            if edge.is_some_and(|edge| !children.may_read(edge, segment)) {
                self.leases.end(child, &[segment]);
            }
        }
    }

    /// The sizes of its tables, by name.
    pub(super) fn sizes(&self) -> [(&'static str, usize); 2] {
        [
            ("read_leases", self.leases.len()),
            ("unseen", self.unseen.len()),
        ]
    }
}

/// Passes on what is to be seen, and what was.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    pub(super) readers: &'a mut Readers,
    pub(super) up: &'a mut Upstream<Waiter>,
    pub(super) children: &'a mut Children,
}

impl Reading<'_> {
    /// The parent wants to know when all below show a position, which it has told before.
    pub(super) fn wanted(&mut self, now: Millis, wanted: message::SeenWanted, outbox: &mut Outbox) {
        let holders = match planted::is(Bug::SeenForOthers) {
            true => Vec::new(),
            false => self.readers.leases.holders(&wanted.segments, now),
        };
        let (position, promised) = (self.up.position, self.up.promised());
        for child in &holders {
            if let Some(edge) = self.children.edge_of(*child) {
                self.children
                    .tell_position(edge, position, promised, outbox);
                self.want(edge, wanted.position, wanted.segments.clone(), outbox);
            }
        }
        let unseen = &mut self.readers.unseen;
        unseen.add(now, wanted.position, wanted.segments, holders);
        self.finish(now, outbox);
    }

    fn want(
        &self,
        edge: EdgeId,
        position: Position,
        segments: Vec<SegmentId>,
        outbox: &mut Outbox,
    ) {
        let home: HomeId = self.up.home;
        let wanted = message::SeenWanted {
            home,
            position,
            segments,
        };
        outbox.down(edge, Down::SeenWanted(wanted));
    }

    /// A child says how far it shows the stream.
    pub(super) fn seen(&mut self, now: Millis, child: MemberId, shown: Shown, outbox: &mut Outbox) {
        outbox.note(Note::SeenTold);
        self.readers.unseen.seen(child, shown);
        self.finish(now, outbox);
    }

    /// The stream of a child begins: what it has not answered it is asked again.
    pub(super) fn came(&mut self, child: MemberId, outbox: &mut Outbox) {
        let Some(edge) = self.children.edge_of(child) else {
            return;
        };
        for (position, segments) in self.readers.unseen.of(child) {
            self.want(edge, position, segments, outbox);
        }
    }

    /// A member gives read leases back.
    pub(super) fn give_back(
        &mut self,
        now: Millis,
        peer: &Peer,
        segments: &[SegmentId],
        outbox: &mut Outbox,
    ) {
        if peer.kind == NodeKind::Member {
            self.readers.leases.give_back_shared(peer.node, segments);
        }
        self.finish(now, outbox);
    }

    /// Tells the parent how far everybody below has come whom it has to wait for.
    pub(super) fn finish(&mut self, now: Millis, outbox: &mut Outbox) {
        let Readers { leases, unseen } = &mut *self.readers;
        unseen.end_over(now, leases);
        let home = self.up.home;
        for Shown { after, to } in unseen.take_seen() {
            let seen = message::Seen {
                home,
                after,
                position: to,
            };
            let above = self.up.edge.into_iter();
            above.for_each(|edge| outbox.up(edge, Up::Seen(seen.clone())));
        }
    }
}
