//! A member's commits: at one home, or by the votes of several (rules 6, 10 and 11).

use crate::member::in_flight::{AtPart, InFlight, PartState};
use crate::member::replica::Replica;
use crate::member::{Member, MemberAction, Outbox, Purpose, Response, overlay};
use alloc::vec::Vec;
use thorp_model::limits::{
    COMMIT_BYTES_MAX, COMMITS_IN_FLIGHT_MAX, DEPENDS_ON_MAX, PARTICIPANTS_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallRequest, CallResponse, CommitId, CommitRequest, Decision, EdgeId, HomeId,
    InvalidCommit, Millis, Note, Outcome, Participant, Refusal, Registration, Up, message, planted,
};

impl Member {
    /// Commits over several homes whose outcome is known here, and not yet at each of their homes: who ends now leaves them
    /// in doubt there.
    pub fn untold(&self) -> usize {
        let commits = self.commits.values();
        commits.filter(|commit| commit.is_to_tell()).count()
    }

    pub(super) fn commit(&mut self, mut commit: InFlight, outbox: &mut Outbox) {
        self.sequence += 1;
        let id = CommitId {
            member: self.config.id,
            sequence: self.sequence,
        };
        if let Err(refusal) = self.may_commit(&commit) {
            if matches!(refusal, Refusal::Busy { .. }) {
                outbox.note(Note::RefusedBusy);
            }
            let outcome = Outcome::Refused(refusal);
            let told = Response::Outcome(id, outcome, None);
            return commit
                .request_id
                .into_iter()
                .for_each(|t| outbox.act(MemberAction::Respond(t, told.clone())));
        }
        let homes: Vec<HomeId> = commit.parts.iter().map(AtPart::home).collect();
        if let Some(request_id) = commit.request_id {
            outbox.act(MemberAction::Named(request_id, id));
        }
        self.give_way(&homes, outbox);
        self.show_early(id, &mut commit, outbox);
        self.commits.insert(id, commit);
        for home in homes {
            self.register(home, outbox);
            self.send_waiting_commits(home, outbox);
        }
    }

    fn may_commit(&mut self, commit: &InFlight) -> Result<(), Refusal> {
        let parts = &commit.parts;
        let ascending = parts.windows(2).all(|pair| pair[0].home() < pair[1].home());
        if !ascending || parts.is_empty() || parts.len() > PARTICIPANTS_MAX {
            let reason = InvalidCommit::Participants;
            return Err(Refusal::Invalid { reason });
        }
        let bytes: usize = parts.iter().map(|at| at.bytes).sum();
        if bytes > COMMIT_BYTES_MAX {
            let reason = InvalidCommit::TooLarge;
            return Err(Refusal::Invalid { reason });
        }
        let outruns = parts.iter().any(|at| self.would_outrun(at.home()));
        // Some of these are going to be delivered, and are evidence no more then.
        let names = |at: &AtPart| commit.names_at(at.home()).count();
        let names_many = parts.iter().any(|at| names(at) > DEPENDS_ON_MAX);
        if self.commits.len() >= COMMITS_IN_FLIGHT_MAX || outruns || names_many {
            return Err(Refusal::busy());
        }
        Ok(())
    }

    /// Whether the commit just counted lies so far above one that waits for its
    /// answer that the home might forget that one's outcome (rule 11). What a home
    /// has voted for it keeps, however far its member goes on.
    fn would_outrun(&self, home: HomeId) -> bool {
        let mut open = self.commits_at(home, |at| !at.has_voted()).into_iter();
        open.any(|id| self.is_outrun(id) && !self.may_give_way(id))
    }

    fn is_outrun(&self, id: CommitId) -> bool {
        self.sequence - id.sequence >= COMMITS_IN_FLIGHT_MAX as u64
    }

    /// Whether it waits for the way to one of several homes: nothing of it was sent.
    fn may_give_way(&self, id: CommitId) -> bool {
        let commit = self.commits.get(&id);
        commit
            .is_some_and(|commit| commit.is_shared() && commit.parts.iter().all(AtPart::is_waiting))
    }

    /// What waits for one home must not hold up the others: before it is outrun
    /// there its program is told busy, and may ask again under a new id.
    fn give_way(&mut self, homes: &[HomeId], outbox: &mut Outbox) {
        for home in homes {
            for id in self.commits_at(*home, AtPart::is_waiting) {
                if self.is_outrun(id) && self.may_give_way(id) {
                    outbox.note(Note::RefusedBusy);
                    self.ended(*home, id, Outcome::Refused(Refusal::busy()), outbox);
                }
            }
        }
    }

    /// The ways to all homes of a commit, once each has registered this member
    /// and can be reached: nobody votes, and locks, for what cannot be sent to the others.
    pub(super) fn routes(&self, id: CommitId) -> Option<Vec<(EdgeId, Registration)>> {
        let parts = self.commits.get(&id)?.parts.iter();
        let way = |at: &AtPart| {
            let state = self.homes.get(&at.part.home)?;
            Some((state.up.edge?, state.registration?))
        };
        parts.map(way).collect()
    }

    pub(super) fn send_commit(
        &mut self,
        id: CommitId,
        routes: &[(EdgeId, Registration)],
        outbox: &mut Outbox,
    ) {
        let Some(commit) = self.commits.get_mut(&id) else {
            return;
        };
        let participants = commit.parts.iter().zip(routes);
        let mut with: Vec<Participant> = participants
            .map(|(at, (_, registration))| Participant {
                home: at.part.home,
                registration: *registration,
            })
            .collect();
        if !commit.is_shared() {
            with.clear();
        }
        for (at, (edge, registration)) in commit.parts.iter_mut().zip(routes) {
            at.state = PartState::Sent;
            self.window.commit_sent(at.part.home, id, at.bytes);
            at.registration = Some(*registration);
            self.pending_writes
                .put(at.part.home, id, &at.part.writes, outbox);
            let here = |(home, id): &(HomeId, CommitId)| (*home == at.part.home).then_some(*id);
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

    /// A commit has ended at a home.
    pub(super) fn ended(
        &mut self,
        home: HomeId,
        id: CommitId,
        outcome: Outcome,
        outbox: &mut Outbox,
    ) {
        self.pending_writes.drop_commit(home, id);
        if outcome == Outcome::Refused(Refusal::Forgotten) {
            // The home has forgotten this member: it registers again.
            self.at(home).registration = None;
            if !self.commits_at(home, AtPart::is_waiting).is_empty() {
                self.register(home, outbox);
            }
        }
        let state = self.at(home);
        let early = state.up.is_held() && !planted::is(Bug::OutcomeTooEarly);
        if early && matches!(outcome, Outcome::Committed { .. }) {
            outbox.note(Note::OutcomeHeldBack);
            return state.resync.hold_back(id, outcome);
        }
        let Some(commit) = self.commits.get_mut(&id) else {
            return;
        };
        let Some(at) = commit.at(home) else {
            return;
        };
        self.window.commit_answered(home, id);
        self.window_freed |= at.is_unanswered();
        let is_refused = matches!(outcome, Outcome::Refused(_));
        at.state = PartState::Ended(at.certain(outcome));
        let is_told_first = planted::is(Bug::RefusedToldFirst);
        // Its program could read it once more, and stand on it.
        if is_refused && !is_told_first {
            self.withdraw(home, id, outbox);
        }
        self.go_on(id, outbox);
        if is_refused && is_told_first {
            self.withdraw(home, id, outbox);
        }
    }

    /// A home has voted for its part (rule 10).
    pub(super) fn voted(&mut self, voted: &message::Voted, outbox: &mut Outbox) {
        let id = voted.commit;
        let commit = self.commits.get_mut(&id);
        let Some(at) = commit.and_then(|commit| commit.at(voted.home)) else {
            return;
        };
        if at.is_unanswered() {
            self.window.commit_answered(voted.home, id);
            self.window_freed = true;
            at.state = PartState::Voted(voted.stamp);
        }
        self.go_on(id, outbox);
    }

    /// Does what follows from the answers that are there.
    fn go_on(&mut self, id: CommitId, outbox: &mut Outbox) {
        let Some(commit) = self.commits.get_mut(&id) else {
            return;
        };
        if commit.decision.is_none() {
            commit.decision = commit.decide();
            if commit.is_shared() {
                self.spread(id, outbox);
                self.show_own(id, outbox);
            }
        }
        let Some(commit) = self.commits.get_mut(&id) else {
            return;
        };
        let answer = match commit.refusal() {
            Some((home, refusal)) => Some((Some(home), Outcome::Refused(refusal))),
            None => commit.committed(),
        };
        if let Some((home, outcome)) = answer
            && let Some(request_id) = commit.request_id.take()
        {
            outbox.act(MemberAction::Respond(
                request_id,
                Response::Outcome(id, outcome, home),
            ));
        }
        if commit.has_ended() {
            self.settle(id, outbox);
        }
    }

    /// What is known to be committed is shown before it is delivered (rule 3), where its place
    /// is still to come: its home has voted in this life of the stream, and no answer was lost.
    fn show_own(&mut self, id: CommitId, outbox: &mut Outbox) {
        let Some(commit) = self.commits.get_mut(&id) else {
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
            let has_voted = matches!(at.state, PartState::Voted(_)) && !at.lost;
            let state = self.homes.get_mut(&at.part.home);
            let may_show = |state: &&mut Replica| {
                let is_live = state.up.edge.is_some() && !state.up.is_held();
                has_voted && is_live && !at.part.writes.is_empty()
            };
            if let Some(state) = state.filter(may_show) {
                at.shown = true;
                state.show_own(id, stamp, &at.part, outbox);
            }
        }
    }

    /// Tells the decision to every home that has not ended its part.
    fn spread(&mut self, id: CommitId, outbox: &mut Outbox) {
        let Some(commit) = self.commits.get_mut(&id) else {
            return;
        };
        if commit.decision == Some(Decision::Abort) {
            // What was never sent needs no news.
            for at in commit.parts.iter_mut().filter(|at| at.is_waiting()) {
                at.state = PartState::Ended(Outcome::Refused(Refusal::Elsewhere));
            }
        }
        let homes: Vec<HomeId> = commit.parts.iter().map(AtPart::home).collect();
        for home in homes {
            self.send_decision(home, id, outbox);
        }
    }

    /// Tells the decision to a home that has not ended its part.
    fn send_decision(&mut self, home: HomeId, commit: CommitId, outbox: &mut Outbox) {
        let edge = self.homes.get(&home).and_then(|state| state.up.edge);
        let Some(in_flight) = self.commits.get_mut(&commit) else {
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
        let Some(in_flight) = self.commits.remove(&commit) else {
            return;
        };
        if !in_flight.is_shared() {
            return;
        }
        for at in in_flight.parts {
            let edge = self.homes.get(&at.part.home).and_then(|s| s.up.edge);
            if let (Some(edge), Some(registration)) = (edge, at.registration) {
                let home = at.part.home;
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

    pub(super) fn refused(&mut self, refused: message::Refused, outbox: &mut Outbox) {
        let outcome = Outcome::Refused(refused.refusal);
        self.ended(refused.home, refused.commit, outcome, outbox);
    }

    /// A remembered outcome is no delivery: its values fill nothing (rule 3),
    /// but the stream has come as far.
    pub(super) fn committed(
        &mut self,
        now: Millis,
        committed: message::Committed,
        outbox: &mut Outbox,
    ) {
        let message::Committed {
            home,
            commit,
            position,
            stamp,
        } = committed;
        let state = self.homes.entry(home).or_insert_with(|| Replica::new(home));
        let mut publish = None;
        if planted::is(Bug::AppliedTwice) {
            let at = self.commits.get_mut(&commit).and_then(|c| c.at(home));
            publish = at.map(|at| state.apply_again(&at.part, position, outbox));
        }
        state.up.advance(position);
        let mut publish = publish.unwrap_or_else(|| state.publish());
        state.own_passed(commit, &mut publish);
        outbox.act(MemberAction::Publish(publish));
        self.caught_up(now, home, outbox);
        self.ended(home, commit, Outcome::Committed { position, stamp }, outbox);
    }

    /// What waited for the registration is told that it cannot be had.
    pub(super) fn give_back_commits(
        &mut self,
        home: HomeId,
        failure: &CallError,
        outbox: &mut Outbox,
    ) {
        let refusal = match failure {
            CallError::Full => Refusal::Full,
            _ => Refusal::busy(),
        };
        for id in self.commits_at(home, AtPart::is_waiting) {
            self.ended(home, id, Outcome::Refused(refusal.clone()), outbox);
        }
    }

    /// The commits with a part at a home that is as wanted and has not ended.
    pub(super) fn commits_at(
        &self,
        home: HomeId,
        wanted: impl Fn(&AtPart) -> bool,
    ) -> Vec<CommitId> {
        let open = |at: &AtPart| at.part.home == home && at.is_open();
        let commits = self.commits.iter();
        commits
            .filter(|(_, commit)| commit.parts.iter().any(|at| open(at) && wanted(at)))
            .map(|(id, _)| *id)
            .collect()
    }

    /// After a new beginning: what was decided is told again, what was sent is
    /// asked for and never guessed (rule 11), what waited is sent.
    pub(super) fn resend_commits(&mut self, home: HomeId, outbox: &mut Outbox) {
        for id in self.commits_at(home, AtPart::is_under_way) {
            let decided = self.commits.get(&id).is_some_and(|c| c.decision.is_some());
            // Its place in the stream may be past: what was kept of it fills nothing any more.
            self.pending_writes.drop_commit(home, id);
            if let Some(at) = self.commits.get_mut(&id).and_then(|c| c.at(home)) {
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
        self.send_waiting_commits(home, outbox);
    }

    pub(super) fn ask_outcome(&mut self, home: HomeId, commit: CommitId, outbox: &mut Outbox) {
        outbox.note(Note::OutcomeAsked);
        let in_flight = self.commits.get_mut(&commit);
        let Some(at) = in_flight.and_then(|in_flight| in_flight.at(home)) else {
            return;
        };
        at.lost = true;
        let request = CallRequest::Outcome {
            commit,
            registration: at.registration.unwrap_or_default(),
        };
        self.call(home, request, Purpose::Outcome(commit), outbox);
    }

    pub(super) fn outcome(
        &mut self,
        now: Millis,
        home: HomeId,
        commit: CommitId,
        result: Result<CallResponse, CallError>,
        outbox: &mut Outbox,
    ) {
        match result {
            Ok(CallResponse::Outcome(Outcome::Committed { position, stamp })) => {
                let committed = message::Committed {
                    home,
                    commit,
                    position,
                    stamp,
                };
                self.committed(now, committed, outbox);
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
            // A home that has no room to end the id is asked again with the next tick.
            _ => {}
        }
    }
}
