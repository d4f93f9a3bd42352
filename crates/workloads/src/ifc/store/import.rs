//! A file into a segment.
//!
//! Large files need several transactions. Readers see none of it before the last one, which sets the root.
//!
//! An entity can be stored once it is known where those that it uses are. Most files define before they use, so most
//! entities are stored at once; the others get room, and their value in the same transaction if possible.

use std::collections::HashMap;
use std::ops::Range;

use thorp_client::{HomeId, ObjectId, PageId, Reference, Result};
use thorp_model::limits::{COMMIT_BYTES_MAX, INLINE_VALUE_BYTES_MAX, STAGED_PER_MEMBER_MAX};
use thorp_model::{Generation, Slot};

use super::{Building, Editors, INDEX_PAGE_MAX, IndexPage, ROOT, Root, StoreError, data_record};
use crate::ifc::Relations;
use crate::objects::{Damaged, Objects, Store, encoded};
use crate::step::{Body, EntityId, Order, StepFile, Stored};

/// Imports a file into a segment that has no building.
///
/// # Errors
/// [`StoreError::ModelExists`], also if somebody else has imported a building meanwhile; [`StoreError::Dangling`], or those
/// of the store. What was made until then is deleted, as far as the store can be reached and it is certain that the import
/// has failed.
pub fn import<S: Store>(store: &S, file: &StepFile) -> Result<Building, StoreError> {
    import_and_tell(store, file, |_, _| {})
}

/// As [`import`]. After each transaction `tell` gets how many entities are made, and how many there are.
///
/// # Errors
/// As [`import`].
pub fn import_and_tell<S: Store>(
    store: &S,
    file: &StepFile,
    mut tell: impl FnMut(u64, u64),
) -> Result<Building, StoreError> {
    if store.transact(|objects| objects.root(ROOT))?.is_some() {
        return Err(StoreError::ModelExists);
    }
    let mut import = Import::new(file)?;
    let imported = run(store, &mut import, &mut tell);
    if let Err(error) = &imported
        && error.is_certain()
    {
        // The first error is the one to tell.
        let _ = import.undo(store);
    }
    imported
}

fn run<S: Store>(
    store: &S,
    import: &mut Import<'_>,
    tell: &mut impl FnMut(u64, u64),
) -> Result<Building, StoreError> {
    for batch in batches(&import.sizes) {
        let made = store.transact(|objects| import.make(objects, batch.clone()))?;
        import.enter(batch, made);
        tell(import.places.len() as u64, import.sizes.len() as u64);
    }
    let late_sizes: Vec<usize> = import
        .late
        .iter()
        .map(|&place| import.sizes[place])
        .collect();
    for batch in batches(&late_sizes) {
        store.transact(|objects| import.write_late(objects, &import.late[batch.clone()]))?;
    }
    let relations = import.relations()?;
    let finished = store.transact(|objects| import.finish(objects, &relations))?;
    let root = finished.ok_or(StoreError::ModelExists)?;
    Ok(Building { root, relations })
}

struct Import<'a> {
    file: &'a StepFile,
    /// About how many bytes each entity will have.
    sizes: Vec<usize>,
    places: HashMap<EntityId, Reference>,
    index: Vec<Reference>,
    /// Entities that have room but no value, by their places in the file.
    late: Vec<usize>,
}

/// What one transaction has made.
struct Made {
    entities: Vec<Reference>,
    index: Vec<Reference>,
    late: Vec<usize>,
}

/// Where entities are: those of former transactions, and those of this one.
struct Places<'a> {
    before: &'a HashMap<EntityId, Reference>,
    now: HashMap<EntityId, Reference>,
}

impl<'a> Import<'a> {
    fn new(file: &'a StepFile) -> Result<Self, StoreError> {
        let dummies: HashMap<EntityId, Reference> = file
            .entities
            .iter()
            .map(|entity| (entity.id, DUMMY))
            .collect();
        let mut sizes = Vec::with_capacity(file.entities.len());
        for place in 0..file.entities.len() {
            let body = &file.entities[place].body;
            if let Some(missing) = body
                .references()
                .into_iter()
                .find(|id| !dummies.contains_key(id))
            {
                return Err(StoreError::Dangling(*missing));
            }
            let bytes = value(file, place, |id| dummies.get(id).copied())?;
            sizes.push(bytes.map_or(0, |bytes| bytes.len()));
        }
        Ok(Import {
            file,
            sizes,
            places: HashMap::new(),
            index: Vec::new(),
            late: Vec::new(),
        })
    }

    fn make<O: Objects>(&self, objects: &mut O, batch: Range<usize>) -> Result<Made> {
        let mut places = Places {
            before: &self.places,
            now: HashMap::new(),
        };
        let mut entities = Vec::with_capacity(batch.len());
        let mut late = Vec::new();
        for place in batch.clone() {
            let bytes = value(self.file, place, |id| places.find(id))?.unwrap_or_else(|| {
                late.push(place);
                vec![0; self.sizes[place]]
            });
            let reference = objects.create(bytes)?;
            places.now.insert(self.file.entities[place].id, reference);
            entities.push(reference);
        }
        let mut still_late = Vec::new();
        for place in late {
            match value(self.file, place, |id| places.find(id))? {
                Some(bytes) => objects.write(&entities[place - batch.start], bytes)?,
                None => still_late.push(place),
            }
        }
        Ok(Made {
            index: self.make_index(objects, batch, &entities)?,
            entities,
            late: still_late,
        })
    }

    /// The pages of the index for the entities just made, behind them.
    fn make_index<O: Objects>(
        &self,
        objects: &mut O,
        batch: Range<usize>,
        references: &[Reference],
    ) -> Result<Vec<Reference>> {
        let ids = self.file.entities[batch].iter().map(|entity| entity.id);
        let entries: IndexPage = ids.zip(references.iter().copied()).collect();
        let pages = entries.chunks(INDEX_PAGE_MAX);
        pages.map(|page| objects.create(encoded(&page)?)).collect()
    }

    /// Keeps what a committed transaction has made.
    fn enter(&mut self, batch: Range<usize>, made: Made) {
        let ids = self.file.entities[batch].iter().map(|entity| entity.id);
        self.places.extend(ids.zip(made.entities));
        self.index.extend(made.index);
        self.late.extend(made.late);
    }

    fn write_late<O: Objects>(&self, objects: &mut O, batch: &[usize]) -> Result<()> {
        for &place in batch {
            let bytes = value(self.file, place, |id| self.places.get(id).copied())?;
            let reference = self.places.get(&self.file.entities[place].id);
            let (Some(bytes), Some(reference)) = (bytes, reference) else {
                return Err(Damaged("an imported entity was not given a place").into());
            };
            objects.write(reference, bytes)?;
        }
        Ok(())
    }

    fn relations(&self) -> Result<Relations<Reference>> {
        let mut bodies = Vec::with_capacity(self.file.entities.len());
        for entity in &self.file.entities {
            let find = |id: &EntityId| self.places.get(id).copied();
            let (Some(reference), Some(body)) =
                (find(&entity.id), with_references(&entity.body, find))
            else {
                return Err(Damaged("an imported entity was not given a place").into());
            };
            bodies.push((reference, body));
        }
        let bodies = bodies.iter().map(|(reference, body)| (*reference, body));
        Ok(Relations::of(bodies))
    }

    fn finish<O: Objects>(
        &self,
        objects: &mut O,
        relations: &Relations<Reference>,
    ) -> Result<Option<Root>> {
        if objects.root(ROOT)?.is_some() {
            return Ok(None);
        }
        let editors = Editors {
            next_number: self.file.id_max().0.saturating_add(1),
            desks: Vec::new(),
        };
        let root = Root {
            header: self.file.header.clone(),
            data: data_record(&self.file.data),
            entities: self.file.entities.len() as u64,
            relations: objects.create(encoded(relations)?)?,
            index: self.index.clone(),
            editors: objects.create(encoded(&editors)?)?,
        };
        let reference = objects.create(encoded(&root)?)?;
        objects.set_root(ROOT, &reference)?;
        Ok(Some(root))
    }

    /// Deletes what committed transactions have made.
    fn undo<S: Store>(&self, store: &S) -> Result<()> {
        let made: Vec<Reference> = self.places.values().chain(&self.index).copied().collect();
        for some in made.chunks(UNDONE_AT_ONCE) {
            store.transact(|objects| some.iter().try_for_each(|made| objects.delete(made)))?;
        }
        Ok(())
    }
}

impl Places<'_> {
    fn find(&self, id: &EntityId) -> Option<Reference> {
        self.now.get(id).or_else(|| self.before.get(id)).copied()
    }
}

/// Values of these sizes, cut so that each part fits well into a commit.
fn batches(sizes: &[usize]) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let mut from = 0;
    let mut load = Load::default();
    for (place, &size) in sizes.iter().enumerate() {
        if !load.take(size) {
            batches.push(from..place);
            from = place;
            load = Load::default();
            load.take(size);
        }
    }
    if from < sizes.len() {
        batches.push(from..sizes.len());
    }
    batches
}

/// What one transaction is given to do.
#[derive(Default)]
struct Load {
    bytes: usize,
    large: usize,
}

impl Load {
    /// Takes one more value, unless that is too much.
    fn take(&mut self, size: usize) -> bool {
        let bytes = self.bytes + size + ENTITY_BYTES;
        let large = self.large + usize::from(size + ENTITY_BYTES > INLINE_VALUE_BYTES_MAX);
        if self.bytes > 0 && (bytes > BATCH_BYTES || large > LARGE_MAX) {
            return false;
        }
        *self = Load { bytes, large };
        true
    }
}

/// Objects that one transaction deletes.
const UNDONE_AT_ONCE: usize = 1_000;

/// An entity's value; `None` while the place of one that it uses is not known.
fn value(
    file: &StepFile,
    place: usize,
    find: impl Fn(&EntityId) -> Option<Reference>,
) -> Result<Option<Vec<u8>>> {
    let entity = &file.entities[place];
    let Some(body) = with_references(&entity.body, find) else {
        return Ok(None);
    };
    let stored = Stored {
        id: entity.id,
        order: Order::Imported(place as u64),
        body,
    };
    encoded(&stored).map(Some)
}

fn with_references(
    body: &Body,
    find: impl Fn(&EntityId) -> Option<Reference>,
) -> Option<Body<Reference>> {
    // Looked at first: a body is copied only if it can be used.
    if body.references().into_iter().any(|id| find(id).is_none()) {
        return None;
    }
    let mapped = body.clone().try_map_refs(&mut |id| find(&id).ok_or(()));
    mapped.ok()
}

/// A reference as long as those of a segment of some gigabytes.
const DUMMY: Reference = Reference {
    home: HomeId(u32::MAX),
    object: ObjectId {
        page: PageId::new(1 << 7, 1 << 14),
        slot: Slot(128),
    },
    generation: Generation(1),
    offset: 0,
};
/// Bytes of entities made by one transaction: with index and what the protocol adds, far below its limit.
const BATCH_BYTES: usize = COMMIT_BYTES_MAX / 4;
/// Large values of one transaction, each of which may be staged twice.
const LARGE_MAX: usize = STAGED_PER_MEMBER_MAX / 4;
/// What an entity costs besides its value.
const ENTITY_BYTES: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_everything_once_and_not_too_much() {
        assert_eq!(batches(&[]), []);
        assert_eq!(batches(&[10, 20]).as_slice(), std::slice::from_ref(&(0..2)));
        // One that is too large for any batch has its own.
        assert_eq!(batches(&[1, 2 * BATCH_BYTES, 1]), [0..1, 1..2, 2..3]);
        let large = vec![INLINE_VALUE_BYTES_MAX; 2 * LARGE_MAX + 1];
        assert_eq!(
            batches(&large),
            [
                0..LARGE_MAX,
                LARGE_MAX..2 * LARGE_MAX,
                2 * LARGE_MAX..2 * LARGE_MAX + 1
            ]
        );
    }
}
