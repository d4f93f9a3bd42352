//! PostgreSQL as a source: the keeper is its synchronous logical standby.
//!
//! | part | what it does |
//! |---|---|
//! | `config` | how the database is reached |
//! | `decode`, `keys` | which keys a transaction changes |
//! | `xid` | whole numbers of transactions |
//! | `standby` | the keeper's name among those for which commits wait |
//! | `asking` | beats, and who is visible |
//! | `going_live`, `question` | what a keeper does until its first beat, and what makes a beat: without I/O |
//! | `keep` | the lives of a keeper |
//! | `watchdog` | what lets commits go on without a keeper |
//! | `patience` | when: without I/O |

mod asking;
mod config;
mod decode;
mod error;
mod going_live;
mod keep;
mod keys;
mod patience;
mod question;
mod standby;
mod watchdog;
mod xid;

pub use config::Postgres;
pub use error::PostgresError;
pub use going_live::{Found, GoingLive, Task, leaves_after_ms};
pub use keep::{Health, keep};
pub use patience::{Deed, Look, Names, Patience};
pub use question::Question;
pub use watchdog::{Watched, watch_over};
pub use xid::Numbers;
