//! Programs: sessions that run random transactions through a member.

pub mod action;
mod commit;
pub mod errand;
mod pair;
pub mod session;
pub mod transaction;
pub mod value;

pub use session::{Context, PROGRESS_MIN, Phase, Session, Waiting, Wish};
pub use transaction::Transaction;
