//! What this machine lets a program do.

use super::Check;
use rustix::process::{Resource, getrlimit};
use std::fs;
use thorp_net::Congestion;

/// Congestion control matters where something `is_far`.
pub(super) fn check(is_far: bool) -> Vec<Check> {
    congestion(is_far, &Kernel::read())
        .into_iter()
        .chain([open_files(getrlimit(Resource::Nofile).current)])
        .collect()
}

/// What Linux says of congestion control; nothing on other systems.
#[derive(Debug, Default)]
struct Kernel {
    chosen: Option<String>,
    available: Vec<String>,
    /// Whether a program may choose BBR.
    allows_bbr: bool,
}

impl Kernel {
    fn read() -> Self {
        let read = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
            Some(text.trim().to_owned())
        };
        let available = read("tcp_available_congestion_control").unwrap_or_default();
        Kernel {
            chosen: read("tcp_congestion_control"),
            available: available.split_whitespace().map(str::to_owned).collect(),
            allows_bbr: Congestion::Named(BBR.to_owned()).check().is_ok(),
        }
    }
}

/// Cubic takes every loss for a full queue, and begins slowly after a silence. BBR does neither.
fn congestion(is_far: bool, kernel: &Kernel) -> Option<Check> {
    let chosen = kernel.chosen.as_deref()?;
    if kernel.allows_bbr {
        let found = format!("programs may choose {BBR}, and Thorp does; the system's is {chosen}");
        return Some(Check::ok(CONGESTION, found));
    }
    let is_there = kernel.available.iter().any(|name| name == BBR);
    let found = match is_there {
        true => format!("the system has {BBR} and reserves it: connections use {chosen}"),
        false => format!("the system has no {BBR}: connections use {chosen}"),
    };
    if !is_far {
        let found =
            format!("{found}; all addresses are on this machine, where that does not matter");
        return Some(Check::ok(CONGESTION, found));
    }
    let todo = "allow it, as root: sysctl -w net.ipv4.tcp_allowed_congestion_control=\"reno cubic bbr\"; where packets are lost, \
                cubic takes many times as long";
    let check = Check::warning(
        CONGESTION,
        found,
        match is_there {
            true => "",
            false => "load it, as root: modprobe tcp_bbr",
        },
    );
    Some(check.or(todo))
}

/// A home or a site has a file open for each node below it, and some for its store.
fn open_files(limit: Option<u64>) -> Check {
    let Some(limit) = limit else {
        return Check::ok(OPEN_FILES, "a process may open as many files as it wants");
    };
    let found = format!("a process may open {limit} files");
    let check = match limit {
        ..OPEN_FILES_MIN => Check::warning(
            OPEN_FILES,
            format!("{found}: a home or a site here may run out of them"),
            "raise it: `ulimit -n 4096` in the shell, or LimitNOFILE= in the unit of systemd",
        ),
        _ => Check::ok(OPEN_FILES, found),
    };
    check.with("open_files", limit)
}

const BBR: &str = "bbr";
const CONGESTION: &str = "congestion_control";
const OPEN_FILES: &str = "open_files";
/// What most systems give, and what suits some hundred nodes below.
const OPEN_FILES_MIN: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bbr_is_advised_where_something_is_far() {
        let kernel = |allows_bbr, available: &str| Kernel {
            chosen: Some("cubic".to_owned()),
            available: available.split_whitespace().map(str::to_owned).collect(),
            allows_bbr,
        };
        let word = |is_far, kernel| congestion(is_far, &kernel).unwrap().first_word();
        assert_eq!(word(true, kernel(true, "reno cubic bbr")), "ok");
        assert_eq!(word(true, kernel(false, "reno cubic bbr")), "warning");
        assert_eq!(word(true, kernel(false, "reno cubic")), "warning");
        assert_eq!(word(false, kernel(false, "reno cubic")), "ok");
        assert!(congestion(true, &Kernel::default()).is_none());
    }

    #[test]
    fn few_open_files_are_told() {
        assert_eq!(open_files(Some(256)).first_word(), "warning");
        assert_eq!(open_files(Some(1024)).first_word(), "ok");
        assert_eq!(open_files(None).first_word(), "ok");
    }
}
