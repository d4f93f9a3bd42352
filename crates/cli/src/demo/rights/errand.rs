//! What the demo of rights asks of its members.

use serde::{Deserialize, Serialize};

/// An errand of a member.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "errand", rename_all = "snake_case")]
pub(in crate::demo) enum Errand {
    /// Make a segment with a counter.
    Make {
        /// The segment.
        segment: String,
    },
    /// Read the counter, and remember where it is.
    Read {
        /// The segment.
        segment: String,
    },
    /// Read it once more, by its reference.
    ReadAgain,
    /// Write it, by its reference.
    WriteAgain,
    /// Watch the segment that was read.
    Watch,
    /// What the watch has to say.
    Watched,
    /// Give a right.
    Grant {
        /// The segment.
        segment: String,
        /// The right.
        right: String,
        /// Who gets it.
        subject: String,
    },
    /// Take rights, and tell what the counter is in the same transaction.
    Revoke {
        /// The segment.
        segment: String,
        /// Who loses them.
        subject: String,
        /// Not before so many milliseconds.
        after_ms: u64,
    },
    /// Count up, a commit for each number.
    Count {
        /// The segment.
        segment: String,
        /// For so many milliseconds.
        ms: u64,
    },
    /// Read the counter again and again.
    Look {
        /// The segment.
        segment: String,
        /// For so many milliseconds.
        ms: u64,
    },
}
