// Its examples have members, and `thorp-client` stands above this crate. There they run.
#![cfg_attr(not(doctest), doc = include_str!("../README.md"))]
//!
//! # For Thorp's own tests
//!
//! **In the process.** The nodes of a [`Village`] are under one [`Authority`], in a temporary directory. They run the
//! state machines of `thorp-protocol` over real sockets:
//!
//! - a [`HomeNode`] keeps its records in memory, or in a store in a directory ([`HomeOptions`]). A test can stop it,
//!   start it again, hold back or lose its disk, and look into its tables;
//! - a [`SiteNode`] is a redirector below it;
//! - a [`MemberNode`] speaks the protocol without the client library. Members of the library join by the address of a
//!   home or a site, as any program does, so this crate imports neither client nor server;
//! - an [`Attacker`] has a certificate and keeps no rules; an [`Intruder`] is one that has joined as a member;
//! - a [`Link`] leads from one socket to another, also between processes.
//!
//! ```
//! use thorp_testing::HomeNode;
//!
//! let home = HomeNode::new();
//! let site = home.site(1 << 20);
//! println!("join at {}", site.address());
//! home.hold_disk();
//! ```
//!
//! A node runs on a thread of its own, as in a process of its own, or with `start_here` in the runtime of the test.
//!
//! **Processes.** [`Thorp`] is a `thorp` binary: it runs commands to their end ([`Said`]) and starts homes
//! ([`HomeProcess`]). A [`Process`] gives its lines as they come, and none outlives its test.
//!
//! Whatever goes wrong here panics, because it fails the test. [`eventually`] waits for what is not so yet.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod attacker;
mod authority;
mod disk;
mod home;
mod intruder;
mod link;
mod member;
mod memory;
mod patience;
mod process;
mod running;
mod site;
mod skipped;
mod socket;
mod thorp;
mod village;

pub use attacker::{Attacker, AttackerEdge, made_up_receipt};
pub use authority::{Authority, loopback};
pub use home::{HomeNode, HomeOptions};
pub use intruder::Intruder;
pub use link::{Carried, LINK_WINDOW_BYTES, Link};
pub use member::{MemberNode, Seen, create, holds};
pub use patience::{PATIENCE, SOON, eventually};
pub use process::{Process, Said, finish, signal};
pub use site::SiteNode;
pub use skipped::report_skipped;
pub use thorp::{HomeProcess, OF_A_TEST, Thorp};
pub use village::Village;
