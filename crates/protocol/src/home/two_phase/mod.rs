//! Transactions over several homes (rule 10): votes and their locks, the
//! decision, and the inquiry at other homes after a silence.

pub(in crate::home) mod decision;
pub(in crate::home) mod inquiry;
pub(in crate::home) mod joints;
pub(in crate::home) mod locks;
pub(in crate::home) mod other_homes;
mod otherwise;
pub(in crate::home) mod passed_questions;
mod patience;
pub(in crate::home) mod receipts;
pub(in crate::home) mod remembered;
pub(in crate::home) mod resolution;
pub(in crate::home) mod settlement;
mod shares;
pub(in crate::home) mod votes;
