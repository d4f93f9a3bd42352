//! Transaction numbers of PostgreSQL: the stream has their lower half (trap W30).

use thorp_versions::{Bug, is_planted};

/// About the number that the database gives next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Numbers {
    next: u64,
}

impl Numbers {
    /// The database gives this number next.
    pub fn new(next: u64) -> Self {
        Numbers { next }
    }

    /// The whole number of a transaction, from its lower half.
    pub fn whole(&mut self, low: u32) -> u64 {
        if is_planted(Bug::BareNumber) {
            return u64::from(low);
        }
        let xid = whole(low, self.next);
        self.next = self.next.max(xid);
        xid
    }
}

/// The transaction is less than half the range away from the number that the database gives next.
pub(super) fn whole(low: u32, next: u64) -> u64 {
    let distance = low.wrapping_sub(next as u32) as i32;
    next.saturating_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_half_is_that_of_the_nearest_number() {
        let epoch = 1u64 << 32;
        for next in [700, epoch, epoch + 700, 5 * epoch + u64::from(u32::MAX)] {
            for xid in [next.saturating_sub(600), next, next + 600] {
                assert_eq!(whole(xid as u32, next), xid, "{xid} near {next}");
            }
        }
    }
}
