//! Named roots: where programs that come later begin.

mod map;
mod nodes;

use super::Transaction;
use crate::head_page::{HEAD_PAGE, ROOTS_SLOT};
use crate::limits::ROOT_NAME_BYTES_MAX;
use crate::runtime::block_on;
use crate::{Error, Reference, Result, Segment};
use map::Roots;
use thorp_model::{Generation, ObjectId};

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
        Roots::of(self, segment).await?.get(name).await
    }

    /// Sets a named root, or takes it away. A name has 1 to [`ROOT_NAME_BYTES_MAX`] bytes, and no control characters.
    ///
    /// The roots of a segment are an ordered map, so a change sends and writes as much in a segment of many roots as in
    /// one of few. Transactions that set different roots do not conflict. Only one that adds or removes a name may
    /// conflict with another of a name near it: [`Member::transact`](crate::Member::transact) runs that again.
    ///
    /// # Errors
    ///
    /// As [`Transaction::root`] and [`Transaction::create`]; [`Invalid`](crate::ErrorKind::Invalid) if the name is none.
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
        let roots = Roots::of(self, segment).await?;
        match reference {
            Some(reference) => roots.set(name, reference).await,
            None => roots.remove(name).await,
        }
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
        Roots::of(self, segment).await?.all().await
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
