//! Where a transaction that only read may stand, without a message (rule 5).
//!
//! Writers of all homes have one order, by their stamps; each home tells its own in another
//! order, by positions. What was read at a home is as of a position, so it is as of a stamp only
//! if nothing is on its way there that belongs before that stamp: that is what the home's
//! watermark promises.

use crate::ids::{HomeId, Position, Stamp};
use crate::planted;
use crate::planted::Bug;
use alloc::vec::Vec;

/// What a transaction has read at one home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadPoint {
    /// The home.
    pub home: HomeId,
    /// Everything that was read there is current here: the evidence (rule 4).
    pub position: Position,
    /// The highest stamp contained in a page that was read there.
    pub stamp: Stamp,
    /// What is promised at that position: all changes to what was read that are not
    /// delivered there have a higher stamp.
    pub watermark: Stamp,
}

/// Why a transaction may not stand yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lagging {
    /// Where it would stand.
    pub stamp: Stamp,
    /// The homes that have not promised so much: ask them, or have the transaction validated.
    pub homes: Vec<HomeId>,
}

/// The stamp at which a transaction that saw this, in a session that has been at `floor`, may
/// stand: above all that it saw, below all that would change it.
pub fn place(points: &[ReadPoint], floor: Stamp) -> Result<Stamp, Lagging> {
    let floor = match planted::is(Bug::SessionFloorIgnored) {
        true => Stamp::default(),
        false => floor,
    };
    let stamp = points
        .iter()
        .map(|read_point| read_point.stamp)
        .fold(floor, Stamp::max);
    let lags = |read_point: &&ReadPoint| {
        read_point.watermark < stamp && !planted::is(Bug::WatermarkNotAwaited)
    };
    let homes: Vec<HomeId> = points
        .iter()
        .filter(lags)
        .map(|read_point| read_point.home)
        .collect();
    match homes.is_empty() {
        true => Ok(stamp),
        false => Err(Lagging { stamp, homes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(clock: u64) -> Stamp {
        let home = HomeId(1);
        Stamp { clock, home }
    }

    fn read_point(home: u32, contained: u64, watermark: u64) -> ReadPoint {
        ReadPoint {
            home: HomeId(home),
            position: Position(1),
            stamp: stamp(contained),
            watermark: stamp(watermark),
        }
    }

    #[test]
    fn it_stands_above_what_it_saw_and_within_what_is_promised() {
        let both = [read_point(1, 5, 9), read_point(2, 7, 7)];
        assert_eq!(place(&both, stamp(0)), Ok(stamp(7)));
        assert_eq!(place(&[], stamp(3)), Ok(stamp(3)), "it saw nothing");
    }

    #[test]
    fn it_names_the_homes_that_lag() {
        let both = [read_point(1, 5, 6), read_point(2, 7, 9)];
        let lagging = |homes: &[u32]| {
            let homes = homes.iter().map(|home| HomeId(*home)).collect();
            Err(Lagging {
                stamp: stamp(7),
                homes,
            })
        };
        assert_eq!(place(&both, stamp(0)), lagging(&[1]));
        let both = [read_point(1, 5, 6), read_point(2, 5, 6)];
        assert_eq!(place(&both, stamp(7)), lagging(&[1, 2]));
    }
}
