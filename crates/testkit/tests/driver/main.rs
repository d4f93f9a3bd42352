//! The loop of `thorp-net` over real sockets, with a home, a site and members.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not their helpers"
)]

mod copies;
mod disk;
mod latency;
mod nodes;
mod village;
