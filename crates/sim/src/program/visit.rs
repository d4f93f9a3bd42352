//! Transactions over several homes: a session's transaction takes other sessions of its program along, which are its guests,
//! and does at their homes what they would have done (rule 10).

use super::action::Operation;
use super::guest::Guest;
use super::session::{Phase, Session};
use super::transaction::Transaction;
use crate::time::At;
use crate::village::Habits;
use std::collections::VecDeque;

impl Session {
    /// The number of this session in its village.
    pub fn number(&self) -> u32 {
        self.asker.0
    }

    /// Whether another session's transaction may take it along.
    pub fn may_visit(&self, host: &Session) -> bool {
        let is_new = self.home != host.home && host.guests.iter().all(|g| g.home != self.home);
        is_new && matches!(self.phase, Phase::Resting)
    }

    /// It goes along with another session's transaction, and rests until that is over: what it does there.
    pub fn visit(
        &mut self,
        host: u32,
        read_only: bool,
        habits: &Habits,
        now: At,
    ) -> (Guest, VecDeque<Operation>) {
        self.phase = Phase::Visiting(host);
        self.wait += 1;
        let (actions, _) = self.draw_actions(read_only, habits, now);
        let guest = Guest {
            home: self.home,
            known: self.known.clone(),
            staged: self.staged.clone(),
            floor: self.floor,
            stamp_floor: self.stamp_floor,
        };
        (guest, actions)
    }

    /// Its transaction takes a guest along, and does the guest's actions among its own: as many as one of both would have done.
    /// It stands no earlier than the guest's session does.
    pub fn receive(&mut self, guest: Guest, actions: VecDeque<Operation>) {
        let Phase::Running(transaction) = &mut self.phase else {
            return;
        };
        transaction.homes.push(guest.home);
        transaction.floors.insert(guest.home, guest.floor);
        transaction.floor = transaction.floor.max(guest.stamp_floor);
        transaction.core.raise_floor(guest.stamp_floor);
        let mut theirs = actions.into_iter().map(|action| (guest.home, action));
        let own = std::mem::take(&mut transaction.actions);
        let most = own.len().max(theirs.len());
        for action in own {
            if self.prng.percent(50) {
                transaction.actions.extend(theirs.next());
            }
            transaction.actions.push_back(action);
        }
        transaction.actions.extend(theirs);
        transaction.actions.truncate(most);
        self.guests.push(guest);
    }

    /// Whether it is another session's guest.
    pub fn visits(&self, host: u32) -> bool {
        matches!(self.phase, Phase::Visiting(of) if of == host)
    }

    /// Whether others take part in its transaction.
    pub fn has_guests(&self) -> bool {
        !self.guests.is_empty()
    }

    /// Its transaction is over, and its guests may go: whether it had any.
    pub fn dismiss(&mut self) -> bool {
        let is_over = self.transaction().is_none() && self.waiting().is_none();
        is_over && !std::mem::take(&mut self.guests).is_empty()
    }

    /// The session that it went along with has no transaction any more.
    pub fn come_home(&mut self) {
        self.phase = Phase::Resting;
        self.wait += 1;
    }

    /// The transaction that it runs.
    pub fn transaction(&self) -> Option<&Transaction> {
        match &self.phase {
            Phase::Running(own) | Phase::Fetching(own) | Phase::Promising(own, _) => Some(own),
            _ => None,
        }
    }
}
