//! The updates of a visit that have not left.

use super::redo::Redo;
use crate::transaction::HeldSlots;
use crate::update::page_writes;
use crate::{Error, ErrorKind, ObjectUpdate, Reference, Result, Transaction};
use std::collections::BTreeSet;
use std::sync::Arc;
use thorp_model::{HomeId, PageWrites, SegmentId};

/// One update of an object.
#[derive(Clone)]
pub(super) enum Update {
    /// Something is done to an object.
    Object(ObjectUpdate),
    /// The object is made, in a slot that the visit holds.
    Create(Vec<u8>, Arc<HeldSlots>),
    /// A collection changes. The object is its root.
    Collection(Arc<dyn Redo>),
}

/// The updates of a visit, in their order. The visit itself sees them over what it reads.
#[derive(Clone, Default)]
pub(super) struct Own(Vec<(Reference, Update)>);

impl Own {
    pub(super) fn add(&mut self, object: &Reference, update: Update) {
        self.0.push((*object, update));
    }

    /// What an object is after them.
    pub(super) fn over(&self, object: &Reference, before: Result<Vec<u8>>) -> Result<Vec<u8>> {
        let whole = Reference {
            offset: 0,
            ..*object
        };
        let here = self.0.iter().filter(|(at, _)| *at == whole);
        here.fold(before, |before, (_, update)| match update {
            Update::Object(ObjectUpdate::Write(bytes)) | Update::Create(bytes, _) => {
                Ok(bytes.clone())
            }
            Update::Object(ObjectUpdate::Run(procedure)) => {
                procedure.run(&before?).map_err(|why| {
                    Error::invalid(format!("a procedure of this visit cannot run: {why}"))
                })
            }
            Update::Object(ObjectUpdate::Delete) => Err(Error::new(
                ErrorKind::Gone,
                "this visit has deleted the object",
            )),
            // What that makes of nodes is over the view already.
            Update::Collection(_) => before,
        })
    }

    /// Whether an object is made here.
    pub(super) fn creates(&self, object: &Reference) -> bool {
        let mut all = self.0.iter();
        all.any(|(at, update)| at == object && matches!(update, Update::Create(..)))
    }

    /// The changes of collections.
    pub(super) fn collections(&self) -> Vec<Arc<dyn Redo>> {
        let all = self.0.iter();
        let changes = all.filter_map(|(_, update)| match update {
            Update::Collection(change) => Some(Arc::clone(change)),
            _ => None,
        });
        changes.collect()
    }

    /// The slots of what they make stay taken, whatever becomes of the visit.
    pub(super) fn keep_slots(&self) {
        self.slots().for_each(HeldSlots::keep);
    }

    /// The slots are free again with the visit.
    pub(super) fn hold_slots(&self) {
        self.slots().for_each(HeldSlots::hold);
    }

    fn slots(&self) -> impl Iterator<Item = &HeldSlots> {
        self.0.iter().filter_map(|(_, update)| match update {
            Update::Create(_, slots) => Some(&**slots),
            _ => None,
        })
    }

    /// The same ones.
    pub(super) fn entries(&self) -> Own {
        self.clone()
    }

    /// The homes where something is updated, ascending.
    pub(super) fn homes(&self) -> Vec<HomeId> {
        let mut homes: Vec<HomeId> = self.0.iter().map(|(at, _)| at.home).collect();
        homes.sort_unstable();
        homes.dedup();
        homes
    }

    /// Does all of them.
    pub(super) async fn redo(&self, tx: &mut Transaction) -> Result<()> {
        for (at, update) in &self.0 {
            match update {
                Update::Object(ObjectUpdate::Write(bytes)) => tx.write(at, bytes.clone())?,
                Update::Object(ObjectUpdate::Run(procedure)) => tx.apply(at, procedure.clone())?,
                Update::Object(ObjectUpdate::Delete) => tx.delete(at)?,
                Update::Create(bytes, _) => tx.create_at(at, bytes.clone())?,
                Update::Collection(change) => change.redo(tx).await?,
            }
        }
        Ok(())
    }

    /// The updates of one segment as what its home executes, each object once.
    pub(super) fn writes(&self, segment: (HomeId, SegmentId)) -> Result<Vec<PageWrites>> {
        let here = self.0.iter();
        let here = here.filter(|(at, _)| (at.home, at.object.page.segment) == segment);
        let updates = here.map(|(at, update)| match update {
            Update::Object(update) => Ok((at, update)),
            Update::Create(..) | Update::Collection(_) => Err(Error::invalid(NOT_IN_A_LOG)),
        });
        page_writes(updates.collect::<Result<Vec<_>>>()?)
    }

    /// The segments where something is updated, ascending.
    pub(super) fn segments(&self) -> Vec<(HomeId, SegmentId)> {
        let all = self.0.iter();
        let all = all.map(|(at, _)| (at.home, at.object.page.segment));
        let all: BTreeSet<_> = all.collect();
        all.into_iter().collect()
    }

    /// Those of one segment, which are on their way now.
    pub(super) fn take_of(&mut self, segment: (HomeId, SegmentId)) -> Own {
        let is_of = |at: &Reference| (at.home, at.object.page.segment) == segment;
        let all = std::mem::take(&mut self.0).into_iter();
        let (here, others) = all.partition(|(at, _)| is_of(at));
        self.0 = others;
        Own(here)
    }

    /// They come after these.
    pub(super) fn append(&mut self, mut others: Own) {
        self.0.append(&mut others.0);
    }

    /// Those of one home, which are on their way now.
    pub(super) fn take(&mut self, home: HomeId) -> Own {
        let (here, others) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(at, _)| at.home == home);
        self.0 = others;
        Own(here)
    }

    /// They have not left, and come before what was added since.
    pub(super) fn put_back(&mut self, mut others: Own) {
        others.0.append(&mut self.0);
        *self = others;
    }
}

/// Why a log does not keep it.
pub(super) const NOT_IN_A_LOG: &str = "a log keeps updates that read nothing, of objects that are there: make objects, and change \
                                       collections, in a visit with failures=pessimistic or in a transaction";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Procedure;
    use thorp_model::{Generation, ObjectId, PageId, Slot};

    fn object(home: u32, slot: u16) -> Reference {
        Reference {
            home: HomeId(home),
            object: ObjectId {
                page: PageId::new(1, 1),
                slot: Slot(slot),
            },
            generation: Generation(1),
            offset: 0,
        }
    }

    #[test]
    fn updates_lie_over_what_is_read_in_their_order() {
        let mut own = Own::default();
        let (x, y) = (object(1, 1), object(2, 1));
        let run = |procedure| Update::Object(ObjectUpdate::Run(procedure));
        let append = |text: &str| run(Procedure::Append(text.as_bytes().into()));
        own.add(&x, append("b"));
        own.add(&y, append("z"));
        own.add(&x, append("c"));
        let seen = |own: &Own| own.over(&x, Ok(b"a".to_vec()));
        assert_eq!(seen(&own).unwrap(), b"abc");
        assert_eq!(own.homes(), [HomeId(1), HomeId(2)]);
        own.add(&x, Update::Object(ObjectUpdate::Write(b"new".to_vec())));
        own.add(&x, append("!"));
        assert_eq!(seen(&own).unwrap(), b"new!");
        own.add(&x, run(Procedure::Add(1)));
        assert_eq!(seen(&own).unwrap_err().kind(), ErrorKind::Invalid);
        own.add(&x, Update::Object(ObjectUpdate::Delete));
        assert_eq!(seen(&own).unwrap_err().kind(), ErrorKind::Gone);
        let leaving = own.take(HomeId(1));
        assert_eq!(seen(&own).unwrap(), b"a");
        assert_eq!(own.homes(), [HomeId(2)]);
        own.add(&x, append("later"));
        own.put_back(leaving);
        // They come first, and what was added since comes last.
        assert_eq!(own.homes(), [HomeId(1), HomeId(2)]);
        assert_eq!(seen(&own).unwrap_err().kind(), ErrorKind::Gone);
    }
}
