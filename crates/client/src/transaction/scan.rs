//! Visiting every object of a segment.

use super::{ObjectAt, Transaction};
use crate::allocator::Allocator;
use crate::head_page::{EXTENT_SLOT, HEAD_PAGE};
use crate::limits::SCAN_AHEAD;
use crate::runtime::block_on;
use crate::{Error, Reference, Result, Segment};
use std::sync::Arc;
use thorp_model::limits::SLOTS_MAX;
use thorp_model::{Content, Generation, ObjectId, PageNo, Slot};
use thorp_session::{Act, Stop};

impl Transaction {
    /// Visits every object of a segment, in the order of pages and slots, with this transaction's own writes. No other
    /// commit can add, change or remove one without a conflict. Pages are fetched ahead of the visit.
    ///
    /// # Errors
    ///
    /// As [`Transaction::read`], and any error that `visit` returns: the scan ends with the first.
    pub fn scan(
        &mut self,
        segment: &Segment,
        visit: impl FnMut(Reference, &[u8]) -> Result<()>,
    ) -> Result<()> {
        block_on(self.scan_async(segment, visit))
    }

    /// As [`Transaction::scan`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::scan`].
    pub async fn scan_async(
        &mut self,
        segment: &Segment,
        mut visit: impl FnMut(Reference, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut pages = self.pages_of(segment).await?;
        while let Some(page) = pages.next(self) {
            for reference in self.objects_on(&pages, page).await? {
                let found = self.ready(&reference).await?;
                visit(reference, self.show(&reference, found)?)?;
            }
        }
        Ok(())
    }

    /// Visits references to all objects of a segment, as [`Transaction::scan`] does, and reads no large value.
    ///
    /// # Errors
    ///
    /// As [`Transaction::scan`].
    pub fn scan_references(
        &mut self,
        segment: &Segment,
        visit: impl FnMut(Reference) -> Result<()>,
    ) -> Result<()> {
        block_on(self.scan_references_async(segment, visit))
    }

    /// As [`Transaction::scan_references`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::scan`].
    pub async fn scan_references_async(
        &mut self,
        segment: &Segment,
        mut visit: impl FnMut(Reference) -> Result<()>,
    ) -> Result<()> {
        let mut pages = self.pages_of(segment).await?;
        while let Some(page) = pages.next(self) {
            let references = self.objects_on(&pages, page).await?;
            references.into_iter().try_for_each(&mut visit)?;
        }
        Ok(())
    }

    /// The reference to the object that is at a place of a segment now, as [`Change::object`](crate::Change) names it. None:
    /// there is none.
    ///
    /// # Errors
    ///
    /// As [`Transaction::read`].
    pub fn object_at(&mut self, segment: &Segment, object: ObjectId) -> Result<Option<Reference>> {
        block_on(self.object_at_async(segment, object))
    }

    /// As [`Transaction::object_at`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::read`].
    pub async fn object_at_async(
        &mut self,
        segment: &Segment,
        object: ObjectId,
    ) -> Result<Option<Reference>> {
        let allocator = Arc::clone(segment.allocator());
        let (page, slot) = (object.page.page, object.slot);
        let generation = self.occupant(&allocator, page, slot, true).await?;
        Ok(generation.map(|generation| reference_in(&allocator, page, slot, generation)))
    }

    async fn pages_of(&mut self, segment: &Segment) -> Result<Pages> {
        let allocator = Arc::clone(segment.allocator());
        let extent = self.extent(segment).await?;
        let own = self
            .inner
            .writes()
            .pages(allocator.home)
            .filter(|page| page.segment == allocator.segment && page.page.is_of_objects());
        let end = own.map(|page| page.page.next()).max().unwrap_or_default();
        Ok(Pages {
            allocator,
            extent,
            end: extent.max(end),
            next: PageNo(1),
            requested: PageNo(1),
        })
    }

    /// The pages below this one may hold objects. The extent is an object of its own: creating an object beyond it
    /// changes it.
    async fn extent(&mut self, segment: &Segment) -> Result<PageNo> {
        let reference = reference_in(segment.allocator(), HEAD_PAGE, EXTENT_SLOT, Generation(1));
        let bytes = self.read_async(&reference).await?;
        let bytes: [u8; 4] = bytes
            .try_into()
            .map_err(|_| Error::damaged(format!("the extent of {} is damaged", segment.name())))?;
        Ok(PageNo(u32::from_le_bytes(bytes)))
    }

    async fn objects_on(&mut self, pages: &Pages, page: PageNo) -> Result<Vec<Reference>> {
        let allocator = &pages.allocator;
        // Beyond the extent there is only what this transaction made.
        let theirs = page < pages.extent;
        let mut references = Vec::new();
        for slot in (0..SLOTS_MAX).map(Slot) {
            if let Some(generation) = self.occupant(allocator, page, slot, theirs).await? {
                references.push(reference_in(allocator, page, slot, generation));
            }
        }
        Ok(references)
    }

    /// Which object a slot holds. Every slot is read, also an empty one: so no other commit makes an object there
    /// unseen.
    async fn occupant(
        &mut self,
        allocator: &Arc<Allocator>,
        page: PageNo,
        slot: Slot,
        theirs: bool,
    ) -> Result<Option<Generation>> {
        let place = allocator.place(page);
        let object = ObjectId {
            page: place.page,
            slot,
        };
        let home = allocator.home;
        if let Some(own) = self.inner.writes().get(ObjectAt { home, object }) {
            let is_deleted = matches!(own.act, Act::Deleted);
            return Ok((!is_deleted).then_some(own.generation));
        }
        if !theirs {
            return Ok(None);
        }
        let mut due = None;
        loop {
            match self.inner.read_slot(&self.shared.cache, place, slot) {
                Ok(read) => return Ok((read.content != Content::Free).then_some(read.generation)),
                Err(Stop::Miss(place)) => {
                    let due = *due.get_or_insert_with(|| self.fetch_due());
                    self.fetch(place, due).await?;
                }
                Err(stop) => return Err(self.stopped(stop)),
            }
        }
    }
}

/// The pages of a segment that may hold objects, one after the other.
struct Pages {
    allocator: Arc<Allocator>,
    /// The home has objects below this one.
    extent: PageNo,
    end: PageNo,
    next: PageNo,
    requested: PageNo,
}

impl Pages {
    /// The next one. Those that follow are fetched ahead.
    fn next(&mut self, tx: &Transaction) -> Option<PageNo> {
        let page = self.next;
        if page >= self.end {
            return None;
        }
        let ahead = PageNo(page.0.saturating_add(SCAN_AHEAD)).min(self.extent);
        while self.requested < ahead {
            tx.shared
                .prefetcher
                .prefetch(self.allocator.place(self.requested));
            self.requested = self.requested.next();
        }
        self.next = page.next();
        Some(page)
    }
}

fn reference_in(
    allocator: &Allocator,
    page: PageNo,
    slot: Slot,
    generation: Generation,
) -> Reference {
    Reference {
        home: allocator.home,
        object: ObjectId {
            page: allocator.place(page).page,
            slot,
        },
        generation,
        offset: 0,
    }
}
