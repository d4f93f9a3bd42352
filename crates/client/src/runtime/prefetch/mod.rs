//! Prefetching: which pages are requested before a thread waits for them.

mod account;
mod counts;
mod flow;
mod open_pages;
mod policy;

pub(super) use policy::PrefetchPolicy;
