//! What the workloads need of a store: objects of one segment, read and written in transactions.
//!
//! [`MemberStore`] is a segment of a village, [`MemoryStore`] this process's memory.

mod indexed;
mod member;
mod memory;

pub(crate) use indexed::Indexed;
pub use member::{MemberObjects, MemberStore};
pub use memory::{MemoryObjects, MemoryStore};

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thorp_client::{Error, Reference, Result, Stats};

/// A segment that can be worked on.
pub trait Store {
    /// A transaction's view of it.
    type Objects<'a>: Objects
    where
        Self: 'a;

    /// Runs a transaction and commits it; again, if it conflicts with others. What `work` does besides, it may do
    /// several times; its error ends the transaction without effect.
    ///
    /// # Errors
    /// Those of `work` and of the store.
    fn transact<T>(
        &self,
        work: impl for<'a, 'b> FnMut(&'b mut Self::Objects<'a>) -> Result<T>,
    ) -> Result<T>;

    /// What was counted so far.
    fn stats(&self) -> Stats {
        Stats::default()
    }
}

/// The objects of one segment as a transaction sees and changes them. Objects of other segments can be read through
/// their references; new ones are made in this segment.
pub trait Objects: Send {
    /// An object's bytes.
    ///
    /// # Errors
    /// The object is gone or cannot be had, or the transaction has failed. So for all methods.
    fn read(&mut self, reference: &Reference) -> Result<&[u8]>;

    /// A part of an object's bytes, which need not bring in all of a large object.
    ///
    /// # Errors
    /// As [`Objects::read`].
    fn read_at(&mut self, reference: &Reference, offset: u64, len: usize) -> Result<Vec<u8>>;

    /// How many bytes an object has.
    ///
    /// # Errors
    /// As [`Objects::read`].
    fn size(&mut self, reference: &Reference) -> Result<u64>;

    /// Replaces an object's bytes.
    ///
    /// # Errors
    /// As [`Objects::read`].
    fn write(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<()>;

    /// Replaces a part of an object's bytes, within its length.
    ///
    /// # Errors
    /// As [`Objects::read`].
    fn patch(&mut self, reference: &Reference, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Makes an object next to the last one made.
    ///
    /// # Errors
    /// As [`Objects::read`].
    fn create(&mut self, bytes: Vec<u8>) -> Result<Reference>;

    /// Makes an object near another one, if there is room.
    ///
    /// # Errors
    /// As [`Objects::read`].
    fn create_near(&mut self, near: &Reference, bytes: Vec<u8>) -> Result<Reference>;

    /// Deletes an object.
    ///
    /// # Errors
    /// As [`Objects::read`].
    fn delete(&mut self, reference: &Reference) -> Result<()>;

    /// The segment's root of that name.
    ///
    /// # Errors
    /// As [`Objects::read`].
    fn root(&mut self, name: &str) -> Result<Option<Reference>>;

    /// Sets the segment's root of that name.
    ///
    /// # Errors
    /// As [`Objects::read`].
    fn set_root(&mut self, name: &str, reference: &Reference) -> Result<()>;

    /// Says that these will be read soon.
    fn prefetch(&mut self, references: &[Reference]) {
        let _ = references;
    }

    /// An object's value.
    ///
    /// # Errors
    /// As [`Objects::read`], or [`Damaged`].
    fn get<T: DeserializeOwned>(&mut self, reference: &Reference) -> Result<T> {
        postcard::from_bytes(self.read(reference)?)
            .map_err(|_| Damaged("an object is not of the type it should be").into())
    }
}

/// An object does not hold what the workload has put there. As a [`thorp_client::Error`] it is what the program gave
/// up for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged(pub &'static str);

impl fmt::Display for Damaged {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl std::error::Error for Damaged {}

impl From<Damaged> for Error {
    fn from(damaged: Damaged) -> Self {
        Error::aborted_by(damaged)
    }
}

/// The bytes of a value, as [`Objects::get`] reads it.
///
/// # Errors
/// The value is of a type that has no bytes.
pub fn encoded<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    postcard::to_allocvec(value).map_err(|_| Damaged("a value cannot be encoded").into())
}
