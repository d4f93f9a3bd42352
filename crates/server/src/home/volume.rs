//! How large a volume a home needs.

use std::path::Path;

use thorp_model::limits::{INSTALL_PAGES_MAX, INSTALL_PAGES_MIN, PAGE_BYTES};
use thorp_store::Volume;
use tracing::warn;

use crate::config::HomeConfigFile;
use crate::error::ServerError;

/// The least size of a volume for a home with default settings, in bytes: journals and tables of a few MiB, the same again
/// while a table is rewritten, and a share for removals.
pub const HOME_VOLUME_MIN: u64 = 24 << 20;

/// The least size of a volume for a home with this configuration, in bytes; none if its volume is not to be asked.
pub(super) fn least(config: &HomeConfigFile) -> Option<u64> {
    match config.store.disk_reserve {
        None => Some(HOME_VOLUME_MIN),
        Some(reserve) if reserve.0 == 0 => None,
        Some(reserve) => Some(HOME_VOLUME_MIN.saturating_add(reserve.0)),
    }
}

/// Refuses a new home on a volume that is too small for it. One that has a store already starts there, serves reads and takes
/// removals, and the log says what it lacks.
///
/// # Errors
///
/// [`ServerError::SmallVolume`] with both sizes.
pub(super) fn check(config: &HomeConfigFile, is_new: bool) -> Result<(), ServerError> {
    let dir = config.store_dir()?;
    // A directory that is to be made is on the volume of what is there.
    let there = dir.ancestors().find(|dir| dir.exists());
    let volume = Volume::of(there.unwrap_or(Path::new(".")));
    let (Some(volume), Some(needed)) = (volume, least(config)) else {
        return Ok(());
    };
    if volume.size >= needed {
        return Ok(());
    }
    let small = ServerError::SmallVolume {
        dir,
        size: volume.size,
        needed,
        reserve: config.store.disk_reserve.map(|reserve| reserve.0),
    };
    if is_new {
        return Err(small);
    }
    warn!("{small}; reads and removals are served");
    Ok(())
}

/// Memory for modified objects, on the volume of a store: no more of them wait for their installation than fit.
pub(super) fn mob_bytes(config: &HomeConfigFile, volume: Option<Volume>) -> usize {
    let told = config.limits.mob.size();
    match volume {
        Some(volume) => {
            told.min(usize::try_from(volume.size / MOB_PART_OF_VOLUME).unwrap_or(usize::MAX))
        }
        None => told,
    }
}

/// Pages that one batch installs at most: half of what may be modified. So there is room for a batch on a small volume.
pub(super) fn install_pages(mob_bytes: usize) -> usize {
    (mob_bytes / (2 * PAGE_BYTES)).clamp(INSTALL_PAGES_MIN, INSTALL_PAGES_MAX)
}

/// The part of a volume that modified objects may be.
const MOB_PART_OF_VOLUME: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Bytes;

    #[test]
    fn what_is_left_alone_is_needed_as_well() {
        let mut config = HomeConfigFile::default();
        assert_eq!(least(&config), Some(HOME_VOLUME_MIN));
        config.store.disk_reserve = Some(Bytes(1 << 20));
        assert_eq!(least(&config), Some(HOME_VOLUME_MIN + (1 << 20)));
        config.store.disk_reserve = Some(Bytes(0));
        assert_eq!(least(&config), None);
    }

    #[test]
    fn few_modified_objects_wait_on_a_small_volume() {
        let config = HomeConfigFile::default();
        let volume = |size| Some(Volume { size, free: 0 });
        assert_eq!(mob_bytes(&config, volume(32 << 20)), 1 << 20);
        assert_eq!(
            mob_bytes(&config, volume(32 << 30)),
            config.limits.mob.size()
        );
        assert_eq!(mob_bytes(&config, None), config.limits.mob.size());
        assert_eq!(install_pages(1 << 20), INSTALL_PAGES_MIN);
        assert_eq!(install_pages(config.limits.mob.size()), INSTALL_PAGES_MAX);
    }
}
