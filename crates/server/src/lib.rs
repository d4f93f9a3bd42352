//! Homes and sites: storage, sockets, configuration and metrics joined.
//!
//! - [`HomeServer`]: `thorp_protocol`'s home, a store, and the loop of `thorp_net` between them. It survives a full disk and a
//!   broken engine: reads go on without space, and a home whose engine broke is opened again from what is in the store.
//! - [`SiteServer`]: the redirector of a site.
//! - [`HomeConfigFile`], [`SiteConfigFile`]: what they are told, as TOML files and as structs.
//! - `/metrics`, `/health` and `/status` over HTTP, on this machine if not told otherwise; [`Status`] is what they are made of.
//!
//! A server runs on a current-thread runtime ([`runtime`]); signals are the caller's: [`HomeServer::run`] takes the future
//! that ends it. The disk has threads of its own, and so has HTTP: it answers also when the loop does not.

mod beside;
mod config;
mod error;
mod home;
mod http;
mod logs;
mod metrics;
mod node;
mod privileges;
mod site;
mod status;

pub use config::{
    Bytes, BytesError, ChildDelay, ConfigError, HOME_HTTP_PORT, HOME_PORT, HomeConfigFile,
    HomeLimits, HttpAt, HttpFor, LinkLimits, LogConfig, LogFormat, NameShares, OtherHome,
    ParentEntry, ROOM_LOW_MAX, ROOM_LOW_MIN, SITE_HTTP_PORT, SITE_PORT, SiteConfigFile, SiteLimits,
    StoreConfig, THREADS_MAX,
};
pub use error::ServerError;
pub use home::{HOME_VOLUME_MIN, HomeControl, HomeServer, home_in_store};
pub use logs::init_logs;
pub use privileges::PrivilegesStatus;
pub use site::SiteServer;
pub use status::{
    AgreementStatus, AtHome, ChildStatus, Health, HistoryStatus, HitCounts, HomeStatus, LackStatus,
    MetStatus, Opened, ParentLine, Status, StorageStatus, TableLine, TrafficLine, WaitsFor,
};
pub use thorp_net::driver::{runtime, runtime_of};
pub use thorp_store::Opening;
