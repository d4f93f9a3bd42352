//! Where the nodes of a map of roots lie.

use super::super::Transaction;
use crate::collections::{Access, NODE_BYTES_MAX, TreeMap};
use crate::{Error, Reference, Result};

/// How the root node begins. It stands where a list of roots was at first: no list has so many entries.
const MARK: [u8; 11] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1,
];

/// Whether an object in the place of the roots is the root node of a map.
pub(super) fn is_map(bytes: &[u8]) -> bool {
    bytes.starts_with(&MARK)
}

/// The root node of a map without entries.
pub(super) fn empty_map() -> Result<Vec<u8>> {
    Ok(marked(&TreeMap::<String, Reference>::empty()?))
}

fn marked(node: &[u8]) -> Vec<u8> {
    [&MARK, node].concat()
}

/// The objects of a transaction, for a map whose root node is in the segment's first page and whose other nodes are in
/// system pages of that segment. No other object is read or changed, whatever somebody has written into a node.
pub(super) struct Nodes<'a> {
    pub(super) tx: &'a mut Transaction,
    /// The root node.
    pub(super) root: Reference,
}

impl Nodes<'_> {
    fn check(&self, node: &Reference) -> Result<()> {
        match *node == self.root || is_in_system_page_of(&self.root, node) {
            true => Ok(()),
            false => Err(not_of_roots(self.tx, &self.root)),
        }
    }
}

/// The roots that begin there lead to something that they may not lead to.
pub(super) fn not_of_roots(tx: &Transaction, root: &Reference) -> Error {
    let name = tx.shared.naming().object(root);
    Error::damaged(format!(
        "the roots that begin at {name} lead to an object that is none of theirs"
    ))
}

/// Whether an object lies where the nodes and the cells of these roots do.
pub(super) fn is_in_system_page_of(root: &Reference, object: &Reference) -> bool {
    let (page, own) = (object.object.page, root.object.page);
    object.home == root.home
        && page.segment == own.segment
        && page.page.is_system()
        && object.offset == 0
}

impl Access for Nodes<'_> {
    async fn read(&mut self, reference: &Reference) -> Result<&[u8]> {
        self.check(reference)?;
        let is_root = *reference == self.root;
        let bytes = self.tx.read_async(reference).await?;
        if !is_root {
            return Ok(bytes);
        }
        let node = bytes.strip_prefix(&MARK);
        node.ok_or_else(|| Error::damaged("the roots of a segment are no map any more"))
    }

    fn write(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<()> {
        self.check(reference)?;
        match *reference == self.root {
            true => self.tx.replace(reference, marked(&bytes)),
            false => self.tx.replace(reference, bytes),
        }
    }

    async fn create_near(&mut self, near: &Reference, bytes: Vec<u8>) -> Result<Reference> {
        self.check(near)?;
        self.tx.create_system(near, bytes, NODE_BYTES_MAX).await
    }

    fn delete(&mut self, reference: &Reference) -> Result<()> {
        match is_in_system_page_of(&self.root, reference) {
            true => self.tx.delete_system(reference),
            false => Err(not_of_roots(self.tx, &self.root)),
        }
    }

    fn name_of(&self, reference: &Reference) -> String {
        self.tx.shared.naming().object(reference)
    }

    fn prefetch(&mut self, references: &[Reference]) {
        let root = self.root;
        let own = references
            .iter()
            .filter(|at| is_in_system_page_of(&root, at));
        let own: Vec<Reference> = own.copied().collect();
        self.tx.shared.prefetcher.named(&own);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::encode;
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn no_list_looks_like_a_map() {
        assert!(is_map(&empty_map().unwrap()));
        let read: Result<BTreeMap<String, Reference>, _> =
            postcard::from_bytes(&empty_map().unwrap());
        assert!(read.is_err(), "an earlier program refuses it");
        let list = |count: u32| {
            let entries = (0..count).map(|number| (number.to_string(), number));
            encode(&entries.collect::<BTreeMap<_, _>>()).unwrap()
        };
        for count in [0, 1, 127, 128, 20_000] {
            assert!(!is_map(&list(count)), "{count} roots");
        }
    }
}
