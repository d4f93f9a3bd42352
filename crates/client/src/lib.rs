//! The client library: sessions, transactions and typed objects.
//!
//! A program [joins](Member::join) a village and becomes a *member*. It opens segments by their names and reads and
//! writes the objects in them in transactions, which are serializable and atomic. What is cached is read in this process,
//! without a lock and without a message; committing a transaction that only read costs no message either.
//!
//! ```no_run
//! use thorp_client::{JoinConfig, Member};
//!
//! let member = Member::join(JoinConfig::new("unix:/run/thorp/site.sock").identity("me"))?;
//! let shop = member.open_or_create("thorp://alps/shop")?;
//! let sold = member.transact(|tx| {
//!     let Some(counter) = tx.root(&shop, "sold")? else {
//!         let counter = tx.create_typed(&shop, &1u64)?;
//!         tx.set_root(&shop, "sold", Some(counter.reference()))?;
//!         return Ok(1);
//!     };
//!     let sold = tx.get::<u64>(&counter.into())? + 1;
//!     tx.put(&counter.into(), &sold)?;
//!     Ok(sold)
//! })?;
//! println!("{sold} sold");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every call that may wait has a blocking and an `_async` form. Neither needs a tokio runtime at the caller: the member
//! runs its own, in threads that all members of a process share. What each call does while the home is unreachable is told in
//! `docs/unreachable.md`.

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod addresses;
mod allocator;
#[expect(
    clippy::missing_errors_doc,
    reason = "each type says once how its methods fail"
)]
pub mod collections;
mod config;
mod embedded_site;
mod error;
mod head_page;
mod limits;
mod lock;
mod member;
mod name;
mod outcome;
mod reach;
mod referred;
mod runtime;
mod segment;
mod stats;
mod status;
mod trace;
mod transaction;
mod typed;

pub use config::{
    ATTEMPTS_MAX, BACKOFF_MAX, COMMIT_TIMEOUT, FETCH_AHEAD_PAGES, FETCH_TIMEOUT, JOIN_TIMEOUT,
    JoinConfig, LEAVE_TIMEOUT, MAX_STALENESS, Session,
};
pub use embedded_site::{HEAL_EVERY, SiteOfMembers};
pub use error::{Error, ErrorKind, JoinError, Result};
pub use limits::{EARLY_PER_HOME_MAX, ROOT_NAME_BYTES_MAX};
pub use member::Member;
pub use outcome::{Committed, Outcome};
pub use reach::OutOfReach;
pub use segment::{Change, Changed, Segment, SegmentEntry, Watch};
pub use stats::{Stats, Waits};
pub use status::{HomeStatus, SiteStatus};
pub use thorp_model::{
    CommitId, HomeId, ObjectId, PageId, PageNo, Position, Reference, SegmentId, Slot, Stamp,
};
pub use thorp_net::{Congestion, Identity, Traffic};
pub use transaction::{Pending, Transaction};
pub use typed::Ref;
