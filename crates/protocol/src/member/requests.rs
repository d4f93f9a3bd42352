//! What the program asks of its member: pages, commits, calls, watches.

use crate::edge::upstream::Want;
use crate::member::in_flight::InFlight;
use crate::member::{Called, Member, MemberAction, Outbox, Purpose, Request, Response};
use alloc::vec::Vec;
use thorp_model::limits::{
    CALLS_OF_A_PROGRAM_MAX, FETCHES_MAX, HINT_PAGES_MAX, STAGED_PER_MEMBER_MAX,
    WAITING_PER_PAGE_MAX, WATCHES_PER_CHILD_MAX,
};
use thorp_model::{
    CallError, CallId, CallRequest, CallResponse, HomeId, Millis, Note, PageId, Place, RequestId,
    SegmentId, Up, message,
};

impl Member {
    pub(super) fn requested(
        &mut self,
        now: Millis,
        request_id: RequestId,
        request: Request,
        outbox: &mut Outbox,
    ) {
        match request {
            Request::Fetch(place) => self.fetch(now, request_id, place, outbox),
            Request::Prefetch(place) => self.prefetch(now, place, outbox),
            Request::Commit {
                parts,
                depends_on,
                after,
                early,
            } => {
                let (depends_on, stamp) = self.names(&parts, &depends_on);
                let seen = (after.max(stamp), early);
                self.commit(InFlight::new(request_id, parts, depends_on, seen), outbox);
            }
            Request::Call { home, request } => {
                self.call_of_program(request_id, home, request, outbox);
            }
            Request::Watch { home, segment, on } => {
                self.watch(request_id, home, segment, on, outbox)
            }
            Request::Forget(request_id) => self.forget(request_id),
        }
    }

    pub(super) fn fetch(
        &mut self,
        now: Millis,
        request_id: RequestId,
        place: Place,
        outbox: &mut Outbox,
    ) {
        let state = self.at(place.home);
        if state
            .shown(place.page)
            .is_some_and(|shown| shown.is_complete())
        {
            let there = Response::Fetched(None);
            return outbox.act(MemberAction::Respond(request_id, there));
        }
        if state.has_own_holes(place.page) {
            let waiting = state.covered.entry(place.page).or_default();
            if waiting.len() >= WAITING_PER_PAGE_MAX {
                return outbox.act(MemberAction::Respond(request_id, Response::Busy));
            }
            return waiting.push(request_id);
        }
        let is_too_much = match state.up.is_fetching(place.page) {
            true => state.up.waiting_for(place.page).len() >= WAITING_PER_PAGE_MAX,
            false => state.up.fetches() >= FETCHES_MAX,
        };
        if is_too_much {
            return outbox.act(MemberAction::Respond(request_id, Response::Busy));
        }
        state
            .up
            .ask(place.page, Want::default(), request_id, now, outbox);
    }

    fn prefetch(&mut self, now: Millis, place: Place, outbox: &mut Outbox) {
        let state = self.at(place.home);
        let held = state.pages.get(&place.page);
        let is_here = held.is_some_and(|held| held.image.is_complete());
        // What nobody waits for leaves room for what somebody does.
        if !is_here && state.up.fetches() < FETCHES_MAX / 2 {
            state.up.ask_ahead(place.page, 0, now, outbox);
        }
    }

    /// What the parent holds to be likely (rule 9): the program knows how much of it it wants.
    pub(super) fn hinted(&mut self, hint: &message::Hint, outbox: &mut Outbox) {
        let home = hint.home;
        let state = self.at(home);
        let is_wanted = |page: &PageId| {
            let held = state.pages.get(page);
            let is_here = held.is_some_and(|held| held.image.is_complete());
            !is_here && !state.up.is_fetching(*page)
        };
        let next = hint.next.iter().take(HINT_PAGES_MAX).copied();
        let wanted = next.filter(is_wanted);
        let likely: Vec<Place> = wanted.map(|page| Place { home, page }).collect();
        if !likely.is_empty() {
            outbox.act(MemberAction::Hint(likely));
        }
    }

    /// A neighbour gets a page, too, that was asked for ahead (rule 9). If it has come meanwhile, that is old news.
    pub(super) fn joined(&mut self, joined: &message::Joined, outbox: &mut Outbox) {
        let (home, page) = (joined.home, joined.page);
        if self.at(home).up.is_fetching(page) {
            outbox.act(MemberAction::Joined(Place { home, page }));
        }
    }

    fn call_of_program(
        &mut self,
        request_id: RequestId,
        home: HomeId,
        request: CallRequest,
        outbox: &mut Outbox,
    ) {
        let purpose = Purpose::Program(request_id);
        if self.calls.len() < CALLS_OF_A_PROGRAM_MAX {
            return self.call(home, request, purpose, outbox);
        }
        let called = Called::new(purpose, home, request);
        if called.is_unstaging() {
            return self.unstage_later(called, outbox);
        }
        outbox.act(MemberAction::Respond(request_id, Response::Busy));
    }

    /// A home keeps a staged value until it gives it up, whoever waits for the answer: a busy home
    /// is asked again.
    pub(super) fn unstage_again(&mut self, outbox: &mut Outbox) {
        for called in core::mem::take(&mut self.unstaging) {
            if self.calls.len() < CALLS_OF_A_PROGRAM_MAX {
                self.call(called.home, called.request, called.purpose, outbox);
            } else {
                self.unstaging.push(called);
            }
        }
    }

    /// A home that lies could answer all of them as busy: no more wait than it may keep of this member.
    fn unstage_later(&mut self, called: Called, outbox: &mut Outbox) {
        let home = called.home;
        self.unstaging.push(called);
        let of_home = |called: &Called| called.home == home;
        let waiting = self.unstaging.iter().filter(|called| of_home(called));
        if waiting.count() > STAGED_PER_MEMBER_MAX
            && let Some(oldest) = self.unstaging.iter().position(of_home)
        {
            let oldest = self.unstaging.remove(oldest);
            oldest.fail(CallError::Busy, outbox);
        }
    }

    pub(super) fn call(
        &mut self,
        home: HomeId,
        request: CallRequest,
        purpose: Purpose,
        outbox: &mut Outbox,
    ) {
        self.call_number += 1;
        let call = CallId {
            member: self.config.id,
            number: self.call_number,
        };
        let called = Called::new(purpose, home, request);
        let bytes = called.bytes;
        self.calls.insert(call, called);
        if bytes == 0 {
            self.send_call(call, outbox);
        } else {
            self.send_waiting_calls(home, outbox);
        }
    }

    /// Sends a call, once the home has registered this member if the call says so.
    pub(super) fn send_call(&mut self, call: CallId, outbox: &mut Outbox) {
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
                return self.register(home, outbox);
            };
            *registration = own;
        }
        let request = called.request.clone();
        called.sent = true;
        self.window.call_sent(call, home, called.bytes);
        outbox.up(
            edge,
            Up::Call(message::Call {
                call,
                home,
                request,
            }),
        );
    }

    pub(super) fn answered(
        &mut self,
        now: Millis,
        answer: message::CallResult,
        outbox: &mut Outbox,
    ) {
        let message::CallResult { home, call, result } = answer;
        let Some(called) = self.calls.remove(&call) else {
            return;
        };
        self.window.call_answered(call);
        self.window_freed |= called.bytes > 0;
        if matches!(result, Err(CallError::Busy)) && called.is_unstaging() {
            return self.unstage_later(called, outbox);
        }
        match &result {
            Err(CallError::NotRegistered) => self.at(home).registration = None,
            // Whoever asked: what is sent from now on is under the one that the home knows.
            Ok(CallResponse::Registered(registration)) => {
                self.at(home).registration = Some(*registration);
            }
            _ => {}
        }
        match called.purpose {
            Purpose::Program(request_id) => {
                outbox.act(MemberAction::Respond(request_id, Response::Called(result)))
            }
            Purpose::Forgotten => {}
            Purpose::Registering => self.registered(home, result, outbox),
            Purpose::Outcome(commit) => self.outcome(now, home, commit, result, outbox),
        }
    }

    /// The home remembers this member's commits from its first one on (rule 11).
    pub(super) fn register(&mut self, home: HomeId, outbox: &mut Outbox) {
        let state = self.at(home);
        if state.registration.is_none() && !state.registering && state.up.edge.is_some() {
            state.registering = true;
            self.call(home, CallRequest::Register, Purpose::Registering, outbox);
        }
    }

    pub(super) fn registered(
        &mut self,
        home: HomeId,
        result: Result<CallResponse, CallError>,
        outbox: &mut Outbox,
    ) {
        let state = self.at(home);
        state.registering = false;
        let failure = match result {
            Ok(CallResponse::Registered(_)) => return self.send_waiting(home, outbox),
            Ok(_) => CallError::Invalid,
            Err(error) => error,
        };
        self.give_back_waiting(home, &failure, outbox);
    }

    /// The home cannot register now: what waited for it is told so, and the
    /// next request asks again.
    fn give_back_waiting(&mut self, home: HomeId, failure: &CallError, outbox: &mut Outbox) {
        self.give_back_commits(home, failure, outbox);
        let waiting = self
            .calls
            .extract_if(.., |_, called| called.home == home && !called.sent);
        let waiting: Vec<_> = waiting.map(|(_, called)| called).collect();
        for called in waiting {
            if matches!(failure, CallError::Busy) && called.is_unstaging() {
                self.unstage_later(called, outbox);
            } else {
                called.fail(failure.clone(), outbox);
            }
        }
    }

    /// After a new beginning: calls are made again, outcomes of commits that
    /// were sent are asked for, and never guessed (rule 11).
    pub(super) fn resend(&mut self, home: HomeId, outbox: &mut Outbox) {
        self.at(home).registering = false;
        self.calls.retain(|_, called| {
            called.home != home || matches!(called.purpose, Purpose::Program(_))
        });
        for called in self.calls.values_mut().filter(|c| c.home == home) {
            called.sent = false;
        }
        self.window.forget_calls(home);
        self.register(home, outbox);
        self.send_waiting_calls(home, outbox);
        self.resend_commits(home, outbox);
    }

    fn watch(
        &mut self,
        request_id: RequestId,
        home: HomeId,
        segment: SegmentId,
        on: bool,
        outbox: &mut Outbox,
    ) {
        let state = self.at(home);
        let is_new = on && !state.watches.contains_key(&segment);
        if is_new && state.watches.len() >= WATCHES_PER_CHILD_MAX {
            outbox.note(Note::ChildLimited);
            return outbox.act(MemberAction::Respond(
                request_id,
                Response::Unwatched { home, segment },
            ));
        }
        if on {
            state.watches.insert(segment, request_id);
        } else {
            state.watches.remove(&segment);
        }
        state.tell_watch(segment, on, outbox);
    }

    /// The parent does not tell the changes of a segment: the program is told.
    pub(super) fn unwatched(&mut self, unwatched: &message::Unwatched, outbox: &mut Outbox) {
        let (home, segment) = (unwatched.home, unwatched.segment);
        let state = self.at(home);
        if let Some(request_id) = state.watches.remove(&segment) {
            // Asked for anew meanwhile, it may be watched above: that is ended too.
            state.tell_watch(segment, false, outbox);
            outbox.act(MemberAction::Respond(
                request_id,
                Response::Unwatched { home, segment },
            ));
        }
    }

    pub(super) fn forget(&mut self, request_id: RequestId) {
        for state in self.homes.values_mut() {
            state.up.retain_waiting(|waiting| *waiting != request_id);
            for waiting in state.covered.values_mut() {
                waiting.retain(|waiting| *waiting != request_id);
            }
        }
        self.forget_calls(request_id);
    }
}
