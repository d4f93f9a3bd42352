//! Shares of common tables: what a name has used up (rule R7).

use core::fmt;
use serde::{Deserialize, Serialize};

/// A table of a home of which a name has its share (rule R7). The refusal names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Share {
    /// Segments of the home.
    Segments,
    /// Ids of segments: none is given twice, so that removals give none back.
    SegmentIds,
    /// Page numbers of a segment: none is given twice.
    PageNumbers,
    /// Space in the store.
    Space,
    /// What the home tells sites about the readers of segments.
    Readers,
    /// Logs of which the home knows how far they are (rule C7).
    Logs,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Share::Segments => {
                "this name has its share of the home's segments: remove some that it made, or let the home's \
                 operator raise `segments_max` in [shares]"
            }
            Share::SegmentIds => {
                "this name has its share of the home's segment ids, which are never given again: use the \
                 segments that are there"
            }
            Share::PageNumbers => {
                "this name has its share of the segment's page numbers, which are never given again: go on in a \
                 new segment, or let the home's operator raise `page_numbers_max` in [shares]"
            }
            Share::Space => {
                "this name has its share of the home's space: remove segments or large values that it wrote, or \
                 let the home's operator raise `store_percent_max` or `store` in [shares]"
            }
            Share::Readers => {
                "the maker of this segment has its share of what the home tells about readers: name a group or \
                 @members, or restrict fewer of its segments"
            }
            Share::Logs => {
                "this name has begun as many logs as the home remembers of one name: write by sessions that need no \
                 log, with failures=pessimistic"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn each_share_says_what_to_do() {
        let all = [
            (Share::Segments, "`segments_max` in [shares]"),
            (Share::SegmentIds, "use the segments"),
            (Share::PageNumbers, "a new segment"),
            (Share::Space, "`store_percent_max`"),
            (Share::Readers, "a group"),
            (Share::Logs, "failures=pessimistic"),
        ];
        for (share, words) in all {
            assert!(share.to_string().contains(words), "{share}");
        }
    }
}
