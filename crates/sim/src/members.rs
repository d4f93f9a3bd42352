//! How programs and their members meet: wishes, answers, the cache's pressure.

use crate::checks;
use crate::counts::kind_of_fetch;
use crate::failure::Checked;
use crate::history::{Asked, Reader};
use crate::node::Machine;
use crate::program::{Context, Phase, Session, Transaction, Waiting, Wish};
use crate::time::{Local, NodeNo};
use crate::world::World;
use std::rc::Rc;
use thorp_model::{
    CallRequest, CommitId, CommitRequest, HomeId, Outcome, Place, Position, RequestId, SegmentId,
    Stamp, snapshot,
};
use thorp_protocol::{Member, MemberCommand, Request, Response};
use thorp_session::OwnCommits as _;

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
            let context = world.context(no, session.home);
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
        let mut joined = None;
        self.with_session(no, session, |session, world| {
            if session.wait != wait {
                return Ok(None);
            }
            if let (Response::Outcome(id, outcome, _), Some(waiting)) = (&answer, session.waiting())
            {
                let asked = Rc::clone(&waiting.asked);
                checks::commits::told(world, *id, &asked, outcome)?;
                check_place(waiting, &world.outcome_at(session.home, &answer))?;
            }
            if let (Some((segment, number)), Response::Called(_)) = (session.fencing(), &answer) {
                world.fence(no, (session.home, segment), number);
            }
            if let Response::Outcome(..) = answer {
                joined = session.committing().cloned();
            }
            let here = world.outcome_at(session.home, &answer);
            let context = world.context(no, session.home);
            Ok(Some(session.answered(here, &context)))
        })?;
        match joined {
            Some(asked) => self.tell_joined(no, &asked, &answer),
            None => Ok(()),
        }
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
        check_place(waiting, &Response::Outcome(id, outcome.clone(), None))?;
        self.with_session(no, session, |session, _| {
            session.outcome(waiting, outcome);
            Ok(None)
        })
    }

    /// An outcome as it is at one of its homes.
    fn outcome_at(&self, home: HomeId, answer: &Response) -> Response {
        if let Response::Outcome(id, Outcome::Committed { position, stamp }, by) = answer {
            let at = self
                .oracles
                .get(&home)
                .and_then(|oracle| oracle.commits.get(id));
            let position = at.map_or(*position, |(position, _)| *position);
            let stamp = *stamp;
            return Response::Outcome(*id, Outcome::Committed { position, stamp }, *by);
        }
        answer.clone()
    }

    /// The neighbour whose transaction was one with the answered one hears of it, too.
    fn tell_joined(&mut self, no: NodeNo, asked: &Rc<Asked>, answer: &Response) -> Checked {
        if asked.parts.len() < 2 {
            return Ok(());
        }
        let Some(resident) = &self.node(no).resident else {
            return Ok(());
        };
        let waits = |s: &Session| s.committing().is_some_and(|own| Rc::ptr_eq(own, asked));
        let Some(index) = resident.sessions.iter().position(waits) else {
            return Ok(());
        };
        self.with_session(no, index, |session, world| {
            let here = world.outcome_at(session.home, answer);
            if let Some(waiting) = session.waiting() {
                check_place(waiting, &here)?;
            }
            let context = world.context(no, session.home);
            Ok(Some(session.answered(here, &context)))
        })
    }

    /// From now on a watch is told everything.
    fn fence(&mut self, no: NodeNo, key: (HomeId, SegmentId), number: u64) {
        let end = self.oracles[&key.0].end;
        if let Some(resident) = &mut self.node(no).resident {
            resident.watches.fence(key, number, &resident.cache, end);
        }
    }

    fn context(&self, no: NodeNo, home: HomeId) -> Context<'_> {
        let node = &self.nodes[no.0];
        Context {
            now: self.now,
            oracle: &self.oracles[&home],
            mono: node.now(self.now).mono,
            habits: &self.village.habits,
            member: node.id,
            watches: node.resident.as_ref().map(|resident| &resident.watches),
            news: node.news.get(&home).copied().unwrap_or_default(),
            history: &self.history,
            is_live: self.is_live(no, home),
            acknowledged: &self.history.acknowledged,
            healed: self.healed,
            closing: self.closing,
        }
    }

    /// Whether a member's stream of a home is live.
    fn is_live(&self, no: NodeNo, home: HomeId) -> bool {
        match &self.nodes[no.0].machine {
            Some(Machine::Member(member)) => member
                .streams()
                .any(|(of, _, edge)| of == home && edge.is_some()),
            _ => false,
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
        match result? {
            Some(todo) => self.grant(no, index, wait, todo),
            None => Ok(()),
        }
    }

    /// What concerns the session itself; tells what is left to be done.
    fn settle_wish(
        &mut self,
        no: NodeNo,
        session: &mut Session,
        wish: Wish,
    ) -> Checked<Option<Wish>> {
        if matches!(session.phase, Phase::Promising(_)) && matches!(wish, Wish::Request(..)) {
            self.counts.answered("transactions that lagged");
        }
        Ok(Some(match wish {
            Wish::ReadOnly(transaction) => return self.read_only(no, session, transaction),
            Wish::Read(transaction, position, stamp) => {
                self.has_read(no, session, &transaction, (position, stamp))?;
                self.think()
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
                self.history.stage(session);
                match self.join(no, session)? {
                    Some(joint) => {
                        let ask = Request::Commit {
                            parts: joint.parts.clone(),
                            depends_on: joint.depends_on.clone(),
                            after: joint.after,
                            early: false,
                        };
                        self.history.ask(joint);
                        Wish::Request(ask, None)
                    }
                    None => {
                        self.history.ask(asked);
                        session.keep_for_resending(transaction);
                        Wish::Request(ask, patience)
                    }
                }
            }
            other => other,
        }))
    }

    /// A transaction that only read is to commit without a message: together with a neighbour's at another home if there is
    /// one (rule 5), else alone, as the client does.
    fn read_only(
        &mut self,
        no: NodeNo,
        session: &mut Session,
        mut transaction: Box<Transaction>,
    ) -> Checked<Option<Wish>> {
        let rests = transaction.core.rests_on_open(&self.history);
        let partner = self.reader_beside(no, session).filter(|_| !rests);
        let pair = match partner {
            Some(index) => self.place_both(no, session, &mut transaction, index)?,
            None => None,
        };
        let Some((evidence, stamp)) = pair else {
            let Some(resident) = &self.nodes[no.0].resident else {
                return Ok(None);
            };
            let context = self.context(no, session.home);
            let wish = session.commit(transaction, &resident.cache, &context)?;
            return self.settle_wish(no, session, wish);
        };
        self.has_read(no, session, &transaction, (evidence, stamp))?;
        Ok(Some(self.think()))
    }

    /// Places what two sessions of one program have read at two homes at one stamp, if that can be. The neighbour is done then.
    fn place_both(
        &mut self,
        no: NodeNo,
        session: &Session,
        transaction: &mut Transaction,
        index: usize,
    ) -> Checked<Option<(Position, Stamp)>> {
        let own = self.stamp_of_own(transaction);
        let beside = self.stamp_of_own_beside(no, index);
        let mono = self.nodes[no.0].now(self.now).mono;
        let Some(resident) = &mut self.nodes[no.0].resident else {
            return Ok(None);
        };
        let Ok(here) = transaction.core.read_point(&resident.cache, session.home) else {
            return Ok(None);
        };
        if transaction
            .core
            .check_staleness(&resident.cache, mono)
            .is_err()
        {
            return Ok(None);
        }
        let other = &mut resident.sessions[index];
        other.stamp_floor = other.stamp_floor.max(beside);
        let Some(there) = other.reader(&resident.cache) else {
            return Ok(None);
        };
        let floor = own.max(session.stamp_floor).max(other.stamp_floor);
        let Ok(stamp) = snapshot::place(&[here, there], floor) else {
            return Ok(None);
        };
        self.counts.answered("readings of several homes");
        let mut neighbour = resident.sessions.swap_remove(index);
        let ended = match neighbour.paired() {
            Some(own) => self.has_read(no, &mut neighbour, &own, (there.position, stamp)),
            None => Ok(()),
        };
        if let Some(resident) = &mut self.node(no).resident {
            resident.sessions.push(neighbour);
            let last = resident.sessions.len() - 1;
            resident.sessions.swap(index, last);
        }
        ended?;
        Ok(Some((here.position, stamp)))
    }

    fn stamp_of_own_beside(&self, no: NodeNo, index: usize) -> Stamp {
        let resident = self.nodes[no.0].resident.as_ref();
        let other = resident.and_then(|resident| resident.sessions[index].pairing());
        other.map_or_else(Stamp::default, |own| self.stamp_of_own(own))
    }

    /// The highest stamp of those that were shown to it before they were answered.
    fn stamp_of_own(&self, transaction: &Transaction) -> Stamp {
        let own = transaction.core.reads().built_on().iter();
        let stamps = own.map(|(_, id)| self.history.stamp(*id));
        stamps.max().unwrap_or_default()
    }

    /// A neighbour in the same program that has read at another home, and waits for somebody.
    fn reader_beside(&mut self, no: NodeNo, session: &Session) -> Option<usize> {
        let staleness_ms_max = self.village.habits.staleness_ms_max;
        let mono = self.nodes[no.0].now(self.now).mono;
        let history = &self.history;
        let resident = self.nodes[no.0].resident.as_mut()?;
        let cache = &resident.cache;
        let is_one = |other: &mut Session| {
            let heard = cache.heard(other.home).unwrap_or_default();
            let waits = other
                .pairing()
                .is_some_and(|own| own.core.rests_on_open(history));
            other.home != session.home
                && !waits
                && mono.since(heard) <= staleness_ms_max
                && other.reader(cache).is_some()
        };
        resident.sessions.iter_mut().position(is_one)
    }

    /// It has committed, as of its evidence, at a stamp.
    fn has_read(
        &mut self,
        no: NodeNo,
        session: &mut Session,
        transaction: &Transaction,
        (evidence, stamp): (Position, Stamp),
    ) -> Checked {
        self.count_transaction(transaction);
        checks::reads::read_only(self, no, session, transaction, evidence)?;
        checks::reads::stands(session, stamp)?;
        let seen = transaction.seen.keys();
        self.history.readers.push(Reader {
            stamp,
            seen: seen
                .map(|(home, object)| (*home, *object, evidence))
                .collect(),
        });
        session.read_only_done(transaction, evidence, stamp);
        self.counts.read_only += 1;
        Ok(())
    }

    /// Looks for a neighbour in the same program whose transaction at another home is to be one
    /// with this session's.
    fn join(&mut self, no: NodeNo, session: &mut Session) -> Checked<Option<Rc<Asked>>> {
        let Some(resident) = &mut self.nodes[no.0].resident else {
            return Ok(None);
        };
        let cache = &resident.cache;
        let mut others = resident.sessions.iter_mut();
        let joint = others.find_map(|other| Some((session.join(other, cache)?, other)));
        let Some((asked, other)) = joint else {
            return Ok(None);
        };
        self.counts.answered("transactions over several homes");
        self.history.stage(other);
        Ok(Some(asked))
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

/// What a session commits comes after all that it had seen when it asked.
fn check_place(waiting: &Waiting, answer: &Response) -> Checked {
    match answer {
        Response::Outcome(_, Outcome::Committed { position, .. }, _) if *position > Position(0) => {
            checks::reads::session(waiting.floor, *position, "was told to have committed at")
        }
        _ => Ok(()),
    }
}
