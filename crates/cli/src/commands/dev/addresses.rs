//! The addresses that a village had, so that it has them again.

use crate::failure::Failure;
use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use thorp_net::Address;

/// Where the nodes of a village listen, as a file in its directory has it.
pub(super) struct Addresses {
    pub(super) home: Place,
    pub(super) site: Place,
    pub(super) authority: Place,
}

/// A port of this machine; 0 is any.
#[derive(Clone, Copy)]
pub(super) struct Place(u16);

impl Addresses {
    /// What is not in the file, or not a port, is any port: nothing else depends on it.
    pub(super) fn load(dir: &Path) -> Self {
        let text = fs::read_to_string(dir.join(FILE)).unwrap_or_default();
        let mut ports = text.lines().map(|line| line.trim().parse().unwrap_or(0));
        let mut next = || Place(ports.next().unwrap_or(0));
        Addresses {
            home: next(),
            site: next(),
            authority: next(),
        }
    }

    pub(super) fn of(home: &[Address], site: &[Address], authority: &Address) -> Self {
        Addresses {
            home: Place::of(home.first()),
            site: Place::of(site.first()),
            authority: Place::of(Some(authority)),
        }
    }

    pub(super) fn save(&self, dir: &Path) -> Result<(), Failure> {
        let ports = [self.home, self.site, self.authority].map(|place| format!("{}\n", place.0));
        let path = dir.join(FILE);
        fs::write(&path, ports.concat()).map_err(|error| Failure::file(&path, &error))
    }
}

impl Place {
    fn of(address: Option<&Address>) -> Self {
        match address {
            Some(Address::Tcp { port, .. }) => Place(*port),
            _ => Place(0),
        }
    }

    /// This one, or any if somebody has it.
    pub(super) fn free(self) -> Address {
        let is_free = TcpListener::bind((Ipv4Addr::LOCALHOST, self.0)).is_ok();
        Address::Tcp {
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: if is_free { self.0 } else { 0 },
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "127.0.0.1:{}", self.0)
    }
}

/// In the village's directory.
const FILE: &str = "dev-ports";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_somebody_has_is_not_taken() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert_eq!(Place(port).free().to_string(), "tcp://127.0.0.1:0");
        drop(taken);
        assert_eq!(
            Place(port).free().to_string(),
            format!("tcp://127.0.0.1:{port}")
        );
    }

    #[test]
    fn ports_come_back_and_nonsense_is_any_port() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = || {
            let all = Addresses::load(dir.path());
            [all.home.0, all.site.0, all.authority.0]
        };
        assert_eq!(loaded(), [0, 0, 0]);
        let all = Addresses {
            home: Place(1),
            site: Place(2),
            authority: Place(3),
        };
        all.save(dir.path()).unwrap();
        assert_eq!(loaded(), [1, 2, 3]);
        fs::write(dir.path().join(FILE), "x\n99999\n7").unwrap();
        assert_eq!(loaded(), [0, 0, 7]);
    }
}
