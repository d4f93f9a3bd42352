//! Prefetching: which pages are requested before a thread waits for them.

mod account;
mod counts;
mod flow;
mod open_pages;
mod policy;
mod prefetcher;

pub(super) use prefetcher::Prefetcher;
