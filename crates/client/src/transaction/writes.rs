//! What a transaction has written: over what it reads, and in no other place, until it commits.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::Arc;
use thorp_model::limits::INLINE_VALUE_BYTES_MAX;
use thorp_model::{
    Blob, Generation, HomeId, NewValue, ObjectId, Overflow, PageId, PageWrites, Slot, WriteOp,
};

use super::ObjectAt;
use crate::room::{Ground, Taken};

/// A transaction's writes.
#[derive(Default)]
pub(super) struct Writes {
    own: HashMap<ObjectAt, Own, Mixing>,
    /// Slots taken for objects that were created.
    taken: Vec<(ObjectAt, Arc<Ground>, Taken)>,
}

/// What a transaction did to an object.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) generation: Generation,
    pub(super) act: Act,
}

#[derive(Debug)]
pub(super) enum Act {
    Created(Vec<u8>),
    Written(Vec<u8>),
    /// The whole value, and which part of it was changed. It was read.
    Patched(Vec<u8>, Range<usize>),
    Deleted,
}

impl Own {
    /// The object's bytes; none if it was deleted.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match &self.act {
            Act::Created(bytes) | Act::Written(bytes) | Act::Patched(bytes, _) => Some(bytes),
            Act::Deleted => None,
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
        }
    }
}

impl Writes {
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    pub(super) fn get(&self, object: ObjectAt) -> Option<&Own> {
        self.own.get(&object)
    }

    pub(super) fn get_mut(&mut self, object: ObjectAt) -> Option<&mut Own> {
        self.own.get_mut(&object)
    }

    /// A new object in a slot that was taken for it.
    pub(super) fn create(
        &mut self,
        object: ObjectAt,
        generation: Generation,
        bytes: Vec<u8>,
        from: (Arc<Ground>, Taken),
    ) {
        self.taken.push((object, from.0, from.1));
        let act = Act::Created(bytes);
        self.own.insert(object, Own { generation, act });
    }

    pub(super) fn set(&mut self, object: ObjectAt, generation: Generation, act: Act) {
        self.own.insert(object, Own { generation, act });
    }

    /// Takes back a creation, as if it had not been.
    pub(super) fn uncreate(&mut self, object: ObjectAt) {
        self.own.remove(&object);
        if let Some(at) = self.taken.iter().position(|(of, ..)| *of == object) {
            let (_, ground, taken) = self.taken.swap_remove(at);
            ground.give_back(taken);
        }
    }

    /// Nothing of it has happened: the slots are free again.
    pub(super) fn give_back(&mut self) {
        self.own.clear();
        for (_, ground, taken) in self.taken.drain(..) {
            ground.give_back(taken);
        }
    }

    /// It has happened, or may have.
    pub(super) fn clear(&mut self) {
        self.own.clear();
        self.taken.clear();
    }

    /// Whether anything is written at a home.
    pub(super) fn are_at(&self, home: HomeId) -> bool {
        self.own.keys().any(|at| at.home == home)
    }

    /// Values that travel ahead of the commit's part at a home.
    pub(super) fn large(&self, home: HomeId) -> Vec<ObjectId> {
        let mut large: Vec<ObjectId> = self
            .own
            .iter()
            .filter(|(at, own)| at.home == home && is_large(own))
            .map(|(at, _)| at.object)
            .collect();
        large.sort_unstable();
        large
    }

    /// The pages of a home that are written.
    pub(super) fn pages(&self, home: HomeId) -> impl Iterator<Item = PageId> + '_ {
        let at_home = self.own.keys().filter(move |at| at.home == home);
        at_home.map(|at| at.object.page)
    }

    /// What the commit carries to a home: pages and slots ascending, each once.
    pub(super) fn page_writes(
        &self,
        home: HomeId,
        staged: &HashMap<ObjectId, Overflow>,
    ) -> Vec<PageWrites> {
        let at_home = self.own.iter().filter(|(at, _)| at.home == home);
        let mut objects: Vec<(ObjectId, &Own)> =
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

fn is_large(own: &Own) -> bool {
    match &own.act {
        Act::Created(bytes) | Act::Written(bytes) => bytes.len() > INLINE_VALUE_BYTES_MAX,
        // What is large is written whole.
        Act::Patched(..) | Act::Deleted => false,
    }
}

/// Ids are handed out by the home and spread well enough: one multiplication mixes them. Nobody gains by colliding keys of
/// a transaction of its own.
#[derive(Clone, Copy, Default)]
pub(super) struct Mixing;

#[derive(Clone, Copy, Default)]
pub(super) struct Mixer(u64);

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
