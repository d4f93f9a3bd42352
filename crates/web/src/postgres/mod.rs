//! PostgreSQL as a source: the keeper is its synchronous logical standby.
//!
//! | part | what it does |
//! |---|---|
//! | `config` | how the database is reached |
//! | `decode`, `keys` | which keys a transaction changes |
//! | `xid` | whole numbers of transactions |
//! | `standby` | the keeper's name among those for which commits wait |
//! | `asking` | beats, and who is visible |
//! | `keep` | the lives of a keeper |
//! | `watchdog` | what lets commits go on without a keeper |

mod asking;
mod config;
mod decode;
mod error;
mod keep;
mod keys;
mod standby;
mod watchdog;
mod xid;

pub use config::Postgres;
pub use error::PostgresError;
pub use keep::{Health, keep};
pub use watchdog::{Watched, watch_over};
