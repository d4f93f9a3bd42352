//! What members ask of a home beside pages and commits.

use crate::home::Outbox;
use crate::home::audit::Occasion;
use crate::home::commit::effects::Effects;
use crate::home::delegations::{Arrival, Delegated};
use crate::home::founding::{Founding, NewSegment};
use crate::home::log::Log;
use crate::home::log::queue::OnDurable;
use crate::home::log::room::Demand;
use crate::home::opening::Opening;
use crate::home::operators::Asker;
use crate::home::outcomes::{self, Known};
use crate::home::pages::remove::Remover;
use crate::home::registrars::{Newcomer, Place};
use crate::home::rights::{CREATORS_PATH, is_operators_path};
use crate::home::segments::{is_path, is_path_of_new};
use crate::home::stager::Stager;
use crate::home::staging::Piece;
use crate::home::tables::{Entry, Tables};
use crate::home::two_phase::inquiry::Inquiry;
use crate::home::two_phase::passed_questions::{Asked, PassedQuestions};
use crate::home::two_phase::remembered::{Questioner, Remembered};
use crate::home::two_phase::settlement::Settlement;
use crate::home::usage::{Numbers, limited};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use thorp_model::limits::EXTENT_PAGES;
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, CallRequest, CallResponse, Closed, CommitId, Delegation, DelegationNo,
    EdgeId, LockMode, MemberId, NameId, NotDelegated, Note, Now, Op, PageNo, Principal, Purpose,
    Registration, Right, RightsList, Ruling, SegmentId, Stamp, Verifier, planted,
};

/// What a registration takes of the room that a full store keeps back (rule R7): without one nobody changes a right.
const REGISTRATION: Demand = Demand {
    brought: 512,
    lasting: 512,
};

/// The same, of a newer delegation of a registered member.
const DELEGATION: Demand = Demand {
    brought: 128,
    lasting: 128,
};

/// Segments told by one answer.
const LIST_MAX: usize = 256;

type Called = Result<CallResponse, CallError>;

/// Answers calls.
///
/// What a call changes is in the log before its answer is: an answer is never ahead of what it
/// rests on.
#[derive(Debug)]
pub(super) struct Calls<'a> {
    /// The name of the child that calls. Another home registers nobody.
    pub(super) carrier: Option<NameId>,
    pub(super) verifier: &'a dyn Verifier,
    pub(super) inquiry: &'a Inquiry,
    /// Why the home is closed, if it is.
    pub(super) closed: Option<&'a Closed>,
    pub(super) passed: &'a mut PassedQuestions,
    /// Names this home in what it asks others.
    pub(super) node: MemberId,
    pub(super) log: &'a mut Log,
    pub(super) tables: &'a mut Tables,
    pub(super) remover: &'a mut Remover,
}

/// Judges whether a caller has a right, whose call a child brings (rule R4). What it lacks is recorded (rule R8).
pub(super) fn check_right(
    tables: &mut Tables,
    (who, carrier): (Principal, Option<NameId>),
    segment: SegmentId,
    right: Right,
) -> Result<(), CallError> {
    let (rights, segments) = (&tables.rights, &tables.segments);
    let judged = rights.check_call(segments, who, segment, right);
    if judged.is_err() && segments.get(segment).is_some() {
        let occasion = Occasion::denied(who.name, segment, right);
        tables.audit.note(occasion.brought_by(carrier), 1);
    }
    judged
}

/// Where a call came from, and for whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) edge: EdgeId,
    pub(super) call: CallId,
    pub(super) who: Principal,
    /// The site that brings it; none: it comes on an edge of its own.
    pub(super) site: Option<NameId>,
    /// Another home asks.
    pub(super) is_home: bool,
    /// Whether its question about an id that is not known ends that id (rule 11).
    pub(super) ends_unknown: bool,
}

impl Caller {
    /// As whom it asks about transactions over several homes (rule R9).
    fn asks(&self) -> Questioner {
        match self.is_home {
            true => Questioner::Home {
                is_configured: self.ends_unknown,
            },
            false => Questioner::Child((self.who, self.site)),
        }
    }
}

impl Calls<'_> {
    /// Takes a call; its answer waits in the log.
    pub(super) fn call(
        &mut self,
        now: Now,
        caller: Caller,
        request: CallRequest,
        outbox: &mut Outbox,
    ) {
        let Caller {
            edge, call, who, ..
        } = caller;
        let known = self.tables.outcomes.registration(call.member);
        let is_own = |registration| known == Some(registration);
        let asked_of = match &request {
            CallRequest::Outcome { commit, .. } => Some(*commit),
            _ => None,
        };
        let result = match request {
            CallRequest::Stage { registration, .. } | CallRequest::Unstage { registration, .. }
                if !is_own(registration) =>
            {
                Err(CallError::NotRegistered)
            }
            CallRequest::Watermark { at_least } => {
                return self.watermark(now, edge, call, at_least, outbox);
            }
            CallRequest::Register(delegation) => {
                self.register(now, caller, delegation.as_ref(), outbox)
            }
            CallRequest::Open { path, create } => {
                self.open_segment(now, who, (&path, create), outbox)
            }
            CallRequest::List { prefix, after } => {
                let Tables {
                    rights, segments, ..
                } = &*self.tables;
                let may_read = |segment| rights.may(who, segment, Right::Read);
                let (segments, more) = segments.list((&prefix, &after), LIST_MAX, may_read);
                Ok(CallResponse::Segments { segments, more })
            }
            CallRequest::Remove { segment } => self.remove_segment(now, who, segment, outbox),
            CallRequest::Reserve { segment, pages } => self.reserve(who, (segment, pages), outbox),
            CallRequest::Stage {
                segment,
                registration,
                token,
                bytes,
                index,
                chunks,
            } => {
                let piece = Piece {
                    segment,
                    registration,
                    token,
                    bytes,
                    index,
                    chunks: &chunks,
                };
                let judged = self.check(who, piece.segment, Right::Write);
                let judged = judged.and_then(|()| self.writable());
                judged.and_then(|()| self.stager().stage(now, who, &piece, outbox))
            }
            CallRequest::Unstage {
                registration,
                token,
            } => self.stager().unstage(registration, token, outbox),
            CallRequest::Outcome {
                commit,
                registration,
            } => self.outcome(caller, commit, registration, outbox),
            CallRequest::Doubts { after } => self.settlement().list(now, (who, caller.site), after),
            CallRequest::Settle { commit, ruling } => {
                self.settle(now, (who, caller.site), (commit, ruling), outbox)
            }
            CallRequest::History => self.opening().history((who, caller.site)),
            CallRequest::Confirm { seen, apart } => {
                let asker = (who, caller.site);
                self.opening().confirm(asker, (seen, apart), outbox)
            }
            CallRequest::Joint { at, question } => {
                let node = self.node;
                let (asked, question) = ((Asked { edge, call }, caller.asks()), (at, question));
                match self.remembered().asked(node, asked, question, outbox) {
                    Some(answer) => answer,
                    None => return,
                }
            }
            // `Writing` and `Locking` take these.
            CallRequest::Follow { .. }
            | CallRequest::Lease { .. }
            | CallRequest::Pull { .. }
            | CallRequest::Lock { .. }
            | CallRequest::KeepLock { .. }
            | CallRequest::Unlock { .. } => Err(CallError::Invalid),
        };
        self.log.after_all(match asked_of {
            // Another home decides by it, and answers no program.
            Some(commit) if !caller.is_home => OnDurable::Outcome(edge, call, commit, result),
            _ => OnDurable::Answer(edge, call, result),
        });
    }

    /// Judges whether a caller has a right (rule R4). What it lacks is recorded (rule R8).
    fn check(&mut self, who: Principal, segment: SegmentId, right: Right) -> Result<(), CallError> {
        check_right(self.tables, (who, self.carrier), segment, right)
    }

    fn stager(&mut self) -> Stager<'_> {
        Stager {
            log: self.log,
            tables: self.tables,
        }
    }

    /// Whether a call that needs space may go on. A call that makes space needs none, and one that
    /// serves rights takes from the room that is kept back.
    fn writable(&self) -> Result<(), CallError> {
        match self.log.has_space() {
            true => Ok(()),
            false => Err(CallError::Full(self.log.lack())),
        }
    }

    /// Rule 5: the home promises the stamp that a transaction wants to stand at, if nothing is in
    /// doubt below it.
    fn watermark(
        &mut self,
        now: Now,
        edge: EdgeId,
        call: CallId,
        at_least: Stamp,
        outbox: &mut Outbox,
    ) {
        outbox.note(Note::WatermarkAsked);
        self.log.clock.pass(now.wall);
        self.log.clock.see(now, at_least, call.member.name());
        self.log.clock.move_up(now.wall, at_least);
        let then = OnDurable::Watermark(edge, call);
        self.log.after_reservation(now, then, outbox);
    }

    /// Registers a member, or takes a newer delegation of one (rules 11 and R2).
    fn register(
        &mut self,
        now: Now,
        caller: Caller,
        delegation: Option<&Delegation>,
        outbox: &mut Outbox,
    ) -> Called {
        let member = caller.call.member;
        let taken = delegation.map(|delegation| self.take_delegation(now, caller, delegation));
        let delegated = taken.transpose().map_err(|why| {
            outbox.note(Note::DelegationNotTaken);
            CallError::NotDelegated(why)
        })?;
        // Small, and a full store pays for it.
        let (mut ops, mut purpose) = (Vec::new(), Purpose::Housekeeping);
        let registration = match self.tables.outcomes.registration(member) {
            Some(known) if !self.tables.outcomes.is_left(known) => known,
            _ => {
                let demand = REGISTRATION;
                let bill = self.log.bill(member.name(), demand);
                let bill = bill.ok_or_else(|| CallError::Full(self.log.lack()))?;
                let registration = self.register_new(member, &mut ops, outbox)?;
                purpose = self.log.pay(&bill, None, purpose, outbox);
                registration
            }
        };
        if let Some(delegated) = delegated {
            if ops.is_empty() {
                let bill = self.log.bill(member.name(), DELEGATION);
                let bill = bill.ok_or_else(|| CallError::Full(self.log.lack()))?;
                purpose = self.log.pay(&bill, None, purpose, outbox);
            }
            let outcomes = &mut self.tables.outcomes;
            outcomes.delegate(registration, delegated, &mut ops);
        }
        if !ops.is_empty() {
            self.log
                .append_ops(purpose, ops, OnDurable::Nothing, outbox);
        }
        Ok(CallResponse::Registered(registration))
    }

    /// The sites that speak for the caller from now on.
    fn take_delegation(
        &mut self,
        now: Now,
        caller: Caller,
        delegation: &Delegation,
    ) -> Result<Delegated, NotDelegated> {
        let member = caller.call.member;
        let known = self.tables.outcomes.delegated(member);
        let last = known.map_or(DelegationNo(0), Delegated::number);
        let arrival = Arrival {
            home: self.log.home(),
            member,
            site: caller.site,
            wall: now.wall,
        };
        let (delegated, certified) = arrival.take(delegation, last, self.verifier)?;
        if let Some(certified) = certified {
            self.tables.audit.learn(&certified.name);
        }
        Ok(delegated)
    }

    fn register_new(
        &mut self,
        member: MemberId,
        ops: &mut Vec<Op>,
        outbox: &mut Outbox,
    ) -> Result<Registration, CallError> {
        // What a vote in doubt names has to be there when it is decided.
        let in_doubt = self.tables.votes.registrations_in_doubt();
        let may_go = |silent| !in_doubt.contains(&silent);
        let carrier = self.carrier.ok_or(CallError::Invalid)?;
        let newcomer = Newcomer { member, carrier };
        let place = self.tables.outcomes.place_for(newcomer, may_go);
        let place = place.ok_or(CallError::Busy)?;
        self.tables.next.registration = self.tables.next.registration.next();
        let registration = self.tables.next.registration;
        ops.push(self.tables.put_next());
        self.tables
            .outcomes
            .register(registration, newcomer, place, ops);
        if let Place::Of(forgotten) = place {
            outbox.note(Note::RegistrationForgotten);
            self.tables.staging.drop_all(forgotten, ops);
            if planted::is(Bug::LogForgotten) {
                self.tables.saved.forget_all();
            }
        }
        outbox.note(Note::Registered);
        Ok(registration)
    }

    fn outcome(
        &mut self,
        caller: Caller,
        id: CommitId,
        registration: Registration,
        outbox: &mut Outbox,
    ) -> Called {
        if let Some(known) = self.tables.votes.response(id) {
            outbox.note(Note::OutcomeRemembered);
            return Ok(known);
        }
        let outcome = match self.tables.outcomes.known(registration, id) {
            Known::Ended(outcome) => {
                outbox.note(Note::OutcomeRemembered);
                outcome
            }
            // A home that asks would take it for a no (trap R42).
            Known::Left if caller.is_home && !planted::is(Bug::LostIsNo) => {
                return Err(CallError::Lost);
            }
            Known::Left | Known::BelowWindow => {
                outbox.note(Note::BelowWindow);
                outcomes::forgotten()
            }
            Known::New if !caller.ends_unknown => return Err(CallError::Busy),
            Known::New => {
                self.writable()?;
                outbox.note(Note::UnknownRecorded);
                outbox.note(Note::RefusedUnknown);
                let mut ops = Vec::new();
                self.tables
                    .outcomes
                    .record(registration, id, outcomes::unknown(), &mut ops);
                let free = self.log.free();
                self.tables.outcomes.shed(registration, free, &mut ops);
                self.log
                    .append_ops(Purpose::Housekeeping, ops, OnDurable::Nothing, outbox);
                outcomes::unknown()
            }
        };
        Ok(CallResponse::Outcome(outcome))
    }

    // --- What is for operators (rules R7 and R9) ---

    fn opening(&mut self) -> Opening<'_> {
        Opening {
            closed: self.closed,
            log: self.log,
            tables: self.tables,
        }
    }

    fn founding(&mut self) -> Founding<'_> {
        Founding {
            log: self.log,
            tables: self.tables,
        }
    }

    fn remembered(&mut self) -> Remembered<'_> {
        Remembered {
            inquiry: self.inquiry,
            passed: self.passed,
            log: self.log,
            tables: self.tables,
        }
    }

    fn settlement(&mut self) -> Settlement<'_> {
        Settlement {
            inquiry: self.inquiry,
            log: self.log,
            tables: self.tables,
        }
    }

    /// An operator ends a vote in doubt. The record of it comes before it in the log (rule R8): there is no end without one.
    fn settle(
        &mut self,
        now: Now,
        asker: Asker,
        (commit, ruling): (CommitId, Ruling),
        outbox: &mut Outbox,
    ) -> Called {
        self.settlement().check(asker)?;
        if let Some(outcome) = self.settlement().ended(commit)? {
            return Ok(CallResponse::Settled(outcome));
        }
        self.writable()?;
        if self.tables.pages.mob_is_full() {
            return Err(CallError::Busy);
        }
        // What waits goes first: it leaves space for this one.
        self.founding().write_audit(now, outbox);
        let occasion = Settlement::occasion(asker.0, commit, ruling);
        self.tables.audit.note(occasion, 1);
        self.founding().write_audit(now, outbox);
        self.settlement().settle(now, (commit, ruling), outbox)
    }

    // --- Segments ---

    fn open_segment(
        &mut self,
        now: Now,
        who: Principal,
        (path, create): (&str, bool),
        outbox: &mut Outbox,
    ) -> Called {
        if !is_path(path) {
            return Err(CallError::BadPath);
        }
        let known = self.tables.segments.find(path);
        let id = match known {
            Some(id) => id,
            None if create => self.create_segment(now, who, path.to_string(), outbox)?,
            None => return Err(CallError::NoSuchSegment),
        };
        self.check(who, id, Right::Read)?;
        let info = self
            .tables
            .segments
            .info(id)
            .ok_or(CallError::NoSuchSegment)?;
        Ok(CallResponse::Segment(info))
    }

    fn create_segment(
        &mut self,
        now: Now,
        who: Principal,
        path: String,
        outbox: &mut Outbox,
    ) -> Result<SegmentId, CallError> {
        if !is_path_of_new(&path) {
            return Err(CallError::BadPath);
        }
        self.check_creator(who, &path)?;
        let maker = (!who.is_operator).then_some(who.name);
        if let Some(name) = maker {
            let (segments, last) = (self.tables.segments.len(), self.tables.next.segment);
            let judged = self.tables.usage.check_segment(name, segments, last);
            judged.map_err(|share| limited(share, outbox))?;
        }
        let list = self.list_of_new(who, &path);
        let judged = self.tables.rights.check_new(maker, &list);
        judged.map_err(|share| limited(share, outbox))?;
        let new = NewSegment {
            // Who may be in a group, or make segments, can be changed on a full store, too (rule R7).
            payer: is_operators_path(&path).then_some(who.name),
            path,
            extent: PageNo(1),
            maker,
        };
        self.founding().found(now, new, &list, outbox)
    }

    /// Whether somebody may make a segment at a path. Those that the home looks at itself are for operators. Elsewhere it
    /// is for who may write in `.create`, if that is there (rule R3).
    fn check_creator(&mut self, who: Principal, path: &str) -> Result<(), CallError> {
        const RIGHT: Right = Right::Write;
        if path.starts_with('.') {
            return match is_operators_path(path) {
                true if who.is_operator => Ok(()),
                true => Err(CallError::NoRight {
                    right: Right::Admin,
                }),
                false => Err(CallError::BadPath),
            };
        }
        let Some(creators) = self.tables.segments.find(CREATORS_PATH) else {
            return Ok(());
        };
        let judged = self.check(who, creators, RIGHT);
        judged.map_err(|_| CallError::NoRight { right: RIGHT })
    }

    /// The list that a new segment begins with (rule R3).
    fn list_of_new(&self, who: Principal, path: &str) -> RightsList {
        let creator = self.tables.audit.subject(who.name);
        if is_operators_path(path) {
            // Who is in its list is in the group: its maker is not.
            return RightsList::default();
        }
        match self.tables.rights.template(&self.tables.segments) {
            Some(mut list) => {
                list.grant(creator, Right::Admin);
                list
            }
            None => RightsList::of_new(creator),
        }
    }

    fn remove_segment(
        &mut self,
        now: Now,
        who: Principal,
        id: SegmentId,
        outbox: &mut Outbox,
    ) -> Called {
        #[cfg(feature = "planted-bugs")]
        let id = self.tables.segments.named_as_before(id);
        match self.check(who, id, Right::Admin) {
            // It may have been removed by this very request, which came before.
            Err(CallError::NoSuchSegment) => return Ok(CallResponse::Removed),
            judged => judged?,
        }
        let wants = LockMode::Write;
        let holder = self.tables.segment_locks.want(&[id], wants, now.mono);
        if let Some(holder) = holder {
            let name = self.tables.audit.name(holder.name()).unwrap_or_default();
            return Err(CallError::Locked { name });
        }
        if self.tables.votes.lock_segment(id) {
            return Err(CallError::Busy);
        }
        self.tables.segments.begin_removal(id);
        if planted::is(Bug::RemovedEarly) {
            self.remover.add(id);
        }
        let mut effects = Effects::default();
        effects.ops.extend(self.tables.segments.put(id));
        let entry = Entry {
            removed: Some(id),
            ..Entry::own(self.log.clock.stamp(now.wall), effects)
        };
        self.tables.accept(now, entry, self.log, outbox);
        Ok(CallResponse::Removed)
    }

    fn reserve(
        &mut self,
        who: Principal,
        (segment, wanted): (SegmentId, u32),
        outbox: &mut Outbox,
    ) -> Called {
        self.check(who, segment, Right::Write)?;
        self.writable()?;
        let wanted = wanted.clamp(1, EXTENT_PAGES);
        let numbers = (Numbers::Granted, wanted);
        let judged = self.tables.check_numbers((who.name, segment), numbers);
        judged.map_err(|share| limited(share, outbox))?;
        let (first, pages) = self
            .tables
            .segments
            .grant(segment, wanted)
            .ok_or(CallError::TooMany)?;
        let mut ops: Vec<Op> = self.tables.segments.put(segment).into_iter().collect();
        let used = (who.name, segment);
        ops.extend(
            self.tables
                .usage
                .give_numbers(used, Numbers::Granted, pages),
        );
        // Small, and a full store was asked before.
        self.log
            .append_ops(Purpose::Housekeeping, ops, OnDurable::Nothing, outbox);
        Ok(CallResponse::Extent { first, pages })
    }
}
