//! Writing objects: nothing of it leaves this process before the commit.

use super::read::Found;
use super::{HeldSlots, Transaction};
use crate::allocator::{Allocator, Area};
use crate::head_page::HEAD_PAGE;
use crate::runtime::block_on;
use crate::{Error, ErrorKind, Reference, Result, Segment};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use thorp_model::limits::{INLINE_VALUE_BYTES_MAX, OBJECT_BYTES_MAX, OVERFLOW_HEAD_BYTES};
use thorp_model::{ObjectId, PageId, PageNo, Procedure, SegmentId};
use thorp_session::{Found as In, Reservation};

impl Transaction {
    /// Replaces an object's bytes; it need not be read before.
    ///
    /// # Errors
    ///
    /// As [every call of a transaction](crate::Transaction#errors); [`Gone`](crate::ErrorKind::Gone) if this
    /// transaction deleted it, [`TooLarge`](crate::ErrorKind::TooLarge) above [`OBJECT_BYTES_MAX`], and
    /// [`Invalid`](crate::ErrorKind::Invalid) if the reference points into an object. The commit
    /// fails if the object is not there.
    pub fn write(&mut self, reference: &Reference, bytes: impl Into<Vec<u8>>) -> Result<()> {
        check_place(reference)?;
        self.replace(reference, bytes.into())
    }

    /// As [`Transaction::write`], also what the segment itself keeps.
    pub(super) fn replace(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<()> {
        check_size(bytes.len())?;
        check_whole(reference)?;
        let written = self.inner.write(reference, bytes);
        written.map_err(|stop| self.stopped(stop))
    }

    /// Has the home run a procedure on an object. It need not be read before, and is not by that: transactions that run
    /// procedures on the same object at once do not conflict, and all count (rule C8).
    ///
    /// The home runs it when it commits, so only a later transaction reads the result for nothing. If this one reads the
    /// object afterwards, the object counts as read and replaced. A transaction over several homes runs no procedures.
    ///
    /// ```
    /// # use thorp_client::{JoinConfig, Member, Procedure};
    /// # let village = thorp_testing::Village::new();
    /// # let home = village.home("alps");
    /// # let joining = JoinConfig::new(home.address()).identity(village.member("me"));
    /// # let member = Member::join(joining)?;
    /// # let visits = member.open_or_create("thorp://alps/visits")?;
    /// let count = member.transact(|tx| tx.create_typed(&visits, &0_i64))?;
    /// member.transact(|tx| tx.apply(count.as_ref(), Procedure::Add(1)))?;
    /// assert_eq!(member.transact(|tx| tx.get(&count))?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Transaction::write`]. [`Invalid`](crate::ErrorKind::Invalid) if it cannot run on what this transaction wrote
    /// there. The commit fails with the same if it cannot run on what the home finds, or if the transaction has several homes.
    pub fn apply(&mut self, reference: &Reference, procedure: Procedure) -> Result<()> {
        check_place(reference)?;
        check_whole(reference)?;
        let applied = self.inner.apply(reference, procedure);
        applied.map_err(|stop| self.stopped(stop))
    }

    /// Replaces a part of an object's bytes, from the reference's offset plus `offset` on, within its length. Only that
    /// part travels (of a large object, the whole). It counts as a read of the object.
    ///
    /// # Errors
    ///
    /// As [`Transaction::read`]; [`Invalid`](crate::ErrorKind::Invalid) if the part does not lie within the object.
    pub fn patch(&mut self, reference: &Reference, offset: u64, bytes: &[u8]) -> Result<()> {
        block_on(self.patch_async(reference, offset, bytes))
    }

    /// As [`Transaction::patch`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::patch`].
    pub async fn patch_async(
        &mut self,
        reference: &Reference,
        offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        self.begin_writing()?;
        let whole = Reference {
            offset: 0,
            ..*reference
        };
        check_place(&whole)?;
        let found = self.ready(&whole).await?;
        let base = self.show(&whole, found)?;
        let part = part_of(
            base.len(),
            reference.offset.saturating_add(offset),
            bytes.len(),
        )?;
        let Found::Here(found) = found else {
            return Err(self.gone(&whole));
        };
        // Its own are patched where they are.
        let base = match found {
            In::Own => Vec::new(),
            _ => base.to_vec(),
        };
        self.large.remove(&(&whole).into());
        let patched = self.inner.patch(&whole, found, base, part, bytes);
        patched.map_err(|stop| self.stopped(stop))
    }

    /// Makes an object, next to what this member made last in the segment.
    ///
    /// # Errors
    ///
    /// As [every call of a transaction](crate::Transaction#errors); [`TooLarge`](crate::ErrorKind::TooLarge) above
    /// [`OBJECT_BYTES_MAX`], [`NotFound`](crate::ErrorKind::NotFound) if the segment was removed,
    /// [`Busy`](crate::ErrorKind::Busy) and [`Full`](crate::ErrorKind::Full) if its home grants no new pages.
    pub fn create(&mut self, segment: &Segment, bytes: impl Into<Vec<u8>>) -> Result<Reference> {
        let bytes = bytes.into();
        let allocator = Arc::clone(segment.allocator());
        match self.create_now(&allocator, ANYWHERE, bytes)? {
            Ok(reference) => Ok(reference),
            Err(bytes) => block_on(self.create_when_granted(&allocator, ANYWHERE, bytes)),
        }
    }

    /// As [`Transaction::create`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::create`].
    pub async fn create_async(
        &mut self,
        segment: &Segment,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<Reference> {
        let bytes = bytes.into();
        let allocator = Arc::clone(segment.allocator());
        match self.create_now(&allocator, ANYWHERE, bytes)? {
            Ok(reference) => Ok(reference),
            Err(bytes) => self.create_when_granted(&allocator, ANYWHERE, bytes).await,
        }
    }

    /// Makes an object near another one. It goes into the same page if this member made the other object there and
    /// there is space; else where this member puts what is near that. What is used together should lie together.
    ///
    /// # Errors
    ///
    /// As [`Transaction::create`].
    pub fn create_near(
        &mut self,
        near: &Reference,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<Reference> {
        let bytes = bytes.into();
        let (allocator, place) = self.placing_of(near);
        match self.create_now(&allocator, place, bytes)? {
            Ok(reference) => Ok(reference),
            Err(bytes) => block_on(self.create_when_granted(&allocator, place, bytes)),
        }
    }

    /// As [`Transaction::create_near`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::create`].
    pub async fn create_near_async(
        &mut self,
        near: &Reference,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<Reference> {
        let bytes = bytes.into();
        let (allocator, place) = self.placing_of(near);
        match self.create_now(&allocator, place, bytes)? {
            Ok(reference) => Ok(reference),
            Err(bytes) => self.create_when_granted(&allocator, place, bytes).await,
        }
    }

    /// Reserves a slot for an object that another transaction makes ([`Transaction::create_at`]).
    pub(crate) async fn reserve(
        &mut self,
        segment: &Segment,
        bytes: &[u8],
    ) -> Result<(Reference, HeldSlots)> {
        let reference = self.create_async(segment, bytes).await?;
        let slots = self.inner.writes_mut().give_back().flatten();
        Ok((reference, HeldSlots::new(slots.collect())))
    }

    /// Makes an object in a slot that somebody holds for it.
    pub(crate) fn create_at(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<()> {
        check_size(bytes.len())?;
        let begun = self.inner.begin_creating(reference.home);
        begun.map_err(|stop| self.stopped(stop))?;
        self.inner.create(reference, bytes, None);
        Ok(())
    }

    /// Deletes an object; it need not be read before.
    ///
    /// # Errors
    ///
    /// As [every call of a transaction](crate::Transaction#errors); [`Gone`](crate::ErrorKind::Gone) if this
    /// transaction deleted it already, and [`Invalid`](crate::ErrorKind::Invalid) if the reference points into an
    /// object. The commit fails if the object is not there.
    pub fn delete(&mut self, reference: &Reference) -> Result<()> {
        check_place(reference)?;
        check_whole(reference)?;
        let deleted = self.inner.delete(reference);
        // The slot of an object that it created itself is not given back: the program may have stored the reference,
        // which would name the next object there.
        deleted.map(drop).map_err(|stop| self.stopped(stop))
    }

    /// Makes an object in a system page, near another one that is there. It may grow to `room` bytes before its home
    /// has to move it.
    pub(super) async fn create_system(
        &mut self,
        near: &Reference,
        bytes: Vec<u8>,
        room: usize,
    ) -> Result<Reference> {
        let page = near.object.page;
        let allocator = self.shared.allocators.get(near.home, page.segment);
        let placing = Placing {
            area: Area::System,
            near: page.page.is_system().then_some(page.page),
            room,
        };
        match self.create_now(&allocator, placing, bytes)? {
            Ok(reference) => Ok(reference),
            Err(bytes) => self.create_when_granted(&allocator, placing, bytes).await,
        }
    }

    /// As [`Transaction::delete`], what is in a system page.
    pub(super) fn delete_system(&mut self, reference: &Reference) -> Result<()> {
        let deleted = self.inner.delete(reference);
        deleted.map(drop).map_err(|stop| self.stopped(stop))
    }

    fn placing_of(&self, near: &Reference) -> (Arc<Allocator>, Placing) {
        let page = near.object.page;
        let placing = Placing {
            near: Some(page.page),
            ..ANYWHERE
        };
        let allocator = self.shared.allocators.get(near.home, page.segment);
        (allocator, placing)
    }

    /// Makes an object if a slot is free; else gives the bytes back.
    fn create_now(
        &mut self,
        allocator: &Arc<Allocator>,
        placing: Placing,
        bytes: Vec<u8>,
    ) -> Result<Result<Reference, Vec<u8>>> {
        let begun = self.inner.begin_creating(allocator.home);
        begun.map_err(|stop| self.stopped(stop))?;
        check_size(bytes.len())?;
        let in_page = match bytes.len() {
            0..=INLINE_VALUE_BYTES_MAX => bytes.len().max(placing.room),
            _ => OVERFLOW_HEAD_BYTES,
        };
        let due = self.fetch_due();
        let Placing { area, near, .. } = placing;
        match allocator.take(&self.shared.requests, (area, near), in_page, due) {
            Some(taken) => {
                if taken.begins_page {
                    // A cached page that is being filled is kept up to date: reads of it need no message.
                    let place = allocator.place(taken.page);
                    self.shared.prefetcher.prefetch(place);
                }
                Ok(Ok(self.create_in(allocator, taken, bytes)))
            }
            None => Ok(Err(bytes)),
        }
    }

    async fn create_when_granted(
        &mut self,
        allocator: &Arc<Allocator>,
        placing: Placing,
        mut bytes: Vec<u8>,
    ) -> Result<Reference> {
        let (since, due) = (Instant::now(), self.fetch_due());
        loop {
            allocator
                .refill(&self.shared.requests, placing.area, due)
                .await?;
            // Its home has answered for the segment.
            self.shared.allocators.keep(allocator);
            // Another thread may have been quicker.
            match self.create_now(allocator, placing, bytes)? {
                Ok(reference) => {
                    self.shared.counters.waited_for_room(since);
                    return Ok(reference);
                }
                Err(back) => bytes = back,
            }
        }
    }

    fn create_in(
        &mut self,
        allocator: &Arc<Allocator>,
        taken: Reservation,
        bytes: Vec<u8>,
    ) -> Reference {
        let reference = Reference {
            home: allocator.home,
            object: object_in(allocator.segment, taken),
            // Slots are taken from fresh pages: nothing was there before.
            generation: self.shared.homes.first_generation(allocator.home),
            offset: 0,
        };
        let reserved = Some((Arc::clone(allocator), taken));
        self.inner.create(&reference, bytes, reserved);
        reference
    }
}

/// Where a new object goes.
#[derive(Clone, Copy)]
struct Placing {
    area: Area,
    near: Option<PageNo>,
    /// Bytes that are kept for it, if it has less.
    room: usize,
}

/// Next to what was made last.
const ANYWHERE: Placing = Placing {
    area: Area::Objects,
    near: None,
    room: 0,
};

fn object_in(segment: SegmentId, taken: Reservation) -> ObjectId {
    ObjectId {
        page: PageId {
            segment,
            page: taken.page,
        },
        slot: taken.slot,
    }
}

/// Programs write objects, not what a segment keeps of itself.
fn check_place(reference: &Reference) -> Result<()> {
    let page = reference.object.page.page;
    if page == HEAD_PAGE || !page.is_of_objects() {
        return Err(Error::invalid(
            "this is no object of a program: its segment keeps something of its own there (named roots are set with set_root, or `thorp put --root`)",
        ));
    }
    Ok(())
}

fn check_whole(reference: &Reference) -> Result<()> {
    if reference.offset != 0 {
        return Err(Error::invalid(
            "a whole object is replaced or deleted, and the reference points into one: use patch",
        ));
    }
    Ok(())
}

fn check_size(bytes: usize) -> Result<()> {
    if bytes as u64 > OBJECT_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("an object has at most {OBJECT_BYTES_MAX} bytes, and this is one of {bytes}"),
        ));
    }
    Ok(())
}

/// The part of an object that a patch replaces.
fn part_of(size: usize, offset: u64, len: usize) -> Result<Range<usize>> {
    let start = usize::try_from(offset).ok();
    let end = start.and_then(|start| start.checked_add(len));
    match start.zip(end) {
        Some((start, end)) if end <= size => Ok(start..end),
        _ => Err(Error::invalid(format!(
            "a patch of {len} bytes at {offset} does not lie within an object of {size} bytes"
        ))),
    }
}
