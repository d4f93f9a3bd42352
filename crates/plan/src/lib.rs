//! Will cooperating pay? Models and a trace-driven simulator.
//!
//! This crate needs nothing of the rest of the house: it is numerical code. Each model is a module, takes a struct of
//! parameters with units in their names, refuses impossible ones with an [`Invalid`] that says which and why, and cites the
//! equation that it computes.

#![forbid(unsafe_code)]

pub mod evict;
mod invalid;
pub mod memory;
pub mod prefetch;
pub mod replay;
pub mod report;
pub mod site;
pub mod trace;
pub mod web;

pub use invalid::{Invalid, at_least, fraction, positive, within};
