//! Programs: sessions that run random transactions through a member.

pub mod action;
mod commit;
pub mod errand;
pub mod guest;
pub mod session;
mod tools;
pub mod transaction;
pub mod value;
mod visit;

pub use session::{Context, PROGRESS_MIN, Phase, Session, Waiting, Wish};
pub use transaction::{Positions, Transaction};
