//! Names take turns where sessions wait for locks (rule C5).

use alloc::vec::Vec;
use thorp_model::NameId;

/// Somebody of a name that waits.
pub(crate) trait InTurn {
    /// The name, and how many of it are served before this one, beside those of others.
    fn turn(&self) -> (NameId, u64);

    /// Sets the latter.
    fn set_round(&mut self, round: u64);
}

/// Somebody waits from now on: the second of a name comes behind the first ones of all others that wait. So nobody gets more turns
/// by waiting more often.
pub(crate) fn push<T: InTurn>(queue: &mut Vec<T>, mut new: T) {
    let (name, _) = new.turn();
    let mut turns = queue.iter().rev().map(InTurn::turn);
    let of_name = turns.find(|(of, _)| *of == name);
    let first = queue.first().map_or(0, |before| before.turn().1);
    let round = of_name.map_or(first, |(_, before)| before + 1);
    new.set_round(round);
    let place = queue.partition_point(|before| before.turn().1 <= round);
    queue.insert(place, new);
}
