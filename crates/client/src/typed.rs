//! References that know the type of their object.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use thorp_model::Reference;

/// A reference to an object that holds a `T` (encoded by postcard). As small and as free to copy as a [`Reference`],
/// and storable in objects, so that objects of a graph can name one another.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use thorp_client::Ref;
///
/// #[derive(Serialize, Deserialize)]
/// struct Person {
///     name: String,
///     friends: Vec<Ref<Person>>,
/// }
/// ```
pub struct Ref<T> {
    reference: Reference,
    // A `Ref<T>` holds no T: it is `Send`, `Sync` and covariant whatever T is.
    of: PhantomData<fn() -> T>,
}

impl<T> Ref<T> {
    /// Says of which type the object is. Nothing is checked before it is read.
    pub const fn new(reference: Reference) -> Self {
        Ref {
            reference,
            of: PhantomData,
        }
    }

    /// The reference without the type.
    pub const fn reference(self) -> Reference {
        self.reference
    }

    /// The same object as another type: for types that changed their name, not their encoding.
    pub const fn cast<U>(self) -> Ref<U> {
        Ref::new(self.reference)
    }
}

impl<T> From<Reference> for Ref<T> {
    fn from(reference: Reference) -> Self {
        Ref::new(reference)
    }
}

impl<T> From<Ref<T>> for Reference {
    fn from(typed: Ref<T>) -> Reference {
        typed.reference
    }
}

impl<T> AsRef<Reference> for Ref<T> {
    fn as_ref(&self) -> &Reference {
        &self.reference
    }
}

// By hand: derived ones would ask the same of T.
impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<T> {}

impl<T> PartialEq for Ref<T> {
    fn eq(&self, other: &Self) -> bool {
        self.reference == other.reference
    }
}

impl<T> Eq for Ref<T> {}

impl<T> PartialOrd for Ref<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Ref<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.reference.cmp(&other.reference)
    }
}

impl<T> Hash for Ref<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.reference.hash(state);
    }
}

impl<T> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reference.fmt(f)
    }
}

impl<T> Serialize for Ref<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.reference.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for Ref<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let reference = Reference::deserialize(deserializer)?;
        crate::referred::met(reference);
        Ok(Ref::new(reference))
    }
}
