//! Transactions over several homes (rule 10): votes and their locks, the
//! decision, and the inquiry at other homes after a silence.

pub(in crate::home) mod decision;
pub(in crate::home) mod inquiry;
pub(in crate::home) mod locks;
pub(in crate::home) mod other_homes;
mod otherwise;
mod patience;
pub(in crate::home) mod resolution;
pub(in crate::home) mod settlement;
mod shares;
pub(in crate::home) mod votes;
