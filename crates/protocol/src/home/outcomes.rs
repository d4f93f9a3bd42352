//! Outcomes of commits, remembered for a bounded window (rule 11).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::records::{MemberRecord, OutcomeRecord};
use thorp_model::{
    CommitId, MemberId, Op, Outcome, Position, Refusal, Registration, Stamp, Table, records,
};

#[derive(Debug)]
struct Remembered {
    member: MemberId,
    outcomes: BTreeMap<u64, Outcome>,
    /// Sequences up to here are below the window: never executed.
    below: u64,
    used: u64,
}

/// What is known of a commit's id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::home) enum Known {
    /// Never seen: it may be executed.
    New,
    /// It ended so.
    Ended(Outcome),
    /// Its outcome was forgotten, or its member: never executed.
    BelowWindow,
}

/// The outcomes of all registered members.
#[derive(Debug)]
pub(in crate::home) struct Outcomes {
    members: BTreeMap<Registration, Remembered>,
    by_member: BTreeMap<MemberId, Registration>,
    uses: u64,
    window: u64,
    members_max: usize,
}

impl Outcomes {
    /// Remembers `window` outcomes of each of `members_max` members.
    pub(in crate::home) fn new(window: u64, members_max: usize) -> Self {
        Outcomes {
            members: BTreeMap::new(),
            by_member: BTreeMap::new(),
            uses: 0,
            window: window.max(1),
            members_max: members_max.max(1),
        }
    }

    /// A member's registration.
    pub(in crate::home) fn registration(&self, member: MemberId) -> Option<Registration> {
        self.by_member.get(&member).copied()
    }

    /// Registered members.
    pub(in crate::home) fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether one more member can be registered.
    pub(in crate::home) fn has_space(&self, may_go: impl Fn(Registration) -> bool) -> bool {
        self.members.len() < self.members_max || self.longest_silent(may_go).is_some()
    }

    /// Registers a member. At the limit the longest silent member that may be
    /// forgotten is: the operations say so, and tell which one.
    pub(in crate::home) fn register(
        &mut self,
        registration: Registration,
        member: MemberId,
        ops: &mut Vec<Op>,
        may_go: impl Fn(Registration) -> bool,
    ) -> Option<Registration> {
        let forgotten = (self.members.len() >= self.members_max)
            .then(|| self.longest_silent(may_go))
            .flatten();
        if let Some(silent) = forgotten {
            self.forget(silent, ops);
        }
        self.recover(registration, member);
        let record = MemberRecord { member };
        ops.push(records::put(
            Table::Meta,
            records::member_key(registration),
            &record,
        ));
        forgotten
    }

    /// Takes a registration from the store.
    pub(in crate::home) fn recover(&mut self, registration: Registration, member: MemberId) {
        self.uses += 1;
        self.by_member.insert(member, registration);
        let remembered = Remembered {
            member,
            outcomes: BTreeMap::new(),
            below: 0,
            used: self.uses,
        };
        self.members.insert(registration, remembered);
    }

    /// Takes an outcome from the store.
    pub(in crate::home) fn recover_outcome(
        &mut self,
        registration: Registration,
        sequence: u64,
        o: Outcome,
    ) {
        if let Some(member) = self.members.get_mut(&registration) {
            member.outcomes.insert(sequence, o);
            member.below = member.below.max(sequence.saturating_sub(self.window));
        }
    }

    /// What is known of an id.
    pub(in crate::home) fn known(&mut self, registration: Registration, id: CommitId) -> Known {
        self.uses += 1;
        let uses = self.uses;
        let Some(member) = self.members.get_mut(&registration) else {
            return Known::BelowWindow;
        };
        if member.member != id.member {
            return Known::BelowWindow;
        }
        member.used = uses;
        match member.outcomes.get(&id.sequence) {
            Some(outcome) => Known::Ended(outcome.clone()),
            None if id.sequence <= member.below => Known::BelowWindow,
            None => Known::New,
        }
    }

    /// Where a commit of a registered member is, if it is known to be committed, and its stamp.
    pub(in crate::home) fn committed(&self, id: CommitId) -> Option<(Position, Stamp)> {
        let member = self.registration(id.member);
        let member = member.and_then(|registration| self.members.get(&registration));
        let outcome = member.and_then(|member| member.outcomes.get(&id.sequence));
        match outcome {
            Some(Outcome::Committed { position, stamp }) => Some((*position, *stamp)),
            _ => None,
        }
    }

    /// Remembers an outcome; the operations make it durable and forget what
    /// falls out of the window.
    pub(in crate::home) fn record(
        &mut self,
        registration: Registration,
        id: CommitId,
        outcome: Outcome,
        ops: &mut Vec<Op>,
    ) {
        let Some(member) = self.members.get_mut(&registration) else {
            return;
        };
        let key = records::pair_key(registration, id.sequence);
        let record = OutcomeRecord {
            outcome: outcome.clone(),
        };
        ops.push(records::put(Table::Outcomes, key, &record));
        member.outcomes.insert(id.sequence, outcome);
        member.below = member.below.max(id.sequence.saturating_sub(self.window));
        while let Some(first) = member.outcomes.first_entry() {
            if *first.key() > member.below {
                break;
            }
            let key = records::pair_key(registration, *first.key());
            ops.push(records::delete(Table::Outcomes, key));
            first.remove();
        }
    }

    fn longest_silent(&self, may_go: impl Fn(Registration) -> bool) -> Option<Registration> {
        let by_use = self.members.iter().map(|(r, member)| (member.used, *r));
        by_use
            .filter(|(_, r)| may_go(*r))
            .min()
            .map(|(_, registration)| registration)
    }

    fn forget(&mut self, registration: Registration, ops: &mut Vec<Op>) {
        let Some(member) = self.members.remove(&registration) else {
            return;
        };
        self.by_member.remove(&member.member);
        let key = records::member_key(registration);
        ops.push(records::delete(Table::Meta, key));
        for sequence in member.outcomes.keys() {
            let key = records::pair_key(registration, *sequence);
            ops.push(records::delete(Table::Outcomes, key));
        }
    }
}

/// The answer to what was forgotten: what became of it, nobody can tell.
pub(in crate::home) fn forgotten() -> Outcome {
    Outcome::Refused(Refusal::Forgotten)
}

/// The refusal of what is not known.
pub(in crate::home) fn unknown() -> Outcome {
    Outcome::Refused(Refusal::Unknown)
}
