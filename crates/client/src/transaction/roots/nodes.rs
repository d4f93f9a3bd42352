//! Where the nodes of a map of roots lie.

use super::super::Transaction;
use super::is_roots_object;
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
/// system pages.
pub(super) struct Nodes<'a>(pub(super) &'a mut Transaction);

impl Access for Nodes<'_> {
    async fn read(&mut self, reference: &Reference) -> Result<&[u8]> {
        let bytes = self.0.read_async(reference).await?;
        if !is_roots_object(reference) {
            return Ok(bytes);
        }
        let node = bytes.strip_prefix(&MARK);
        node.ok_or_else(|| Error::damaged("the roots of a segment are no map any more"))
    }

    fn write(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<()> {
        match is_roots_object(reference) {
            true => self.0.replace(reference, marked(&bytes)),
            false => self.0.replace(reference, bytes),
        }
    }

    async fn create_near(&mut self, near: &Reference, bytes: Vec<u8>) -> Result<Reference> {
        self.0.create_system(near, bytes, NODE_BYTES_MAX).await
    }

    fn delete(&mut self, reference: &Reference) -> Result<()> {
        self.0.delete_system(reference)
    }

    fn name_of(&self, reference: &Reference) -> String {
        self.0.shared.naming().object(reference)
    }

    fn prefetch(&mut self, references: &[Reference]) {
        self.0.shared.prefetcher.named(references);
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
