//! The protocol of Thorp: the state machines of home, redirector and member,
//! without I/O.
//!
//! [`Home`] owns segments and orders their commits. [`Redirector`] is a site's directory and its proxy to the homes.
//! [`Member`] is the part of the client library that takes part in the protocol. Each is a
//! [`thorp_model::StateMachine`]: a driver hands it one event, does what it finds in the outbox, in order, and hands
//! it a tick when its deadline comes. `net::driver` does so with sockets, the simulator with simulated time.
//!
//! No sockets, files, clocks, threads or random numbers are to be found here, and none can be: the crate is `no_std`.
//! The same events give the same outbox. `docs/protocol.md` numbers the rules that the code cites.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod edge;
mod home;
mod member;
mod redirector;
pub mod takeover;

pub use edge::directory::{ChildNo, Directory, Holder};
pub use edge::downstream::ChildLimits;
pub use edge::liveness::{AliveLimits, Wrong};
pub use home::{Doubts, Home, HomeAction, HomeCommand, HomeConfig, LoadResult};
pub use member::{Member, MemberAction, MemberCommand, MemberConfig, Request, Response, Source};
pub use redirector::{Redirector, RedirectorConfig};
