//! A village's certificates in a temporary directory.

use tempfile::TempDir;
use thorp_net::{Address, Config, Identity, Role, issue};

/// A directory that goes away with the test.
pub(crate) struct Village {
    _dir: TempDir,
    pub(crate) home: Identity,
    pub(crate) member: Identity,
}

impl Village {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let home = Identity::open_or_create(at("home"), "alps").unwrap();
        let member = issue(at("home"), at("member"), "anna").unwrap();
        Self {
            _dir: dir,
            home,
            member,
        }
    }
}

pub(crate) fn any() -> Address {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) fn at_home() -> Config {
    Config::new(Role::HOME)
}

pub(crate) fn at_member() -> Config {
    Config::new(Role::MEMBER)
}
