//! What a member changes in its page cache.

use crate::{CommitId, HomeId, Image, Millis, PageId, Position, SlotSet, Stamp, TentativeChange};
use alloc::vec::Vec;

/// One change of a member's page cache. The cache takes it in this order:
/// `touched`, `evicted` and `missed`, then `images`, then `position`; so a
/// reader that saw the position finds all of the rest (rules 1 and 4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Publish {
    /// The home of the pages.
    pub home: HomeId,
    /// What is shown of this member's own commits before they are delivered.
    pub overlay: OverlayUpdate,
    /// Slots changed by the commit at `position`, also of pages that are only watched.
    pub touched: Vec<(PageId, SlotSet)>,
    /// Pages given up at `position`: of what was read there, nothing later will be heard.
    pub evicted: Vec<PageId>,
    /// New images, or that a page is dropped.
    pub images: Vec<(PageId, Option<Image>)>,
    /// Where the member now stands.
    pub position: Position,
    /// What is promised there.
    pub watermark: Stamp,
    /// When the stream was last heard of, on the monotone clock.
    pub heard: Millis,
    /// The stream was broken before this, and is resynchronised up to `position`
    /// (rule 13): the pages that changed meanwhile, it is not told how. Of pages
    /// that are not cached nothing is known: whoever watches has missed something.
    pub missed: Option<Vec<PageId>>,
    /// How often the home has gone back in time, and all that the cache had of it was void. With another number than
    /// before the cache begins anew, and whoever has read there is doomed (rule R9).
    pub history: u64,
    /// Updates that are shown, or no more, together with all of this (rule C6).
    pub tentative: TentativeChange,
}

/// Own values that are shown before they are delivered: the vcache of rule 3.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OverlayUpdate {
    /// Slots that show such a value from now on, also on pages that are not cached: whoever
    /// has read another value there is doomed.
    pub shown: Vec<(PageId, SlotSet)>,
    /// Of the slots in `touched` those that were shown so, and are delivered now: whoever has
    /// read them has read what they hold.
    pub delivered: Vec<(PageId, SlotSet)>,
    /// Of the new images the slots that show such a value, and whose it is: who reads one
    /// names that commit (`Request::Commit`).
    pub values: Vec<(PageId, SlotSet, CommitId)>,
}
