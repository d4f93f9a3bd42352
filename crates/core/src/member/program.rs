//! What the program asks of its member: pages, commits, calls, watches.

use super::at_home::AtHome;
use super::{Called, InFlight, Member, Purpose};
use crate::door::{Answer, Ask, Out};
use crate::ids::{CommitId, HomeId, Millis, Place, Position, SegmentId, Ticket};
use crate::limits::{
    BUSY_RETRY_MS, CALLS_OF_A_PROGRAM_MAX, COMMIT_BYTES_MAX, COMMITS_IN_FLIGHT_MAX, FETCHES_MAX,
    WAITING_PER_PAGE_MAX, WATCHES_PER_CHILD_MAX,
};
use crate::message::{
    CallError, CallId, InvalidCommit, Outcome, Part, Refusal, Request, Response, Up,
};
use crate::note::Note;
use crate::planted::{self, Bug};
use alloc::vec::Vec;

impl Member {
    pub(super) fn asked(&mut self, now: Millis, ticket: Ticket, ask: Ask, out: &mut Out) {
        match ask {
            Ask::Fetch(place) => self.fetch(now, ticket, place, out),
            Ask::Prefetch(place) => self.prefetch(now, place, out),
            Ask::Commit { parts, builds_on } => self.commit(ticket, parts, builds_on, out),
            Ask::Call { home, request } => {
                if self.calls.len() >= CALLS_OF_A_PROGRAM_MAX {
                    return out.answer(ticket, Answer::Busy);
                }
                self.call(home, request, Purpose::Program(ticket), out);
            }
            Ask::Watch { home, segment, on } => self.watch(ticket, home, segment, on, out),
            Ask::Forget(ticket) => self.forget(ticket),
        }
    }

    pub(super) fn fetch(&mut self, now: Millis, ticket: Ticket, place: Place, out: &mut Out) {
        let state = self.at(place.home);
        let held = state.pages.get(&place.page);
        if held.is_some_and(|held| held.image.is_complete()) {
            return out.answer(ticket, Answer::Fetched);
        }
        let is_too_much = match state.up.is_fetching(place.page) {
            true => state.up.waiting_for(place.page) >= WAITING_PER_PAGE_MAX,
            false => state.up.fetches() >= FETCHES_MAX,
        };
        if is_too_much {
            return out.answer(ticket, Answer::Busy);
        }
        state.up.ask(place.page, ticket, now, out);
    }

    fn prefetch(&mut self, now: Millis, place: Place, out: &mut Out) {
        let state = self.at(place.home);
        let held = state.pages.get(&place.page);
        let is_here = held.is_some_and(|held| held.image.is_complete());
        if !is_here && state.up.fetches() < FETCHES_MAX {
            state.up.ask_ahead(place.page, now, out);
        }
    }

    pub(super) fn commit(
        &mut self,
        ticket: Ticket,
        parts: Vec<Part>,
        builds_on: Vec<CommitId>,
        out: &mut Out,
    ) {
        self.sequence += 1;
        let id = CommitId {
            member: self.config.id,
            sequence: self.sequence,
        };
        let home = parts.first().map_or(HomeId(0), |part| part.home);
        if self.commits.len() >= COMMITS_IN_FLIGHT_MAX || self.would_outrun(home) {
            out.note(Note::RefusedBusy);
            let refusal = Refusal::Busy {
                retry_after_ms: BUSY_RETRY_MS,
            };
            return out.answer(ticket, Answer::Outcome(id, Outcome::Refused(refusal)));
        }
        let bytes: usize = parts.iter().map(Part::bytes).sum();
        if bytes > COMMIT_BYTES_MAX {
            let reason = InvalidCommit::TooLarge;
            let refusal = Refusal::Invalid { reason };
            return out.answer(ticket, Answer::Outcome(id, Outcome::Refused(refusal)));
        }
        let in_flight = InFlight {
            ticket,
            parts,
            builds_on,
            bytes,
            registration: None,
            sent: false,
            lost: false,
        };
        self.commits.insert(id, in_flight);
        self.register(home, out);
        self.send_waiting_commits(home, out);
    }

    /// Whether the commit just counted lies so far above one that waits for its
    /// answer that the home might forget that one's outcome (rule 11).
    pub(super) fn would_outrun(&self, home: HomeId) -> bool {
        let waiting = self.commits_at(home, |_| true);
        let oldest = waiting.first().map_or(self.sequence, |id| id.sequence);
        self.sequence - oldest >= COMMITS_IN_FLIGHT_MAX as u64
    }

    /// A commit has ended: the program is told. What it asked to be forgotten, is.
    pub(super) fn ended(&mut self, id: CommitId, outcome: Outcome, out: &mut Out) {
        self.kept.drop_commit(id);
        if let Some(commit) = self.commits.remove(&id) {
            self.room_came |= commit.sent;
            let home = commit.home();
            if let (Outcome::Refused(Refusal::Forgotten), Some(home)) = (&outcome, home) {
                // The home has forgotten this member: it registers again.
                self.at(home).registration = None;
            }
            let outcome = commit.certain(outcome);
            out.answer(commit.ticket, Answer::Outcome(id, outcome));
        }
    }

    /// A remembered outcome is no delivery: its values fill nothing (rule 3),
    /// but the stream has come as far.
    pub(super) fn told(
        &mut self,
        now: Millis,
        home: HomeId,
        commit: CommitId,
        position: Position,
        out: &mut Out,
    ) {
        let state = self.homes.entry(home).or_insert_with(|| AtHome::new(home));
        let mut publish = None;
        if planted::is(Bug::AppliedTwice) {
            let parts = self.commits.get(&commit).map(|c| c.parts.clone());
            publish = parts.map(|parts| state.apply_again(&parts, position, out));
        }
        state.up.advance(position);
        out.publish(publish.unwrap_or_else(|| state.publish()));
        self.caught_up(now, home, out);
    }

    pub(super) fn call(&mut self, home: HomeId, request: Request, purpose: Purpose, out: &mut Out) {
        self.call_number += 1;
        let call = CallId {
            member: self.config.id,
            number: self.call_number,
        };
        let bytes = request.staged_bytes();
        let called = Called {
            purpose,
            home,
            request,
            bytes,
            sent: false,
        };
        self.calls.insert(call, called);
        if bytes == 0 {
            self.send_call(call, out);
        } else {
            self.send_waiting_calls(home, out);
        }
    }

    /// Sends a call, once the home has registered this member if the call says so.
    pub(super) fn send_call(&mut self, call: CallId, out: &mut Out) {
        let Some(called) = self.calls.get_mut(&call) else {
            return;
        };
        let home = called.home;
        let Some(state) = self.homes.get(&home) else {
            return;
        };
        let Some(edge) = state.up.edge else {
            return;
        };
        if let Some(registration) = called.request.registration_mut() {
            let Some(own) = state.registration else {
                return self.register(home, out);
            };
            *registration = own;
        }
        let request = called.request.clone();
        called.sent = true;
        out.up(
            edge,
            Up::Call {
                call,
                home,
                request,
            },
        );
    }

    pub(super) fn answered(
        &mut self,
        now: Millis,
        home: HomeId,
        call: CallId,
        result: Result<Response, CallError>,
        out: &mut Out,
    ) {
        let Some(called) = self.calls.remove(&call) else {
            return;
        };
        self.room_came |= called.bytes > 0;
        match &result {
            Err(CallError::NotRegistered) => self.at(home).registration = None,
            // Whoever asked: what is sent from now on is under the one that the home knows.
            Ok(Response::Registered(registration)) => {
                self.at(home).registration = Some(*registration);
            }
            _ => {}
        }
        match called.purpose {
            Purpose::Program(ticket) => out.answer(ticket, Answer::Called(result)),
            Purpose::Forgotten => {}
            Purpose::Registering => self.registered(home, result, out),
            Purpose::Outcome(commit) => self.outcome(now, home, commit, result, out),
        }
    }

    /// The home remembers this member's commits from its first one on (rule 11).
    pub(super) fn register(&mut self, home: HomeId, out: &mut Out) {
        let state = self.at(home);
        if state.registration.is_none() && !state.registering && state.up.edge.is_some() {
            state.registering = true;
            self.call(home, Request::Register, Purpose::Registering, out);
        }
    }

    pub(super) fn registered(
        &mut self,
        home: HomeId,
        result: Result<Response, CallError>,
        out: &mut Out,
    ) {
        let state = self.at(home);
        state.registering = false;
        let failure = match result {
            Ok(Response::Registered(_)) => return self.send_waiting(home, out),
            Ok(_) => CallError::Invalid,
            Err(error) => error,
        };
        self.give_back_waiting(home, &failure, out);
    }

    /// The home cannot register now: what waited for it is told so, and the
    /// next request asks again.
    fn give_back_waiting(&mut self, home: HomeId, failure: &CallError, out: &mut Out) {
        let refusal = match failure {
            CallError::Full => Refusal::Full,
            _ => Refusal::Busy {
                retry_after_ms: BUSY_RETRY_MS,
            },
        };
        for id in self.commits_at(home, |commit| !commit.sent) {
            self.ended(id, Outcome::Refused(refusal.clone()), out);
        }
        let waiting = self
            .calls
            .extract_if(.., |_, called| called.home == home && !called.sent);
        for (_, called) in waiting {
            if let Purpose::Program(ticket) = called.purpose {
                out.answer(ticket, Answer::Called(Err(failure.clone())));
            }
        }
    }

    pub(super) fn commits_at(
        &self,
        home: HomeId,
        wanted: impl Fn(&InFlight) -> bool,
    ) -> Vec<CommitId> {
        let at_home = |c: &InFlight| c.parts.first().is_some_and(|part| part.home == home);
        let commits = self.commits.iter();
        commits
            .filter(|(_, commit)| at_home(commit) && wanted(commit))
            .map(|(id, _)| *id)
            .collect()
    }

    /// After a new beginning: calls are made again, outcomes of commits that
    /// were sent are asked for, and never guessed (rule 11).
    pub(super) fn resend(&mut self, home: HomeId, out: &mut Out) {
        self.at(home).registering = false;
        self.calls.retain(|_, called| {
            called.home != home || matches!(called.purpose, Purpose::Program(_))
        });
        for called in self.calls.values_mut().filter(|c| c.home == home) {
            called.sent = false;
        }
        self.register(home, out);
        self.send_waiting_calls(home, out);
        for id in self.commits_at(home, |commit| commit.sent) {
            self.ask_outcome(home, id, out);
        }
        self.send_waiting_commits(home, out);
    }

    pub(super) fn ask_outcome(&mut self, home: HomeId, commit: CommitId, out: &mut Out) {
        out.note(Note::OutcomeAsked);
        if let Some(in_flight) = self.commits.get_mut(&commit) {
            in_flight.lost = true;
        }
        // Its place in the stream may be past: what was kept of it fills nothing any more.
        self.kept.drop_commit(commit);
        let registration = self.commits.get(&commit).and_then(|c| c.registration);
        let request = Request::Outcome {
            commit,
            registration: registration.unwrap_or_default(),
        };
        self.call(home, request, Purpose::Outcome(commit), out);
    }

    pub(super) fn outcome(
        &mut self,
        now: Millis,
        home: HomeId,
        commit: CommitId,
        result: Result<Response, CallError>,
        out: &mut Out,
    ) {
        // A home that has no room to end the id is asked again with the next tick.
        if let Ok(Response::Outcome(outcome)) = result {
            if let Outcome::Committed { position, .. } = outcome {
                self.told(now, home, commit, position, out);
            }
            self.ended(commit, outcome, out);
        }
    }

    fn watch(&mut self, ticket: Ticket, home: HomeId, segment: SegmentId, on: bool, out: &mut Out) {
        let state = self.at(home);
        let is_new = on && !state.watches.contains_key(&segment);
        if is_new && state.watches.len() >= WATCHES_PER_CHILD_MAX {
            out.note(Note::ChildLimited);
            return out.answer(ticket, Answer::Unwatched { home, segment });
        }
        if on {
            state.watches.insert(segment, ticket);
        } else {
            state.watches.remove(&segment);
        }
        state.tell_watch(segment, on, out);
    }

    /// The parent does not tell the changes of a segment: the program is told.
    pub(super) fn unwatched(&mut self, home: HomeId, segment: SegmentId, out: &mut Out) {
        let state = self.at(home);
        if let Some(ticket) = state.watches.remove(&segment) {
            // Asked for anew meanwhile, it may be watched above: that is ended too.
            state.tell_watch(segment, false, out);
            out.answer(ticket, Answer::Unwatched { home, segment });
        }
    }

    pub(super) fn forget(&mut self, ticket: Ticket) {
        for state in self.homes.values_mut() {
            state.up.retain_waiting(|waiting| *waiting != ticket);
        }
        self.forget_calls(ticket);
    }
}
