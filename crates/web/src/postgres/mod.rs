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
//! | `acks` | in which order it acknowledges |
//! | `keep`, `life` | the lives of a keeper |
//! | `report` | what it says of itself |
//! | `rights`, `sessions` | what its role lacks, and who else is there |
//! | `setup`, `schema` | what a database needs before, and what is in it |
//! | `check`, `finding` | whether it is as it has to be |
//! | `watchdog` | what lets commits go on without a keeper |
//! | `patience` | when: without I/O |

mod acks;
mod asking;
mod check;
mod config;
mod decode;
mod error;
mod finding;
mod going_live;
mod keep;
mod keys;
mod life;
mod patience;
mod question;
mod report;
mod rights;
mod schema;
mod sessions;
mod setup;
mod standby;
mod waits;
mod watchdog;
mod xid;

pub use check::check;
pub use config::Postgres;
pub use error::PostgresError;
pub use finding::{Finding, Severity};
pub use going_live::{Found, GoingLive, Task, leaves_after_ms};
pub use keep::keep;
pub use patience::{Deed, Look, Names, Patience};
pub use question::Question;
pub use report::{Health, Report};
pub use setup::{Plan, SetUp, Step};
pub use watchdog::{Watched, watch_over};
pub use xid::Numbers;
