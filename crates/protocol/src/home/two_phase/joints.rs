//! The transactions over several homes that this home remembers after they have committed (rule R9).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Bound;
use thorp_model::limits::JOINT_KEPT_MAX;
use thorp_model::planted::Bug;
use thorp_model::records::{BelowRecord, JointRecord};
use thorp_model::{CommitId, HomeId, NameId, Op, Stamp, Table, planted, records};

/// The transactions over several homes in which a part of this home has committed, the oldest first.
///
/// It holds at most `kept_max`. Above that the oldest one goes of the name that has the most: so no name makes the home
/// forget others that have fewer. Each transaction is in `by_commit`, `in_order` and `by_name`, and each name is in
/// `sizes` with how many it has.
#[derive(Debug)]
pub(in crate::home) struct Joints {
    by_commit: BTreeMap<CommitId, JointRecord>,
    in_order: BTreeSet<(Stamp, CommitId)>,
    by_name: BTreeMap<NameId, BTreeSet<(Stamp, CommitId)>>,
    sizes: BTreeSet<(usize, NameId)>,
    /// Up to here transactions of a name may be forgotten; only of names that are in `by_name`.
    below: BTreeMap<NameId, Stamp>,
    /// The same of all names.
    since: Stamp,
    kept_max: usize,
}

impl Default for Joints {
    fn default() -> Self {
        Joints::new(JOINT_KEPT_MAX)
    }
}

impl Joints {
    fn new(kept_max: usize) -> Self {
        Joints {
            by_commit: BTreeMap::new(),
            in_order: BTreeSet::new(),
            by_name: BTreeMap::new(),
            sizes: BTreeSet::new(),
            below: BTreeMap::new(),
            since: Stamp::default(),
            kept_max,
        }
    }

    /// How many there are.
    pub(in crate::home) fn len(&self) -> usize {
        self.by_commit.len()
    }

    /// Whether a transaction is remembered.
    pub(in crate::home) fn has(&self, commit: CommitId) -> bool {
        self.by_commit.contains_key(&commit)
    }

    /// Up to which stamp transactions of any name may be forgotten.
    pub(in crate::home) fn since(&self) -> Stamp {
        self.below.values().copied().fold(self.since, Stamp::max)
    }

    /// Whether a transaction may be forgotten.
    pub(in crate::home) fn may_be_forgotten(&self, stamp: Stamp, commit: CommitId) -> bool {
        let below = self.below.get(&commit.member.name());
        stamp <= below.copied().unwrap_or_default().max(self.since)
    }

    /// Those after one of them, in their order.
    pub(in crate::home) fn after(
        &self,
        after: Option<(Stamp, CommitId)>,
    ) -> impl Iterator<Item = (CommitId, &JointRecord)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = self.in_order.range((from, Bound::Unbounded));
        range.filter_map(|(_, commit)| Some((*commit, self.by_commit.get(commit)?)))
    }

    /// All homes of all transactions.
    pub(in crate::home) fn homes(&self) -> BTreeSet<HomeId> {
        let records = self.by_commit.values();
        records.flat_map(|joint| &joint.homes).copied().collect()
    }

    /// A part of a transaction over several homes commits here. The operations go into the same batch.
    pub(in crate::home) fn remember(
        &mut self,
        commit: CommitId,
        record: JointRecord,
        ops: &mut Vec<Op>,
    ) {
        if self.has(commit) {
            return;
        }
        if !planted::is(Bug::JointsForgotten) {
            let key = records::joint_key(commit);
            ops.push(records::put(Table::Meta, key, &record));
        }
        self.insert(commit, record);
        while self.len() > self.kept_max {
            self.forget_one(ops);
        }
    }

    /// Takes a transaction from the store.
    pub(in crate::home) fn recover(&mut self, commit: CommitId, record: JointRecord) {
        self.insert(commit, record);
    }

    /// Takes from the store how far back a name's transactions reach.
    pub(in crate::home) fn recover_below(&mut self, name: NameId, below: BelowRecord) {
        self.below.insert(name, below.stamp);
    }

    /// Takes from the store how far back all transactions reach.
    pub(in crate::home) fn recover_since(&mut self, since: BelowRecord) {
        self.since = since.stamp;
    }

    /// The store is of a program that remembered none: nothing is known of what it has promised.
    pub(in crate::home) fn begin_at(&mut self, since: Stamp) -> Op {
        self.since = since;
        self.put_since()
    }

    fn put_since(&self) -> Op {
        let record = BelowRecord { stamp: self.since };
        records::put(Table::Meta, records::JOINTS_KEY.to_vec(), &record)
    }

    fn insert(&mut self, commit: CommitId, record: JointRecord) {
        let (name, place) = (commit.member.name(), (record.stamp, commit));
        let of_name = self.by_name.entry(name).or_default();
        self.sizes.remove(&(of_name.len(), name));
        of_name.insert(place);
        self.sizes.insert((of_name.len(), name));
        self.in_order.insert(place);
        self.by_commit.insert(commit, record);
    }

    /// Forgets the oldest one of the name that has the most.
    fn forget_one(&mut self, ops: &mut Vec<Op>) {
        let Some((size, name)) = self.sizes.pop_last() else {
            return;
        };
        let oldest = self.by_name.get_mut(&name).and_then(BTreeSet::pop_first);
        if let Some((stamp, commit)) = oldest {
            self.in_order.remove(&(stamp, commit));
            self.by_commit.remove(&commit);
            ops.push(records::delete(Table::Meta, records::joint_key(commit)));
            let below = self.below.entry(name).or_default();
            *below = stamp.max(*below);
        }
        if size > 1 {
            self.sizes.insert((size - 1, name));
            let stamp = self.below.get(&name).copied().unwrap_or_default();
            let key = records::below_key(name);
            ops.push(records::put(Table::Meta, key, &BelowRecord { stamp }));
        } else {
            self.forget_name(name, ops);
        }
    }

    /// A name has none any more: what is known of its past counts for all names.
    fn forget_name(&mut self, name: NameId, ops: &mut Vec<Op>) {
        self.by_name.remove(&name);
        let below = self.below.remove(&name).unwrap_or_default();
        self.since = self.since.max(below);
        ops.push(records::delete(Table::Meta, records::below_key(name)));
        ops.push(self.put_since());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::MemberId;

    const ANNA: NameId = NameId(1);
    const MALLORY: NameId = NameId(66);

    fn at(clock: u64) -> Stamp {
        Stamp {
            clock,
            home: HomeId(1),
        }
    }

    fn id(name: NameId, sequence: u64) -> CommitId {
        CommitId {
            member: MemberId::new(name, 1),
            sequence,
        }
    }

    fn remember(joints: &mut Joints, name: NameId, clock: u64) -> Vec<Op> {
        let mut ops = Vec::new();
        let record = JointRecord {
            stamp: at(clock),
            homes: vec![HomeId(1), HomeId(2)],
        };
        joints.remember(id(name, clock), record, &mut ops);
        ops
    }

    #[test]
    fn the_oldest_goes_of_the_name_that_has_the_most() {
        let mut joints = Joints::new(4);
        remember(&mut joints, ANNA, 1);
        remember(&mut joints, ANNA, 2);
        for clock in 3..100 {
            remember(&mut joints, MALLORY, clock);
        }
        assert!(joints.has(id(ANNA, 1)) && joints.has(id(ANNA, 2)));
        assert!(joints.has(id(MALLORY, 98)) && joints.has(id(MALLORY, 99)));
        assert_eq!(joints.len(), 4);
        assert!(joints.may_be_forgotten(at(97), id(MALLORY, 97)));
        assert!(!joints.may_be_forgotten(at(98), id(MALLORY, 98)));
        assert!(!joints.may_be_forgotten(at(50), id(ANNA, 50)));
        assert_eq!(joints.since(), at(97));
    }

    #[test]
    fn what_is_known_of_a_name_that_has_none_counts_for_all() {
        let mut joints = Joints::new(1);
        remember(&mut joints, MALLORY, 1);
        let ops = remember(&mut joints, ANNA, 2);
        assert!(!joints.has(id(MALLORY, 1)) && joints.has(id(ANNA, 2)));
        assert!(joints.may_be_forgotten(at(1), id(ANNA, 1)));
        assert!(!joints.may_be_forgotten(at(2), id(MALLORY, 2)));
        assert!(joints.below.is_empty() && joints.by_name.len() == 1);
        assert_eq!(ops.len(), 4, "one comes, one goes, with its name");
    }

    #[test]
    fn one_that_comes_again_is_remembered_once() {
        let mut joints = Joints::new(4);
        assert_eq!(remember(&mut joints, ANNA, 1).len(), 1);
        assert_eq!(remember(&mut joints, ANNA, 1).len(), 0);
        assert_eq!(joints.len(), 1);
    }

    #[test]
    fn they_are_listed_page_by_page() {
        let mut joints = Joints::new(4);
        for clock in [3, 1, 2] {
            remember(&mut joints, ANNA, clock);
        }
        let listed = |after| -> Vec<u64> {
            let all = joints.after(after);
            all.map(|(_, joint)| joint.stamp.clock).collect()
        };
        assert_eq!(listed(None), [1, 2, 3]);
        assert_eq!(listed(Some((at(2), id(ANNA, 2)))), [3]);
        assert_eq!(joints.homes().len(), 2);
    }
}
