//! Requests as a source: an unsafe request is an update, from before it is forwarded until its whole final answer has come.
//!
//! | part | what it does |
//! |---|---|
//! | `wire` | what a proxy and the keeper send each other |
//! | `lives` | at the keeper: which updates of which proxies are open. Without I/O |
//! | `book` | at the keeper: which proxies the next keeper has to ask |
//! | `keep` | the keeper's life: its socket, its table, its beats |
//! | `open` | at a proxy: its open updates. Without I/O |
//! | `link` | at a proxy: its connection to the keeper, and each update as a value |
//! | `calls` | `/begin` and `/end`, for applications that cooperate |

mod book;
mod calls;
mod keep;
mod link;
mod lives;
mod open;
mod wire;

pub use calls::{Calls, CallsError};
pub use keep::{KeepError, REQUEST_LIFE, keep_requests};
pub use link::{NotBegun, Requests, Update};
