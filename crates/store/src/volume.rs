//! The volume on which a store lies, and what the store allows itself there.

use std::path::Path;

/// The size of a volume and what is free of it, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Volume {
    /// All of it.
    pub size: u64,
    /// Free for a process without privileges.
    pub free: u64,
}

impl Volume {
    /// The volume of a file or directory; none if the system does not tell.
    pub fn of(path: &Path) -> Option<Volume> {
        let told = rustix::fs::statvfs(path).ok()?;
        Some(Volume {
            size: told.f_blocks.saturating_mul(told.f_frsize),
            free: told.f_bavail.saturating_mul(told.f_frsize),
        })
    }

    /// What journals may take before the store gives their room back, in bytes. On volumes of a few GiB and more the engine
    /// does so itself, long before.
    pub(crate) fn journals_max(self) -> u64 {
        (self.size / 8).clamp(2 << 20, 512 << 20)
    }

    /// What may wait in memory to be written out, in bytes.
    pub(crate) fn memory_max(self) -> u64 {
        (self.size / 16).clamp(1 << 20, 64 << 20)
    }

    /// What new data leaves alone on the volume, in bytes, beside what the engine needs: for removals, and for the work that
    /// they cause.
    pub(crate) fn share(self) -> u64 {
        (self.size / 8).clamp(SHARE_MIN, 64 << 20)
    }
}

/// The least share, in bytes: an installation of pages fits in half of it.
pub(crate) const SHARE_MIN: u64 = 3 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_volume_keeps_less_back_than_a_large_one() {
        let of = |mib: u64| Volume {
            size: mib << 20,
            free: 0,
        };
        assert_eq!(of(24).share(), 3 << 20);
        assert_eq!(of(300).share(), 300 << 17);
        assert_eq!(of(100_000).share(), 64 << 20);
        assert_eq!(of(24).journals_max(), 3 << 20);
        assert_eq!(of(24).memory_max(), 3 << 19);
        assert_eq!(of(100_000).memory_max(), 64 << 20);
    }

    #[test]
    fn a_volume_that_does_not_tell_is_none() {
        assert_eq!(Volume::of(Path::new("/no/such/place")), None);
        assert!(Volume::of(&std::env::temp_dir()).is_some_and(|volume| volume.size > 0));
    }
}
