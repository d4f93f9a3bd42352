//! The updates of a visit that have not left.

use crate::{Error, ErrorKind, Procedure, Reference, Result, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use thorp_model::limits::{INLINE_VALUE_BYTES_MAX, PROCEDURES_OF_OBJECT_MAX};
use thorp_model::{HomeId, NewValue, PageId, PageWrites, SegmentId, Slot, WriteOp};

/// One update of an object.
#[derive(Clone, Debug)]
pub(super) enum Update {
    /// Its bytes are replaced.
    Put(Vec<u8>),
    /// The home runs a procedure on it.
    Run(Procedure),
    /// It is deleted.
    Delete,
}

/// The updates of a visit, in their order. The visit itself sees them over what it reads.
#[derive(Debug, Default)]
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
            Update::Put(bytes) => Ok(bytes.clone()),
            Update::Run(procedure) => procedure.run(&before?).map_err(|why| {
                Error::invalid(format!("a procedure of this visit cannot run: {why}"))
            }),
            Update::Delete => Err(Error::new(
                ErrorKind::Gone,
                "this visit has deleted the object",
            )),
        })
    }

    /// The homes where something is updated, ascending.
    pub(super) fn homes(&self) -> Vec<HomeId> {
        let mut homes: Vec<HomeId> = self.0.iter().map(|(at, _)| at.home).collect();
        homes.sort_unstable();
        homes.dedup();
        homes
    }

    /// Does all of them.
    pub(super) fn redo(&self, tx: &mut Transaction) -> Result<()> {
        self.0.iter().try_for_each(|(at, update)| match update {
            Update::Put(bytes) => tx.write(at, bytes.clone()),
            Update::Run(procedure) => tx.apply(at, procedure.clone()),
            Update::Delete => tx.delete(at),
        })
    }

    /// The updates of one segment as what its home executes, each object once.
    pub(super) fn writes(&self, segment: (HomeId, SegmentId)) -> Result<Vec<PageWrites>> {
        let mut ops: BTreeMap<PageId, BTreeMap<Slot, WriteOp>> = BTreeMap::new();
        let here = self.0.iter();
        let here = here.filter(|(at, _)| (at.home, at.object.page.segment) == segment);
        for (at, update) in here {
            let slots = ops.entry(at.object.page).or_default();
            let before = slots.remove(&at.object.slot);
            slots.insert(at.object.slot, joined(at, before, update)?);
        }
        let pages = ops.into_iter();
        let pages = pages.map(|(page, slots)| PageWrites {
            page,
            slots: slots.into_iter().collect(),
        });
        Ok(pages.collect())
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

#[cfg(test)]
mod tests {
    use super::*;
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
        let append = |text: &str| Update::Run(Procedure::Append(text.as_bytes().into()));
        own.add(&x, append("b"));
        own.add(&y, append("z"));
        own.add(&x, append("c"));
        let seen = |own: &Own| own.over(&x, Ok(b"a".to_vec()));
        assert_eq!(seen(&own).unwrap(), b"abc");
        assert_eq!(own.homes(), [HomeId(1), HomeId(2)]);
        own.add(&x, Update::Put(b"new".to_vec()));
        own.add(&x, append("!"));
        assert_eq!(seen(&own).unwrap(), b"new!");
        own.add(&x, Update::Run(Procedure::Add(1)));
        assert_eq!(seen(&own).unwrap_err().kind(), ErrorKind::Invalid);
        own.add(&x, Update::Delete);
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
