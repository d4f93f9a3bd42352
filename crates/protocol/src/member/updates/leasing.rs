//! What a member does for leases, and what waits for them (rules C1, C4 and C10).

use crate::member::Outbox;
use crate::member::caller::Caller;
use crate::member::calls::{Called, Purpose};
use crate::member::updates::{InSegment, Unanswered, Updates};
use alloc::vec::Vec;
use thorp_model::limits::LEASED_SEGMENTS_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallRequest, CallResponse, EdgeId, HomeId, InCustody, Millis, Privilege, SegmentId,
    Up, message, planted,
};

/// Asks for leases, gives them back, and answers programs that wait for one.
#[derive(Debug)]
pub(in crate::member) struct Leasing<'a> {
    pub(super) updates: &'a mut Updates,
    pub(super) caller: Caller<'a>,
}

impl Leasing<'_> {
    fn now(&self) -> Millis {
        self.caller.signing.now.mono
    }

    /// Answers programs: with a lease, or where none is to be had in time (rule C10).
    pub(super) fn answer(&mut self, outbox: &mut Outbox) {
        let now = self.now();
        let (of, homes) = (&self.updates.of, &*self.caller.homes);
        let is_reached = |home: HomeId| homes.edge(home).is_some();
        let is_covered = |waits: &Unanswered| {
            let here = of.get(&(waits.home, waits.id.segment));
            here.is_some_and(|here| here.is_covered(now, is_reached(waits.home)))
        };
        let is_answered = |waits: &mut Unanswered| {
            let here = of.get(&(waits.home, waits.id.segment));
            let may_come = here.is_some_and(|here| here.lease.may_come());
            let is_late = now >= waits.until || !is_reached(waits.home) || !may_come;
            waits.is_saved || is_late || is_covered(waits)
        };
        let answered = self.updates.unanswered.extract_if(.., is_answered);
        for waits in answered {
            let kept = InCustody {
                id: waits.id,
                is_leased: waits.is_saved || is_covered(&waits),
            };
            waits.asker.kept(waits.home, kept, outbox);
        }
    }

    /// Asks a home for leases, or for more time.
    pub(super) fn lease(&mut self, home: HomeId, outbox: &mut Outbox) {
        let now = self.now();
        if self.caller.homes.edge(home).is_none() || self.updates.leasing.contains_key(&home) {
            return;
        }
        let here = self
            .updates
            .of
            .iter_mut()
            .filter(|((of, _), _)| *of == home);
        let due = here.filter(|(_, here)| here.written.is_some() && here.lease.is_due(now));
        let alone = &self.updates.alone;
        let (mut alone, mut due): (Vec<_>, Vec<_>) =
            due.partition(|((_, segment), _)| alone.contains(&(home, *segment)));
        if due.is_empty() {
            alone.truncate(1);
            due = alone;
        }
        let mut segments = Vec::new();
        for ((_, segment), here) in due.into_iter().take(LEASED_SEGMENTS_MAX) {
            here.lease.ask();
            segments.push(*segment);
        }
        if segments.is_empty() {
            return;
        }
        self.updates.leasing.insert(home, (segments.clone(), now));
        let request = CallRequest::Lease {
            segments,
            privilege: Privilege::Write,
        };
        self.caller
            .call(Called::new(Purpose::Lease, home, request), outbox);
    }

    /// The home has answered.
    pub(in crate::member) fn leased(
        &mut self,
        home: HomeId,
        result: &Result<CallResponse, CallError>,
        outbox: &mut Outbox,
    ) {
        let Some((segments, sent)) = self.updates.leasing.remove(&home) else {
            return;
        };
        let now = self.now();
        let is_single = segments.len() == 1;
        for segment in segments {
            let of = (home, segment);
            let Some(here) = self.updates.of.get_mut(&(home, segment)) else {
                continue;
            };
            match result {
                Ok(CallResponse::Leased { lease_ms }) => {
                    let lease_ms = u64::from(*lease_ms);
                    here.lease.granted(sent, lease_ms, now);
                    // Who has written nothing for so long, and has nothing to save, needs none any more.
                    let is_idle = here.written.is_some_and(|at| now.since(at) > lease_ms);
                    here.is_idle = is_idle && here.custody.is_settled();
                    self.updates.alone.remove(&of);
                }
                // Others read there with hard bounds, or wait for a lock; or there is no place for more. Programs wait.
                Err(
                    CallError::Busy
                    | CallError::NotDelegated(_)
                    | CallError::Privileged
                    | CallError::TooMany,
                ) => here.lease.refused(now, false),
                // One of them may have spoiled it for the others.
                _ if !is_single => {
                    here.lease.ask_again();
                    self.updates.alone.insert(of);
                }
                _ => here.lease.refused(now, true),
            }
        }
        self.answer(outbox);
        self.give_back(home, |here| here.is_idle, outbox);
        self.give_back_recalled(home, outbox);
        self.lease(home, outbox);
    }

    /// The parent wants leases back (rule C1). Nothing new is answered under them.
    pub(in crate::member) fn recalled(&mut self, recall: &message::Recall, outbox: &mut Outbox) {
        let (home, log) = (recall.home, self.updates.log.id());
        for segment in &recall.segments {
            let here = self.updates.of.entry((home, *segment)).or_default();
            here.lease.recall();
            here.last_leased = here.custody.next_number(log) - 1;
        }
        self.answer(outbox);
        self.give_back_recalled(home, outbox);
    }

    /// Gives back what was recalled, where the home has executed all that was answered under it. An answer to a request that is under
    /// way would grant it anew.
    pub(super) fn give_back_recalled(&mut self, home: HomeId, outbox: &mut Outbox) {
        let (now, log) = (self.now(), self.updates.log.id());
        let Some(edge) = self.caller.homes.edge(home) else {
            return;
        };
        if self.updates.leasing.contains_key(&home) {
            return;
        }
        let mut segments = Vec::new();
        for ((of, segment), here) in &mut self.updates.of {
            let is_over = here.leased_is_saved(log) || planted::is(Bug::GivesBackTooEarly);
            if *of == home && here.lease.is_recalled() && is_over {
                here.lease.give_back(now);
                here.lease.refused(now, false);
                segments.push(*segment);
            }
        }
        self.send_back(edge, home, segments, outbox);
    }

    /// Gives back the leases of segments in which nothing is kept any more, where that is wanted: nobody has to ask this member
    /// any more.
    fn give_back(
        &mut self,
        home: HomeId,
        wanted: impl Fn(&InSegment) -> bool,
        outbox: &mut Outbox,
    ) {
        let (now, log) = (self.now(), &self.updates.log);
        let Some(edge) = self.caller.homes.edge(home).filter(|_| log.is_at_rest()) else {
            return;
        };
        let mut segments = Vec::new();
        for ((of, segment), here) in &mut self.updates.of {
            let is_wanted = *of == home && here.custody.is_settled() && wanted(here);
            if is_wanted && here.lease.give_back(now) {
                here.written = None;
                segments.push(*segment);
            }
        }
        self.send_back(edge, home, segments, outbox);
    }

    fn send_back(&self, edge: EdgeId, home: HomeId, segments: Vec<SegmentId>, outbox: &mut Outbox) {
        if !segments.is_empty() {
            let back = message::GiveBack {
                home,
                segments,
                privilege: Privilege::Write,
            };
            outbox.up(edge, Up::GiveBack(back));
        }
    }

    /// The program leaves.
    pub(in crate::member) fn leave(&mut self, outbox: &mut Outbox) {
        let mut homes: Vec<HomeId> = self.updates.of.keys().map(|(home, _)| *home).collect();
        homes.dedup();
        for home in homes {
            // What is answered now comes too late.
            self.updates.leasing.remove(&home);
            self.give_back(home, |_| true, outbox);
        }
    }
}
