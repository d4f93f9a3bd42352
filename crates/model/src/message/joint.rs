//! Questions about the transactions over several homes that a home remembers, and the answers (rule R9).

use crate::ids::{CommitId, HomeId, Stamp};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A question about transactions over several homes that have committed. It changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum JointQuestion {
    /// The other homes that the home knows.
    Homes,
    /// Those that the home remembers, the oldest first.
    List {
        /// Only those after this one: the last of the page before.
        after: Option<(Stamp, CommitId)>,
        /// Only those in which this home takes part.
        with: Option<HomeId>,
    },
    /// What the home has of each of these: at most [`crate::limits::JOINTS_LISTED_MAX`].
    Of(Vec<(Stamp, CommitId)>),
}

/// The answer to a [`JointQuestion`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum JointAnswer {
    /// The other homes.
    Homes {
        /// Those that are configured and were heard in this life, and all with which the home remembers transactions.
        homes: Vec<OtherHome>,
        /// The names of those that are configured and were not heard.
        unheard: Vec<String>,
    },
    /// Some transactions, the oldest first; more if `more`.
    List {
        /// At most [`crate::limits::JOINTS_LISTED_MAX`].
        joints: Vec<Joint>,
        /// Whether there are more after the last.
        more: bool,
        /// The home may have forgotten transactions up to this stamp.
        since: Stamp,
    },
    /// What the home has of each transaction, in the order of the question.
    Of(Vec<JointPart>),
    /// The home that was to pass the question on has no way to the other one now, or that one refused to answer.
    NotReached,
}

/// Another home, as a home knows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct OtherHome {
    /// The id of the home.
    pub home: HomeId,
    /// The name for which it is configured; none: it has not been heard in this life, or is not configured.
    pub name: Option<String>,
}

/// A transaction over several homes that a home remembers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Joint {
    /// The stamp of its part at this home. The list is in this order.
    pub stamp: Stamp,
    /// The commit.
    pub commit: CommitId,
    /// The name of the member, if the home knows it.
    pub name: Option<String>,
    /// All its homes.
    pub homes: Vec<HomeId>,
}

/// What a home has of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum JointPart {
    /// Its part has committed here.
    Kept,
    /// It has voted for its part, and does not know how the transaction ended.
    InDoubt,
    /// It may have forgotten the transaction: that is older than what it remembers.
    Forgotten,
    /// Its part is not in this history.
    Lost,
}
