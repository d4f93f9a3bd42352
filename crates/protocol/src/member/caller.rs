//! Makes calls to homes: for the program, for a registration, or for an outcome that was lost.

use crate::member::calls::{Called, Calls, Purpose};
use crate::member::homes::Homes;
use crate::member::signing::Signing;
use crate::member::uplink::Uplink;
use crate::member::{MemberAction, Outbox, Response};
use thorp_model::limits::{DELEGATION_RENEWED_MS, HEARTBEAT_MS};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, CallRequest, CallResponse, CommitId, Fence, HomeId, Millis, RequestId,
    SegmentId, Up, message, planted,
};

/// What the commits have to do about the answer to a call.
#[derive(Debug)]
pub(super) enum Answered {
    /// The home has registered this member: what waits for that may go.
    Registered,
    /// The home cannot register now: what waits for that gets this failure.
    NotRegistered(CallError),
    /// What the home knows of a commit whose answer was lost.
    Outcome(CommitId, Result<CallResponse, CallError>),
    /// From where on the member follows a segment.
    Following(SegmentId, Result<CallResponse, CallError>),
    /// Whether the home grants leases to read.
    ReadLeased(Result<CallResponse, CallError>),
    /// Whether it grants leases to write.
    Leased(Result<CallResponse, CallError>),
    /// The home grants a lock, or gives it more time, for a request that was sent then.
    Locked {
        fence: Fence,
        lease_ms: u32,
        sent: Millis,
        wanted: Purpose,
    },
    /// It gives a lock no more time.
    LockNotKept(Fence, CallError),
}

/// Makes calls and takes their answers.
///
/// Small calls go at once; pieces of a value go in order, as far as there is space. A call that names a registration
/// waits until the home has registered this member.
#[derive(Debug)]
pub(super) struct Caller<'a> {
    pub(super) calls: &'a mut Calls,
    pub(super) homes: &'a mut Homes,
    pub(super) uplink: &'a mut Uplink,
    pub(super) signing: &'a mut Signing,
}

impl Caller<'_> {
    /// The same caller, for a while.
    pub(super) fn reborrow(&mut self) -> Caller<'_> {
        Caller {
            calls: self.calls,
            homes: self.homes,
            uplink: self.uplink,
            signing: self.signing,
        }
    }

    /// Makes a call of the program, if it has not too many.
    pub(super) fn call_of_program(
        &mut self,
        request_id: RequestId,
        home: HomeId,
        request: CallRequest,
        outbox: &mut Outbox,
    ) {
        let purpose = Purpose::Program(request_id);
        let called = Called::new(purpose, home, request);
        if self.calls.has_space() {
            return self.call(called, outbox);
        }
        if called.is_giving_back() {
            return self.calls.give_back_later(called, outbox);
        }
        outbox.act(MemberAction::Respond(request_id, Response::Busy));
    }

    /// A home keeps a staged value until it gives it up, and a lock for a lease, whoever waits for the answer: the member asks a
    /// busy home again.
    pub(super) fn give_back_again(&mut self, outbox: &mut Outbox) {
        for called in self.calls.take_giving_back() {
            if self.calls.has_space() {
                self.call(called, outbox);
            } else {
                self.calls.keep_giving_back(called);
            }
        }
    }

    /// Asks a home how a commit ended.
    pub(super) fn ask_outcome(
        &mut self,
        home: HomeId,
        commit: CommitId,
        request: CallRequest,
        outbox: &mut Outbox,
    ) {
        let called = Called::new(Purpose::Outcome(commit), home, request);
        self.call(called, outbox);
    }

    /// Makes a call.
    pub(super) fn call(&mut self, called: Called, outbox: &mut Outbox) {
        let (home, bytes) = (called.home, called.bytes);
        let call = self.calls.open(called);
        if bytes == 0 {
            self.send(call, outbox);
        } else {
            self.send_waiting(home, outbox);
        }
    }

    /// Sends a call, once the home has registered this member if the call says so.
    fn send(&mut self, call: CallId, outbox: &mut Outbox) {
        let Some(called) = self.calls.get_mut(call) else {
            return;
        };
        let home = called.home;
        let Some(replica) = self.homes.get(home) else {
            return;
        };
        let Some(edge) = replica.up.edge else {
            return;
        };
        if let Some(registration) = called.request.registration_mut() {
            let Some(own) = replica.registration else {
                return self.register(home, outbox);
            };
            *registration = own;
        }
        if called.is_registering() {
            let sites = replica.up.sites.clone();
            let delegation = self.signing.sign(home, sites);
            called.request = CallRequest::Register(Some(delegation));
        }
        let request = called.request.clone();
        called.sent = true;
        called.sent_at = self.signing.now.mono;
        self.uplink.call_sent(call, home, called.bytes);
        outbox.up(
            edge,
            Up::Call(message::Call {
                call,
                home,
                request,
            }),
        );
    }

    /// Sends what waits for a home. Small calls overtake values that wait to be staged.
    pub(super) fn send_waiting(&mut self, home: HomeId, outbox: &mut Outbox) {
        let Some(edge) = self.homes.edge(home) else {
            return;
        };
        let mut is_full = false;
        for (call, bytes) in self.calls.waiting(home) {
            if bytes > 0 {
                let is_on = |home| self.homes.is_on(home, edge);
                is_full = is_full || !self.uplink.has_space_for_staging(bytes, is_on);
            }
            if bytes == 0 || !is_full {
                self.send(call, outbox);
            }
        }
    }

    /// The home remembers this member's commits from its first one on (rule 11).
    pub(super) fn register(&mut self, home: HomeId, outbox: &mut Outbox) {
        let replica = self.homes.at(home);
        let now = self.signing.now.mono;
        if replica.registration.is_none() && replica.signs_at.is_none_or(|at| at <= now) {
            self.sign(home, outbox);
        }
    }

    /// Names to a home the sites that are on the way to it now (rule R2), unless that is under way.
    fn sign(&mut self, home: HomeId, outbox: &mut Outbox) {
        let replica = self.homes.at(home);
        if replica.up.edge.is_some() && !replica.registering {
            replica.registering = true;
            replica.signed_at = Some(self.signing.now.mono);
            let request = CallRequest::Register(None);
            self.call(Called::new(Purpose::Registering, home, request), outbox);
        }
    }

    /// Renews a delegation before it ends, and one that the home does not take.
    pub(super) fn sign_if_due(&mut self, home: HomeId, outbox: &mut Outbox) {
        let signs_at = self.homes.at(home).signs_at;
        if signs_at.is_some_and(|at| at <= self.signing.now.mono) {
            self.sign(home, outbox);
        }
    }

    /// A home takes nothing of this member by this way until the member has signed anew. A member that
    /// has just signed waits first: a site that gives wrong names must not keep both of them busy.
    pub(super) fn is_not_delegated(&mut self, home: HomeId) {
        let now = self.signing.now.mono;
        let replica = self.homes.at(home);
        replica.registration = None;
        let again = replica.signed_at.map(|at| at.plus(HEARTBEAT_MS));
        replica.signs_at = Some(again.map_or(now, |at| at.max(now)));
    }

    /// Takes an answer. Returns what the commits have to do about it.
    pub(super) fn answered(
        &mut self,
        answer: message::CallResult,
        outbox: &mut Outbox,
    ) -> Option<Answered> {
        let message::CallResult { home, call, result } = answer;
        let called = self.calls.close(call)?;
        self.uplink.call_answered(call, called.bytes);
        let is_made_again = called.is_giving_back() && !planted::is(Bug::UnlockNotRepeated);
        if matches!(result, Err(CallError::Busy)) && is_made_again {
            self.calls.give_back_later(called, outbox);
            return None;
        }
        match &result {
            Err(CallError::NotRegistered) => self.homes.at(home).is_forgotten(),
            // Whoever asked: what is sent from now on is under the one that the home knows.
            Ok(CallResponse::Registered(registration)) => {
                self.homes.at(home).registration = Some(*registration);
            }
            _ => {}
        }
        if matches!(result, Err(CallError::NotDelegated(_))) && !called.is_registering() {
            self.is_not_delegated(home);
            if matches!(called.purpose, Purpose::Program(_)) {
                self.calls.open(called);
                return None;
            }
        }
        if let Ok(CallResponse::Locked { fence, lease_ms }) = result {
            return Some(Answered::Locked {
                fence,
                lease_ms,
                sent: called.sent_at,
                wanted: called.purpose,
            });
        }
        match called.purpose {
            Purpose::Program(request_id) => {
                outbox.act(MemberAction::Respond(request_id, Response::Called(result)));
                None
            }
            Purpose::Forgotten => None,
            Purpose::Registering => {
                self.signed(home, result.is_ok());
                Some(match result {
                    Ok(CallResponse::Registered(_)) => Answered::Registered,
                    Ok(_) => Answered::NotRegistered(CallError::Invalid),
                    Err(error) => Answered::NotRegistered(error),
                })
            }
            Purpose::Outcome(commit) => Some(Answered::Outcome(commit, result)),
            Purpose::Follow(segment) => Some(Answered::Following(segment, result)),
            Purpose::Lease => Some(Answered::Leased(result)),
            Purpose::ReadLease => Some(Answered::ReadLeased(result)),
            Purpose::KeepLock(fence) => {
                let why = result.err().unwrap_or(CallError::Invalid);
                Some(Answered::LockNotKept(fence, why))
            }
            Purpose::Unlock => None,
        }
    }

    /// The home has answered whether it takes a delegation.
    fn signed(&mut self, home: HomeId, is_taken: bool) {
        let now = self.signing.now.mono;
        let replica = self.homes.at(home);
        replica.registering = false;
        // One that was due stays due: a decision may wait for it that the home has dropped. Else the
        // next request signs again.
        replica.signs_at = match replica.signs_at {
            _ if is_taken => Some(now.plus(DELEGATION_RENEWED_MS)),
            due => due.map(|_| now.plus(HEARTBEAT_MS)),
        };
    }

    /// The home cannot register this member now: the program learns that its calls, which wait for that, failed. The
    /// next request registers again.
    pub(super) fn give_back_waiting(
        &mut self,
        home: HomeId,
        failure: &CallError,
        outbox: &mut Outbox,
    ) {
        for called in self.calls.take_waiting(home) {
            if matches!(failure, CallError::Busy) && called.is_giving_back() {
                self.calls.give_back_later(called, outbox);
            } else {
                called.fail(failure.clone(), outbox);
            }
        }
    }

    /// A stream has ended: nobody waits for the answers to what the program has forgotten.
    pub(super) fn stream_ended(&mut self, home: HomeId) {
        self.uplink.stream_ended();
        for call in self.calls.stream_ended(home) {
            self.uplink.call_given_up(call);
        }
    }

    /// A stream begins: the program's calls are made again.
    pub(super) fn resend(&mut self, home: HomeId, outbox: &mut Outbox) {
        self.homes.at(home).registering = false;
        self.calls.stream_began(home);
        self.uplink.forget_calls(home);
        // What follows on this edge comes after it: a new way, or a new life of the home (rule R2).
        self.sign(home, outbox);
        self.send_waiting(home, outbox);
    }

    /// The program wants the response to a request no more.
    pub(super) fn forget(&mut self, request_id: RequestId) {
        let homes = &*self.homes;
        let is_live = |home| homes.edge(home).is_some();
        for call in self.calls.forget(request_id, is_live) {
            self.uplink.call_given_up(call);
        }
    }
}
