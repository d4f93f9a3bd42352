//! Outcomes of commits, remembered for a bounded window (rule 11).

use crate::edge::shares::Shares;
use crate::home::delegations::Delegated;
use crate::home::registrars::{Group, Newcomer, Place, Registrars};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::{COMMITS_IN_FLIGHT_MAX, OUTCOME_BYTES, OUTCOMES_PER_NAME_MIN};
use thorp_model::planted::Bug;
use thorp_model::records::{CarrierRecord, DelegationRecord, MemberRecord, OutcomeRecord};
use thorp_model::{
    CommitId, DelegationNo, Incarnation, MemberId, NameId, Op, Outcome, Position, Refusal,
    Registration, Stamp, Table, planted, records,
};

#[derive(Debug)]
struct Remembered {
    /// The member, and who brought it.
    by: Newcomer,
    /// The sites that speak for it.
    delegated: Delegated,
    outcomes: BTreeMap<u64, Outcome>,
    /// Sequences up to here are below the window: never executed.
    below: u64,
    used: u64,
}

impl Remembered {
    fn name(&self) -> NameId {
        self.by.member.name()
    }
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
    /// Its registration is of an earlier incarnation: it may have ended in a history that is lost. Never executed.
    Left,
}

/// The outcomes of all registered members.
///
/// `registrars` counts the registrations in `members`, each for its name and for its carrier. `of_names` counts their
/// outcomes for their names.
#[derive(Debug)]
pub(in crate::home) struct Outcomes {
    members: BTreeMap<Registration, Remembered>,
    by_member: BTreeMap<MemberId, Registration>,
    registrars: Registrars,
    of_names: Shares<NameId>,
    uses: u64,
    window: u64,
    members_max: usize,
    /// All registrations of this incarnation lie above (rule R9).
    floor: Registration,
}

impl Outcomes {
    /// Remembers `window` outcomes of each of `members_max` members.
    pub(in crate::home) fn new(window: u64, members_max: usize, incarnation: Incarnation) -> Self {
        Outcomes {
            members: BTreeMap::new(),
            by_member: BTreeMap::new(),
            registrars: Registrars::default(),
            of_names: Shares::default(),
            uses: 0,
            window: window.max(1),
            members_max: members_max.max(1),
            floor: Registration(incarnation.floor_64()),
        }
    }

    /// A member's registration.
    pub(in crate::home) fn registration(&self, member: MemberId) -> Option<Registration> {
        self.by_member.get(&member).copied()
    }

    /// Whether a registration is of an earlier incarnation. Its outcomes are remembered, and nothing new is executed
    /// under it: the member may have acted under it in a history that is lost.
    pub(in crate::home) fn is_left(&self, registration: Registration) -> bool {
        registration <= self.floor
            && self.floor > Registration(0)
            && !planted::is(Bug::LeftExecuted)
    }

    /// The name of a registered member.
    pub(in crate::home) fn name_of(&self, registration: Registration) -> Option<NameId> {
        let remembered = self.members.get(&registration);
        remembered.map(|remembered| remembered.by.member.name())
    }

    /// The sites that speak for a member, if it is registered.
    pub(in crate::home) fn delegated(&self, member: MemberId) -> Option<&Delegated> {
        let remembered = self.members.get(self.by_member.get(&member)?)?;
        Some(&remembered.delegated)
    }

    /// A registered member has named other sites. Its number is durable before the answer is sent.
    pub(in crate::home) fn delegate(
        &mut self,
        registration: Registration,
        delegated: Delegated,
        ops: &mut Vec<Op>,
    ) {
        let Some(remembered) = self.members.get_mut(&registration) else {
            return;
        };
        if delegated.number() != remembered.delegated.number() {
            let number = delegated.number();
            let key = records::delegation_key(registration);
            ops.push(records::put(Table::Meta, key, &DelegationRecord { number }));
        }
        remembered.delegated = delegated;
    }

    /// Takes the number of a member's last delegation from the store.
    pub(in crate::home) fn recover_delegation(
        &mut self,
        registration: Registration,
        number: DelegationNo,
    ) {
        if let Some(remembered) = self.members.get_mut(&registration) {
            remembered.delegated = Delegated::to_nobody(remembered.by.member, number);
        }
    }

    /// Registered members.
    pub(in crate::home) fn len(&self) -> usize {
        self.members.len()
    }

    /// Where a member can be registered, if it can be: some may not be forgotten.
    pub(in crate::home) fn place_for(
        &self,
        newcomer: Newcomer,
        may_go: impl Fn(Registration) -> bool,
    ) -> Option<Place> {
        if planted::is(Bug::OthersForgotten) {
            return match self.members.len() < self.members_max {
                true => Some(Place::Free),
                false => self.longest_silent(|r, _| may_go(r)).map(Place::Of),
            };
        }
        let groups = self.registrars.who_yields(newcomer, self.members_max);
        let Some(groups) = groups else {
            return Some(Place::Free);
        };
        let mut groups = groups.into_iter();
        let yields = |group: Group| self.longest_silent(|r, by| may_go(r) && group.has(by));
        groups.find_map(yields).map(Place::Of)
    }

    /// Registers a member, in the place of one that is forgotten then.
    pub(in crate::home) fn register(
        &mut self,
        registration: Registration,
        newcomer: Newcomer,
        place: Place,
        ops: &mut Vec<Op>,
    ) {
        if let Place::Of(silent) = place {
            self.forget(silent, ops);
        }
        self.insert(registration, newcomer);
        let Newcomer { member, carrier } = newcomer;
        let record = MemberRecord { member };
        ops.push(records::put(
            Table::Meta,
            records::member_key(registration),
            &record,
        ));
        if carrier != member.name() {
            let key = records::carrier_key(registration);
            ops.push(records::put(Table::Meta, key, &CarrierRecord { carrier }));
        }
    }

    /// Takes from the store who brought a registration: it counts for that node, too.
    pub(in crate::home) fn recover_carrier(&mut self, registration: Registration, by: NameId) {
        if let Some(remembered) = self.members.get_mut(&registration) {
            self.registrars.remove(remembered.by);
            remembered.by.carrier = by;
            self.registrars.add(remembered.by);
        }
    }

    /// Takes a registration from the store, as one that its own edge brought.
    pub(in crate::home) fn recover(&mut self, registration: Registration, member: MemberId) {
        let carrier = member.name();
        self.insert(registration, Newcomer { member, carrier });
    }

    fn insert(&mut self, registration: Registration, by: Newcomer) {
        self.uses += 1;
        self.by_member.insert(by.member, registration);
        self.registrars.add(by);
        let remembered = Remembered {
            by,
            delegated: Delegated::to_nobody(by.member, DelegationNo(0)),
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
            let is_new = member.outcomes.insert(sequence, o).is_none();
            member.below = member.below.max(sequence.saturating_sub(self.window));
            self.of_names.take(Some(member.name()), u64::from(is_new));
        }
    }

    /// What is known of an id.
    pub(in crate::home) fn known(&mut self, registration: Registration, id: CommitId) -> Known {
        self.uses += 1;
        let uses = self.uses;
        let unknown = match self.is_left(registration) {
            true => Known::Left,
            false => Known::BelowWindow,
        };
        let Some(member) = self.members.get_mut(&registration) else {
            return unknown;
        };
        if member.by.member != id.member {
            return unknown;
        }
        member.used = uses;
        match member.outcomes.get(&id.sequence) {
            Some(outcome) => Known::Ended(outcome.clone()),
            None if unknown == Known::Left => Known::Left,
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
        let is_new = member.outcomes.insert(id.sequence, outcome).is_none();
        self.of_names.take(Some(member.name()), u64::from(is_new));
        let below = id.sequence.saturating_sub(self.window);
        self.forget_up_to(registration, below, ops);
    }

    /// Forgets outcomes of a name that has more of them than the store has space for after that (rule R7): first those of
    /// its processes that are silent longest, then the oldest of this one. What may be in flight stays known.
    pub(in crate::home) fn shed(
        &mut self,
        registration: Registration,
        free: Option<u64>,
        ops: &mut Vec<Op>,
    ) {
        let Some(name) = self.name_of(registration) else {
            return;
        };
        let most = free.map_or(u64::MAX, |free| free / OUTCOME_BYTES);
        let most = most.max(OUTCOMES_PER_NAME_MIN);
        while self.of_names.of(name) > most {
            let silent = self.longest_silent(|other, by| {
                other != registration && by.member.name() == name && self.has_outcomes(other)
            });
            let (whose, kept) = match silent {
                Some(silent) => (silent, 0),
                None => (registration, COMMITS_IN_FLIGHT_MAX as u64),
            };
            let last = self.last_sequence(whose);
            if !self.forget_up_to(whose, last.saturating_sub(kept), ops) {
                return;
            }
        }
    }

    fn has_outcomes(&self, registration: Registration) -> bool {
        let remembered = self.members.get(&registration);
        remembered.is_some_and(|remembered| !remembered.outcomes.is_empty())
    }

    fn last_sequence(&self, registration: Registration) -> u64 {
        let remembered = self.members.get(&registration);
        let last = remembered.and_then(|remembered| remembered.outcomes.last_key_value());
        last.map(|(sequence, _)| *sequence).unwrap_or_default()
    }

    /// Sequences up to here are below the window from now on. False if none of them was remembered.
    fn forget_up_to(&mut self, registration: Registration, below: u64, ops: &mut Vec<Op>) -> bool {
        let Some(member) = self.members.get_mut(&registration) else {
            return false;
        };
        member.below = member.below.max(below);
        let mut forgotten = 0;
        while let Some(first) = member.outcomes.first_entry() {
            if *first.key() > member.below {
                break;
            }
            let key = records::pair_key(registration, *first.key());
            ops.push(records::delete(Table::Outcomes, key));
            first.remove();
            forgotten += 1;
        }
        self.of_names.give_back(Some(member.name()), forgotten);
        forgotten > 0
    }

    fn longest_silent(&self, is: impl Fn(Registration, Newcomer) -> bool) -> Option<Registration> {
        let members = self.members.iter();
        let by_use = members.filter(|(registration, member)| is(**registration, member.by));
        by_use
            .map(|(registration, member)| (member.used, *registration))
            .min()
            .map(|(_, registration)| registration)
    }

    fn forget(&mut self, registration: Registration, ops: &mut Vec<Op>) {
        let Some(member) = self.members.remove(&registration) else {
            return;
        };
        // It may have registered anew in a later incarnation.
        if self.by_member.get(&member.by.member) == Some(&registration) {
            self.by_member.remove(&member.by.member);
        }
        self.registrars.remove(member.by);
        let kept = member.outcomes.len() as u64;
        self.of_names.give_back(Some(member.name()), kept);
        let key = records::member_key(registration);
        ops.push(records::delete(Table::Meta, key));
        if member.delegated.number() != DelegationNo(0) {
            let key = records::delegation_key(registration);
            ops.push(records::delete(Table::Meta, key));
        }
        if member.by.carrier != member.by.member.name() {
            let key = records::carrier_key(registration);
            ops.push(records::delete(Table::Meta, key));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const ANNA: NameId = NameId(1);
    const BEN: NameId = NameId(2);
    const MALLORY: NameId = NameId(66);
    const SITE: NameId = NameId(100);
    const EVIL_SITE: NameId = NameId(666);
    const MOST: usize = 16;

    struct Table {
        outcomes: Outcomes,
        last: Registration,
    }

    impl Table {
        fn new() -> Self {
            Table {
                outcomes: Outcomes::new(64, MOST, Incarnation::default()),
                last: Registration(0),
            }
        }

        /// A process of a name comes by the edge of a carrier. None: the home is busy.
        fn register(&mut self, name: NameId, carrier: NameId) -> Option<MemberId> {
            self.last = self.last.next();
            let member = MemberId::new(name, self.last.0);
            let newcomer = Newcomer { member, carrier };
            let place = self.outcomes.place_for(newcomer, |_| true)?;
            self.outcomes
                .register(self.last, newcomer, place, &mut Vec::new());
            assert!(self.outcomes.len() <= MOST);
            Some(member)
        }

        fn remembers(&self, member: Option<MemberId>) -> bool {
            member.is_some_and(|member| self.outcomes.registration(member).is_some())
        }
    }

    #[test]
    fn a_name_that_floods_forgets_its_own() {
        let mut table = Table::new();
        let (anna, ben) = (table.register(ANNA, ANNA), table.register(BEN, SITE));
        let first = table.register(MALLORY, MALLORY);
        for _ in 0..1_000 {
            let last = table.register(MALLORY, MALLORY);
            assert!(table.remembers(last));
        }
        assert!(table.remembers(anna) && table.remembers(ben));
        assert!(!table.remembers(first) && table.outcomes.len() < MOST);
        // Also beside her flood there is space for more of the others.
        let more = [table.register(ANNA, ANNA), table.register(BEN, SITE)];
        assert!(table.remembers(anna) && table.remembers(more[0]) && table.remembers(more[1]));
    }

    /// A site can make up names until members sign their registrations (rule R2).
    #[test]
    fn a_site_that_makes_up_names_forgets_what_it_brought() {
        let mut table = Table::new();
        let (anna, ben) = (table.register(ANNA, ANNA), table.register(BEN, SITE));
        for made_up in 1_000..2_000 {
            table.register(NameId(made_up), EVIL_SITE);
        }
        assert!(table.remembers(anna) && table.remembers(ben));
        assert!(table.outcomes.len() <= 2 + MOST / 2);
        // In another's name it forgets the made-up processes that it brought, too.
        for _ in 0..1_000 {
            table.register(ANNA, EVIL_SITE);
        }
        assert!(table.remembers(anna) && table.remembers(ben));
    }

    #[test]
    fn a_full_table_has_a_place_for_a_new_name_and_each_name_keeps_one() {
        let mut table = Table::new();
        // Each of them takes half of what is left.
        for name in [1, 2, 3, 4] {
            for _ in 0..MOST {
                table.register(NameId(name), NameId(name));
            }
        }
        let singles: Vec<_> = (10..22)
            .map(|name| table.register(NameId(name), NameId(name)))
            .collect();
        assert!(singles.iter().all(|single| table.remembers(*single)));
        assert_eq!(table.outcomes.len(), MOST);
        // Of sixteen names each has one, and forgets that first.
        let again = table.register(NameId(12), NameId(12));
        assert!(table.remembers(again) && !table.remembers(singles[2]));
        // Another name has to come in: the longest silent yields.
        let last = table.register(MALLORY, MALLORY);
        assert!(table.remembers(last) && table.outcomes.len() == MOST);
    }

    #[test]
    fn two_sites_that_fill_the_table_yield_to_new_names() {
        let mut table = Table::new();
        let anna = table.register(ANNA, ANNA);
        for made_up in 1_000..2_000 {
            let carrier = [EVIL_SITE, SITE][(made_up % 2) as usize];
            table.register(NameId(made_up), carrier);
        }
        assert_eq!(table.outcomes.len(), MOST);
        let (ben, mallory) = (table.register(BEN, BEN), table.register(MALLORY, MALLORY));
        assert!(table.remembers(ben) && table.remembers(mallory) && table.remembers(anna));
    }

    /// Ends so many commits of a member, where the store has so much space. Returns how many outcomes its name has then.
    fn end_commits(table: &mut Table, member: MemberId, last: u64, free: u64) -> u64 {
        let outcomes = &mut table.outcomes;
        let registration = outcomes.registration(member).expect("registered");
        for sequence in 1..=last {
            let id = CommitId { member, sequence };
            outcomes.record(registration, id, unknown(), &mut Vec::new());
            outcomes.shed(registration, Some(free), &mut Vec::new());
        }
        outcomes.of_names.of(member.name())
    }

    #[test]
    fn a_name_has_no_more_outcomes_than_it_leaves_space_for() {
        let mut table = Table::new();
        table.outcomes.window = 4 * OUTCOMES_PER_NAME_MIN;
        let many = 2 * OUTCOMES_PER_NAME_MIN;
        let space = many * OUTCOME_BYTES;
        let anna = table.register(ANNA, ANNA).expect("a place");
        assert_eq!(end_commits(&mut table, anna, many, space), many);
        let [first, second] = [(); 2].map(|()| table.register(MALLORY, MALLORY).expect("a place"));
        assert_eq!(end_commits(&mut table, first, many, space), many);
        // The silent process yields, and its ids are not executed again.
        assert!(end_commits(&mut table, second, 1, space) <= many);
        let registration = table.outcomes.registration(first).expect("registered");
        let id = |member, sequence| CommitId { member, sequence };
        let known = table.outcomes.known(registration, id(first, many));
        assert_eq!(known, Known::BelowWindow);
        // With no space at all some are kept, the last ones.
        let kept = end_commits(&mut table, second, many, 0);
        assert!((COMMITS_IN_FLIGHT_MAX as u64..=OUTCOMES_PER_NAME_MIN).contains(&kept));
        let registration = table.outcomes.registration(second).expect("registered");
        let known = table.outcomes.known(registration, id(second, many));
        assert_eq!(known, Known::Ended(unknown()));
        assert_eq!(table.outcomes.of_names.of(ANNA), many);
        // Who is forgotten as a whole gives back what it had.
        table.outcomes.forget(registration, &mut Vec::new());
        assert_eq!(table.outcomes.of_names.of(MALLORY), 0);
    }

    #[test]
    fn what_a_vote_in_doubt_names_is_not_forgotten() {
        let mut table = Table::new();
        for _ in 0..MOST {
            table.register(MALLORY, MALLORY);
        }
        let newcomer = Newcomer {
            member: MemberId::new(MALLORY, 0),
            carrier: MALLORY,
        };
        assert_eq!(table.outcomes.place_for(newcomer, |_| false), None);
        let oldest = table.outcomes.members.keys().min().copied();
        let place = table.outcomes.place_for(newcomer, |_| true);
        assert_eq!(place, oldest.map(Place::Of));
    }
}
