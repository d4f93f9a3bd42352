//! How programs and their members meet: wishes, answers, the cache's pressure.

use crate::checks;
use crate::counts::{OVER_HOMES, READ_BEHIND, READ_OVER_HOMES, VALIDATED, kind_of_fetch};
use crate::failure::Checked;
use crate::history::{Asked, Reader};
use crate::node::Machine;
use crate::program::{Context, Phase, Positions, Session, Transaction, Waiting, Wish};
use crate::time::{Local, NodeNo};
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use thorp_model::{
    CallRequest, CommitId, CommitRequest, HomeId, Outcome, Place, Position, RequestId, SegmentId,
    Stamp,
};
use thorp_protocol::{Member, MemberCommand, Request, Response};

impl World {
    /// A session goes on, unless it went on otherwise.
    pub fn step(&mut self, no: NodeNo, session: usize, wait: u64) -> Checked {
        self.with_session(no, session, |session, world| {
            if session.wait != wait {
                return Ok(None);
            }
            let node = &world.nodes[no.0];
            let Some(resident) = &node.resident else {
                return Ok(None);
            };
            let floors = resident.sessions.iter().map(|other| other.stamp_floor);
            session.hear_from_neighbours(floors);
            let context = world.context(no);
            session.go_on(&resident.cache, &context).map(Some)
        })
    }

    /// An answer reaches its session, if that still waits for it.
    pub fn answered(&mut self, no: NodeNo, ticket: RequestId) -> Checked {
        let Some(resident) = &mut self.node(no).resident else {
            return Ok(());
        };
        let answer = resident.answers.remove(&ticket);
        let who = resident.tickets.remove(&ticket);
        // Of what floods asked for, nobody waits.
        if let (Some(Response::NotFetched(why)), None) = (&answer, who) {
            self.counts.refused(kind_of_fetch(*why));
        }
        let early = self.late(no, ticket);
        if let (Some(Response::Outcome(id, outcome, _)), Some((session, waiting))) =
            (&answer, early)
        {
            return self.answered_late(no, session, &waiting, (*id, outcome));
        }
        let (Some(answer), Some((session, wait))) = (answer, who) else {
            return Ok(());
        };
        if let Response::Shown(id) = answer {
            return self.go_ahead(no, (session, wait), ticket, id);
        }
        match &answer {
            Response::Busy => self.counts.answered("busy"),
            Response::NotFetched(why) => self.counts.refused(kind_of_fetch(*why)),
            _ => {}
        }
        self.with_session(no, session, |session, world| {
            if session.wait != wait {
                return Ok(None);
            }
            if let Response::Outcome(id, outcome, _) = &answer {
                world.commit_ended(no, session, *id, outcome)?;
            }
            if let (Some((segment, number)), Response::Called(_)) = (session.fencing(), &answer) {
                world.fence(no, (session.home, segment), number);
            }
            let here = world.response_at(session, &answer);
            Ok(Some(session.answered(here, &world.context(no))))
        })
    }

    /// How a commit ended, for its session that waits for it and for that session's guests.
    fn commit_ended(
        &mut self,
        no: NodeNo,
        session: &Session,
        id: CommitId,
        outcome: &Outcome,
    ) -> Checked {
        let Some(waiting) = session.waiting() else {
            return Ok(());
        };
        let asked = Rc::clone(&waiting.asked);
        checks::commits::told(self, id, &asked, outcome)?;
        let homes = asked.parts.iter().map(|part| part.home);
        let outcomes: BTreeMap<HomeId, Outcome> = homes
            .map(|home| (home, self.outcome_at(home, id, &asked, outcome)))
            .collect();
        for (home, here) in &outcomes {
            check_place(waiting, *home, here)?;
        }
        let is_committed = matches!(outcome, Outcome::Committed { .. });
        if waiting.is_validation() && is_committed {
            return Ok(());
        }
        for guest in self.guests(no, session.number()) {
            if let Some(here) = outcomes.get(&guest.home) {
                guest.outcome(waiting.learned(guest.home), here);
            }
        }
        Ok(())
    }

    /// The sessions that take part in another one's transaction.
    fn guests(&mut self, no: NodeNo, host: u32) -> impl Iterator<Item = &mut Session> {
        let resident = self.node(no).resident.as_mut();
        let sessions = resident.into_iter().flat_map(|r| r.sessions.iter_mut());
        sessions.filter(move |session| session.visits(host))
    }

    /// A commit whose session went on without its answer.
    fn late(&mut self, no: NodeNo, ticket: RequestId) -> Option<(usize, Box<Waiting>)> {
        let resident = self.node(no).resident.as_mut()?;
        resident.early.remove(&ticket)
    }

    /// What a session wants to commit is shown to it: it goes on, and hears of the outcome later (rule 14).
    fn go_ahead(
        &mut self,
        no: NodeNo,
        (session, wait): (usize, u64),
        ticket: RequestId,
        id: CommitId,
    ) -> Checked {
        let index = session;
        self.with_session(no, index, |session, world| {
            if session.wait != wait {
                return Ok(None);
            }
            let Some(waiting) = session.go_ahead() else {
                return Ok(None);
            };
            world.counts.answered("shown before they were answered");
            world.history.shown.insert(id, Rc::clone(&waiting.asked));
            if let Some(resident) = &mut world.node(no).resident {
                resident.early.insert(ticket, (index, waiting));
            }
            Ok(Some(world.think_shortly()))
        })
    }

    /// A commit that its session did not wait for has ended.
    fn answered_late(
        &mut self,
        no: NodeNo,
        session: usize,
        waiting: &Waiting,
        (id, outcome): (CommitId, &Outcome),
    ) -> Checked {
        checks::commits::told(self, id, &waiting.asked, outcome)?;
        for part in &waiting.asked.parts {
            let here = self.outcome_at(part.home, id, &waiting.asked, outcome);
            check_place(waiting, part.home, &here)?;
        }
        self.with_session(no, session, |session, world| {
            let here = world.outcome_at(session.home, id, &waiting.asked, outcome);
            session.outcome(waiting.learned(session.home), &here);
            Ok(None)
        })
    }

    /// An outcome as it is at one of its homes.
    fn outcome_at(&self, home: HomeId, id: CommitId, asked: &Asked, outcome: &Outcome) -> Outcome {
        let Outcome::Committed { position, stamp } = *outcome else {
            return outcome.clone();
        };
        let commits = self.oracles.get(&home).map(|oracle| &oracle.commits);
        let at = commits.and_then(|commits| commits.get(&id));
        let position = match (at, &asked.parts[..]) {
            (Some((position, _)), _) => *position,
            (None, [part]) if part.home == home => position,
            // It has no part there, or no place yet.
            (None, _) => Position(0),
        };
        Outcome::Committed { position, stamp }
    }

    /// A response for a session: of a commit its outcome at the session's home, of a validation the one at the home that was
    /// asked.
    fn response_at(&self, session: &Session, answer: &Response) -> Response {
        match (answer, session.waiting()) {
            (Response::Outcome(id, outcome, by), Some(waiting)) if !waiting.is_validation() => {
                let outcome = self.outcome_at(session.home, *id, &waiting.asked, outcome);
                Response::Outcome(*id, outcome, *by)
            }
            (other, _) => other.clone(),
        }
    }

    /// From now on a watch is told everything.
    fn fence(&mut self, no: NodeNo, key: (HomeId, SegmentId), number: u64) {
        let end = self.oracles[&key.0].end;
        if let Some(resident) = &mut self.node(no).resident {
            resident.watches.fence(key, number, &resident.cache, end);
        }
    }

    fn context(&self, no: NodeNo) -> Context<'_> {
        let node = &self.nodes[no.0];
        Context {
            now: self.now,
            oracles: &self.oracles,
            mono: node.now(self.now).mono,
            habits: &self.village.habits,
            member: node.id,
            watches: node.resident.as_ref().map(|resident| &resident.watches),
            news: &node.news,
            history: &self.history,
            live: self.live(no),
            acknowledged: &self.history.acknowledged,
            healed: self.healed,
            awaited: self.pace.awaits(node.id),
            steps_aside: self.pace.steps_aside(node.id),
            closing: self.closing,
        }
    }

    /// The homes whose streams are live at a member.
    fn live(&self, no: NodeNo) -> BTreeSet<HomeId> {
        match &self.nodes[no.0].machine {
            Some(Machine::Member(member)) => {
                let live = member.streams().filter(|(_, _, edge)| edge.is_some());
                live.map(|(home, ..)| home).collect()
            }
            _ => BTreeSet::new(),
        }
    }

    /// Takes a session out of its place, lets it act, puts it back, and does what it wishes.
    fn with_session(
        &mut self,
        no: NodeNo,
        index: usize,
        act: impl FnOnce(&mut Session, &mut World) -> Checked<Option<Wish>>,
    ) -> Checked {
        let Some(resident) = &mut self.node(no).resident else {
            return Ok(());
        };
        if index >= resident.sessions.len() {
            return Ok(());
        }
        let mut session = resident.sessions.swap_remove(index);
        let result = act(&mut session, self).and_then(|wish| match wish {
            Some(wish) => {
                session.wait += 1;
                self.settle_wish(no, &mut session, wish)
            }
            None => Ok(None),
        });
        let wait = session.wait;
        if let Some(resident) = &mut self.node(no).resident {
            resident.sessions.push(session);
            let last = resident.sessions.len() - 1;
            resident.sessions.swap(index, last);
        }
        if let Some(todo) = result? {
            self.grant(no, index, wait, todo)?;
        }
        self.dismiss_guests(no, index);
        Ok(())
    }

    /// Guests of a session whose transaction is over go on by themselves.
    fn dismiss_guests(&mut self, no: NodeNo, index: usize) {
        let Some(resident) = &mut self.node(no).resident else {
            return;
        };
        let Some(host) = resident.sessions.get_mut(index).filter(|h| h.has_guests()) else {
            return;
        };
        if !host.dismiss() {
            return;
        }
        let host = host.number();
        let guests = resident.sessions.iter_mut().enumerate();
        let guests = guests.filter(|(_, session)| session.visits(host));
        let waits: Vec<(usize, u64)> = guests
            .map(|(index, guest)| {
                guest.come_home();
                (index, guest.wait)
            })
            .collect();
        for (session, wait) in waits {
            let think_us = self.prng.below(self.village.habits.think_ms_max * 1000);
            let at = self.now.plus_us(think_us);
            self.plan_local(no, at, Local::Step { session, wait });
        }
    }

    /// What concerns the session itself; tells what is left to be done.
    fn settle_wish(
        &mut self,
        no: NodeNo,
        session: &mut Session,
        wish: Wish,
    ) -> Checked<Option<Wish>> {
        if matches!(session.phase, Phase::Promising(..)) && matches!(wish, Wish::Request(..)) {
            self.counts
                .answered("promises that transactions waited for");
        }
        Ok(Some(match wish {
            Wish::Invite => {
                self.invite(no, session);
                Wish::Rest(0)
            }
            Wish::Read(transaction, evidence, stamp) => {
                self.has_read(no, session, &transaction, (&evidence, stamp))?;
                self.think()
            }
            Wish::Validated(transaction) => {
                self.is_validated(no, session, &transaction)?;
                self.think()
            }
            Wish::Validate(transaction, asked, ask) => {
                self.history.ask(asked);
                session.keep_for_resending(transaction);
                Wish::Request(ask, None)
            }
            Wish::Ended(transaction, why) => {
                self.count_transaction(&transaction);
                checks::reads::opacity(self, &transaction)?;
                if why == "doomed" {
                    self.counts.doomed += 1;
                } else {
                    self.counts.given_up += 1;
                    self.counts.answered(why);
                }
                self.think()
            }
            Wish::Commit(transaction, asked, ask, patience) => {
                self.count_transaction(&transaction);
                checks::reads::opacity(self, &transaction)?;
                self.history.stage(session.home, session.staged_values());
                for guest in &session.guests {
                    self.history.stage(guest.home, &guest.staged);
                }
                if asked.parts.len() > 1 {
                    self.counts.answered(OVER_HOMES);
                }
                self.history.ask(asked);
                session.keep_for_resending(transaction);
                Wish::Request(ask, patience)
            }
            other => other,
        }))
    }

    /// Sessions of the same program that work with other homes, and rest, take part in its transaction, as far as they are drawn.
    fn invite(&mut self, no: NodeNo, session: &mut Session) {
        let habits = &self.village.habits;
        let read_only = session
            .transaction()
            .is_some_and(Transaction::will_only_read);
        let Some(resident) = &mut self.nodes[no.0].resident else {
            return;
        };
        for other in &mut resident.sessions {
            let is_first = !session.has_guests();
            if other.may_visit(session) && (is_first || self.prng.percent(habits.joint)) {
                let host = session.number();
                let (guest, actions) = other.visit(host, read_only, habits, self.now);
                session.receive(guest, actions);
            }
        }
    }

    /// It has committed without a message, as of its evidence, at a stamp.
    fn has_read(
        &mut self,
        no: NodeNo,
        session: &mut Session,
        transaction: &Transaction,
        at: (&Positions, Stamp),
    ) -> Checked {
        for home in &transaction.homes {
            let evidence = at.0.get(home).copied().unwrap_or_default();
            let floor = transaction.floors.get(home).copied().unwrap_or_default();
            checks::reads::read_only(self, no, transaction, *home, (floor, evidence))?;
        }
        checks::reads::stands(transaction, at.1)?;
        let homes: BTreeSet<HomeId> = transaction.seen.keys().map(|(home, _)| *home).collect();
        if homes.len() > 1 {
            self.counts.answered(READ_OVER_HOMES);
        }
        if transaction.core.reads().behind().is_some() {
            self.counts.answered(READ_BEHIND);
        }
        self.counts.read_only += 1;
        self.reading_done(no, session, transaction, at);
        Ok(())
    }

    /// All homes have validated what a transaction has read, at a stamp at which it stands now.
    fn is_validated(
        &mut self,
        no: NodeNo,
        session: &mut Session,
        transaction: &Transaction,
    ) -> Checked {
        checks::reads::opacity(self, transaction)?;
        self.counts.answered(VALIDATED);
        self.counts.strict_read_only += 1;
        let at = (&transaction.validated, transaction.placed);
        self.reading_done(no, session, transaction, at);
        Ok(())
    }

    fn reading_done(
        &mut self,
        no: NodeNo,
        session: &mut Session,
        transaction: &Transaction,
        (positions, stamp): (&Positions, Stamp),
    ) {
        self.count_transaction(transaction);
        let seen = transaction.seen.keys();
        let position = |home| positions.get(home).copied().unwrap_or_default();
        let seen = seen.map(|(home, object)| (*home, *object, position(home)));
        let seen = seen.collect();
        self.history.readers.push(Reader { stamp, seen });
        session.read_only_done(transaction, positions, stamp);
        for guest in self.guests(no, session.number()) {
            guest.read_only_done(transaction, positions, stamp);
        }
    }

    fn count_transaction(&mut self, transaction: &crate::program::Transaction) {
        self.counts.transactions += 1;
        self.counts.operations += transaction.operations;
    }

    fn think(&mut self) -> Wish {
        let most = self.village.habits.think_ms_max * 1000;
        Wish::Rest(self.prng.below(most))
    }

    /// Who goes on without an answer does so at once, mostly.
    fn think_shortly(&mut self) -> Wish {
        Wish::Rest(self.prng.below(3_000))
    }

    fn grant(&mut self, no: NodeNo, session: usize, wait: u64, wish: Wish) -> Checked {
        match wish {
            Wish::Rest(us) => {
                let at = self.now.plus_us(us);
                self.plan_local(no, at, Local::Step { session, wait });
            }
            Wish::Request(ask, patience) => {
                if let Some(ms) = patience {
                    let at = self.now.plus_ms(ms);
                    self.plan_local(no, at, Local::Step { session, wait });
                }
                let ticket = self.ticket(no, Some((session, wait)));
                self.ask(no, ticket, ask)?;
            }
            Wish::Flood(asks) => {
                let at = self.now.plus_ms(20);
                self.plan_local(no, at, Local::Step { session, wait });
                for ask in asks {
                    let ticket = self.ticket(no, None);
                    self.ask(no, ticket, ask)?;
                }
            }
            Wish::Forget => {
                let at = self.now.plus_ms(5);
                self.plan_local(no, at, Local::Step { session, wait });
                self.forget(no, session)?;
            }
            // The others are settled before.
            _ => {}
        }
        Ok(())
    }

    fn ticket(&mut self, no: NodeNo, who: Option<(usize, u64)>) -> RequestId {
        let Some(resident) = &mut self.node(no).resident else {
            return RequestId(0);
        };
        resident.last_ticket = resident.last_ticket.next();
        if let Some(who) = who {
            resident.tickets.insert(resident.last_ticket, who);
        }
        resident.last_ticket
    }

    /// A program asks its member.
    pub fn ask(&mut self, no: NodeNo, ticket: RequestId, ask: Request) -> Checked {
        if !self.nodes[no.0].is_up() {
            return Ok(());
        }
        if let Request::Call {
            home,
            request: CallRequest::Remove { segment },
        } = &ask
        {
            self.history.removals.insert((*home, *segment));
        }
        if let (Request::Watch { home, segment, on }, Some(resident)) =
            (&ask, &mut self.node(no).resident)
        {
            resident.watches.ask(&resident.cache, *home, *segment, *on);
        }
        let command = MemberCommand::Request {
            id: ticket,
            request: ask,
        };
        self.command::<Member>(no, command)
    }

    /// A program hears what it is likely to read next, and fetches it, or does not.
    pub fn hinted(&mut self, no: NodeNo, place: Place) -> Checked {
        if !self.prng.percent(self.village.habits.heeds) {
            return Ok(());
        }
        let ticket = self.ticket(no, None);
        self.ask(no, ticket, Request::Prefetch(place))
    }

    fn forget(&mut self, no: NodeNo, session: usize) -> Checked {
        let Some(resident) = &mut self.node(no).resident else {
            return Ok(());
        };
        let of = |(_, (who, _)): &(&RequestId, &(usize, u64))| *who == session;
        let tickets: Vec<RequestId> = resident
            .tickets
            .iter()
            .filter(of)
            .map(|(t, _)| *t)
            .collect();
        for ticket in &tickets {
            resident.tickets.remove(ticket);
            resident.answers.remove(ticket);
        }
        self.counts.answered("out of patience");
        for ticket in tickets {
            let forget = self.ticket(no, None);
            self.ask(no, forget, Request::Forget(ticket))?;
        }
        Ok(())
    }

    /// A member's cache is over its limit: it gives up what was not used for long.
    pub fn squeeze(&mut self, no: NodeNo) -> Checked {
        let force = self.prng.percent(20);
        let Some(resident) = &mut self.node(no).resident else {
            return Ok(());
        };
        resident.squeezing = false;
        let excess = resident.cache.excess();
        let places = resident.cache.victims(excess, force);
        if places.is_empty() {
            return Ok(());
        }
        self.command::<Member>(no, MemberCommand::Evict(places))
    }

    /// A commit request was seen on its way from its member.
    pub fn commit_sent(&mut self, request: &CommitRequest) -> bool {
        self.history.send(request)
    }
}

/// What a session commits at a home comes after all that it had seen there when its transaction began.
fn check_place(waiting: &Waiting, home: HomeId, outcome: &Outcome) -> Checked {
    match outcome {
        Outcome::Committed { position, .. } if *position > Position(0) => {
            let floor = waiting.floors.get(&home).copied().unwrap_or_default();
            checks::reads::session(floor, *position, "was told to have committed at")
        }
        _ => Ok(()),
    }
}
