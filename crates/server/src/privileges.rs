//! What a node has granted to those below it, and who waits because of that (rules C1 to C5).

use serde::Serialize;

/// What a node has granted to those below it, and who waits because of that. What is null, only homes have.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PrivilegesStatus {
    /// Leases to write, of a child in a segment each.
    pub write_leases: u64,
    /// Read leases, of a child in a segment each.
    pub read_leases: u64,
    /// Hard reads that wait for what nodes with leases to write have answered.
    pub pulls: u64,
    /// Locks that sessions hold.
    pub locks: Option<u64>,
    /// Sessions that wait for locks.
    pub lock_waiters: Option<u64>,
    /// Answers to commits that wait until readers with leases have seen them.
    pub answers_withheld: Option<u64>,
    /// How long such answers have waited since the start of the home, all added up, in seconds.
    pub writers_waited_s: Option<f64>,
}

impl PrivilegesStatus {
    /// Those of a site, by the sizes of its tables.
    pub(crate) fn of_site(sizes: &[(&'static str, usize)]) -> Self {
        let size = |wanted: &str| {
            let found = sizes.iter().find(|(name, _)| *name == wanted);
            found.map_or(0, |(_, size)| *size as u64)
        };
        PrivilegesStatus {
            write_leases: size("leases"),
            read_leases: size("read_leases"),
            pulls: size("pulls"),
            ..PrivilegesStatus::default()
        }
    }

    /// Those of a home, by the sizes of its tables and what its writers have waited.
    pub(crate) fn of_home(sizes: &[(&'static str, usize)], waited_ms: u64) -> Self {
        let size = |wanted: &str| {
            let found = sizes.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, size)| *size as u64)
        };
        PrivilegesStatus {
            locks: size("locks"),
            lock_waiters: size("lock_queue"),
            answers_withheld: size("withheld"),
            writers_waited_s: Some(waited_ms as f64 / 1000.0),
            ..PrivilegesStatus::of_site(sizes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_no_locks_and_a_home_has_all() {
        let sizes = [
            ("leases", 2),
            ("read_leases", 3),
            ("pulls", 1),
            ("locks", 4),
            ("lock_queue", 5),
            ("withheld", 6),
        ];
        let of_site = PrivilegesStatus::of_site(&sizes);
        assert_eq!((of_site.write_leases, of_site.read_leases), (2, 3));
        assert_eq!((of_site.pulls, of_site.locks), (1, None));
        let of_home = PrivilegesStatus::of_home(&sizes, 1_500);
        assert_eq!((of_home.locks, of_home.lock_waiters), (Some(4), Some(5)));
        assert_eq!(of_home.answers_withheld, Some(6));
        assert_eq!(of_home.writers_waited_s, Some(1.5));
        assert_eq!(of_home.write_leases, 2);
    }
}
