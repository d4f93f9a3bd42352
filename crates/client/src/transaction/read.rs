//! Reading objects.

use super::{ObjectAt, Transaction};
use crate::runtime::block_on;
use crate::{Error, ErrorKind, Reference, Result};
use std::time::Instant;
use thorp_model::{Overflow, Place};
use thorp_protocol::Source;
use thorp_session::{Found as In, Stop};

/// Where an object's bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// Here; a large object was put together.
    Here(In),
    /// Not here yet.
    Need(Need),
}

/// What has to be waited for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Need {
    /// A page.
    Page(Place),
    /// The pages of a large object.
    Whole(ObjectAt, Overflow),
}

impl Transaction {
    /// An object's bytes, from the reference's offset on. From the cache if they are there; else the page is fetched.
    ///
    /// # Errors
    ///
    /// As [every call of a transaction](crate::Transaction#errors); [`Gone`](crate::ErrorKind::Gone),
    /// [`NotFound`](crate::ErrorKind::NotFound) if the segment does not exist,
    /// [`DataDamaged`](crate::ErrorKind::DataDamaged) if the home's disk is, and [`Invalid`](crate::ErrorKind::Invalid)
    /// if the reference points beyond the object's end.
    pub fn read(&mut self, reference: &Reference) -> Result<&[u8]> {
        let found = match self.find(reference)? {
            needed @ Found::Need(_) => block_on(self.settle(reference, needed))?,
            found => found,
        };
        self.show(reference, found)
    }

    /// As [`Transaction::read`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::read`].
    pub async fn read_async(&mut self, reference: &Reference) -> Result<&[u8]> {
        let found = self.ready(reference).await?;
        self.show(reference, found)
    }

    /// Up to `len` bytes of an object, from the reference's offset plus `offset` on; fewer at its end. Of a large
    /// object only the pages that hold the part are fetched.
    ///
    /// # Errors
    ///
    /// As [every call of a transaction](crate::Transaction#errors); [`Gone`](crate::ErrorKind::Gone),
    /// [`NotFound`](crate::ErrorKind::NotFound) if the segment does not exist, and
    /// [`DataDamaged`](crate::ErrorKind::DataDamaged) if the home's disk is.
    pub fn read_at(&mut self, reference: &Reference, offset: u64, len: usize) -> Result<Vec<u8>> {
        block_on(self.read_at_async(reference, offset, len))
    }

    /// As [`Transaction::read_at`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::read_at`].
    pub async fn read_at_async(
        &mut self,
        reference: &Reference,
        offset: u64,
        len: usize,
    ) -> Result<Vec<u8>> {
        let from = reference.offset.saturating_add(offset);
        let found = self.ready_head(reference).await?;
        if let Found::Need(Need::Whole(_, overflow)) = found {
            return self.read_part(reference, overflow, from, len).await;
        }
        let whole = Reference {
            offset: 0,
            ..*reference
        };
        let bytes = self.show(&whole, found)?;
        let from = usize::try_from(from).map_or(bytes.len(), |from| from.min(bytes.len()));
        let end = from.saturating_add(len).min(bytes.len());
        Ok(bytes[from..end].to_vec())
    }

    /// How many bytes an object has, whatever the reference's offset. A large one is not fetched for that.
    ///
    /// # Errors
    ///
    /// As [`Transaction::read_at`].
    pub fn size(&mut self, reference: &Reference) -> Result<u64> {
        block_on(self.size_async(reference))
    }

    /// As [`Transaction::size`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::read_at`].
    pub async fn size_async(&mut self, reference: &Reference) -> Result<u64> {
        let found = self.ready_head(reference).await?;
        if let Found::Need(Need::Whole(_, overflow)) = found {
            return Ok(overflow.bytes);
        }
        let whole = Reference {
            offset: 0,
            ..*reference
        };
        self.show(&whole, found).map(|bytes| bytes.len() as u64)
    }

    /// Whether the object is there. Its absence is read like a value: it conflicts with a change of it.
    ///
    /// # Errors
    ///
    /// As [every call of a transaction](crate::Transaction#errors); [`NotFound`](crate::ErrorKind::NotFound) if the
    /// segment does not exist, and [`DataDamaged`](crate::ErrorKind::DataDamaged) if the home's disk is.
    pub fn exists(&mut self, reference: &Reference) -> Result<bool> {
        block_on(self.exists_async(reference))
    }

    /// As [`Transaction::exists`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::exists`].
    pub async fn exists_async(&mut self, reference: &Reference) -> Result<bool> {
        match self.ready_head(reference).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == crate::ErrorKind::Gone => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Looks for an object, and records that it was read. The hot path: no lock, no message.
    pub(super) fn find(&mut self, reference: &Reference) -> Result<Found> {
        match self.inner.find(&self.shared.cache, reference) {
            Ok(In::Large(overflow)) => {
                let at = ObjectAt::from(reference);
                Ok(match self.large.contains_key(&at) {
                    true => Found::Here(In::Large(overflow)),
                    false => Found::Need(Need::Whole(at, overflow)),
                })
            }
            Ok(found) => Ok(Found::Here(found)),
            Err(Stop::Miss(place)) => Ok(Found::Need(Need::Page(place))),
            Err(stop) => Err(self.stopped(stop)),
        }
    }

    /// Waits until an object's bytes are here.
    pub(super) async fn ready(&mut self, reference: &Reference) -> Result<Found> {
        let found = self.find(reference)?;
        self.settle(reference, found).await
    }

    /// Waits until an object's bytes are here, or it is known to be a large one.
    pub(super) async fn ready_head(&mut self, reference: &Reference) -> Result<Found> {
        let found = self.find(reference)?;
        self.settle_head(reference, found).await
    }

    /// Waits for what was found to be needed, until the object's bytes are here.
    pub(super) async fn settle(
        &mut self,
        reference: &Reference,
        mut found: Found,
    ) -> Result<Found> {
        loop {
            match self.settle_head(reference, found).await? {
                Found::Need(Need::Whole(object, overflow)) => {
                    let bytes = self.assemble(reference, overflow).await?;
                    self.large.insert(object, bytes);
                    found = self.find(reference)?;
                }
                found => return Ok(found),
            }
        }
    }

    /// Waits for the pages that were found to be needed. Each look that finds one missing is followed by one wait for
    /// it: what is counted as a miss is a wait.
    async fn settle_head(&mut self, reference: &Reference, mut found: Found) -> Result<Found> {
        let mut due = None;
        while let Found::Need(Need::Page(place)) = found {
            // A read of what is here needs no clock.
            let due = *due.get_or_insert_with(|| self.fetch_due());
            self.fetch(place, due).await?;
            found = self.find(reference)?;
        }
        Ok(found)
    }

    pub(super) async fn fetch(&mut self, place: Place, due: Instant) -> Result<()> {
        self.check_went_back(place.home)?;
        let homes = &self.shared.homes;
        homes.check_refused(place.home, &self.shared.requests)?;
        let since = Instant::now();
        // What is waited for goes first.
        let wait = self.shared.requests.fetch(place, due);
        self.shared.prefetcher.missed(place, self.inner.reads());
        let source = match self.shared.requests.fetched(wait, place, due).await {
            Ok(source) => source,
            Err(error) => return Err(self.not_fetched(place, error)),
        };
        if matches!(source, Some(Source::Home | Source::Site)) {
            self.shared.prefetcher.came(place, since.elapsed());
        }
        self.shared.counters.waited_for_page(since, source);
        Ok(())
    }

    /// A reference may lead to a home that neither this member nor its site has joined.
    fn not_fetched(&self, place: Place, error: Error) -> Error {
        if error.kind() == ErrorKind::HomeUnreachable && !self.shared.homes.is_known(place.home) {
            return Error::unreachable(
                "the reference leads to a home that this member has never heard of: join it, or have the site join it",
            );
        }
        match error.kind() {
            ErrorKind::HomeUnreachable | ErrorKind::NotFound | ErrorKind::DataDamaged => {
                error.with_subject(&self.shared.naming().page(place))
            }
            _ => error,
        }
    }

    /// The bytes that were found.
    pub(super) fn show(&self, reference: &Reference, found: Found) -> Result<&[u8]> {
        let bytes = match found {
            Found::Here(In::Large(_)) => self.large.get(&reference.into()).map(Vec::as_slice),
            Found::Here(found) => self.inner.bytes(reference, found),
            Found::Need(_) => None,
        };
        // Found a moment ago, and nothing happened since.
        let bytes = bytes.ok_or_else(|| self.gone(reference))?;
        if reference.offset == 0 {
            return Ok(bytes);
        }
        let offset = usize::try_from(reference.offset).unwrap_or(usize::MAX);
        bytes.get(offset..).ok_or_else(|| {
            Error::invalid(format!(
                "the reference points beyond the end of {}, which has {} bytes",
                self.shared.naming().object(reference),
                bytes.len()
            ))
        })
    }
}
