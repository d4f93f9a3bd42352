//! Objects that hold values of a type, in a visit.

use super::Visit;
use crate::runtime::block_on;
use crate::transaction::{decode, encode};
use crate::{Ref, Result, Segment};
use serde::Serialize;
use serde::de::DeserializeOwned;

impl Visit {
    /// An object's value, with this visit's own updates.
    ///
    /// # Errors
    ///
    /// As [`Visit::read`]; [`DataDamaged`](crate::ErrorKind::DataDamaged) if the bytes are no value of this type.
    pub fn get<T: DeserializeOwned>(&mut self, reference: &Ref<T>) -> Result<T> {
        block_on(self.get_async(reference))
    }

    /// As [`Visit::get`].
    ///
    /// # Errors
    ///
    /// As [`Visit::get`].
    pub async fn get_async<T: DeserializeOwned>(&mut self, reference: &Ref<T>) -> Result<T> {
        let reference = reference.as_ref();
        let bytes = self.read_async(reference).await?;
        let value = decode(&bytes);
        value.map_err(|other| other.of(self.member.shared().naming().object(reference)))
    }

    /// Replaces an object's value.
    ///
    /// # Errors
    ///
    /// As [`Visit::write`]; [`Invalid`](crate::ErrorKind::Invalid) if the value cannot be encoded.
    pub fn put<T: Serialize>(&mut self, reference: &Ref<T>, value: &T) -> Result<()> {
        self.write(reference.as_ref(), encode(value)?)
    }

    /// Makes an object that holds a value.
    ///
    /// # Errors
    ///
    /// As [`Visit::create`]; [`Invalid`](crate::ErrorKind::Invalid) if the value cannot be encoded.
    pub fn create_typed<T: Serialize>(&mut self, segment: &Segment, value: &T) -> Result<Ref<T>> {
        self.create(segment, encode(value)?).map(Ref::new)
    }

    /// As [`Visit::create_typed`].
    ///
    /// # Errors
    ///
    /// As [`Visit::create_typed`].
    pub async fn create_typed_async<T: Serialize>(
        &mut self,
        segment: &Segment,
        value: &T,
    ) -> Result<Ref<T>> {
        let bytes = encode(value)?;
        self.create_async(segment, bytes).await.map(Ref::new)
    }
}
