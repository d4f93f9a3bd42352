//! The number of a lock, for other programs of the same name (rule C5).

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;
use thorp_model::{Fence, HomeId};

/// A lock that a [`Visit`](crate::Visit) holds at one home. Other programs with a certificate of the same name write under it, if
/// they are told: [`JoinConfig::under`](crate::JoinConfig::under). It reads and prints as text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LockNumber {
    pub(crate) home: HomeId,
    pub(crate) fence: Fence,
}

impl LockNumber {
    /// Whether another lock is one of the same home. A program writes under one lock of each home.
    pub fn has_home_of(&self, other: &LockNumber) -> bool {
        self.home == other.home
    }

    /// The fencing number: a lock that was granted later at the same home has a higher one.
    pub fn fence(&self) -> u64 {
        self.fence.0
    }
}

impl fmt::Display for LockNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.home, self.fence)
    }
}

impl FromStr for LockNumber {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!(
                "{text:?} is no number of a lock: that is a home's id, a colon and a number, as `thorp lock` gives it"
            ))
        };
        let (home, fence) = text.split_once(':').ok_or_else(wrong)?;
        let home = home.parse().map_err(|_| wrong())?;
        let fence = fence.parse().map_err(|_| wrong())?;
        Ok(LockNumber {
            home: HomeId(home),
            fence: Fence(fence),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_it_prints() {
        let number = LockNumber {
            home: HomeId(3),
            fence: Fence(7 << 40),
        };
        assert_eq!(number.to_string().parse::<LockNumber>().unwrap(), number);
        assert_eq!(number.fence(), 7 << 40);
        for wrong in ["", "3", "3:", ":7", "3:7:1", "x:7"] {
            assert!(wrong.parse::<LockNumber>().is_err(), "{wrong}");
        }
    }
}
