//! Web caches that cooperate: the model of chapter 5 of Voelker's thesis, *Cooperative Caching in Local-Area and Wide-Area
//! Networks*.
//!
//! Clients ask for documents, independently and at random; documents are asked for by Zipf's law ([`zipf`]) and change
//! ([`change`]). A cache that holds all it ever saw hits when nothing has changed since the last request ([`Model`]). Caches
//! that share what they hold hit as one cache for all their clients; what that saves is weighed against the longer way between
//! them ([`schemes`]). Beside the thesis: changes that are not exponential, caches that fill up ([`finite`]), sweeps over each
//! parameter and the questions that people ask ([`sweep`]).

mod asymptote;
mod bounded;
pub mod change;
pub mod finite;
mod law;
mod model;
mod paper;
mod quadrature;
mod root;
pub mod schemes;
pub mod sweep;
mod window;
pub mod zipf;

#[cfg(test)]
mod simulated;

pub use bounded::Bounded;
pub use model::{DAY_S, Model, Workload};
pub use paper::paper;
