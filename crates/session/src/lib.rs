//! The client without I/O: what a program's transactions read, write and conclude.
//!
//! One implementation runs in the client library, the simulator and the golden stories. Each of them is a *driver*:
//! it has a page cache ([`thorp_cache::Cache`]), sends requests to its member, and waits by means of its own.
//!
//! # What a driver does
//!
//! 1. **Begin.** [`Transaction::begin`] takes the session's [`Terms`], a read set, and the session floor. The
//!    serialization point of the transaction is never below that floor (rule 5).
//! 2. **Read.** [`Transaction::find`] looks for an object in the cache and records the read. After [`Stop::Miss`] the
//!    driver has the member fetch that page, and looks again. [`Transaction::bytes`] gives the bytes of what was found.
//! 3. **Write.** [`Transaction::write`], [`patch`](Transaction::patch), [`create`](Transaction::create) and
//!    [`delete`](Transaction::delete) change nothing but the transaction itself. A [`SlotAllocator`] picks page and
//!    slot of an object before it is created, so references are final before the commit.
//! 4. **Commit.** A [`Commit`] is a state machine. The driver calls [`Commit::step`], does what the [`Step`] says, and
//!    steps again, until the transaction is committed or [stops](Stop).
//! 5. **End.** The driver gives back or clears the reserved slots ([`Writes`]), then calls [`Transaction::end`]. To try
//!    again it takes a pause from [`Pauses`] and calls [`Transaction::restart`].
//!
//! The commit in short. `Driver` stands for the part that waits:
//!
//! ```
//! use std::collections::HashMap;
//! use thorp_cache::{Cache, ReadSet};
//! use thorp_model::{CommitId, HomeId, Millis, ObjectId, Overflow, Stamp};
//! use thorp_session::{
//!     Commit, CommitCall, Committed, Ended, OwnCommits, Step, Stop, Terms, Transaction, Wait, World,
//! };
//!
//! trait Driver {
//!     /// Cache, clock and own commits, as of now.
//!     fn world(&self) -> World<'_>;
//!     /// Returns when it is time to look again.
//!     fn wait(&mut self, wait: Wait);
//!     /// Sends the large values of a home ahead, and returns where they are.
//!     fn stage(&mut self, tx: &Transaction<()>, home: HomeId) -> HashMap<ObjectId, Overflow>;
//!     /// Sends a commit. `None`: a home refused it for good, or the outcome is unknown.
//!     fn send(&mut self, call: CommitCall) -> Option<Ended>;
//! }
//!
//! fn commit(tx: &mut Transaction<()>, driver: &mut impl Driver) -> Result<Option<Committed>, Stop> {
//!     let mut commit = Commit::new();
//!     loop {
//!         let calls = match commit.step(tx, &driver.world())? {
//!             Step::Committed(committed) => return Ok(Some(committed)),
//!             Step::Wait(wait) => {
//!                 driver.wait(wait);
//!                 continue;
//!             }
//!             Step::Stage(homes) => {
//!                 for home in homes {
//!                     commit.staged(home, driver.stage(tx, home));
//!                 }
//!                 continue;
//!             }
//!             Step::Send(call) => vec![call],
//!             Step::Validate(calls) => calls,
//!         };
//!         for call in calls {
//!             match driver.send(call) {
//!                 Some(ended) => commit.ended(ended),
//!                 None => return Ok(None),
//!             }
//!         }
//!     }
//! }
//! # struct Idle(Cache);
//! # impl OwnCommits for Idle {
//! #     fn is_open(&self, _: CommitId) -> bool { false }
//! #     fn stamp(&self, _: CommitId) -> Stamp { Stamp::default() }
//! # }
//! # impl Driver for Idle {
//! #     fn world(&self) -> World<'_> { World { cache: &self.0, now: Millis(0), own: self } }
//! #     fn wait(&mut self, _: Wait) {}
//! #     fn stage(&mut self, _: &Transaction<()>, _: HomeId) -> HashMap<ObjectId, Overflow> { HashMap::new() }
//! #     fn send(&mut self, _: CommitCall) -> Option<Ended> { None }
//! # }
//!
//! let terms = Terms { strict: false, optimistic: false, staleness_ms_max: 10_000 };
//! let mut tx = Transaction::begin(terms, ReadSet::new(), Stamp::default());
//! # let mut driver = Idle(Cache::new(1 << 20));
//! let committed = commit(&mut tx, &mut driver)?;
//! assert!(matches!(committed, Some(Committed::Locally { .. })), "it read nothing");
//! # Ok::<(), Stop>(())
//! ```
//!
//! # What nothing here does
//!
//! Nothing here has a clock, a thread, a socket or a runtime. [`World`] carries the time, and the caller of
//! [`Pauses::next`] brings the random number. So the same calls give the same steps.
//!
//! # Errors and limits
//!
//! - A [`Stop`] says why a transaction does not go on. After each but [`Stop::Miss`] it has no effect.
//! - The answers of homes are the driver's. [`Commit::ended`] takes commits and *busy*; a refusal ends the transaction.
//! - A transaction takes in at most [`PARTICIPANTS_MAX`](thorp_model::limits::PARTICIPANTS_MAX) homes.
//! - A driver stages each new value above [`INLINE_VALUE_BYTES_MAX`](thorp_model::limits::INLINE_VALUE_BYTES_MAX) bytes
//!   ahead of the commit.
//!
//! # Where to read on
//!
//! `docs/architecture.md` lists the drivers. Rules 4 to 6, 10 and 14 of `docs/protocol.md` say what a commit proves.

mod allocator;
mod commit;
#[cfg(test)]
mod fixture;
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
