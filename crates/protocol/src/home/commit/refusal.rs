//! Why a commit is not accepted now.

use alloc::vec::Vec;
use thorp_model::{InvalidCommit, Note, ObjectId, PageId, Refusal};

/// Why a commit is not accepted now.
#[derive(Debug)]
pub(in crate::home) enum NotNow {
    /// The home refuses it.
    Refused(Refusal),
    /// These pages have to be in memory first.
    Needs(Vec<PageId>),
}

impl From<InvalidCommit> for NotNow {
    fn from(reason: InvalidCommit) -> Self {
        NotNow::Refused(Refusal::Invalid { reason })
    }
}

/// An object that the transaction read has changed.
pub(in crate::home) fn conflict(object: ObjectId) -> NotNow {
    NotNow::Refused(Refusal::Conflict { object })
}

/// What the home notes when it refuses a commit.
pub(in crate::home) fn note_of(refusal: &Refusal) -> Note {
    match refusal {
        Refusal::Conflict { .. } | Refusal::Elsewhere => Note::RefusedConflict,
        Refusal::InDoubt => Note::RefusedInDoubt,
        Refusal::Busy { .. } => Note::RefusedBusy,
        Refusal::Full(_) => Note::RefusedFull,
        Refusal::Share(_) => Note::NameLimited,
        Refusal::BuiltOnRefused => Note::RefusedBuiltOn,
        // A home refuses nothing with the last two: they are a member's words.
        Refusal::Unknown | Refusal::Forgotten | Refusal::WentBack | Refusal::Lost => {
            Note::RefusedUnknown
        }
        Refusal::NotDelegated(_) => Note::NotDelegated,
        Refusal::NoRight { .. } => Note::RefusedNoRight,
        Refusal::Invalid { .. } => Note::RefusedInvalid,
        Refusal::NotYet { .. } => Note::UpdateNotYet,
        Refusal::OtherLog => Note::UpdateKnown,
        Refusal::Locked { .. } => Note::RefusedLocked,
        Refusal::LockLost => Note::RefusedLockLost,
    }
}
