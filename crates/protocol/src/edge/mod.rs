//! What home, redirector and member have in common: the two ends of an edge.

pub(crate) mod admission;
pub(crate) mod claims;
pub(crate) mod debts;
pub(crate) mod delegation;
pub(crate) mod directory;
pub(crate) mod downstream;
pub(crate) mod followers;
pub(crate) mod leases;
pub(crate) mod liveness;
pub(crate) mod pending_writes;
pub(crate) mod pulls;
pub(crate) mod read_leases;
pub(crate) mod recalls;
pub(crate) mod reply_routes;
pub(crate) mod reports;
pub(crate) mod send_window;
pub(crate) mod shares;
pub(crate) mod slow_holders;
pub(crate) mod unseen;
pub(crate) mod upstream;
