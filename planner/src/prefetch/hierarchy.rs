//! What a simulated cluster is made of.

use crate::Invalid;
use serde::Serialize;

/// Active nodes with local memory, memory servers with global memory and disks, and what each step takes.
///
/// Times are whole microseconds, so that every run is exact and the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Hierarchy {
    /// Pages in the local memory of each active node.
    pub local_pages: u32,
    /// Pages in the global memory of all memory servers together.
    pub global_pages: u32,
    /// Disks of the memory servers. Each can read every page (section 4.2: disk-resident data is available everywhere).
    pub server_disks: u32,
    /// What a process computes after each reference, microseconds.
    pub compute_us: u64,
    /// A page from global into local memory (*F_G*), microseconds.
    pub global_fetch_us: u64,
    /// A page from a disk into the memory of its node (*F_D*), microseconds.
    pub disk_fetch_us: u64,
    /// What issuing a prefetch costs the process that computes meanwhile, microseconds. While it stalls it costs nothing more.
    pub issue_us: u64,
}

impl Hierarchy {
    /// The thesis's cluster (sections 4.4.1 and 4.4.3): 32 MB of 8 KB pages and a disk in each node, 250 µs between references,
    /// 370 µs for a page from global memory, 13 ms for one from disk.
    pub fn of_thesis(idle_nodes: u32) -> Self {
        Hierarchy {
            local_pages: PAGES_OF_32_MB,
            global_pages: PAGES_OF_32_MB * idle_nodes,
            server_disks: idle_nodes,
            compute_us: 250,
            global_fetch_us: 370,
            disk_fetch_us: 13_000,
            issue_us: 0,
        }
    }

    /// *F_G/F_D*, on which the theorem of section 4.2.3 rests.
    pub fn ratio(&self) -> f64 {
        self.global_fetch_us as f64 / self.disk_fetch_us as f64
    }

    /// Refuses what cannot be.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the parameter and why.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.local_pages == 0 {
            return Err(Invalid::new("local_pages", "must be at least 1, not 0"));
        }
        if u64::from(self.local_pages) + u64::from(self.global_pages) > u64::from(u32::MAX) {
            let why = format!("must be below {} with those of local memory", u32::MAX);
            return Err(Invalid::new("global_pages", why));
        }
        if self.server_disks > DISKS_MAX {
            let why = format!("must be at most {DISKS_MAX}, not {}", self.server_disks);
            return Err(Invalid::new("server_disks", why));
        }
        self.check_times()
    }

    fn check_times(&self) -> Result<(), Invalid> {
        for (parameter, time, least) in [
            ("compute_us", self.compute_us, 0),
            ("global_fetch_us", self.global_fetch_us, 1),
            ("disk_fetch_us", self.disk_fetch_us, 1),
            ("issue_us", self.issue_us, 0),
        ] {
            if !(least..=TIME_MAX_US).contains(&time) {
                let why = format!("must be between {least} and {TIME_MAX_US}, not {time}");
                return Err(Invalid::new(parameter, why));
            }
        }
        if self.global_fetch_us > self.disk_fetch_us {
            let why = format!(
                "must not be above the {} of a disk: nobody would fetch from there",
                self.disk_fetch_us
            );
            return Err(Invalid::new("global_fetch_us", why));
        }
        Ok(())
    }
}

const PAGES_OF_32_MB: u32 = 4096;

/// Each event looks at every disk.
const DISKS_MAX: u32 = 1024;

/// A quarter of an hour for one step: 2^32 of them still fit into the clock.
const TIME_MAX_US: u64 = 900_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused() {
        let right = Hierarchy::of_thesis(4);
        assert_eq!(right.check(), Ok(()));
        let wrong = |parameter: &str, change: &dyn Fn(&mut Hierarchy)| {
            let mut changed = right;
            change(&mut changed);
            let refused = changed.check().expect_err(parameter);
            assert_eq!(refused.parameter(), parameter);
        };
        wrong("local_pages", &|h| h.local_pages = 0);
        wrong("global_pages", &|h| h.global_pages = u32::MAX);
        wrong("server_disks", &|h| h.server_disks = 5000);
        wrong("compute_us", &|h| h.compute_us = u64::MAX);
        wrong("global_fetch_us", &|h| h.global_fetch_us = 0);
        wrong("global_fetch_us", &|h| h.global_fetch_us = 14_000);
        wrong("disk_fetch_us", &|h| h.disk_fetch_us = 0);
    }
}
