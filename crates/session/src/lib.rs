//! The client without I/O: what a program's transactions decide.
//!
//! Nothing here has a clock, a thread, a socket or a runtime. The same code runs in the client library, in the simulator
//! and in the golden stories; each drives it with its own means of waiting.
//!
//! - A [`Transaction`] records what it read and wrote. [`Transaction::find`] looks for an object in the page cache;
//!   what is missing there has to be fetched first.
//! - A [`Commit`] takes a transaction to its end. Its driver calls [`Commit::step`], does what the [`Step`] says, and
//!   calls again, until the transaction is [`Step::Committed`] or has failed with a [`Stop`].
//! - A [`SlotAllocator`] picks page and slot of the next object.
//! - [`OwnCommits`] is what the driver knows of this program's commits that are shown before they are answered
//!   (rule 14).
//!
//! A driver in short:
//!
//! ```text
//! loop {
//!     match commit.step(&mut transaction, &world)? {
//!         Step::Committed(committed) => return committed,
//!         Step::Wait(wait)           => wait for an outcome, promises, live streams, or some time
//!         Step::Stage(homes)         => stage what is large; commit.staged(...)
//!         Step::Send(call)           => have the member commit; commit.ended(...)
//!         Step::Validate(calls)      => the same for each of these; commit.ended(...) for each
//!     }
//! }
//! ```

mod allocator;
mod commit;
mod homes;
mod own_commits;
mod retry;
mod serialization_point;
mod stop;
mod transaction;
mod writes;

pub use allocator::{Reservation, SlotAllocator};
pub use commit::{Commit, CommitCall, Committed, Ended, Step, Wait, World};
pub use own_commits::OwnCommits;
pub use retry::Pauses;
pub use serialization_point::Placement;
pub use stop::Stop;
pub use transaction::{Found, Terms, Transaction};
pub use writes::{Act, ObjectAt, OwnWrite, Writes};
