//! Named roots: where programs that come later begin. They are one object of the segment, made when the first is set.

use super::Transaction;
use crate::head_page::{HEAD_PAGE, ROOTS_SLOT};
use crate::limits::ROOT_NAME_BYTES_MAX;
use crate::runtime::block_on;
use crate::{Error, Reference, Result, Segment};
use std::collections::BTreeMap;
use thorp_model::{Generation, ObjectId};
use thorp_session::Act;

type Roots = BTreeMap<String, Reference>;

impl Transaction {
    /// A segment's named root.
    ///
    /// # Errors
    ///
    /// As [`Transaction::read`]; that there is no such root is no error.
    pub fn root(&mut self, segment: &Segment, name: &str) -> Result<Option<Reference>> {
        block_on(self.root_async(segment, name))
    }

    /// As [`Transaction::root`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::root`].
    pub async fn root_async(&mut self, segment: &Segment, name: &str) -> Result<Option<Reference>> {
        let roots = self.all_roots(segment).await?;
        Ok(roots.and_then(|roots| roots.get(name).copied()))
    }

    /// Sets a named root, or takes it away. A name has 1 to [`ROOT_NAME_BYTES_MAX`] bytes, and no control characters.
    ///
    /// # Errors
    ///
    /// As [`Transaction::root`]; [`Invalid`](crate::ErrorKind::Invalid) if the name is none, and
    /// [`TooLarge`](crate::ErrorKind::TooLarge) if all roots together do not fit into an object.
    pub fn set_root(
        &mut self,
        segment: &Segment,
        name: &str,
        reference: Option<Reference>,
    ) -> Result<()> {
        block_on(self.set_root_async(segment, name, reference))
    }

    /// As [`Transaction::set_root`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::set_root`].
    pub async fn set_root_async(
        &mut self,
        segment: &Segment,
        name: &str,
        reference: Option<Reference>,
    ) -> Result<()> {
        if reference.is_some() {
            check_name(name)?;
        }
        self.begin_writing()?;
        let known = self.all_roots(segment).await?;
        let is_first = known.is_none();
        let mut roots = known.unwrap_or_default();
        match reference {
            Some(reference) => roots.insert(name.to_owned(), reference),
            None => roots.remove(name),
        };
        let bytes = postcard::to_allocvec(&roots)
            .map_err(|error| Error::invalid(format!("roots cannot be encoded: {error}")))?;
        let object = roots_of(segment);
        if is_first {
            let act = Act::Created(bytes);
            let writes = self.inner.writes_mut();
            writes.set((&object).into(), object.generation, act);
            return Ok(());
        }
        self.replace(&object, bytes)
    }

    /// All named roots, in the order of their names.
    ///
    /// # Errors
    ///
    /// As [`Transaction::root`].
    pub fn roots(&mut self, segment: &Segment) -> Result<Vec<(String, Reference)>> {
        block_on(self.roots_async(segment))
    }

    /// As [`Transaction::roots`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::root`].
    pub async fn roots_async(&mut self, segment: &Segment) -> Result<Vec<(String, Reference)>> {
        let roots = self.all_roots(segment).await?;
        Ok(roots.unwrap_or_default().into_iter().collect())
    }

    /// The roots; none if none was ever set.
    async fn all_roots(&mut self, segment: &Segment) -> Result<Option<Roots>> {
        let object = roots_of(segment);
        if !self.exists_async(&object).await? {
            return Ok(None);
        }
        let bytes = self.read_async(&object).await?;
        let roots = postcard::from_bytes(bytes).map_err(|error| {
            Error::damaged(format!(
                "the roots of {} are damaged: {error}",
                segment.name()
            ))
        })?;
        Ok(Some(roots))
    }
}

/// It is printed and typed by people.
fn check_name(name: &str) -> Result<()> {
    if (1..=ROOT_NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let shown: String = name.chars().take(40).collect();
    Err(Error::invalid(format!(
        "{shown:?} is no name for a root: it has 1 to {ROOT_NAME_BYTES_MAX} bytes, and no control characters"
    )))
}

fn roots_of(segment: &Segment) -> Reference {
    let allocator = segment.allocator();
    Reference {
        home: allocator.home,
        object: ObjectId {
            page: allocator.place(HEAD_PAGE).page,
            slot: ROOTS_SLOT,
        },
        generation: Generation(1),
        offset: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_roots_can_be_printed() {
        for good in ["greeting", "Grüße an alle", "a/b"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        let long = "a".repeat(ROOT_NAME_BYTES_MAX + 1);
        for bad in ["", "a\nb", "\u{1b}[31m", &long] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }
}
