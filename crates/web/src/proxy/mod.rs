//! The proxy: which requests the cache answers, and what it keeps.

mod answer;
mod cache;
mod entries;
mod flights;
mod origin;
mod request;
mod serve;

pub use cache::{Asked, Cache, Dependencies, Filling, Step};
pub use entries::Weight;
pub use flights::{Moment, Waiting};
pub use serve::{Proxy, ProxyError, serve};
