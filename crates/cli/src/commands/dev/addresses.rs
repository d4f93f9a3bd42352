//! The addresses that a village had, so that it has them again.

use crate::commands::dev_village::PORTS_FILE;
use crate::failure::Failure;
use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use thorp_net::{Address, AuthorityServer};
use thorp_server::{HomeServer, SiteServer};

/// Where the nodes of a village listen, as a file in its directory has it.
pub(super) struct Addresses {
    pub(super) home: Place,
    pub(super) site: Place,
    pub(super) authority: Place,
    pub(super) status_of_home: Place,
    pub(super) status_of_site: Place,
}

/// A port of this machine; 0 is any.
#[derive(Clone, Copy)]
pub(super) struct Place(u16);

impl Addresses {
    /// What is not in the file, or not a port, is any port: nothing else depends on it.
    pub(super) fn load(dir: &Path) -> Self {
        let text = fs::read_to_string(dir.join(PORTS_FILE)).unwrap_or_default();
        let mut ports = text.lines().map(|line| line.trim().parse().unwrap_or(0));
        let mut next = || Place(ports.next().unwrap_or(0));
        Addresses {
            home: next(),
            site: next(),
            authority: next(),
            status_of_home: next(),
            status_of_site: next(),
        }
    }

    /// Those of a village that runs.
    pub(super) fn of(home: &HomeServer, site: &SiteServer, authority: &AuthorityServer) -> Self {
        Addresses {
            home: Place::of(home.addresses().first()),
            site: Place::of(site.addresses().first()),
            authority: Place::of(Some(authority.address())),
            status_of_home: Place::of_status(home.http_address()),
            status_of_site: Place::of_status(site.http_address()),
        }
    }

    pub(super) fn save(&self, dir: &Path) -> Result<(), Failure> {
        let all = [
            self.home,
            self.site,
            self.authority,
            self.status_of_home,
            self.status_of_site,
        ];
        let ports = all.map(|place| format!("{}\n", place.0));
        let path = dir.join(PORTS_FILE);
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

    fn of_status(address: Option<SocketAddr>) -> Self {
        Place(address.map_or(0, |address| address.port()))
    }

    /// This one, or any if somebody has it.
    pub(super) fn free(self) -> Address {
        Address::Tcp {
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: self.free_port(),
        }
    }

    /// The same for HTTP.
    pub(super) fn free_for_status(self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.free_port()).into()
    }

    fn free_port(self) -> u16 {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, self.0)) {
            Ok(_) => self.0,
            Err(_) => 0,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "127.0.0.1:{}", self.0)
    }
}

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
            let status = [all.status_of_home.0, all.status_of_site.0];
            [
                all.home.0,
                all.site.0,
                all.authority.0,
                status[0],
                status[1],
            ]
        };
        assert_eq!(loaded(), [0; 5]);
        let all = Addresses {
            home: Place(1),
            site: Place(2),
            authority: Place(3),
            status_of_home: Place(4),
            status_of_site: Place(5),
        };
        all.save(dir.path()).unwrap();
        assert_eq!(loaded(), [1, 2, 3, 4, 5]);
        // An earlier build wrote three.
        fs::write(dir.path().join(PORTS_FILE), "x\n99999\n7").unwrap();
        assert_eq!(loaded(), [0, 0, 7, 0, 0]);
    }
}
