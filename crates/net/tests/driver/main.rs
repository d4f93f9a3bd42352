//! The loop over real sockets: with a toy core, then with a home, a site and members.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not their helpers"
)]

#[path = "../common/mod.rs"]
mod common;
mod copies;
mod edges;
mod latency;
mod life;
mod memory;
mod toy;
mod turning;
mod village;
mod ways;
