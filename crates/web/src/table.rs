//! Where the table of a database is, unless somebody says otherwise.

use crate::postgres::Postgres;
use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use thorp_versions::Terms;

/// The file with the address of a keeper's table, in a directory of this user alone. Keepers and proxies that reach the same database in
/// the same way, and run as the same user, find each other there.
///
/// # Errors
///
/// There is no such directory, and none can be made.
pub fn table_of(source: &Postgres) -> io::Result<PathBuf> {
    table_named(source.name(), &source.identity())
}

/// The same of a keeper of requests. Keepers and proxies of the same name, which run as the same user, find each other there.
///
/// # Errors
///
/// As [`table_of`].
pub fn table_of_requests(name: &str) -> io::Result<PathBuf> {
    table_named(name, "requests")
}

/// What a keeper of requests and its proxies have to agree on: a name. Proxies say the keys.
pub fn terms_of_requests(name: &str) -> Terms {
    Terms::of(&format!("requests {name}"))
}

fn table_named(name: &str, identity: &str) -> io::Result<PathBuf> {
    let directory = match env::var_os("XDG_RUNTIME_DIR") {
        Some(directory) => PathBuf::from(directory).join("thorp-web"),
        None => {
            let user = rustix::process::geteuid().as_raw();
            env::temp_dir().join(format!("thorp-web-{user}"))
        }
    };
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(&directory)?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_dir() || !is_own || found.mode() & 0o022 != 0 {
        let words = format!("{} is not this user's alone", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
    }
    let Terms(hash) = Terms::of(identity);
    Ok(directory.join(format!("{name}-{hash:016x}.table")))
}
