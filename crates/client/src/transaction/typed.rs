//! Objects that hold values of a type, encoded by postcard.

use super::read::Found;
use super::{Transaction, place_of};
use crate::referred::with_references;
use crate::runtime::block_on;
use crate::{Error, Ref, Reference, Result, Segment};
use serde::Serialize;
use serde::de::DeserializeOwned;

impl Transaction {
    /// An object's value.
    ///
    /// ```
    /// # use serde::{Deserialize, Serialize};
    /// # use thorp_client::{JoinConfig, Member, Ref, Result, Transaction};
    /// #[derive(Serialize, Deserialize)]
    /// struct Person { name: String, boss: Option<Ref<Person>> }
    ///
    /// fn top(tx: &mut Transaction, mut person: Ref<Person>) -> Result<Person> {
    ///     loop {
    ///         let value = tx.get(&person)?;
    ///         match value.boss {
    ///             Some(boss) => person = boss,
    ///             None => return Ok(value),
    ///         }
    ///     }
    /// }
    /// # let village = thorp_testing::Village::new();
    /// # let home = village.home("alps");
    /// # let joining = JoinConfig::new(home.address()).identity(village.member("me"));
    /// # let member = Member::join(joining)?;
    /// # let people = member.open_or_create("thorp://alps/people")?;
    ///
    /// let top = member.transact(|tx| {
    ///     let anna = Person { name: "Anna".to_owned(), boss: None };
    ///     let anna = tx.create_typed(&people, &anna)?;
    ///     let bert = Person { name: "Bert".to_owned(), boss: Some(anna) };
    ///     let bert = tx.create_typed(&people, &bert)?;
    ///     top(tx, bert)
    /// })?;
    /// assert_eq!(top.name, "Anna");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Transaction::read`]; [`DataDamaged`](crate::ErrorKind::DataDamaged) if the bytes are no value of this type.
    pub fn get<T: DeserializeOwned>(&mut self, reference: &Ref<T>) -> Result<T> {
        let reference = reference.as_ref();
        let found = self.find(reference)?;
        let is_new = self.is_new(reference, found);
        let found = match found {
            needed @ Found::Need(_) => block_on(self.settle(reference, needed))?,
            found => found,
        };
        self.decode(reference, found, is_new)
    }

    /// As [`Transaction::get`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::get`].
    pub async fn get_async<T: DeserializeOwned>(&mut self, reference: &Ref<T>) -> Result<T> {
        let reference = reference.as_ref();
        let found = self.find(reference)?;
        let is_new = self.is_new(reference, found);
        let found = self.settle(reference, found).await?;
        self.decode(reference, found, is_new)
    }

    /// Whether an object is read that was not here, or only because it was likely to be wanted: its reader is on its
    /// way from one to the other.
    fn is_new(&self, reference: &Reference, found: Found) -> bool {
        matches!(found, Found::Need(_)) || self.shared.prefetcher.is_open(place_of(reference))
    }

    /// What is new here refers to what may be wanted next.
    fn decode<T: DeserializeOwned>(
        &self,
        reference: &Reference,
        found: Found,
        is_new: bool,
    ) -> Result<T> {
        let bytes = self.show(reference, found)?;
        let value = if is_new {
            let (value, referred) = with_references(|| decode(bytes));
            self.shared.prefetcher.referred(&referred);
            value
        } else {
            decode(bytes)
        };
        value.map_err(|other| other.of(self.shared.naming().object(reference)))
    }

    /// Replaces an object's value.
    ///
    /// # Errors
    ///
    /// As [`Transaction::write`]; [`Invalid`](crate::ErrorKind::Invalid) if the value cannot be encoded.
    pub fn put<T: Serialize>(&mut self, reference: &Ref<T>, value: &T) -> Result<()> {
        self.write(reference.as_ref(), encode(value)?)
    }

    /// Makes an object that holds a value.
    ///
    /// # Errors
    ///
    /// As [`Transaction::create`]; [`Invalid`](crate::ErrorKind::Invalid) if the value cannot be encoded.
    pub fn create_typed<T: Serialize>(&mut self, segment: &Segment, value: &T) -> Result<Ref<T>> {
        self.create(segment, encode(value)?).map(Ref::new)
    }

    /// As [`Transaction::create_typed`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::create_typed`].
    pub async fn create_typed_async<T: Serialize>(
        &mut self,
        segment: &Segment,
        value: &T,
    ) -> Result<Ref<T>> {
        let bytes = encode(value)?;
        self.create_async(segment, bytes).await.map(Ref::new)
    }

    /// Makes an object that holds a value, near another one.
    ///
    /// # Errors
    ///
    /// As [`Transaction::create_typed`].
    pub fn create_typed_near<T: Serialize>(
        &mut self,
        near: &Reference,
        value: &T,
    ) -> Result<Ref<T>> {
        self.create_near(near, encode(value)?).map(Ref::new)
    }

    /// As [`Transaction::create_typed_near`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::create_typed`].
    pub async fn create_typed_near_async<T: Serialize>(
        &mut self,
        near: &Reference,
        value: &T,
    ) -> Result<Ref<T>> {
        let bytes = encode(value)?;
        self.create_near_async(near, bytes).await.map(Ref::new)
    }
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    postcard::to_allocvec(value)
        .map_err(|error| Error::invalid(format!("the value cannot be encoded: {error}")))
}

/// The value that an object's bytes are.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, OtherType> {
    let other = |why| OtherType {
        wanted: std::any::type_name::<T>(),
        why,
    };
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(other(format!("{} bytes are left over", rest.len()))),
        Err(error) => Err(other(error.to_string())),
    }
}

/// An object's bytes are no value of the type that the program expects.
#[derive(Debug)]
pub(crate) struct OtherType {
    wanted: &'static str,
    why: String,
}

impl OtherType {
    /// The error for the program: the bytes are seldom damaged, the home checks that.
    pub(crate) fn of(self, name: String) -> Error {
        let OtherType { wanted, why } = self;
        Error::damaged(format!(
            "object {name} holds no {wanted}: {why}. It was probably written as another type, or before a field was added \
             or removed: docs/changing-types.md"
        ))
        .about(name)
    }
}
