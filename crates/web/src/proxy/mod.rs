//! The proxy: which requests the cache answers, and what it keeps.

mod answer;
mod audit;
mod building;
mod cache;
mod clients;
mod conditions;
mod door;
mod drops;
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
mod tally;
mod tls;
mod tunnel;

pub(crate) use answer::Answer;
pub(crate) use audit::{Difference, Found};
pub use audit::{Share, ShareError};
pub use cache::{Asked, Cache, Dependencies, Filling, Next, Seen};
pub use clients::{serve, serve_door};
pub use door::Door;
pub use drops::{Dropped, Why};
pub use entries::Weight;
pub use flights::{Moment, Waiting};
pub(crate) use request::Name;
pub use serve::{Proxy, ProxyError};
pub use tally::Missed;
pub(crate) use tally::{Counts, Reason};
pub use tls::{Tls, TlsError};
