//! Sends commits to their homes and follows each to its end: at one home, or by the votes of several (rules 6, 10 and
//! 11).

use crate::edge::pending_writes::PendingWrites;
use crate::member::caller::Caller;
use crate::member::commits::Commits;
use crate::member::in_flight::{AtPart, InFlight, PartState};
use crate::member::overlay::objects;
use crate::member::replica::Replica;
use crate::member::{MemberAction, Outbox, Response, overlay};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallRequest, CallResponse, CommitId, CommitRequest, Decision, EdgeId, HomeId,
    Millis, Note, Outcome, Refusal, Registration, RequestId, Up, message, planted,
};

/// Sends commits and takes what becomes of them.
///
/// Commits go up in the order in which the program made them. None goes before each of its homes has registered this
/// member and can be reached, and none before its bytes have space on their way.
#[derive(Debug)]
pub(super) struct Submitter<'a> {
    pub(super) commits: &'a mut Commits,
    pub(super) caller: Caller<'a>,
    pub(super) pending_writes: &'a mut PendingWrites,
}

impl Submitter<'_> {
    /// Takes a commit of the program, or refuses it at once; also if one of its homes has gone back since it read there.
    pub(super) fn commit(
        &mut self,
        mut commit: InFlight,
        left: Option<HomeId>,
        outbox: &mut Outbox,
    ) {
        let id = self.commits.next_id();
        let may_go = match left {
            Some(_) => Err(Refusal::WentBack),
            None => self.commits.may_commit(&commit),
        };
        if let Err(refusal) = may_go {
            if matches!(refusal, Refusal::Busy { .. }) {
                outbox.note(Note::RefusedBusy);
            }
            let outcome = Outcome::Refused(refusal);
            let told = Response::Outcome(id, outcome, left);
            return commit
                .request_id
                .into_iter()
                .for_each(|t| outbox.act(MemberAction::Respond(t, told.clone())));
        }
        let homes: Vec<HomeId> = commit.parts().iter().map(AtPart::home).collect();
        if let Some(request_id) = commit.request_id {
            outbox.act(MemberAction::Named(request_id, id));
        }
        self.give_way(&homes, outbox);
        self.show_early(id, &mut commit, outbox);
        self.commits.insert(id, commit);
        for home in homes {
            self.caller.register(home, outbox);
            self.send_waiting(home, outbox);
        }
    }

    /// What waits for one home must not hold up the others: before a home outruns it
    /// its program learns that it is busy, and may ask again under a new id.
    fn give_way(&mut self, homes: &[HomeId], outbox: &mut Outbox) {
        for home in homes {
            for id in self.commits.giving_way(*home) {
                outbox.note(Note::RefusedBusy);
                self.ended(*home, id, Outcome::Refused(Refusal::busy()), outbox);
            }
        }
    }

    /// Shows what a commit wrote whose program wants to go on, if nothing that is known here speaks against it.
    fn show_early(&mut self, id: CommitId, commit: &mut InFlight, outbox: &mut Outbox) {
        if !commit.early {
            return;
        }
        commit.early = match commit.parts() {
            [at] => self.show_part(id, at, commit, outbox),
            _ => false,
        };
        match (commit.early, commit.request_id) {
            (true, Some(request_id)) => {
                outbox.act(MemberAction::Respond(request_id, Response::Shown(id)))
            }
            _ => outbox.note(Note::EarlyNotShown),
        }
    }

    fn show_part(
        &mut self,
        id: CommitId,
        at: &AtPart,
        commit: &InFlight,
        outbox: &mut Outbox,
    ) -> bool {
        let (home, part) = (at.home(), &at.part);
        let replica = self.caller.homes.at(home);
        let names = commit.names_at(home).collect();
        let rests = replica.speculation().rests(part, names);
        // What that wrote its home will have before.
        let shown = Some(&replica.pages.overlay);
        let hidden = self.commits.hidden_before(home, id, shown);
        let is_behind = hidden
            .flat_map(objects)
            .any(|object| rests.includes(object));
        !is_behind && replica.show_early(id, part, rests, outbox)
    }

    // --- Up ---

    /// Sends what waits for a home, in order. Out of order, small commits would leave no space for a large one, and a
    /// commit would come before one that it depends on (rule 14). A commit that waits for its turn or for space at another
    /// home holds nothing up here.
    pub(super) fn send_waiting(&mut self, home: HomeId, outbox: &mut Outbox) {
        let here = self.caller.homes.edge(home);
        for id in self.commits.to_send_by(home) {
            let homes = &*self.caller.homes;
            if self.commits.writes_over_withdrawn(home, id, homes) {
                // Nor does what builds on this one go.
                return outbox.note(Note::EarlyWaited);
            }
            if self.commits.waits_elsewhere(home, id, homes) {
                outbox.note(Note::EarlyWaited);
                continue;
            }
            let parts = self.commits.parts(id).iter();
            let Some(routes) = homes.routes(parts.map(AtPart::home)) else {
                continue;
            };
            match self.edge_without_space(id, &routes, here) {
                None => self.send(id, &routes, outbox),
                full if full == here => return,
                Some(_) => {}
            }
        }
    }

    /// An edge that has no space for what a commit sends on it: the one that is wanted first.
    fn edge_without_space(
        &self,
        id: CommitId,
        routes: &[(EdgeId, Registration)],
        first: Option<EdgeId>,
    ) -> Option<EdgeId> {
        let mut bytes: BTreeMap<EdgeId, usize> = BTreeMap::new();
        for (at, (edge, _)) in self.commits.parts(id).iter().zip(routes) {
            *bytes.entry(*edge).or_default() += at.bytes;
        }
        let (homes, uplink) = (&*self.caller.homes, &*self.caller.uplink);
        let mut full = bytes
            .into_iter()
            .filter(|(edge, bytes)| {
                let is_on = |home| homes.is_on(home, *edge);
                !uplink.has_space_for_commit(*bytes, is_on)
            })
            .map(|(edge, _)| edge);
        let any = full.next();
        full.find(|edge| Some(*edge) == first).or(any)
    }

    fn send(&mut self, id: CommitId, routes: &[(EdgeId, Registration)], outbox: &mut Outbox) {
        let Some(commit) = self.commits.get_mut(id) else {
            return;
        };
        let with = commit.participants(routes);
        for (at, (edge, registration)) in commit.parts.iter_mut().zip(routes) {
            at.state = PartState::Sent;
            self.caller.uplink.commit_sent(at.home(), id, at.bytes);
            at.registration = Some(*registration);
            self.pending_writes.put(id, &at.part, outbox);
            let here = |(home, id): &(HomeId, CommitId)| (*home == at.home()).then_some(*id);
            let depends_on = commit.depends_on.iter().filter_map(here);
            let request = CommitRequest {
                id,
                registration: *registration,
                part: at.part.clone(),
                with: with.clone(),
                depends_on: depends_on.collect(),
                after: commit.after,
            };
            outbox.up(*edge, Up::Commit(request));
        }
    }

    /// The home has gone back. What was not sent there rests on what may be lost, and is given up. What was sent may have
    /// ended in the history that is lost, if the home does not know how (rule R9).
    pub(super) fn went_back(&mut self, home: HomeId, outbox: &mut Outbox) {
        for id in self.commits.open_at(home, AtPart::is_under_way) {
            if let Some(at) = self.commits.part_mut(home, id) {
                at.went_back = true;
            }
        }
        for id in self.commits.waiting_at(home) {
            self.ended(home, id, Outcome::Refused(Refusal::WentBack), outbox);
        }
        for response in self.commits.withheld.went_back(home) {
            respond(Some(response), outbox);
        }
    }

    /// After a new beginning: what was decided is sent again, what was sent is
    /// asked for and never guessed (rule 11), what waited is sent.
    pub(super) fn resend(&mut self, home: HomeId, outbox: &mut Outbox) {
        let sent = self.commits.open_at(home, AtPart::is_unanswered);
        let is_asked = |id: CommitId| sent.contains(&id);
        self.commits.withheld.stream_began(home, is_asked);
        for id in self.commits.open_at(home, AtPart::is_under_way) {
            let decided = self.commits.get(id).is_some_and(|c| c.decision.is_some());
            // Its place in the stream may be past: what was kept of it fills nothing any more.
            self.pending_writes.drop_commit(home, id);
            if let Some(at) = self.commits.part_mut(home, id) {
                at.lost = true;
                // What was shown of it ended with the old stream.
                at.shown = false;
            }
            if decided {
                self.send_decision(home, id, outbox);
            } else {
                self.ask_outcome(home, id, outbox);
            }
        }
        for (of, id, registration) in self.commits.withheld.to_ask(&BTreeSet::new()) {
            if of == home {
                self.ask_withheld(home, id, registration, outbox);
            }
        }
        self.send_waiting(home, outbox);
    }

    /// A home says that its answer to a commit follows (rule C2).
    pub(super) fn withheld(&mut self, withheld: &message::Withheld) {
        let message::Withheld { home, commit } = *withheld;
        let at = self.commits.part_mut(home, commit);
        if at.is_some_and(|at| at.is_under_way()) {
            self.commits.withheld.told(home, commit);
        }
    }

    /// Asks a home for an answer that it keeps back.
    fn ask_withheld(
        &mut self,
        home: HomeId,
        commit: CommitId,
        registration: Registration,
        outbox: &mut Outbox,
    ) {
        let request = CallRequest::Outcome {
            commit,
            registration,
        };
        if self.caller.homes.edge(home).is_some() {
            self.caller.ask_outcome(home, commit, request, outbox);
        }
    }

    /// Asks again for outcomes that a home could not tell.
    pub(super) fn ask_unasked(&mut self, outbox: &mut Outbox) {
        let asked: BTreeSet<_> = self.caller.calls.asked_outcomes().collect();
        for (home, commit) in self.commits.unasked(&asked) {
            if self.caller.homes.edge(home).is_some() {
                self.ask_outcome(home, commit, outbox);
            }
        }
        for (home, commit, registration) in self.commits.withheld.to_ask(&asked) {
            self.ask_withheld(home, commit, registration, outbox);
        }
    }

    fn ask_outcome(&mut self, home: HomeId, commit: CommitId, outbox: &mut Outbox) {
        outbox.note(Note::OutcomeAsked);
        let Some(at) = self.commits.part_mut(home, commit) else {
            return;
        };
        at.lost = true;
        let request = CallRequest::Outcome {
            commit,
            registration: at.registration.unwrap_or_default(),
        };
        self.caller.ask_outcome(home, commit, request, outbox);
    }

    // --- What became of it ---

    /// A commit has ended at a home.
    pub(super) fn ended(
        &mut self,
        home: HomeId,
        id: CommitId,
        outcome: Outcome,
        outbox: &mut Outbox,
    ) {
        self.pending_writes.drop_commit(home, id);
        if matches!(outcome, Outcome::Refused(Refusal::NotDelegated(_)))
            && self.is_dropped(home, id)
        {
            return;
        }
        if outcome == Outcome::Refused(Refusal::Forgotten) {
            // The home has forgotten this member: it registers again.
            self.caller.homes.at(home).is_forgotten();
            if !self.commits.waiting_at(home).is_empty() {
                self.caller.register(home, outbox);
            }
        }
        let replica = self.caller.homes.at(home);
        let early = replica.up.is_held() && !planted::is(Bug::OutcomeTooEarly);
        if early && matches!(outcome, Outcome::Committed { .. }) {
            outbox.note(Note::OutcomeHeldBack);
            return replica.resync.hold_back(id, outcome);
        }
        let Some(at) = self.commits.part_mut(home, id) else {
            return;
        };
        let uplink = &mut self.caller.uplink;
        uplink.commit_answered(home, id, at.is_unanswered());
        let is_refused = matches!(outcome, Outcome::Refused(_));
        let is_never_delivered = outcome == Outcome::Refused(Refusal::Elsewhere);
        let registration = at.registration.unwrap_or_default();
        at.state = PartState::Ended(at.certain(outcome));
        let withheld = &mut self.commits.withheld;
        if is_refused {
            // It tells nothing that anybody has to see.
            let response = withheld.released(home, id);
            let told = response.filter(|_| !planted::is(Bug::RefusalWithheld));
            respond(told, outbox);
        }
        let is_withheld = withheld.ended(home, id, registration);
        let is_told_first = planted::is(Bug::RefusedToldFirst);
        // Its program could read it once more, and stand on it.
        if is_refused && !is_told_first {
            self.withdraw(home, id, outbox);
        }
        if is_never_delivered && !planted::is(Bug::SettledStaysShown) {
            let replica = self.caller.homes.get_mut(home);
            replica
                .into_iter()
                .for_each(|replica| replica.never_delivered(id, outbox));
        }
        self.go_on(id, outbox);
        if is_withheld {
            self.ask_withheld(home, id, registration, outbox);
        }
        if is_refused && is_told_first {
            self.withdraw(home, id, outbox);
        }
    }

    /// A home has dropped what came in the name of this member, and recorded nothing. It is sent again,
    /// under the same id, when the member has signed anew (rule R2, trap R34). False if the commit is
    /// not on its way there.
    fn is_dropped(&mut self, home: HomeId, id: CommitId) -> bool {
        let Some(commit) = self.commits.get_mut(id) else {
            return false;
        };
        let is_decided = commit.decision.is_some();
        let Some(at) = commit.at(home).filter(|at| at.is_under_way()) else {
            return false;
        };
        let was_unanswered = at.is_unanswered();
        if is_decided {
            at.is_dropped = true;
        } else if at.state == PartState::Sent && !at.lost {
            at.state = PartState::Waiting;
        }
        let caller = &mut self.caller;
        caller.uplink.commit_answered(home, id, was_unanswered);
        caller.is_not_delegated(home);
        true
    }

    /// The member has signed anew: the decisions go again that a home has dropped.
    pub(super) fn send_dropped_decisions(&mut self, home: HomeId, outbox: &mut Outbox) {
        for id in self.commits.open_at(home, AtPart::is_under_way) {
            if let Some(at) = self.commits.part_mut(home, id)
                && core::mem::take(&mut at.is_dropped)
            {
                self.send_decision(home, id, outbox);
            }
        }
    }

    /// The program sees a commit that is not answered, if it is one, no more.
    fn withdraw(&mut self, home: HomeId, id: CommitId, outbox: &mut Outbox) {
        if let Some(replica) = self.caller.homes.get_mut(home) {
            replica.withdraw(id, outbox);
        }
    }

    /// A home has voted for its part (rule 10).
    pub(super) fn voted(&mut self, voted: &message::Voted, outbox: &mut Outbox) {
        let (home, id) = (voted.home, voted.commit);
        let Some(at) = self.commits.part_mut(home, id) else {
            return;
        };
        if at.is_unanswered() {
            self.caller.uplink.commit_answered(home, id, true);
            at.state = PartState::Voted(voted.stamp);
        }
        self.go_on(id, outbox);
    }

    /// Does what follows from the answers that are there.
    fn go_on(&mut self, id: CommitId, outbox: &mut Outbox) {
        let Some(commit) = self.commits.get_mut(id) else {
            return;
        };
        if commit.decision.is_none() {
            commit.decision = commit.decide();
            if commit.is_shared() {
                self.spread(id, outbox);
                self.show_own(id, outbox);
            }
        }
        let Some(commit) = self.commits.get_mut(id) else {
            return;
        };
        let answer = match commit.refusal() {
            Some((home, refusal)) => Some((Some(home), Outcome::Refused(refusal))),
            None => commit.committed(),
        };
        let has_ended = commit.has_ended();
        if let Some((home, outcome)) = answer
            && let Some(request_id) = commit.request_id.take()
        {
            let is_refused = matches!(outcome, Outcome::Refused(_));
            let response = (request_id, Response::Outcome(id, outcome, home));
            // A refusal waits for no home that keeps its vote back.
            let response = match is_refused && !planted::is(Bug::RefusalWithheld) {
                true => Some(response),
                false => self.commits.withheld.answer(id, response),
            };
            respond(response, outbox);
        }
        if has_ended {
            self.settle(id, outbox);
        }
    }

    /// The program sees what is known to be committed before the stream delivers it (rule 3), where its place
    /// is still to come: its home has voted in this life of the stream, and no answer was lost.
    fn show_own(&mut self, id: CommitId, outbox: &mut Outbox) {
        let Some(commit) = self.commits.get_mut(id) else {
            return;
        };
        let Some(Decision::Commit(stamp)) = commit.decision else {
            return;
        };
        if !commit
            .parts
            .iter()
            .all(|at| overlay::can_be_shown(&at.part))
        {
            return;
        }
        for at in &mut commit.parts {
            let has_voted = at.has_voted() && !at.lost;
            let replica = self.caller.homes.get_mut(at.home());
            let may_show = |replica: &&mut Replica| {
                let is_live = replica.up.edge.is_some() && !replica.up.is_held();
                has_voted && is_live && !at.part.writes.is_empty()
            };
            if let Some(replica) = replica.filter(may_show) {
                at.shown = true;
                replica.show_own(id, stamp, &at.part, outbox);
            }
        }
    }

    /// Sends the decision to every home that has not ended its part.
    fn spread(&mut self, id: CommitId, outbox: &mut Outbox) {
        let Some(commit) = self.commits.get_mut(id) else {
            return;
        };
        if commit.decision == Some(Decision::Abort) {
            // What was never sent needs no news.
            for at in commit.parts.iter_mut().filter(|at| at.is_waiting()) {
                at.state = PartState::Ended(Outcome::Refused(Refusal::Elsewhere));
            }
        }
        let homes: Vec<HomeId> = commit.parts().iter().map(AtPart::home).collect();
        for home in homes {
            self.send_decision(home, id, outbox);
        }
    }

    /// Sends the decision to a home that has not ended its part.
    fn send_decision(&mut self, home: HomeId, commit: CommitId, outbox: &mut Outbox) {
        let edge = self.caller.homes.edge(home);
        let Some(in_flight) = self.commits.get_mut(commit) else {
            return;
        };
        let decision = in_flight.decision;
        let at = in_flight.at(home).filter(|at| at.is_under_way());
        let registration = at.and_then(|at| at.registration);
        if let (Some(edge), Some(decision), Some(registration)) = (edge, decision, registration) {
            outbox.up(
                edge,
                Up::Decide(message::Decide {
                    home,
                    commit,
                    registration,
                    decision,
                }),
            );
        }
    }

    /// It has ended everywhere: homes need not keep it for each other.
    fn settle(&mut self, commit: CommitId, outbox: &mut Outbox) {
        let Some(in_flight) = self.commits.remove(commit) else {
            return;
        };
        if !in_flight.is_shared() {
            return;
        }
        for at in in_flight.parts {
            let home = at.home();
            if let (Some(edge), Some(registration)) =
                (self.caller.homes.edge(home), at.registration)
            {
                outbox.up(
                    edge,
                    Up::Settled(message::Settled {
                        home,
                        commit,
                        registration,
                    }),
                );
            }
        }
    }

    /// A home remembers a commit (rule 11): an outcome without a delivery.
    pub(super) fn committed(
        &mut self,
        now: Millis,
        committed: &message::Committed,
        outbox: &mut Outbox,
    ) {
        let message::Committed {
            home,
            commit,
            position,
            stamp,
        } = *committed;
        let replica = self.caller.homes.at(home);
        let mut again = None;
        if planted::is(Bug::AppliedTwice) {
            let at = self.commits.part_mut(home, commit);
            again = at.map(|at| replica.apply_again(&at.part, position, outbox));
        }
        replica.outcome_remembered(commit, position, again, outbox);
        replica.caught_up(now, outbox);
        self.ended(home, commit, Outcome::Committed { position, stamp }, outbox);
    }

    /// A home has answered the question for an outcome.
    pub(super) fn outcome(
        &mut self,
        now: Millis,
        (home, commit): (HomeId, CommitId),
        result: Result<CallResponse, CallError>,
        outbox: &mut Outbox,
    ) {
        if self.commits.withheld.is_asked(home, commit) {
            if matches!(result, Ok(CallResponse::Outcome(_))) {
                respond(self.commits.withheld.released(home, commit), outbox);
            }
            return;
        }
        match result {
            Ok(CallResponse::Outcome(Outcome::Committed { position, stamp })) => {
                let committed = message::Committed {
                    home,
                    commit,
                    position,
                    stamp,
                };
                self.committed(now, &committed, outbox);
            }
            Ok(CallResponse::Outcome(outcome)) => self.ended(home, commit, outcome, outbox),
            Ok(CallResponse::Voted(stamp)) => {
                let voted = message::Voted {
                    home,
                    commit,
                    stamp,
                };
                self.voted(&voted, outbox);
            }
            // A home that has no space to end the id is asked again with the next tick.
            _ => {}
        }
    }

    /// The program learns that a registration, and what waited for it, cannot be had.
    pub(super) fn give_back_waiting(
        &mut self,
        home: HomeId,
        failure: &CallError,
        outbox: &mut Outbox,
    ) {
        let refusal = match failure {
            CallError::Full(lack) => Refusal::Full(*lack),
            CallError::Share(share) => Refusal::Share(*share),
            CallError::NotDelegated(why) => Refusal::NotDelegated(*why),
            _ => Refusal::busy(),
        };
        for id in self.commits.waiting_at(home) {
            self.ended(home, id, Outcome::Refused(refusal.clone()), outbox);
        }
        self.caller.give_back_waiting(home, failure, outbox);
    }
}

fn respond(response: Option<(RequestId, Response)>, outbox: &mut Outbox) {
    if let Some((request_id, response)) = response {
        outbox.act(MemberAction::Respond(request_id, response));
    }
}
