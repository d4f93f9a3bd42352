//! What a member has on its way up is bounded in bytes, or its own send queue
//! would end the edge to its parent (rule 15). What does not fit waits, in
//! order, for the answers to what was sent.

use crate::member::in_flight::{AtPart, InFlight};
use crate::member::{Called, Member, Outbox, Purpose};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::{CallId, CommitId, EdgeId, HomeId, Note, Registration, RequestId};

impl Member {
    /// Sends what waits, as far as there is room; a home that has forgotten
    /// this member meanwhile registers it first.
    pub(super) fn use_window(&mut self, outbox: &mut Outbox) {
        if !core::mem::take(&mut self.window_freed) {
            return;
        }
        let homes: Vec<HomeId> = self.homes.keys().copied().collect();
        for home in homes {
            if !self.commits_at(home, AtPart::is_waiting).is_empty() {
                self.register(home, outbox);
            }
            self.send_waiting(home, outbox);
        }
    }

    pub(super) fn send_waiting(&mut self, home: HomeId, outbox: &mut Outbox) {
        self.send_waiting_commits(home, outbox);
        self.send_waiting_calls(home, outbox);
    }

    /// In order, or small ones would leave no room for a large one, and what builds on one would come before it (rule 14);
    /// but what waits for its turn or for room on the way to another home holds nothing up here.
    pub(super) fn send_waiting_commits(&mut self, home: HomeId, outbox: &mut Outbox) {
        let here = self.homes.get(&home).and_then(|state| state.up.edge);
        for id in self.commits_at(home, AtPart::is_waiting) {
            if self.writes_over_withdrawn(home, id) {
                // Nor does what builds on this one go.
                return outbox.note(Note::EarlyWaited);
            }
            if self.waits_elsewhere(home, id) {
                outbox.note(Note::EarlyWaited);
                continue;
            }
            let Some(routes) = self.routes(id) else {
                continue;
            };
            match self.edge_without_space(id, &routes, here) {
                None => self.send_commit(id, &routes, outbox),
                full if full == here => return,
                Some(_) => {}
            }
        }
    }

    /// An edge that has no room for what a commit sends on it: the one that is wanted first.
    fn edge_without_space(
        &self,
        id: CommitId,
        routes: &[(EdgeId, Registration)],
        first: Option<EdgeId>,
    ) -> Option<EdgeId> {
        let parts = self.commits.get(&id).map_or(&[][..], InFlight::parts);
        let mut bytes: BTreeMap<EdgeId, usize> = BTreeMap::new();
        for (at, (edge, _)) in parts.iter().zip(routes) {
            *bytes.entry(*edge).or_default() += at.bytes;
        }
        let mut full = bytes
            .into_iter()
            .filter(|(edge, bytes)| {
                let is_on = |home| self.is_on(home, *edge);
                !self.window.has_space_for_commit(*bytes, is_on)
            })
            .map(|(edge, _)| edge);
        let any = full.next();
        full.find(|edge| Some(*edge) == first).or(any)
    }

    /// Small calls overtake values that wait to be staged.
    pub(super) fn send_waiting_calls(&mut self, home: HomeId, outbox: &mut Outbox) {
        let edge = self.homes.get(&home).and_then(|state| state.up.edge);
        let Some(edge) = edge else {
            return;
        };
        let waiting: Vec<(CallId, usize)> = self
            .calls
            .iter()
            .filter(|(_, called)| called.home == home && !called.sent)
            .map(|(call, called)| (*call, called.bytes))
            .collect();
        let mut is_full = false;
        for (call, bytes) in waiting {
            if bytes > 0 {
                let is_on = |home| self.is_on(home, edge);
                is_full = is_full || !self.window.has_space_for_staging(bytes, is_on);
            }
            if bytes == 0 || !is_full {
                self.send_call(call, outbox);
            }
        }
    }

    fn is_on(&self, home: HomeId, edge: EdgeId) -> bool {
        let state = self.homes.get(&home);
        state.is_some_and(|state| state.up.edge == Some(edge))
    }

    /// What is on its way keeps its space until it is answered.
    pub(super) fn forget_calls(&mut self, request_id: RequestId) {
        let homes = &self.homes;
        let is_under_way = |called: &Called| {
            let state = homes.get(&called.home);
            called.sent && state.is_some_and(|state| state.up.edge.is_some())
        };
        self.calls.retain(|call, called| {
            let forgotten = matches!(called.purpose, Purpose::Program(t) if t == request_id);
            if forgotten {
                called.purpose = Purpose::Forgotten;
            }
            let stays = !forgotten || is_under_way(called);
            if !stays {
                self.window.call_answered(*call);
            }
            stays
        });
    }
}
