//! What a member does with its neighbours: it follows, shows what they write, and tells them what it writes (rules C3 and C6).

use crate::member::Outbox;
use crate::member::Response;
use crate::member::caller::Caller;
use crate::member::calls::{Called, Purpose};
use crate::member::updates::{Updates, respond};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::TENTATIVE_BYTES_MAX;
use thorp_model::{
    CallRequest, EdgeId, HomeId, Millis, NodeKind, Note, RequestId, SegmentId, TentativeChange, Up,
    Update, message,
};

/// A member tells its updates again at most so often.
pub(super) const TELL_MS: u64 = 100;

/// Updates that it tells at once.
const TOLD_MAX: usize = 256;

/// Follows segments, and exchanges updates with neighbours.
#[derive(Debug)]
pub(in crate::member) struct Sharing<'a> {
    pub(super) updates: &'a mut Updates,
    pub(super) caller: Caller<'a>,
    pub(super) parents: &'a BTreeMap<EdgeId, NodeKind>,
}

impl Sharing<'_> {
    fn now(&self) -> Millis {
        self.caller.signing.now.mono
    }

    /// The program wants the updates of others in a segment, or no longer.
    pub(in crate::member) fn want(
        &mut self,
        request_id: RequestId,
        (home, segment, on): (HomeId, SegmentId, bool),
        outbox: &mut Outbox,
    ) {
        let has_space = self.updates.has_space();
        let here = self.updates.of.entry((home, segment)).or_default();
        if !on {
            here.wanted = here.wanted.saturating_sub(1);
            return;
        }
        if !here.is_followed() && !has_space {
            return respond(request_id, Response::Busy, outbox);
        }
        here.wanted += 1;
        if here.following.since().is_some() || self.caller.homes.edge(home).is_none() {
            return respond(request_id, Response::Following, outbox);
        }
        here.waiting.push(request_id);
        self.follow_all(home, outbox);
    }

    /// The program wants the response to a request no more.
    pub(in crate::member) fn forget(&mut self, request_id: RequestId) {
        for here in self.updates.of.values_mut() {
            let waiting = here.waiting.len();
            here.waiting.retain(|waits| *waits != request_id);
            let forgotten = waiting - here.waiting.len();
            here.wanted = here.wanted.saturating_sub(forgotten);
        }
    }

    /// Asks to follow what has to be followed, where that was not asked.
    pub(super) fn follow_all(&mut self, home: HomeId, outbox: &mut Outbox) {
        if self.caller.homes.edge(home).is_none() {
            return;
        }
        for segment in self.updates.followed(home) {
            let Some(here) = self.updates.of.get_mut(&(home, segment)) else {
                continue;
            };
            if here.following.is_asked() || here.following.since().is_some() {
                continue;
            }
            here.following.ask();
            let logs = here.logs();
            let request = CallRequest::Follow { segment, logs };
            let purpose = Purpose::Follow(segment);
            self.caller
                .call(Called::new(purpose, home, request), outbox);
        }
    }

    /// Shows an update to the neighbours. It is not executed as of where this member stands.
    pub(super) fn tell(&self, update: &Update, outbox: &mut Outbox) {
        let Some(replica) = self.caller.homes.get(update.home) else {
            return;
        };
        let author = self.updates.log.author(update.home, update.id);
        let told = message::Told {
            update: update.clone(),
            since: replica.up.position,
            author: author.map(|author| author.by.member),
        };
        let sites = self.parents.iter();
        for (edge, _) in sites.filter(|(_, kind)| **kind == NodeKind::Redirector) {
            outbox.up(*edge, Up::Update(told.clone()));
        }
    }

    /// A neighbour follows: it wants to know what is here.
    pub(in crate::member) fn told_to_tell(
        &mut self,
        home: HomeId,
        segment: SegmentId,
        outbox: &mut Outbox,
    ) {
        if let Some(here) = self.updates.of.get_mut(&(home, segment)) {
            here.is_to_tell = true;
        }
        self.tell_due(outbox);
    }

    /// Tells again what is to be told.
    pub(in crate::member) fn tell_due(&mut self, outbox: &mut Outbox) {
        let now = self.now();
        let mut due = Vec::new();
        for (of, here) in &mut self.updates.of {
            let is_rested = here.told.is_none_or(|at| now.since(at) >= TELL_MS);
            let is_held = self.caller.homes.get(of.0).is_none_or(|at| at.up.is_held());
            if here.is_to_tell && is_rested && !is_held {
                here.is_to_tell = false;
                here.told = Some(now);
                due.push(*of);
            }
        }
        for (home, segment) in due {
            for update in self.updates.open_in(home, segment, TOLD_MAX) {
                self.tell(&update, outbox);
            }
        }
    }

    /// A neighbour shows an update.
    pub(in crate::member) fn shown(&mut self, told: message::Told, outbox: &mut Outbox) {
        let message::Told { update, since, .. } = told;
        let (home, id) = (update.home, update.id);
        let bytes = update.bytes();
        let has_space = self.updates.shown_bytes() + bytes <= TENTATIVE_BYTES_MAX;
        let Some(here) = self.updates.of.get_mut(&(home, id.segment)) else {
            return;
        };
        let is_own = here.custody.get(id).is_some();
        let is_taken = update.is_whole() && has_space && !is_own;
        if !is_taken || !here.following.show(id, bytes, since) {
            return outbox.note(Note::UpdateNotShown);
        }
        outbox.note(Note::UpdateShown);
        let shown = Vec::from([update]);
        let settled = Vec::new();
        let replica = self.caller.homes.at(home);
        replica.show_tentatively(TentativeChange { shown, settled }, outbox);
    }

    /// A pull: how far are the logs of this member?
    pub(in crate::member) fn pulled(&self, get: &message::Get, outbox: &mut Outbox) {
        let Some(edge) = self.caller.homes.edge(get.home) else {
            return;
        };
        let heads = message::Heads {
            home: get.home,
            pull: get.pull,
            heads: self.updates.heads(get.home, &get.segments),
        };
        outbox.up(edge, Up::Heads(heads));
    }
}
