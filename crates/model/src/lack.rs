//! What a full store lacks.

use alloc::format;
use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Serialize};

/// What a store that takes no commit has free, and what it would need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lack {
    /// Bytes that are free.
    pub free: u64,
    /// Bytes that would have to be free.
    pub needed: u64,
    /// Of what.
    pub of: SpaceBound,
}

/// What bounds a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SpaceBound {
    /// The home's own limit, in bytes of content.
    Limit,
    /// The volume on which the store lies.
    Volume,
}

impl Lack {
    /// Not a byte is free below the limit.
    pub const OF_ALL: Lack = Lack {
        free: 0,
        needed: 1,
        of: SpaceBound::Limit,
    };
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.of {
            SpaceBound::Limit => "below its --limit-bytes",
            SpaceBound::Volume => "on its volume",
        };
        let (free, needed) = (people_bytes(self.free), people_bytes(self.needed));
        write!(f, "{free} are free {place}, {needed} are needed")
    }
}

/// Bytes as people read them.
pub fn people_bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024. && unit + 1 < units.len() {
        value /= 1024.;
        unit += 1;
    }
    match unit {
        0 => format!("{count} B"),
        _ => format!("{value:.1} {}", units[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_says_what_is_free_and_what_is_needed() {
        let mut lack = Lack {
            free: 48 << 20,
            needed: 52 << 20,
            of: SpaceBound::Volume,
        };
        let on_volume = "48.0 MiB are free on its volume, 52.0 MiB are needed";
        assert_eq!(format!("{lack}"), on_volume);
        lack.of = SpaceBound::Limit;
        let below_limit = "48.0 MiB are free below its --limit-bytes, 52.0 MiB are needed";
        assert_eq!(format!("{lack}"), below_limit);
    }

    #[test]
    fn bytes_are_told_in_the_unit_that_fits() {
        assert_eq!(people_bytes(0), "0 B");
        assert_eq!(people_bytes(1023), "1023 B");
        assert_eq!(people_bytes(1536), "1.5 KiB");
        assert_eq!(people_bytes(u64::MAX), "16777216.0 TiB");
    }
}
