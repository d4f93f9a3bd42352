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
use thorp_session::Stop;

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
        let allocator = Arc::clone(segment.allocator());
        let extent = self.extent(segment).await?;
        let own = self
            .inner
            .writes()
            .pages(allocator.home)
            .filter(|page| page.segment == allocator.segment);
        let end = own.map(|page| page.page.next()).max().unwrap_or_default();
        let mut requested = PageNo(1);
        for page in 1..extent.max(end).0 {
            let ahead = PageNo(page.saturating_add(SCAN_AHEAD)).min(extent);
            while requested < ahead {
                self.shared.prefetcher.prefetch(allocator.place(requested));
                requested = requested.next();
            }
            let page = PageNo(page);
            // Beyond the extent there is only what this transaction made.
            let theirs = page < extent;
            self.scan_page(&allocator, page, theirs, &mut visit).await?;
        }
        Ok(())
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

    async fn scan_page(
        &mut self,
        allocator: &Arc<Allocator>,
        page: PageNo,
        theirs: bool,
        visit: &mut impl FnMut(Reference, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for slot in (0..SLOTS_MAX).map(Slot) {
            let Some(generation) = self.occupant(allocator, page, slot, theirs).await? else {
                continue;
            };
            let reference = reference_in(allocator, page, slot, generation);
            let found = self.ready(&reference).await?;
            visit(reference, self.show(&reference, found)?)?;
        }
        Ok(())
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
            return Ok(own.bytes().map(|_| own.generation));
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
