//! Serves hard reads of the program, and tells parents what the member shows (rules C2, C3 and C4).

use crate::member::caller::Caller;
use crate::member::calls::{Called, Purpose};
use crate::member::hard_reads::{Asked, HardReads, Pulling, Way};
use crate::member::{MemberAction, Outbox, Response};
use alloc::vec::Vec;
use thorp_model::limits::PULL_SEGMENTS_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallRequest, CallResponse, HomeId, Millis, Note, Position, Privilege, SegmentId, Up,
    message, planted,
};

/// Serves hard reads: under a read lease, or by asking the home.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    pub(super) reads: &'a mut HardReads,
    pub(super) caller: Caller<'a>,
}

impl Reading<'_> {
    fn now(&self) -> Millis {
        self.caller.signing.now.mono
    }

    /// Whether the member stands where its parent does. Without a parent it stands where its last stream ended, if it was not held then.
    fn stands(&self, home: HomeId) -> bool {
        let replica = self.caller.homes.get(home);
        replica.is_some_and(|replica| replica.up.stands())
    }

    /// The program wants all that was answered before, but for so many changes.
    pub(super) fn pull(&mut self, pulling: Pulling, outbox: &mut Outbox) {
        let (now, stands) = (self.now(), self.stands(pulling.home));
        let is_reached = self.caller.homes.edge(pulling.home).is_some();
        if pulling.segments.len() > PULL_SEGMENTS_MAX {
            // The home says what is wrong.
            return self.ask_pull(pulling, outbox);
        }
        match self.reads.way(now, &pulling, stands) {
            Way::Leased => {
                outbox.note(Note::ReadUnderLease);
                self.pulled(&pulling, outbox);
            }
            Way::AskLease if is_reached => {
                let (home, segments) = (pulling.home, pulling.segments.clone());
                self.ask((home, segments, pulling.mods), Some(pulling), outbox);
            }
            Way::AskLease | Way::Pull => self.ask_pull(pulling, outbox),
        }
    }

    fn pulled(&self, pulling: &Pulling, outbox: &mut Outbox) {
        let pulled = Response::Called(Ok(CallResponse::Pulled));
        outbox.act(MemberAction::Respond(pulling.request_id, pulled));
    }

    fn ask_pull(&mut self, pulling: Pulling, outbox: &mut Outbox) {
        let request = CallRequest::Pull {
            segments: pulling.segments,
            patience_ms: pulling.patience_ms,
        };
        let of = (pulling.request_id, pulling.home);
        self.caller.call_of_program(of.0, of.1, request, outbox);
    }

    fn ask(
        &mut self,
        (home, segments, mods): (HomeId, Vec<SegmentId>, u32),
        program: Option<Pulling>,
        outbox: &mut Outbox,
    ) {
        let now = self.now();
        self.reads.ask(now, (home, segments.clone(), mods), program);
        let request = CallRequest::Lease {
            segments,
            privilege: Privilege::Read { mods },
        };
        let called = Called::new(Purpose::ReadLease, home, request);
        self.caller.call(called, outbox);
    }

    /// The home has answered a request for read leases. What it grants is a pull, too.
    pub(super) fn leased(
        &mut self,
        home: HomeId,
        result: &Result<CallResponse, CallError>,
        outbox: &mut Outbox,
    ) {
        let (now, stands) = (self.now(), self.stands(home));
        let Some(mut asked) = self.reads.take_asked(home) else {
            return;
        };
        let program = asked.program.take();
        match result {
            Ok(CallResponse::Leased { lease_ms }) if stands => {
                let lease_ms = u64::from(*lease_ms);
                self.reads.granted(now, home, &asked, lease_ms);
                program
                    .into_iter()
                    .for_each(|pulling| self.pulled(&pulling, outbox));
            }
            result => {
                let is_denied = !matches!(
                    result,
                    Ok(_) | Err(CallError::Busy | CallError::NotDelegated(_))
                );
                self.reads.refused(now, home, &asked, is_denied);
                program
                    .into_iter()
                    .for_each(|pulling| self.ask_pull(pulling, outbox));
            }
        }
    }

    /// The stream of a home has ended. What was asked for goes as a pull when there is a stream again.
    pub(super) fn end(&mut self, home: HomeId, outbox: &mut Outbox) {
        self.reads.stream_ended(home);
        let asked: Option<Asked> = self.reads.take_asked(home);
        if let Some(pulling) = asked.and_then(|asked| asked.program) {
            self.ask_pull(pulling, outbox);
        }
    }

    /// A stream begins. Of another incarnation no lease is of any worth (rule R9).
    pub(super) fn begin(&mut self, home: HomeId, forgets: bool, outbox: &mut Outbox) {
        self.end(home, outbox);
        if forgets {
            self.reads.went_back(home);
        }
    }

    /// The parent wants to know when a position is shown. Its step was published before this message was taken.
    pub(super) fn wanted(&mut self, home: HomeId, position: Position, outbox: &mut Outbox) {
        let due = self.reads.seen_due.entry(home).or_default();
        *due = position.max(*due);
        self.tell_seen(home, outbox);
    }

    /// Tells the parent what it wants to know, if the member stands there.
    pub(super) fn tell_seen(&mut self, home: HomeId, outbox: &mut Outbox) {
        let Some(replica) = self.caller.homes.get(home) else {
            return;
        };
        let stands = !replica.up.is_held() || planted::is(Bug::SeenTooEarly);
        let Some(edge) = replica.up.edge.filter(|_| stands) else {
            return;
        };
        if let Some(position) = self.reads.seen_due.remove(&home) {
            outbox.note(Note::SeenTold);
            let seen = message::Seen {
                home,
                after: Position(0),
                position,
            };
            outbox.up(edge, Up::Seen(seen));
        }
    }

    /// Asks for more time where programs read, and gives back what nobody uses.
    pub(super) fn tick(&mut self, outbox: &mut Outbox) {
        let now = self.now();
        for home in self.reads.homes() {
            if self.caller.homes.edge(home).is_none() {
                continue;
            }
            self.give_back(home, false, outbox);
            let (segments, mods) = self.reads.to_refresh(now, home);
            if !segments.is_empty() {
                self.ask((home, segments, mods), None, outbox);
            }
        }
        self.reads.sweep(now);
    }

    fn give_back(&mut self, home: HomeId, leaves: bool, outbox: &mut Outbox) {
        let Some(edge) = self.caller.homes.edge(home) else {
            return;
        };
        let segments = self.reads.take_unused(self.now(), home, leaves);
        if !segments.is_empty() {
            let back = message::GiveBack {
                home,
                segments,
                privilege: Privilege::Read { mods: 0 },
            };
            outbox.up(edge, Up::GiveBack(back));
        }
    }

    /// The program leaves.
    pub(super) fn leave(&mut self, outbox: &mut Outbox) {
        for home in self.reads.homes() {
            self.give_back(home, true, outbox);
        }
    }
}
