//! Which data have changed: a table of version numbers that one keeper writes, and that caches read before they serve what they have.
//!
//! | part | what it is |
//! |---|---|
//! | [`Place`], [`Word`] | where the number of a key lies, and what it says |
//! | [`Keeper`] | which updates are open: a machine without I/O (rule W2) |
//! | [`Writer`] | the order in which a keeper stores (rules W1, W7, W8) |
//! | [`Ledger`] | a keeper with the table that it writes |
//! | [`HomeLedger`] | the table of a Thorp home, which numbers its own changes |
//! | [`Broadcast`], [`Follower`] | copies of a table on other hosts: a commit is acknowledged when all of them have it (rule W7) |
//! | [`Reader`] | evidence, admission, hits (rules W3 to W5) |
//! | [`Versions`] | what a proxy asks a table: of a [`Reader`], or of one that goes on to the next keeper's, [`Followed`] |
//! | [`Memory`], [`Kept`], [`Mapped`] | a table of one process; one that this process writes for others; one that another writes |
//! | [`Address`], [`Terms`] | where a mapped table is, and what it is about |
//!
//! ```
//! use std::sync::Arc;
//! use thorp_versions::{Event, Ledger, Memory, Place, Reader, UpdateId, Writer};
//!
//! let table = Arc::new(Memory::new());
//! let mut ledger = Ledger::new(Writer::new(Arc::clone(&table)));
//! ledger.restart(0x5eed);
//! ledger.handle(Event::Waits(1_000));
//!
//! let reader = Reader::new(table);
//! let evidence = reader.evidence();
//! let page = [Place::of("page:0:Main_Page")];
//! assert!(reader.check(evidence, &page, 1_500).is_ok());
//!
//! ledger.handle(Event::Begin(UpdateId(1), Some(page.to_vec())));
//! assert!(reader.check(evidence, &page, 1_500).is_err());
//! ```
//!
//! All clocks here count milliseconds, also while the machine sleeps (`CLOCK_BOOTTIME`).

#[cfg(not(feature = "loom"))]
mod address;
mod broadcast;
mod cells;
#[cfg(not(feature = "loom"))]
mod clock;
#[cfg(not(feature = "loom"))]
mod followed;
mod follower;
mod home;
mod keeper;
mod ledger;
mod limits;
#[cfg(all(test, feature = "loom"))]
mod loom_tests;
#[cfg(not(feature = "loom"))]
mod mapped;
mod place;
mod planted;
mod reader;
mod sync;
mod word;
mod writer;

#[cfg(not(feature = "loom"))]
pub use address::{Address, TableError, Terms};
pub use broadcast::{Broadcast, FollowerId, Step, ToFollower};
pub use cells::{Cells, Memory, Writable};
#[cfg(not(feature = "loom"))]
pub use clock::now_ms;
#[cfg(not(feature = "loom"))]
pub use followed::Followed;
pub use follower::{Follower, ToKeeper};
pub use home::HomeLedger;
pub use keeper::{Action, Event, Keeper, UpdateId};
pub use ledger::Ledger;
pub use limits::{BEAT_MS_MAX, KEYS_OF_UPDATE_MAX, OPEN_UPDATES_MAX, WORDS};
#[cfg(not(feature = "loom"))]
pub use mapped::{Kept, Mapped};
pub use place::Place;
#[cfg(feature = "planted-bugs")]
pub use planted::plant;
pub use planted::{Bug, is_planted};
pub use reader::{Denied, Evidence, Passed, Reader, Versions};
pub use word::Word;
pub use writer::{Store, Writer};
