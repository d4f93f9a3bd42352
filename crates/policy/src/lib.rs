//! Replacement policies: which page has to go when another one comes.
//!
//! A cache keeps its pages, its locks and its limit in bytes, and asks a policy for victims. A policy knows nothing of a
//! page but a key, which it copies.
//!
//! - [`Clock`] gives second chances. The member's page cache (`thorp-cache`) asks it, because its readers take no lock:
//!   a read marks its page and moves nothing. The mark stays with the page in the cache.
//! - [`RecencyList`] orders pages from the newest to the oldest. A redirector's standby cache (`thorp-protocol`) makes
//!   it LRU: it renews a page at each use, and the oldest page goes. The planner (`thorp-plan`) builds all its policies
//!   on this list, so that the LRU that it plans with is the LRU that runs.
//!
//! The crate imports nothing, does no I/O, and knows no threads. A cache that is shared between threads locks its policy.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod clock;
mod recency;

pub use clock::{Candidate, Clock, Seat, Victims};
pub use recency::{Handle, RecencyList};
