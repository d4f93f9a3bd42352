//! Who has registered how many members, and who yields when the table is full (rules R2 and R7).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::{MemberId, NameId, Registration};

/// A member that is registered, or is about to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::home) struct Newcomer {
    pub(in crate::home) member: MemberId,
    /// The child by whose edge it registers: the member itself, or its site.
    pub(in crate::home) carrier: NameId,
}

/// Where a registration goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::home) enum Place {
    /// There is space.
    Free,
    /// This one is forgotten for it.
    Of(Registration),
}

/// Registrations of which one may have to yield.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::home) enum Group {
    /// Those of a name that this carrier brought.
    Brought(NameId, NameId),
    /// All of a name.
    Of(NameId),
    /// All that this carrier brought.
    Carried(NameId),
    /// All.
    Any,
}

impl Group {
    /// Whether a registration belongs to the group.
    pub(in crate::home) fn has(self, known: Newcomer) -> bool {
        let name = known.member.name();
        match self {
            Group::Brought(carrier, of) => known.carrier == carrier && name == of,
            Group::Of(of) => name == of,
            Group::Carried(carrier) => known.carrier == carrier,
            Group::Any => true,
        }
    }
}

/// The registrations of a home, counted.
///
/// A count is there if, and only if, it is not zero. All counts of `brought` together are as many
/// as those of `names`, and as those of `carriers`.
#[derive(Debug, Default)]
pub(in crate::home) struct Registrars {
    names: BTreeMap<NameId, usize>,
    carriers: BTreeMap<NameId, usize>,
    /// By carrier and name.
    brought: BTreeMap<(NameId, NameId), usize>,
    total: usize,
}

impl Registrars {
    /// Counts a registration.
    pub(in crate::home) fn add(&mut self, newcomer: Newcomer) {
        let (name, carrier) = (newcomer.member.name(), newcomer.carrier);
        *self.names.entry(name).or_default() += 1;
        *self.carriers.entry(carrier).or_default() += 1;
        *self.brought.entry((carrier, name)).or_default() += 1;
        self.total += 1;
    }

    /// A registration is forgotten.
    pub(in crate::home) fn remove(&mut self, known: Newcomer) {
        let (name, carrier) = (known.member.name(), known.carrier);
        take_one(&mut self.names, name);
        take_one(&mut self.carriers, carrier);
        take_one(&mut self.brought, (carrier, name));
        self.total -= 1;
    }

    /// The groups of which one registration yields to a newcomer, in this order. None: there is
    /// space.
    ///
    /// 1. No name has more registrations than it leaves free: it forgets its own.
    /// 2. No carrier brings more than half, whatever names sign for it: it forgets what it brought. So members of other
    ///    sites find space beside a site with very many.
    /// 3. A full table has a place for a new name, because another name has more than it leaves
    ///    free. The name that has the most yields, first of those that this carrier brought. A name
    ///    keeps its last one while any name, or any carrier, has two. Beyond that a name that never
    ///    comes back must not keep a new one out.
    pub(in crate::home) fn who_yields(&self, newcomer: Newcomer, max: usize) -> Option<Vec<Group>> {
        let (name, carrier) = (newcomer.member.name(), newcomer.carrier);
        let free = max.saturating_sub(self.total);
        let name_has_all = count_of(&self.names, name) >= free;
        let carrier_has_all = count_of(&self.carriers, carrier) >= max.div_ceil(2);
        if !name_has_all && !carrier_has_all {
            return None;
        }
        let mut groups = Vec::from([Group::Brought(carrier, name)]);
        if name_has_all {
            groups.push(Group::Of(name));
        }
        if carrier_has_all || free == 0 {
            let all = (carrier, NameId(u64::MIN))..=(carrier, NameId(u64::MAX));
            let most = several(self.brought.range(all));
            groups.extend(most.map(|(carrier, name)| Group::Brought(carrier, name)));
        }
        if carrier_has_all {
            groups.push(Group::Carried(carrier));
        }
        if free == 0 {
            groups.extend(several(self.names.iter()).map(Group::Of));
            let carried = several(self.carriers.iter()).map(Group::Carried);
            groups.push(carried.unwrap_or(Group::Any));
        }
        Some(groups)
    }
}

fn count_of<K: Ord>(counts: &BTreeMap<K, usize>, key: K) -> usize {
    counts.get(&key).copied().unwrap_or_default()
}

/// The key with the highest count, if that is more than one.
fn several<'a, K: Copy + 'a>(counts: impl Iterator<Item = (&'a K, &'a usize)>) -> Option<K> {
    let most = counts.max_by_key(|(_, count)| **count);
    most.filter(|(_, count)| **count > 1).map(|(key, _)| *key)
}

fn take_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}
