//! The page in which a segment keeps what belongs to itself.

use thorp_model::{PageNo, Slot};

/// The first page of a segment: no object of a program is there.
pub(crate) const HEAD_PAGE: PageNo = PageNo(0);
/// The segment's extent: how many of its pages may hold objects. The home writes it.
pub(crate) const EXTENT_SLOT: Slot = Slot(0);
/// The segment's named roots. Programs write them. The slot after it holds the rights list.
pub(crate) const ROOTS_SLOT: Slot = Slot(1);
