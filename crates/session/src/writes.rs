//! What a transaction has written: over what it reads, and in no other place, until it commits.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use thorp_model::limits::INLINE_VALUE_BYTES_MAX;
use thorp_model::{
    Blob, Generation, HomeId, NewValue, ObjectId, Overflow, PageId, PageWrites, Procedure,
    Reference, Slot, WriteOp,
};

/// An object of one of several homes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectAt {
    /// The home of the object.
    pub home: HomeId,
    /// The object's id at that home.
    pub object: ObjectId,
}

impl From<&Reference> for ObjectAt {
    fn from(reference: &Reference) -> Self {
        ObjectAt {
            home: reference.home,
            object: reference.object,
        }
    }
}

/// A transaction's writes. `R` names the slot that was reserved for an object that
/// is created: the allocator gets it back if nothing comes of the creation.
#[derive(Debug)]
pub struct Writes<R> {
    own: HashMap<ObjectAt, OwnWrite, Mixing>,
    /// Slots reserved for objects that were created.
    reserved: Vec<(ObjectAt, R)>,
}

/// What a transaction did to an object.
#[derive(Debug)]
pub struct OwnWrite {
    /// The object's generation.
    pub generation: Generation,
    /// What was done.
    pub act: Act,
}

/// What can be done to an object.
#[derive(Debug)]
pub enum Act {
    /// It was created with these bytes.
    Created(Vec<u8>),
    /// Its bytes were replaced.
    Written(Vec<u8>),
    /// The whole value, and which part of it was changed. It was read.
    Patched(Vec<u8>, Range<usize>),
    /// It was deleted.
    Deleted,
    /// An operation that the program made itself: with a value that it staged, or without having read the object.
    Prepared(WriteOp),
}

impl OwnWrite {
    /// The object's bytes; none if it was deleted, or if only its home will know them.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.act {
            Act::Created(bytes) | Act::Written(bytes) | Act::Patched(bytes, _) => Some(bytes),
            Act::Deleted | Act::Prepared(_) => None,
        }
    }

    /// The procedures that are to run on an object whose bytes only its home will know.
    pub fn applied(&self) -> Option<&[Procedure]> {
        match &self.act {
            Act::Prepared(WriteOp::Apply { procedures, .. }) => Some(procedures),
            _ => None,
        }
    }

    fn op(&self, staged: Option<Overflow>) -> WriteOp {
        let generation = self.generation;
        let value = |bytes: &[u8]| match staged {
            Some(overflow) => NewValue::Staged(overflow),
            None => NewValue::Inline(Blob::from(bytes)),
        };
        match &self.act {
            Act::Created(bytes) => WriteOp::Create {
                generation,
                value: value(bytes),
            },
            Act::Written(bytes) => WriteOp::Write {
                generation,
                value: value(bytes),
            },
            Act::Patched(bytes, changed) => WriteOp::Patch {
                generation,
                // A patched value is inline, or in one overflow page.
                offset: changed.start as u32,
                bytes: Blob::from(&bytes[changed.clone()]),
            },
            Act::Deleted => WriteOp::Delete { generation },
            Act::Prepared(op) => op.clone(),
        }
    }

    fn is_large(&self) -> bool {
        match &self.act {
            Act::Created(bytes) | Act::Written(bytes) => bytes.len() > INLINE_VALUE_BYTES_MAX,
            // What is large is written whole, or was staged by the program.
            Act::Patched(..) | Act::Deleted | Act::Prepared(_) => false,
        }
    }
}

// Derived, it would ask the same of `R`.
impl<R> Default for Writes<R> {
    fn default() -> Self {
        Writes {
            own: HashMap::default(),
            reserved: Vec::new(),
        }
    }
}

impl<R> Writes<R> {
    /// Whether nothing was written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// What was done to an object.
    pub fn get(&self, object: ObjectAt) -> Option<&OwnWrite> {
        self.own.get(&object)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, object: ObjectAt) -> Option<&mut OwnWrite> {
        self.own.get_mut(&object)
    }

    /// A new object in a slot that was reserved for it.
    pub fn create(
        &mut self,
        object: ObjectAt,
        generation: Generation,
        bytes: Vec<u8>,
        reservation: R,
    ) {
        self.reserved.push((object, reservation));
        self.set(object, generation, Act::Created(bytes));
    }

    /// Something else was done to an object.
    pub fn set(&mut self, object: ObjectAt, generation: Generation, act: Act) {
        self.own.insert(object, OwnWrite { generation, act });
    }

    /// Forgets what was done to an object, as if it had not been. Gives the slot that was reserved for it.
    pub fn undo(&mut self, object: ObjectAt) -> Option<R> {
        self.own.remove(&object);
        let at = self.reserved.iter().position(|(of, _)| *of == object)?;
        Some(self.reserved.swap_remove(at).1)
    }

    /// Nothing of it has happened: gives all slots that were reserved.
    pub fn give_back(&mut self) -> impl Iterator<Item = R> + '_ {
        self.own.clear();
        self.reserved.drain(..).map(|(_, reservation)| reservation)
    }

    /// It has happened, or may have: the slots stay taken.
    pub fn clear(&mut self) {
        self.own.clear();
        self.reserved.clear();
    }

    /// Whether anything is written at a home.
    pub fn are_at(&self, home: HomeId) -> bool {
        self.own.keys().any(|at| at.home == home)
    }

    /// Objects of a home whose values travel ahead of the commit, ascending.
    pub fn large(&self, home: HomeId) -> Vec<ObjectId> {
        let at_home = self.own.iter().filter(|(at, _)| at.home == home);
        let large = at_home.filter(|(_, own)| own.is_large());
        let mut large: Vec<ObjectId> = large.map(|(at, _)| at.object).collect();
        large.sort_unstable();
        large
    }

    /// The pages of a home that are written, some more than once.
    pub fn pages(&self, home: HomeId) -> impl Iterator<Item = PageId> + '_ {
        let at_home = self.own.keys().filter(move |at| at.home == home);
        at_home.map(|at| at.object.page)
    }

    /// What the commit carries to a home: pages and slots ascending, each once. Large values are named as they were staged.
    pub fn page_writes(
        &self,
        home: HomeId,
        staged: &HashMap<ObjectId, Overflow>,
    ) -> Vec<PageWrites> {
        let at_home = self.own.iter().filter(|(at, _)| at.home == home);
        let mut objects: Vec<(ObjectId, &OwnWrite)> =
            at_home.map(|(at, own)| (at.object, own)).collect();
        objects.sort_unstable_by_key(|(object, _)| *object);
        let mut pages: Vec<PageWrites> = Vec::new();
        for (object, own) in objects {
            let write: (Slot, WriteOp) = (object.slot, own.op(staged.get(&object).copied()));
            match pages.last_mut() {
                Some(page) if page.page == object.page => page.slots.push(write),
                _ => pages.push(PageWrites {
                    page: object.page,
                    slots: vec![write],
                }),
            }
        }
        pages
    }
}

/// Ids are handed out by the home and spread well enough: one multiplication mixes them. Nobody gains by colliding keys of
/// a transaction of its own.
#[derive(Clone, Copy, Default, Debug)]
struct Mixing;

#[derive(Clone, Copy, Default)]
struct Mixer(u64);

impl BuildHasher for Mixing {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer(0)
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        // The table looks at the lowest and the highest bits.
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::PageNo;

    const GENERATION: Generation = Generation(1);

    fn at(home: u32, page: u32, slot: u16) -> ObjectAt {
        let object = ObjectId {
            page: PageId::new(1, page),
            slot: Slot(slot),
        };
        ObjectAt {
            home: HomeId(home),
            object,
        }
    }

    #[test]
    fn a_commit_carries_pages_and_slots_of_its_home_ascending() {
        let mut writes = Writes::<()>::default();
        for object in [at(1, 9, 2), at(2, 1, 1), at(1, 3, 4), at(1, 9, 0)] {
            writes.set(object, GENERATION, Act::Deleted);
        }
        let pages = writes.page_writes(HomeId(1), &HashMap::new());
        let shape = pages.iter().map(|page| {
            let slots = page.slots.iter().map(|(slot, _)| slot.0);
            (page.page.page, slots.collect::<Vec<u16>>())
        });
        let wanted = [(PageNo(3), vec![4]), (PageNo(9), vec![0, 2])];
        assert_eq!(shape.collect::<Vec<_>>(), wanted);
        assert!(writes.are_at(HomeId(2)) && !writes.are_at(HomeId(3)));
    }

    #[test]
    fn what_did_not_happen_gives_its_slots_back() {
        let mut writes = Writes::default();
        writes.create(at(1, 1, 1), GENERATION, vec![1], "one");
        writes.create(at(1, 1, 2), GENERATION, vec![2], "two");
        writes.create(at(1, 1, 3), GENERATION, vec![3], "three");
        assert_eq!(writes.undo(at(1, 1, 2)), Some("two"));
        assert_eq!(writes.undo(at(1, 1, 2)), None);
        assert_eq!(writes.give_back().collect::<Vec<_>>(), ["one", "three"]);
        assert!(writes.is_empty());
        writes.create(at(1, 1, 1), GENERATION, vec![1], "one");
        writes.clear();
        assert_eq!(writes.give_back().count(), 0);
    }

    #[test]
    fn large_values_are_named_as_they_were_staged() {
        let mut writes = Writes::<()>::default();
        let object = at(1, 1, 1);
        let bytes = vec![7; INLINE_VALUE_BYTES_MAX + 1];
        writes.set(object, GENERATION, Act::Written(bytes));
        assert_eq!(writes.large(HomeId(1)), [object.object]);
        let overflow = Overflow {
            bytes: INLINE_VALUE_BYTES_MAX as u64 + 1,
            first: PageNo::OVERFLOW_FIRST,
            pages: 2,
        };
        let staged = HashMap::from([(object.object, overflow)]);
        let pages = writes.page_writes(HomeId(1), &staged);
        let wanted = WriteOp::Write {
            generation: GENERATION,
            value: NewValue::Staged(overflow),
        };
        assert_eq!(pages[0].slots, [(Slot(1), wanted)]);
    }
}
