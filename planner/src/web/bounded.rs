//! A figure that says how wrong it may be.

use serde::Serialize;
use std::ops::{Add, Mul};

/// A computed value, and how far the true one may be from it to either side.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Bounded {
    /// The value.
    pub value: f64,
    /// The bound of its error, in the same unit; never below 0.
    pub error: f64,
}

impl Bounded {
    /// Whether the true value can be this one.
    pub fn admits(self, value: f64) -> bool {
        (self.value - value).abs() <= self.error
    }

    /// The same for a figure that cannot be below 0 or above 1: a share that rounding took outside is set on its limit.
    pub(super) fn as_share(self) -> Self {
        Bounded {
            value: self.value.clamp(0.0, 1.0),
            error: self.error,
        }
    }
}

impl Add for Bounded {
    type Output = Bounded;

    fn add(self, other: Bounded) -> Bounded {
        Bounded {
            value: self.value + other.value,
            error: self.error + other.error,
        }
    }
}

impl Mul<f64> for Bounded {
    type Output = Bounded;

    fn mul(self, by: f64) -> Bounded {
        Bounded {
            value: self.value * by,
            error: self.error * by.abs(),
        }
    }
}
