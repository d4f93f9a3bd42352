//! The protocol of Thorp: state machines of home, redirector and member,
//! without I/O.
//!
//! No sockets, files, clocks, threads or random numbers are to be found here,
//! and none can be: the crate is `no_std`. The same inputs give the same
//! outputs. `docs/protocol.md` numbers the rules that the code cites.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod alive;
pub mod change;
pub mod children;
pub mod codec;
#[cfg(test)]
mod dice;
pub mod directory;
pub mod door;
mod halves;
pub mod home;
pub mod ids;
pub mod image;
pub mod kept;
pub mod limits;
pub mod member;
pub mod message;
pub mod note;
pub mod planted;
pub mod redirector;
mod reports;
mod slots;
pub mod snapshot;
pub mod storage;
pub mod takeover;
pub mod upstream;
mod ways;
