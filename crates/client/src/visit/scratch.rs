//! What changes of collections do to the nodes that a visit sees.

use crate::{Error, ErrorKind, Reference, Result};
use std::collections::BTreeMap;
use thorp_model::{PageNo, Slot};

/// Nodes of collections as the visit sees them after its own changes. They never leave: the commit that publishes the changes
/// makes nodes of its own.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// None: the node is deleted.
    nodes: BTreeMap<Reference, Option<Vec<u8>>>,
    made: u32,
    /// The view has moved since.
    is_stale: bool,
}

impl Scratch {
    /// The view has moved: the changes are to be made anew over it.
    pub(super) fn is_old(&mut self) {
        self.is_stale = true;
    }

    /// Whether it has to be made anew. Then it is empty, and counts as made.
    pub(super) fn take_stale(&mut self) -> bool {
        let is_stale = std::mem::take(&mut self.is_stale);
        if is_stale {
            self.nodes.clear();
            self.made = 0;
        }
        is_stale
    }

    /// Whether a node is here, or is deleted here.
    pub(super) fn has(&self, node: &Reference) -> bool {
        self.nodes.contains_key(node)
    }

    /// A node that is here.
    pub(super) fn read(&self, node: &Reference) -> Result<&[u8]> {
        let bytes = self.nodes.get(node).and_then(Option::as_deref);
        bytes.ok_or_else(|| {
            let gone = "a change of this visit has deleted the node";
            Error::new(ErrorKind::Gone, gone)
        })
    }

    /// A node changes.
    pub(super) fn write(&mut self, node: &Reference, bytes: Option<Vec<u8>>) {
        self.nodes.insert(*node, bytes);
    }

    /// Makes a node in the segment of another one. Its name is that of no object: no reference leads
    /// to an overflow page.
    pub(super) fn create(&mut self, near: &Reference, bytes: Vec<u8>) -> Result<Reference> {
        let page = PageNo(u32::MAX - self.made);
        if page < PageNo::OVERFLOW_FIRST {
            let many = "too many changes of collections wait in this visit: publish before";
            return Err(Error::new(ErrorKind::TooLarge, many));
        }
        self.made += 1;
        let mut node = *near;
        node.object.page.page = page;
        node.object.slot = Slot(0);
        self.nodes.insert(node, Some(bytes));
        Ok(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Generation, HomeId, ObjectId, PageId};

    #[test]
    fn nodes_are_made_without_names_of_objects() {
        let mut scratch = Scratch::default();
        let root = Reference {
            home: HomeId(1),
            object: ObjectId {
                page: PageId::new(1, 1),
                slot: Slot(3),
            },
            generation: Generation(1),
            offset: 0,
        };
        let first = scratch.create(&root, b"first".to_vec()).unwrap();
        let second = scratch.create(&first, b"second".to_vec()).unwrap();
        assert!(first != second && !scratch.has(&root));
        assert_eq!(scratch.read(&second).unwrap(), b"second");
        scratch.write(&second, None);
        let gone = scratch.read(&second).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::Gone);
        assert!(!scratch.take_stale() && scratch.has(&first));
        scratch.is_old();
        assert!(scratch.take_stale() && !scratch.has(&first));
    }
}
