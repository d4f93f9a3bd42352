//! What an insertion or a removal changes.

use super::super::Access;
use crate::{Reference, Result};

/// What one insertion or removal changes: at most one change of each node. They are made together at the end, so the
/// tree stays whole if the call gives up before, because a page does not come.
#[derive(Default)]
pub(super) struct Changes(Vec<(Reference, Option<Vec<u8>>)>);

impl Changes {
    pub(super) fn write(&mut self, at: Reference, bytes: Vec<u8>) {
        self.set(at, Some(bytes));
    }

    pub(super) fn delete(&mut self, at: Reference) {
        self.set(at, None);
    }

    fn set(&mut self, at: Reference, bytes: Option<Vec<u8>>) {
        self.0.retain(|(other, _)| *other != at);
        self.0.push((at, bytes));
    }

    pub(super) fn written(&self, at: &Reference) -> Option<&[u8]> {
        let change = self.0.iter().find(|(other, _)| other == at);
        change.and_then(|(_, bytes)| bytes.as_deref())
    }

    pub(super) fn make<A: Access>(self, tx: &mut A) -> Result<()> {
        for (at, bytes) in self.0 {
            match bytes {
                Some(bytes) => tx.write(&at, bytes)?,
                None => tx.delete(&at)?,
            }
        }
        Ok(())
    }
}
