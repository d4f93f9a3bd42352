//! Where a transaction that only read is placed in the order of all (rule 5).

use thorp_cache::{Cache, Doomed, ReadSet};
use thorp_model::snapshot::{self, Lagging, ReadPoint};
use thorp_model::{HomeId, Position, Stamp};

/// What rule 5 says of what a transaction read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placement {
    /// It may commit at this stamp without a message.
    At(Stamp),
    /// Homes have not promised enough for that.
    Lags(Lagging),
}

/// Places what was read at some homes, no lower than `floor`. Also gives the position of its evidence, if it is of one home.
pub(crate) fn place(
    reads: &mut ReadSet,
    cache: &Cache,
    homes: &[HomeId],
    floor: Stamp,
) -> Result<(Option<Position>, Placement), Doomed> {
    // No vector for the usual case.
    if let [home] = homes {
        let read_point = reads.read_point(cache, *home)?;
        return Ok((Some(read_point.position), place_at(&[read_point], floor)));
    }
    let points = homes.iter().map(|home| reads.read_point(cache, *home));
    let points = points.collect::<Result<Vec<ReadPoint>, Doomed>>()?;
    Ok((None, place_at(&points, floor)))
}

fn place_at(points: &[ReadPoint], floor: Stamp) -> Placement {
    match snapshot::place(points, floor) {
        Ok(stamp) => Placement::At(stamp),
        Err(lagging) => Placement::Lags(lagging),
    }
}
