//! Simulated time.

use std::fmt;

/// A time in microseconds since the world began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct At(pub u64);

impl At {
    /// This time and so many microseconds.
    #[must_use]
    pub fn plus_us(self, us: u64) -> At {
        At(self.0.saturating_add(us))
    }

    /// Whole milliseconds since the world began.
    pub fn ms(self) -> u64 {
        self.0 / 1_000
    }
}

impl fmt::Debug for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}ms", self.0 / 1_000, self.0 % 1_000)
    }
}
