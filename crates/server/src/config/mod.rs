//! What a home or a site is told when it starts: TOML files, and the same as structs whose fields a command line may set
//! over what a file said.

mod error;
mod file;
mod parts;
#[cfg(test)]
mod tests;
mod values;

pub use error::ConfigError;
pub(crate) use file::LOCAL_MEMBER;
pub use file::{
    HOME_HTTP_PORT, HOME_PORT, HomeConfigFile, SITE_HTTP_PORT, SITE_PORT, SiteConfigFile,
};
pub use parts::{
    ChildDelay, HomeLimits, HttpFor, LinkLimits, LogConfig, LogFormat, NameShares, OtherHome,
    ParentEntry, ROOM_LOW_MAX, ROOM_LOW_MIN, SiteLimits, StoreConfig, THREADS_MAX,
};
pub use values::{Bytes, BytesError, HttpAt};
