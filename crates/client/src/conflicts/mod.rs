//! What becomes of updates that their home has refused (rule C6).

mod built_in;
mod refused;

pub(crate) use built_in::{both, mine, theirs};
pub use refused::{Refused, RefusedChange};

use crate::{ObjectUpdate, Reference};
use std::fmt;
use std::sync::Arc;

/// What a program wants of updates in its log that their home refuses: its *conflict routine*
/// ([`JoinConfig::on_conflict`](crate::JoinConfig::on_conflict)).
///
/// A *conflict* is a refusal for what others did: they have deleted the object or its segment, or a
/// procedure cannot run on what they wrote there. [`Procedure::PutNew`](crate::Procedure::PutNew) conflicts with another
/// value under its key. A blind write and the other procedures conflict seldom: bytes replace what is there, and sums add up.
///
/// What is no conflict, for example a missing right, goes to the list of rejected updates, whatever was chosen here. Only a
/// routine of the program sees it. What leaves the log does so in one durable step, and exactly once. A routine may run again
/// after a crash, but its result takes effect once.
///
/// What is sent again comes after all updates that the log has taken meanwhile. It may be refused again:
/// after [`CONFLICT_ATTEMPTS_MAX`](thorp_model::limits::CONFLICT_ATTEMPTS_MAX) times it goes to the list.
///
/// ```
/// # use thorp_client::{Conflicts, JoinConfig, ObjectUpdate, Procedure, Resolution};
/// // A note that somebody else has deleted meanwhile is given up. For the rest a person is asked.
/// let routine = Conflicts::program(|refused| match refused.why().kind() {
///     thorp_client::ErrorKind::Gone => Resolution::Drop,
///     _ => Resolution::Keep,
/// });
/// let config = JoinConfig::new("127.0.0.1:7402").log("drafts-log").on_conflict(routine);
/// # let _ = config;
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Conflicts {
    /// They stay on the list of rejected ones, for a person: `thorp updates rejected`.
    #[default]
    Keep,
    /// Mine counts. `PutNew` becomes `Put`, and replaces the other value. Other conflicts go to the list: an object that is
    /// gone cannot be written, and no procedure runs on what it does not work on.
    Mine,
    /// Theirs counts: the whole update leaves the log, which notes its number. `thorp updates ls` shows it.
    Theirs,
    /// Both count. The other value keeps its key, and mine gets a key of its own beside it: the key, `~`, the
    /// log and the number of the refused update, as `thorp updates` prints them. Other conflicts go to the list.
    Both,
    /// The program's own routine says.
    Program(ConflictRoutine),
}

/// A conflict routine of a program: [`Conflicts::program`].
#[derive(Clone)]
pub struct ConflictRoutine(Arc<dyn Fn(&Refused) -> Resolution + Send + Sync>);

/// What a conflict routine decides about a refused update.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// It stays on the list of rejected ones.
    Keep,
    /// It leaves the log, which notes its number.
    Drop,
    /// It leaves the log, and a new update does this, in its order. All objects are of the refused update's segment; else it
    /// stays on the list.
    Again(Vec<(Reference, ObjectUpdate)>),
}

impl Conflicts {
    /// A routine of the program. It runs on a thread of its own, one update after another, and may take its time: only other
    /// refused updates wait for it. If it panics, the update stays on the list.
    pub fn program(routine: impl Fn(&Refused) -> Resolution + Send + Sync + 'static) -> Self {
        Conflicts::Program(ConflictRoutine(Arc::new(routine)))
    }

    /// Whether somebody is asked.
    pub(crate) fn has_routine(&self) -> bool {
        !matches!(self, Conflicts::Keep)
    }
}

impl ConflictRoutine {
    /// What it decides.
    pub(crate) fn run(&self, refused: &Refused) -> Resolution {
        (self.0)(refused)
    }
}

impl fmt::Debug for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Conflicts::Keep => "Keep",
            Conflicts::Mine => "Mine",
            Conflicts::Theirs => "Theirs",
            Conflicts::Both => "Both",
            Conflicts::Program(_) => "Program",
        })
    }
}

impl fmt::Debug for ConflictRoutine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConflictRoutine").finish_non_exhaustive()
    }
}
