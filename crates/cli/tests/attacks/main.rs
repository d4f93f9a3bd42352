//! Attacks with ordinary certificates on real processes. A test that is ignored shows a hole that is not mended yet: what it
//! demands does not hold (`docs/threats.md`, *Not mended yet*).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod audit;
#[path = "../common/mod.rs"]
mod common;
mod histories;
mod leases;
mod loads;
mod locks;
mod logs;
mod neighbours;
mod numbers_and_removals;
mod processes;
mod roots;
mod scene;
mod sites;
mod tables;
mod terminals;
mod words;
