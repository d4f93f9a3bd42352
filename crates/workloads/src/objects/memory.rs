//! The store that is no store: this process's memory.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use thorp_client::{HomeId, ObjectId, PageId, Reference, Result};
use thorp_model::limits::{PAGE_BYTES, SLOT_ENTRY_BYTES, SLOTS_MAX};
use thorp_model::{Generation, Slot};

use super::{Damaged, Objects, Store};

/// Objects in memory, for one thread and one transaction at a time. Not durable, not shared: for tests, and for what
/// a workload costs by itself.
#[derive(Debug, Default)]
pub struct MemoryStore {
    base: RefCell<Base>,
}

/// A transaction on a [`MemoryStore`].
#[derive(Debug)]
pub struct MemoryObjects<'a> {
    base: &'a mut Base,
    /// None are those that were deleted.
    changed: HashMap<ObjectId, Option<Vec<u8>>>,
    roots: BTreeMap<String, Reference>,
    next: Next,
}

#[derive(Debug, Default)]
struct Base {
    objects: HashMap<ObjectId, Vec<u8>>,
    roots: BTreeMap<String, Reference>,
    next: Next,
}

/// Where the next object goes: references look as those of a home, with pages filled one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    page: u32,
    slot: u16,
    bytes: usize,
}

impl MemoryStore {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many objects there are, and how many bytes in them.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let base = self.base.borrow();
        let bytes = base.objects.values().map(Vec::len).sum();
        (base.objects.len(), bytes)
    }
}

impl Store for MemoryStore {
    type Objects<'a> = MemoryObjects<'a>;

    fn transact<T>(
        &self,
        mut work: impl for<'a, 'b> FnMut(&'b mut MemoryObjects<'a>) -> Result<T>,
    ) -> Result<T> {
        let mut base = self
            .base
            .try_borrow_mut()
            .map_err(|_| Damaged("a transaction in memory was begun inside another one"))?;
        let mut objects = MemoryObjects {
            next: base.next,
            base: &mut base,
            changed: HashMap::new(),
            roots: BTreeMap::new(),
        };
        let done = work(&mut objects)?;
        objects.commit();
        Ok(done)
    }
}

impl MemoryObjects<'_> {
    fn commit(self) {
        self.base.next = self.next;
        for (object, bytes) in self.changed {
            match bytes {
                Some(bytes) => self.base.objects.insert(object, bytes),
                None => self.base.objects.remove(&object),
            };
        }
        self.base.roots.extend(self.roots);
    }

    fn get_mut(&mut self, reference: &Reference) -> Result<&mut Vec<u8>> {
        let object = reference.object;
        if !self.changed.contains_key(&object) {
            let bytes = self.base.objects.get(&object).ok_or(ABSENT)?.clone();
            self.changed.insert(object, Some(bytes));
        }
        let changed = self.changed.get_mut(&object).and_then(Option::as_mut);
        Ok(changed.ok_or(ABSENT)?)
    }
}

impl Objects for MemoryObjects<'_> {
    fn read(&mut self, reference: &Reference) -> Result<&[u8]> {
        let object = &reference.object;
        let found = match self.changed.get(object) {
            Some(changed) => changed.as_ref(),
            None => self.base.objects.get(object),
        };
        Ok(found.ok_or(ABSENT)?)
    }

    fn read_at(&mut self, reference: &Reference, offset: u64, len: usize) -> Result<Vec<u8>> {
        let bytes = self.read(reference)?;
        let from = usize::try_from(offset).map_or(bytes.len(), |from| from.min(bytes.len()));
        let to = from.saturating_add(len).min(bytes.len());
        Ok(bytes[from..to].to_vec())
    }

    fn size(&mut self, reference: &Reference) -> Result<u64> {
        Ok(self.read(reference)?.len() as u64)
    }

    fn write(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<()> {
        *self.get_mut(reference)? = bytes;
        Ok(())
    }

    fn patch(&mut self, reference: &Reference, offset: u64, bytes: &[u8]) -> Result<()> {
        let object = self.get_mut(reference)?;
        let from = usize::try_from(offset).map_err(|_| OUTSIDE)?;
        let place = object.get_mut(from..from.saturating_add(bytes.len()));
        place.ok_or(OUTSIDE)?.copy_from_slice(bytes);
        Ok(())
    }

    fn create(&mut self, bytes: Vec<u8>) -> Result<Reference> {
        let object = self.next.take(bytes.len());
        self.changed.insert(object, Some(bytes));
        Ok(Reference {
            home: HomeId(1),
            object,
            generation: Generation(1),
            offset: 0,
        })
    }

    fn create_near(&mut self, _near: &Reference, bytes: Vec<u8>) -> Result<Reference> {
        self.create(bytes)
    }

    fn delete(&mut self, reference: &Reference) -> Result<()> {
        self.get_mut(reference)?;
        self.changed.insert(reference.object, None);
        Ok(())
    }

    fn root(&mut self, name: &str) -> Result<Option<Reference>> {
        let found = self.roots.get(name).or_else(|| self.base.roots.get(name));
        Ok(found.copied())
    }

    fn set_root(&mut self, name: &str, reference: &Reference) -> Result<()> {
        self.roots.insert(name.to_owned(), *reference);
        Ok(())
    }
}

impl Next {
    fn take(&mut self, bytes: usize) -> ObjectId {
        let charge = bytes + SLOT_ENTRY_BYTES;
        if self.slot == SLOTS_MAX || (self.slot > 0 && self.bytes + charge > PAGE_BYTES) {
            *self = Next {
                page: self.page + 1,
                slot: 0,
                bytes: 0,
            };
        }
        let object = ObjectId {
            page: PageId::new(1, self.page),
            slot: Slot(self.slot),
        };
        self.slot += 1;
        self.bytes += charge;
        object
    }
}

const ABSENT: Damaged = Damaged("there is no such object");
const OUTSIDE: Damaged = Damaged("a patch reaches beyond its object");
