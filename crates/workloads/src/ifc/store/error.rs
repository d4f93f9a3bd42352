//! What can go wrong with a building in a store.

use std::fmt;

use thorp_client::{Error, ErrorKind};

use crate::ifc::IfcError;
use crate::objects::Store;
use crate::step::{EntityId, StepError};

/// Why something with a building in a store could not be done. It then has had no effect, unless the store says that it
/// does not know.
#[derive(Debug)]
pub enum StoreError {
    /// The store's own error; its kind says what to do.
    Store(Error),
    /// The edit or walk does not suit the model.
    Ifc(IfcError<Error>),
    /// What is stored makes no valid file.
    Step(StepError),
    /// The segment has no building: import one.
    NoModel,
    /// The segment has a building already: use another segment, or remove this one.
    ModelExists,
    /// The file to import uses an entity that it does not have.
    Dangling(EntityId),
}

impl StoreError {
    /// Whether what failed certainly had no effect.
    pub(super) fn is_certain(&self) -> bool {
        let Self::Store(error) = self else {
            return true;
        };
        !matches!(
            error.kind(),
            ErrorKind::OutcomeUnknown(_) | ErrorKind::OutcomeLost | ErrorKind::Closed
        )
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(out),
            Self::Ifc(error) => error.fmt(out),
            Self::Step(error) => write!(out, "what is stored makes no valid file: {error}"),
            Self::NoModel => out.write_str("the segment has no building: import one"),
            Self::ModelExists => {
                out.write_str("the segment has a building: use another one, or remove it first")
            }
            Self::Dangling(id) => write!(out, "the file uses {id} and does not have it"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Ifc(error) => Some(error),
            Self::Step(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<StepError> for StoreError {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
}

/// Runs a transaction whose work can also fail for the model's own reasons. The store's errors go through to it, so that
/// it repeats what conflicted; any other ends the transaction and comes out as it is.
pub(super) fn transact<S: Store, T>(
    store: &S,
    mut work: impl for<'a, 'b> FnMut(&'b mut S::Objects<'a>) -> Result<T, IfcError<Error>>,
) -> Result<T, StoreError> {
    let mut unsuitable = None;
    let done = store.transact(|objects| {
        unsuitable = None;
        work(objects).map_err(|error| match error {
            IfcError::Model(error) => error,
            other => {
                let aborted = Error::aborted(other.to_string());
                unsuitable = Some(other);
                aborted
            }
        })
    });
    done.map_err(|error| match unsuitable {
        Some(unsuitable) if error.kind() == ErrorKind::Aborted => StoreError::Ifc(unsuitable),
        _ => StoreError::Store(error),
    })
}
