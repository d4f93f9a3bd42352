//! What a home's driver hands in, and what the home asks of it.

use crate::home::history::{OtherHistory, Reopen};
use thorp_model::{Batch, Command, Image, Lack, Mark, PageId, SpaceBound, TurnedAway};

/// What the disk of a home has to say, and its door.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HomeCommand {
    /// All batches up to this one are in stable storage.
    Durable(Mark),
    /// The answer to [`HomeAction::Load`].
    Loaded {
        /// The page that was read from disk.
        page: PageId,
        /// What is stored for it.
        result: LoadResult,
    },
    /// What the store lacks to take commits; none: it has space.
    Lacks(Option<Lack>),
    /// How much the store could still take.
    Space {
        /// Bytes that could be brought.
        free: u64,
        /// Bytes that could be brought by what may take from the room that is kept back (rule R7); `free` is a part of it.
        room: u64,
        /// What bounds them.
        of: SpaceBound,
        /// Whether an installation of pages fits. The store would hold it back until it does, and all that comes after.
        installs: bool,
        /// When all batches up to this one were in it.
        as_of: Mark,
    },
    /// A caller was turned away at the door. It is for the audit (rule R8), and the driver bounds how many there are.
    TurnedAway(TurnedAway),
}

impl Command for HomeCommand {}

/// What was found for a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadResult {
    /// Its installed image, or nothing was ever installed.
    Found(Option<Image>),
    /// What is stored is damaged.
    Damaged,
}

/// What a home wants of its disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HomeAction {
    /// Make a batch durable, after all earlier ones; [`HomeCommand::Durable`] follows.
    Append(Batch),
    /// Read an installed page; [`HomeCommand::Loaded`] follows.
    Load(PageId),
    /// The home has met another history of itself. Keep that, and let in nobody but operators (rule R9).
    Close(OtherHistory),
    /// An operator has opened the home. End this life, make all durable that it wants, then the new incarnation, and
    /// begin the next life (rule R9).
    Reopen(Reopen),
}
