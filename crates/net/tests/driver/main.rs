//! The loop over real sockets: with a toy machine.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not their helpers"
)]

#[path = "../common/mod.rs"]
mod common;
mod edges;
mod greetings;
mod life;
mod parent_choice;
mod routes;
mod shares;
mod toy;
