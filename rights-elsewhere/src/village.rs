//! A home and two sites as processes.

use std::path::{Path, PathBuf};
use tempfile::TempDir;
use thorp_client::{JoinConfig, Member};
use thorp_testing::{HomeProcess, OF_A_TEST, PATIENCE, Process, Thorp};

/// The members, each of them at every place.
pub(crate) const NAMES: [&str; 4] = ["anna", "ben", "carl", "dora"];

/// Who sets the lists.
pub(crate) const OPERATOR: &str = "olga";

/// The places to join at.
pub(crate) const PLACES: [&str; 3] = ["home", "site with memory", "site without memory"];

/// Running processes, in a directory that goes with them.
pub(crate) struct Village {
    home: HomeProcess,
    sites: Vec<(String, Process)>,
    dir: TempDir,
}

impl Village {
    /// Starts all processes.
    pub(crate) fn start(thorp: &Path) -> Self {
        let thorp = Thorp::at(thorp);
        let dir = tempfile::tempdir().expect("a directory");
        let home = thorp.home(dir.path());
        let invite = |name: &str, role: &str| {
            let out = dir.path().join(name).display().to_string();
            let invite = ["invite", name, "--role", role, "--out", &out];
            let said = thorp.run(&[&invite[..], &["--dir", &home.authority]].concat());
            assert_eq!(said.code, 0, "{}", said.err);
        };
        NAMES.iter().for_each(|name| invite(name, "member"));
        invite(OPERATOR, "operator");
        let mut sites = Vec::new();
        for (name, memory) in [("office", "64 MiB"), ("yard", "0")] {
            invite(name, "site");
            let path = |name: &str| dir.path().join(name).display().to_string();
            let via = format!("unix:{}", path(&format!("{name}.sock")));
            let mut command = thorp.command(&["site", "--identity", &path(name)]);
            command
                .arg(format!("--home=alps={}", home.via))
                .args(["--listen", &via, "--cache-bytes", memory])
                .args(OF_A_TEST);
            let site = Process::start(command);
            site.ready();
            sites.push((via, site));
        }
        Village { home, sites, dir }
    }

    /// Joins at a place, by its index in [`PLACES`].
    pub(crate) fn join(&self, name: &str, place: usize) -> Member {
        let via = match place.checked_sub(1) {
            None => &self.home.via,
            Some(site) => &self.sites[site].0,
        };
        let config = JoinConfig::new(via).identity(self.identity(name));
        Member::join(config.join_timeout(PATIENCE)).expect("everybody was invited")
    }

    fn identity(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}
