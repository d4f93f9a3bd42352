//! Requests as a source: an unsafe request is an update, from before it is forwarded until its whole final answer has come.
//!
//! | part | what it does |
//! |---|---|
//! | `wire` | what a proxy and the keeper send each other |
//! | `updates` | at the keeper: the open updates of one proxy. Without I/O |
//! | `lives` | at the keeper: the proxies with their updates. Without I/O |
//! | `book` | at the keeper: which proxies the next keeper has to ask |
//! | `keep` | the keeper's life: its socket, its table, its beats |
//! | `open` | at a proxy: its open updates. Without I/O |
//! | `link` | at a proxy: its connection to the keeper, and each update as a value |
//! | `shown` | what a person sees of open updates |
//! | `hand` | a person lists open updates, and ends those that nobody follows |
//! | `calls` | `/begin` and `/end`, for applications that cooperate |

mod book;
mod calls;
mod hand;
mod keep;
mod link;
mod lives;
mod open;
mod shown;
mod updates;
mod wire;

pub(crate) mod limits {
    //! What the page of limits names.

    pub use super::calls::{CALLS_OPEN_MAX, KEYS_OF_CALL_MAX};
    pub use super::lives::{PROXIES_MAX, UPDATES_OF_PROXY_MAX};
    pub use super::open::{FOLLOWED_MAX, LINGERING_MAX};
    pub use super::wire::KEY_BYTES_OF_UPDATE_MAX;
}

pub use book::Page;
pub use calls::{Calls, CallsError};
pub use hand::{HandError, end_by_hand, open_updates};
pub use keep::{KeepError, REQUEST_LIFE, keep_requests};
pub use link::{NotBegun, Requests, Update};
pub use lives::{Connection, Lives, Todo};
pub use open::{OpenUpdates, counts, may_leave};
pub use shown::{ShownKeys, ShownUpdate, ShownUpdates};
pub use wire::{ByHand, ToKeeper, ToProxy};
