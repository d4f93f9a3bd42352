//! The proxy: which requests the cache answers, and what it keeps.

mod answer;
mod building;
mod cache;
mod clients;
mod conditions;
mod entries;
mod fields;
mod flights;
mod growing;
mod host;
mod origin;
mod plain;
mod range;
mod request;
mod serve;
mod shape;
mod tls;
mod tunnel;
mod updating;
mod upload;

pub use cache::{Asked, Cache, Dependencies, Filling, Next};
pub use clients::{serve, serve_tls};
pub use entries::Weight;
pub use flights::{Moment, Waiting};
pub use serve::{Proxy, ProxyError};
pub use tls::{Tls, TlsError};
pub use updating::ends_update;
pub use upload::{UPLOAD_BYTES_MAX, UPLOADS_BYTES_MAX};
