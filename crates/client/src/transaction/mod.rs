//! Transactions.

use crate::{Committed, Error, Ref, Reference, Result, Segment};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A transaction: all of it happens, at one moment, or nothing. It sees one state of the home, with its own writes over
/// it. Dropped without [`Transaction::commit`], it has no effect.
///
/// All methods fail with [`Conflict`](crate::ErrorKind::Conflict) once the transaction is known to be hopeless.
#[derive(Debug)]
pub struct Transaction {}

impl Transaction {
    pub(crate) fn new() -> Self {
        Transaction {}
    }

    // --- Reading ---

    /// An object's bytes. From the cache if they are there; else the page is fetched.
    pub fn read(&mut self, reference: &Reference) -> Result<&[u8]> {
        let _ = reference;
        Err(Error::closed())
    }

    /// As [`Transaction::read`].
    pub async fn read_async(&mut self, reference: &Reference) -> Result<&[u8]> {
        let _ = reference;
        Err(Error::closed())
    }

    /// A part of an object's bytes, from the reference's offset plus `offset` on, and not beyond its end. Of a large object
    /// only the pages that hold the part are fetched.
    pub fn read_at(&mut self, reference: &Reference, offset: u64, len: usize) -> Result<Vec<u8>> {
        let _ = (reference, offset, len);
        Err(Error::closed())
    }

    /// As [`Transaction::read_at`].
    pub async fn read_at_async(
        &mut self,
        reference: &Reference,
        offset: u64,
        len: usize,
    ) -> Result<Vec<u8>> {
        let _ = (reference, offset, len);
        Err(Error::closed())
    }

    /// How many bytes an object has.
    pub fn len(&mut self, reference: &Reference) -> Result<u64> {
        let _ = reference;
        Err(Error::closed())
    }

    /// Whether the object is there. Its absence is read like a value: it conflicts with its creation.
    pub fn exists(&mut self, reference: &Reference) -> Result<bool> {
        let _ = reference;
        Err(Error::closed())
    }

    /// As [`Transaction::exists`].
    pub async fn exists_async(&mut self, reference: &Reference) -> Result<bool> {
        let _ = reference;
        Err(Error::closed())
    }

    /// Visits every object of a segment, in the order of pages and slots. No other commit can add, change or remove one
    /// without a conflict.
    pub fn scan(
        &mut self,
        segment: &Segment,
        visit: impl FnMut(Reference, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let _ = (segment, visit);
        Err(Error::closed())
    }

    /// As [`Transaction::scan`].
    pub async fn scan_async(
        &mut self,
        segment: &Segment,
        visit: impl FnMut(Reference, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let _ = (segment, visit);
        Err(Error::closed())
    }

    // --- Writing: nothing of it leaves this process before the commit ---

    /// Replaces an object's bytes; it need not be read before.
    pub fn write(&mut self, reference: &Reference, bytes: impl Into<Vec<u8>>) -> Result<()> {
        let _ = (reference, bytes.into());
        Err(Error::closed())
    }

    /// Replaces a part of an object's bytes, within its length. Only that part travels. It counts as a read of the object.
    pub fn patch(&mut self, reference: &Reference, offset: u64, bytes: &[u8]) -> Result<()> {
        let _ = (reference, offset, bytes);
        Err(Error::closed())
    }

    /// As [`Transaction::patch`].
    pub async fn patch_async(
        &mut self,
        reference: &Reference,
        offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let _ = (reference, offset, bytes);
        Err(Error::closed())
    }

    /// Makes an object, next to what this member made last in the segment.
    pub fn create(&mut self, segment: &Segment, bytes: impl Into<Vec<u8>>) -> Result<Reference> {
        let _ = (segment, bytes.into());
        Err(Error::closed())
    }

    /// As [`Transaction::create`].
    pub async fn create_async(
        &mut self,
        segment: &Segment,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<Reference> {
        let _ = (segment, bytes.into());
        Err(Error::closed())
    }

    /// Makes an object near another one: in its page if this member made that one there and there is room, else where this
    /// member puts what is near it. What is used together should lie together.
    pub fn create_near(
        &mut self,
        near: &Reference,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<Reference> {
        let _ = (near, bytes.into());
        Err(Error::closed())
    }

    /// As [`Transaction::create_near`].
    pub async fn create_near_async(
        &mut self,
        near: &Reference,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<Reference> {
        let _ = (near, bytes.into());
        Err(Error::closed())
    }

    /// Deletes an object.
    pub fn delete(&mut self, reference: &Reference) -> Result<()> {
        let _ = reference;
        Err(Error::closed())
    }

    // --- Typed ---

    /// An object's value.
    pub fn get<T: DeserializeOwned>(&mut self, reference: &Ref<T>) -> Result<T> {
        let _ = reference;
        Err(Error::closed())
    }

    /// As [`Transaction::get`].
    pub async fn get_async<T: DeserializeOwned>(&mut self, reference: &Ref<T>) -> Result<T> {
        let _ = reference;
        Err(Error::closed())
    }

    /// Replaces an object's value.
    pub fn put<T: Serialize>(&mut self, reference: &Ref<T>, value: &T) -> Result<()> {
        let _ = (reference, value);
        Err(Error::closed())
    }

    /// Makes an object that holds a value.
    pub fn create_typed<T: Serialize>(&mut self, segment: &Segment, value: &T) -> Result<Ref<T>> {
        let _ = (segment, value);
        Err(Error::closed())
    }

    /// As [`Transaction::create_typed`].
    pub async fn create_typed_async<T: Serialize>(
        &mut self,
        segment: &Segment,
        value: &T,
    ) -> Result<Ref<T>> {
        let _ = (segment, value);
        Err(Error::closed())
    }

    /// Makes an object that holds a value, near another one.
    pub fn create_typed_near<T: Serialize>(
        &mut self,
        near: &Reference,
        value: &T,
    ) -> Result<Ref<T>> {
        let _ = (near, value);
        Err(Error::closed())
    }

    /// As [`Transaction::create_typed_near`].
    pub async fn create_typed_near_async<T: Serialize>(
        &mut self,
        near: &Reference,
        value: &T,
    ) -> Result<Ref<T>> {
        let _ = (near, value);
        Err(Error::closed())
    }

    // --- Roots ---

    /// A segment's named root.
    pub fn root(&mut self, segment: &Segment, name: &str) -> Result<Option<Reference>> {
        let _ = (segment, name);
        Err(Error::closed())
    }

    /// As [`Transaction::root`].
    pub async fn root_async(&mut self, segment: &Segment, name: &str) -> Result<Option<Reference>> {
        let _ = (segment, name);
        Err(Error::closed())
    }

    /// Sets a named root, or takes it away.
    pub fn set_root(
        &mut self,
        segment: &Segment,
        name: &str,
        reference: Option<Reference>,
    ) -> Result<()> {
        let _ = (segment, name, reference);
        Err(Error::closed())
    }

    /// As [`Transaction::set_root`].
    pub async fn set_root_async(
        &mut self,
        segment: &Segment,
        name: &str,
        reference: Option<Reference>,
    ) -> Result<()> {
        let _ = (segment, name, reference);
        Err(Error::closed())
    }

    /// All named roots, in the order of their names.
    pub fn roots(&mut self, segment: &Segment) -> Result<Vec<(String, Reference)>> {
        let _ = segment;
        Err(Error::closed())
    }

    // --- The end ---

    /// Commits. One that only read asks nobody and does not wait (unless the session is strict); one that wrote waits
    /// until it is durable at the home.
    pub fn commit(self) -> Result<Committed> {
        Err(Error::closed())
    }

    /// As [`Transaction::commit`].
    pub async fn commit_async(self) -> Result<Committed> {
        Err(Error::closed())
    }

    /// Gives up: nothing has happened. Dropping does the same.
    pub fn abort(self) {}
}
