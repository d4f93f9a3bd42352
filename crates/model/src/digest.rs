//! Digests: what a home says of contents that reach a node by another way.

use crate::image::Image;
use crate::planted::{self, Bug};
use core::fmt;
use serde::{Deserialize, Serialize};

/// The digest of a part of a commit, as it travels. A list that was read has one form only, so each node that has the
/// part has the same digest (rule R2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PartDigest(pub [u8; 16]);

impl PartDigest {
    /// Of an encoded part.
    pub(crate) fn of(encoded: &[u8]) -> Self {
        PartDigest(first_16(encoded))
    }
}

/// The digest of a page: of its version, highest stamp, slots, generations and values, as [`Image::bytes`] writes them.
/// Equal content has equal bytes, so each node that has the page has the same digest (rule R6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PageDigest(pub [u8; 16]);

impl PageDigest {
    /// Stands in a list for a page that is no more, or whose digest a node does not know.
    pub const UNKNOWN: PageDigest = PageDigest([0; 16]);

    /// Of an image.
    pub fn of(image: &Image) -> Self {
        let bytes = image.bytes();
        match planted::is(Bug::StampNotInDigest) {
            true => PageDigest(first_16(&bytes[STAMP_END..])),
            false => PageDigest(first_16(bytes)),
        }
    }
}

/// Where an image's version and stamp end.
const STAMP_END: usize = 20;

/// The first 16 bytes of BLAKE3.
fn first_16(bytes: &[u8]) -> [u8; 16] {
    let mut first = [0; 16];
    first.copy_from_slice(blake3::hash(bytes).as_bytes().split_at(16).0);
    first
}

impl fmt::Debug for PartDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, self.0)
    }
}

impl fmt::Debug for PageDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, self.0)
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, digest: [u8; 16]) -> fmt::Result {
    write!(f, "{:032x}", u128::from_be_bytes(digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, Generation, ImageEdit, Position, Slot, Stamp};
    use alloc::vec;

    fn page(version: u64, clock: u64, value: u8) -> PageDigest {
        let mut edit = ImageEdit::default();
        edit.set(Slot(1), Generation(1), Draft::Value(vec![value; 3]));
        let stamp = Stamp {
            clock,
            ..Stamp::default()
        };
        PageDigest::of(&edit.finish(Position(version), stamp))
    }

    #[test]
    fn version_stamp_and_values_all_count() {
        assert_eq!(page(1, 2, 3), page(1, 2, 3));
        let others = [page(2, 2, 3), page(1, 3, 3), page(1, 2, 4)];
        assert!(others.iter().all(|other| *other != page(1, 2, 3)));
        assert_ne!(page(1, 2, 3), PageDigest::UNKNOWN);
    }
}
