//! What the demo tells its members, and what they answer: a line of JSON each.

use super::consistency::errand::{self, Story};
use super::figures::Spent;
use super::rights::Errand;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use thorp_workloads::ifc::EditRecord;

/// An order to a member.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(super) enum Order {
    /// Import an IFC file into a new segment.
    Import {
        /// The file.
        file: PathBuf,
        /// The segment.
        segment: String,
    },
    /// Walk through a building, then edit it.
    WalkAndEdit {
        /// The segment.
        segment: String,
        /// What its edits' tags begin with.
        who: String,
        /// Its number among all who edit.
        number: usize,
        /// How many edits.
        edits: u32,
    },
    /// Write a building to a file.
    Export {
        /// The segment.
        segment: String,
        /// The file.
        file: PathBuf,
    },
    /// Make an OO7 module.
    Build {
        /// The segment.
        segment: String,
    },
    /// In the demo of rights.
    Rights(Errand),
    /// In the demo of consistency.
    Consistency(errand::Errand),
    /// Traverse an OO7 module.
    Traverse {
        /// The segment.
        segment: String,
        /// T2b instead of T1.
        writing: bool,
        /// Which of the members it is: each goes its own way.
        number: usize,
    },
}

/// What a member answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(super) enum Answer {
    /// It has joined.
    Joined,
    /// How far it is.
    Progress {
        /// In words.
        what: String,
    },
    /// It has done what was ordered.
    Done(Box<Done>),
    /// It cannot.
    Failed {
        /// Why.
        why: String,
    },
}

/// What came of an order. Which fields mean something depends on the order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Done {
    /// All of it; of [`Order::WalkAndEdit`], the edits.
    pub(super) spent: Spent,
    /// Of [`Order::WalkAndEdit`], the walk.
    pub(super) walk: Spent,
    /// Entities imported or exported, objects walked through, atomic parts visited.
    pub(super) count: u64,
    /// The edits that were committed.
    pub(super) edits: Vec<EditRecord>,
    /// Time of each edit.
    pub(super) edit_ms: Vec<f64>,
    /// Changes that were told without being asked for.
    pub(super) heard: u64,
    /// Of [`Order::Rights`], what was read, or why it was refused.
    pub(super) said: String,
    /// Of [`Order::Consistency`], what was done and seen.
    pub(super) story: Story,
}
