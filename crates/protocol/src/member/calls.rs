//! A member's calls to homes: what is neither a fetch nor a commit.

use crate::member::{MemberAction, Outbox, Response};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::{CALLS_OF_A_PROGRAM_MAX, STAGED_PER_MEMBER_MAX};
use thorp_model::{
    CallError, CallId, CallRequest, CommitId, Fence, HomeId, MemberId, Millis, RequestId, SegmentId,
};

/// A call that is not answered.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) purpose: Purpose,
    pub(super) home: HomeId,
    pub(super) request: CallRequest,
    /// Bytes of a value that it stages.
    pub(super) bytes: usize,
    pub(super) sent: bool,
    /// When it was sent last.
    pub(super) sent_at: Millis,
}

/// Who wants the answer to a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Program(RequestId),
    /// The program wants the answer no more.
    Forgotten,
    Registering,
    Outcome(CommitId),
    /// The member follows a segment (rule C6).
    Follow(SegmentId),
    /// The member wants leases to write (rule C4).
    Lease,
    /// It wants leases to read (rule C2).
    ReadLease,
    /// It wants more time for a lock (rule C5).
    KeepLock(Fence),
    /// It gives back a lock that nobody wants any more.
    Unlock,
}

impl Purpose {
    /// Whether the program waits for it.
    pub(super) fn is_of_program(self) -> bool {
        matches!(self, Purpose::Program(_))
    }
}

/// The calls that are not answered, and those that a busy home has to take later.
///
/// Invariant: a number names one call for ever. Of each home at most [`STAGED_PER_MEMBER_MAX`] values wait to be given
/// up, the oldest first.
#[derive(Debug)]
pub(super) struct Calls {
    member: MemberId,
    number: u64,
    open: BTreeMap<CallId, Called>,
    /// Staged values that a busy home did not give up: the member asks again with the next tick.
    unstaging: Vec<Called>,
}

impl Calls {
    /// A member that has called nobody yet.
    pub(super) fn new(member: MemberId) -> Self {
        Calls {
            member,
            number: 0,
            open: BTreeMap::new(),
            unstaging: Vec::new(),
        }
    }

    /// Calls that are not answered.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Calls that register, which also happens while a member rests: its delegation ends (rule R2).
    pub(super) fn registering(&self) -> usize {
        self.open
            .values()
            .filter(|called| called.is_registering())
            .count()
    }

    /// Staged values that a home is to give up, and has not yet: whoever ends now leaves them there.
    pub(super) fn giving_up(&self) -> usize {
        let open = self.open.values().filter(|called| called.is_giving_back());
        open.count() + self.unstaging.len()
    }

    /// Calls that give up a value, and wait for the next tick.
    pub(super) fn unstaging(&self) -> usize {
        self.unstaging.len()
    }

    /// Whether the program may make one more call.
    pub(super) fn has_space(&self) -> bool {
        self.open.len() < CALLS_OF_A_PROGRAM_MAX
    }

    /// Opens a call under the next number. Under that it was never sent.
    pub(super) fn open(&mut self, mut called: Called) -> CallId {
        self.number += 1;
        called.sent = false;
        let call = CallId {
            member: self.member,
            number: self.number,
        };
        self.open.insert(call, called);
        call
    }

    /// A call that is not answered.
    pub(super) fn get_mut(&mut self, call: CallId) -> Option<&mut Called> {
        self.open.get_mut(&call)
    }

    /// A call is answered.
    pub(super) fn close(&mut self, call: CallId) -> Option<Called> {
        self.open.remove(&call)
    }

    /// The calls to a home that wait to be sent, in order, and the bytes of their values.
    pub(super) fn waiting(&self, home: HomeId) -> Vec<(CallId, usize)> {
        let here = |called: &Called| called.home == home && !called.sent;
        let waiting = self.open.iter().filter(|(_, called)| here(called));
        waiting
            .map(|(call, called)| (*call, called.bytes))
            .collect()
    }

    /// Gives up the calls to a home that wait to be sent.
    pub(super) fn take_waiting(&mut self, home: HomeId) -> Vec<Called> {
        let here = |called: &Called| called.home == home && !called.sent;
        let waiting = self.open.extract_if(.., |_, called| here(called));
        waiting.map(|(_, called)| called).collect()
    }

    /// The outcomes that a home is asked for.
    pub(super) fn asked_outcomes(&self) -> impl Iterator<Item = (HomeId, CommitId)> + '_ {
        self.open
            .values()
            .filter_map(|called| match called.purpose {
                Purpose::Outcome(commit) => Some((called.home, commit)),
                _ => None,
            })
    }

    /// A stream has ended: the calls to its home that nobody wants an answer to.
    pub(super) fn stream_ended(&mut self, home: HomeId) -> Vec<CallId> {
        let is_over =
            |called: &Called| called.home == home && matches!(called.purpose, Purpose::Forgotten);
        let over = self.open.extract_if(.., |_, called| is_over(called));
        over.map(|(call, _)| call).collect()
    }

    /// A stream begins: the program's calls to its home are made again, and no others.
    pub(super) fn stream_began(&mut self, home: HomeId) {
        self.open.retain(|_, called| {
            called.home != home || matches!(called.purpose, Purpose::Program(_))
        });
        for called in self.open.values_mut().filter(|c| c.home == home) {
            called.sent = false;
        }
    }

    /// The program wants the answer to a request no more. The calls for it that are not on their way are given up;
    /// what is on its way keeps its space until it is answered.
    pub(super) fn forget(
        &mut self,
        request_id: RequestId,
        is_live: impl Fn(HomeId) -> bool,
    ) -> Vec<CallId> {
        let given_up = self.open.extract_if(.., |_, called| {
            let forgotten = matches!(called.purpose, Purpose::Program(t) if t == request_id);
            if forgotten {
                called.purpose = Purpose::Forgotten;
            }
            forgotten && !(called.sent && is_live(called.home))
        });
        given_up.map(|(call, _)| call).collect()
    }

    /// A busy home has to give up a staged value, or a lock, later. A home that lies could answer all of them as busy: no more wait
    /// than it may keep of this member.
    pub(super) fn give_back_later(&mut self, called: Called, outbox: &mut Outbox) {
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

    /// The values and locks that a home has to give up now.
    pub(super) fn take_giving_back(&mut self) -> Vec<Called> {
        core::mem::take(&mut self.unstaging)
    }

    /// One still has to wait for the next tick.
    pub(super) fn keep_giving_back(&mut self, called: Called) {
        self.unstaging.push(called);
    }
}

impl Called {
    pub(super) fn new(purpose: Purpose, home: HomeId, request: CallRequest) -> Self {
        Called {
            purpose,
            home,
            bytes: request.staged_bytes(),
            request,
            sent: false,
            sent_at: Millis(0),
        }
    }

    /// The program learns that the home did not do it.
    pub(super) fn fail(self, failure: CallError, outbox: &mut Outbox) {
        if let Purpose::Program(request_id) = self.purpose {
            let failed = Response::Called(Err(failure));
            outbox.act(MemberAction::Respond(request_id, failed));
        }
    }

    /// Whether it registers the member.
    pub(super) fn is_registering(&self) -> bool {
        matches!(self.purpose, Purpose::Registering)
    }

    /// Whether it gives up a staged value or a lock: then it is made again until its home has taken it.
    pub(super) fn is_giving_back(&self) -> bool {
        matches!(
            self.request,
            CallRequest::Unstage { .. } | CallRequest::Unlock { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::Registration;

    const HOME: HomeId = HomeId(1);
    const OTHER: HomeId = HomeId(2);

    fn of_program(number: u64, home: HomeId) -> Called {
        let purpose = Purpose::Program(RequestId(number));
        Called::new(purpose, home, CallRequest::Register(None))
    }

    fn numbers(calls: Vec<CallId>) -> Vec<u64> {
        calls.iter().map(|call| call.number).collect()
    }

    #[test]
    fn a_forgotten_call_on_its_way_stays_until_its_stream_ends() {
        let mut calls = Calls::new(MemberId(1));
        for number in 1..=2 {
            let call = calls.open(of_program(number, HOME));
            calls.get_mut(call).expect("it is open").sent = number == 2;
        }
        assert_eq!(numbers(calls.forget(RequestId(1), |_| true)), [1]);
        assert_eq!(numbers(calls.forget(RequestId(2), |_| true)), []);
        assert_eq!(calls.len(), 1);
        assert_eq!(numbers(calls.stream_ended(OTHER)), []);
        assert_eq!(numbers(calls.stream_ended(HOME)), [2]);
        assert_eq!(calls.len(), 0);
    }

    #[test]
    fn a_new_stream_makes_the_calls_of_the_program_again() {
        let mut calls = Calls::new(MemberId(1));
        let registering = Called::new(Purpose::Registering, HOME, CallRequest::Register(None));
        calls.open(registering);
        let call = calls.open(of_program(1, HOME));
        calls.get_mut(call).expect("it is open").sent = true;
        assert_eq!(calls.waiting(HOME).len(), 1);
        calls.stream_began(HOME);
        assert_eq!(calls.waiting(HOME), [(call, 0)]);
    }

    #[test]
    fn of_values_that_a_busy_home_keeps_the_oldest_is_given_up() {
        let (mut calls, mut outbox) = (Calls::new(MemberId(1)), Outbox::new());
        for number in 0..=STAGED_PER_MEMBER_MAX as u64 {
            let request = CallRequest::Unstage {
                registration: Registration::default(),
                token: number,
            };
            let purpose = Purpose::Program(RequestId(number));
            calls.give_back_later(Called::new(purpose, HOME, request), &mut outbox);
        }
        assert_eq!(calls.unstaging(), STAGED_PER_MEMBER_MAX);
        assert_eq!(outbox.actions.len(), 1);
        let waiting = calls.take_giving_back();
        assert!(matches!(waiting[0].purpose, Purpose::Program(RequestId(1))));
    }
}
