//! The planner: will cooperating pay? Models, a trace-driven simulator, and the command `thorp plan`.
//!
//! It is a wing beside the house. Of the house it imports only the policies (`thorp-policy`), so that
//! the list behind each policy here is the list that runs. Only the command `thorp` imports it.
//!
//! - **The models** are [`site`], [`web`], [`memory`] and [`prefetch`]. A model takes a struct of parameters with units in
//!   their names. It refuses impossible ones with an [`Invalid`] that says which and why. It cites the equation that it
//!   computes.
//! - **The simulator** is [`replay`]: a [`trace`] of requests runs through policies of cooperative caching, with any
//!   evictor of [`evict`] at the members.
//! - **The papers.** Each of these five has a function `paper`. It computes the tables and figures of the paper that the
//!   model comes from, beside what the paper says.
//! - **The command.** [`Options`] are the arguments of `thorp plan`. [`run`] answers the question among them, by a
//!   [`report`]: sentences, tables and charts.
//!
//! To drive a model: fill its struct (`site::Site`, say, with the costs `site::BUDDY_CACHE`), call a method, and handle the
//! [`Invalid`].

#![forbid(unsafe_code)]

mod command;
pub mod evict;
mod invalid;
pub mod memory;
pub mod prefetch;
pub mod replay;
pub mod report;
pub mod site;
#[cfg(test)]
mod test_data;
pub mod trace;
pub mod web;

pub use command::{Code, Failure, Options, be_quiet, run};
pub use invalid::{Invalid, at_least, fraction, positive, within};
