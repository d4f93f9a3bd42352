//! The proxy: which requests the cache answers, and what it keeps.

mod answer;
mod entries;
mod flights;
mod origin;
mod request;
mod serve;

pub use serve::{Proxy, ProxyError, serve};
