//! A village with one home and one site, as processes.

use super::thorp;
use std::path::Path;
use thorp_testing::{HomeProcess, OF_A_TEST, Process};

/// The home, and the site below it.
pub(crate) struct OneSite {
    pub(crate) home: HomeProcess,
    pub(crate) site: Process,
    /// Where members join the site.
    pub(crate) site_via: String,
}

impl OneSite {
    /// Starts both. The identity of each member is in the directory of its name.
    pub(crate) fn start(dir: &Path, members: &[&str], site_flags: &[&str]) -> Self {
        Self::start_with(dir, members, &[], site_flags)
    }

    /// The same, with flags for the home, too.
    pub(crate) fn start_with(
        dir: &Path,
        members: &[&str],
        home_flags: &[&str],
        site_flags: &[&str],
    ) -> Self {
        let home = thorp().home_with(dir, home_flags);
        let path = |name: &str| dir.join(name).display().to_string();
        let members = members.iter().map(|name| (*name, "member"));
        for (name, role) in members.chain([("valley", "site")]) {
            let invite = ["invite", name, "--role", role, "--dir", &home.authority];
            let said = thorp().run(&[&invite[..], &["--out", &path(name)]].concat());
            assert_eq!(said.code, 0, "{}", said.err);
        }
        let site_via = format!("unix:{}", path("site.sock"));
        let mut command = thorp().command(&["site", "--identity", &path("valley")]);
        command
            .arg(format!("--home=alps={}", home.via))
            .args(["--listen", &site_via])
            .args(site_flags)
            .args(OF_A_TEST);
        let site = Process::start(command);
        site.ready();
        OneSite {
            home,
            site,
            site_via,
        }
    }
}
