//! The room that a home keeps back on a full store, and what each name has of it (rule R7).
//!
//! Changes of rights, deletions, registrations and audit records take from it when the store has no space for anything
//! else. So a name that fills the store cannot keep others from taking its rights away.

use alloc::collections::{BTreeMap, VecDeque};
use thorp_model::limits::ROOM_NAMES_MAX;
use thorp_model::planted::Bug;
use thorp_model::{NameId, Position, planted};

/// What belongs to no name in particular: the home's own doing, and the names beyond [`ROOM_NAMES_MAX`] together.
pub(in crate::home) const NOBODY: NameId = NameId(0);

/// What a batch takes of the room for one name, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::home) struct Demand {
    /// All that it brings to the store.
    pub(in crate::home) brought: u64,
    /// What of that is still there when the changed pages are installed.
    pub(in crate::home) lasting: u64,
}

/// What one batch takes of the room, by name. An empty one takes nothing: there is space without it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::home) struct Bill(BTreeMap<NameId, Demand>);

impl Bill {
    /// A bill for one name.
    pub(in crate::home) fn of(name: NameId, demand: Demand) -> Self {
        Bill(BTreeMap::from([(name, demand)]))
    }

    /// The bill with one more demand.
    #[must_use]
    pub(in crate::home) fn with(mut self, name: NameId, demand: Demand) -> Self {
        let sum = self.0.entry(name).or_default();
        sum.brought = sum.brought.saturating_add(demand.brought);
        sum.lasting = sum.lasting.saturating_add(demand.lasting);
        self
    }

    /// Whether it takes nothing.
    pub(in crate::home) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn brought(&self) -> u64 {
        let demands = self.0.values();
        demands.fold(0, |sum, demand| sum.saturating_add(demand.brought))
    }
}

/// What a name has of the room, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// Taken until the store has space again.
    lasting: u64,
    /// Taken until the changed pages are installed.
    lent: u64,
}

/// The shares of the room by name.
///
/// Invariant: `shares` has at most [`ROOM_NAMES_MAX`] names and [`NOBODY`]. The `lent` bytes of a name are the sum of its
/// entries in `lent`, which has entries only for positions that the log still has. All of it is in memory: a home that
/// starts again counts anew.
#[derive(Debug, Default)]
pub(in crate::home) struct Room {
    shares: BTreeMap<NameId, Share>,
    lent: VecDeque<(Position, NameId, u64)>,
    /// Something was taken since the store had space: what can be installed makes space.
    is_used: bool,
}

impl Room {
    /// Whether a bill can be paid out of so many bytes. No name takes more than it leaves free.
    pub(in crate::home) fn affords(&self, bill: &Bill, left: u64) -> bool {
        let Some(free) = left.checked_sub(bill.brought()) else {
            return false;
        };
        planted::is(Bug::RoomNotShared)
            || bill.0.iter().all(|(name, demand)| {
                let own = self.shares.get(&self.key(*name));
                let own = own.copied().unwrap_or_default();
                let had = own.lasting.saturating_add(own.lent);
                had.saturating_add(demand.brought) <= free
            })
    }

    /// Takes what a bill names. A batch with a position gives back what it was lent when that is installed.
    pub(in crate::home) fn take(&mut self, bill: &Bill, at: Option<Position>) {
        for (name, demand) in &bill.0 {
            self.is_used = true;
            let name = self.key(*name);
            let share = self.shares.entry(name).or_default();
            let lent = demand.brought.saturating_sub(demand.lasting);
            share.lasting = share.lasting.saturating_add(demand.lasting);
            if let Some(position) = at.filter(|_| lent > 0) {
                share.lent = share.lent.saturating_add(lent);
                self.lent.push_back((position, name, lent));
            }
        }
    }

    /// A full store frees space soon: what can be installed is.
    pub(in crate::home) fn use_up(&mut self) {
        self.is_used = true;
    }

    /// Whether something was taken since the store had space.
    pub(in crate::home) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Everything up to a position is installed, and gone from the log.
    pub(in crate::home) fn installed(&mut self, position: Position) {
        while let Some((_, name, bytes)) = self.lent.pop_front_if(|(at, ..)| *at <= position) {
            let Some(share) = self.shares.get_mut(&name) else {
                continue;
            };
            share.lent = share.lent.saturating_sub(bytes);
            if share.lent == 0 && share.lasting == 0 {
                self.shares.remove(&name);
            }
        }
    }

    /// The store has space again.
    pub(in crate::home) fn clear(&mut self) {
        *self = Room::default();
    }

    fn key(&self, name: NameId) -> NameId {
        let is_known = self.shares.contains_key(&name) || self.shares.len() < ROOM_NAMES_MAX;
        if is_known { name } else { NOBODY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MALLORY: NameId = NameId(66);
    const ANNA: NameId = NameId(1);

    fn demand(brought: u64, lasting: u64) -> Demand {
        Demand { brought, lasting }
    }

    /// A room of so many bytes that the store does not free.
    struct World {
        room: Room,
        left: u64,
        position: Position,
    }

    impl World {
        fn new(left: u64) -> Self {
            World {
                room: Room::default(),
                left,
                position: Position(0),
            }
        }

        fn take(&mut self, bill: &Bill) -> bool {
            let affords = self.room.affords(bill, self.left);
            if affords {
                self.position = self.position.next();
                self.room.take(bill, Some(self.position));
                self.left -= bill.brought();
            }
            affords
        }

        /// Takes as often as it can.
        fn flood(&mut self, name: NameId, demand: Demand) -> usize {
            let bill = Bill::of(name, demand);
            (0..100_000).take_while(|_| self.take(&bill)).count()
        }

        fn install(&mut self) {
            let lent: u64 = self.room.lent.iter().map(|(.., bytes)| bytes).sum();
            self.left += lent;
            self.room.installed(self.position);
        }
    }

    #[test]
    fn no_name_takes_more_than_it_leaves_free() {
        let mut world = World::new(1_000);
        assert_eq!(world.flood(MALLORY, demand(10, 10)), 50);
        assert_eq!(world.flood(ANNA, demand(10, 10)), 25);
        assert_eq!(world.flood(NameId(2), demand(10, 10)), 12);
        assert!(
            !world.take(&Bill::of(NameId(3), demand(200, 0))),
            "none left"
        );
        assert!(world.room.is_used());
        world.room.clear();
        assert!(!world.room.is_used() && world.room.shares.is_empty());
    }

    #[test]
    fn what_is_lent_comes_back_when_it_is_installed_and_what_lasts_does_not() {
        let mut world = World::new(1_000);
        assert_eq!(world.flood(MALLORY, demand(10, 0)), 50);
        world.install();
        assert!(world.room.shares.is_empty() && world.left == 1_000);
        assert_eq!(world.flood(MALLORY, demand(10, 5)), 50);
        world.install();
        assert_eq!(world.left, 750);
        // It has 250 of the 750 that are left, and may come to 500 of 500.
        assert_eq!(world.flood(MALLORY, demand(10, 10)), 25);
        world.install();
        assert_eq!(world.flood(MALLORY, demand(10, 10)), 0);
        assert_eq!(world.flood(ANNA, demand(10, 10)), 25);
    }

    #[test]
    fn a_bill_of_several_names_is_paid_by_each_or_not_at_all() {
        let mut world = World::new(1_000);
        world.flood(MALLORY, demand(10, 10));
        let both = Bill::of(ANNA, demand(10, 10)).with(MALLORY, demand(10, 10));
        assert!(!world.take(&both), "one of them has its share");
        assert!(world.take(&Bill::of(ANNA, demand(10, 10)).with(ANNA, demand(5, 0))));
        assert_eq!(world.left, 485);
    }

    #[test]
    fn names_beyond_the_limit_share_one_place() {
        let mut world = World::new(u64::MAX);
        let names = ROOM_NAMES_MAX as u64;
        for name in 1..=2 * names {
            assert!(world.take(&Bill::of(NameId(name), demand(10, 10))));
        }
        assert_eq!(world.room.shares.len(), ROOM_NAMES_MAX + 1);
        let share = world.room.shares.get(&NOBODY).copied().unwrap_or_default();
        assert_eq!(share.lasting, names * 10);
    }
}
