//! Villages with hostile nodes that stay for long: one site, and one or two members (rules R1 to R9 and 15). Each kind of
//! attack is a type of its own.
//!
//! Nothing else goes wrong. So each honest member has to go on: while they attack, and soon after they are quiet.

mod attack;
mod denials;
mod eyes;
mod floods;
mod futures;
mod impostor;
mod intrusion;
mod limits;
mod machine;
mod parents_words;
mod replays;
mod reports;
mod rogue;
mod torn;
mod village;
mod votes;

#[allow(
    unreachable_pub,
    reason = "a public field of a node has this type, and nobody outside names it"
)]
pub use rogue::Rogue;

use crate::failure::Checked;
use crate::options::Options;
use crate::world::World;

/// Every kind of attack: what a campaign never saw was not tried.
pub const ATTACKS: &[&str] = &[
    "attack: denials",
    "attack: false page reports",
    "attack: floods",
    "attack: forged ids",
    "attack: messages at their limits",
    "attack: replayed receipts",
    "attack: stamps from the future",
    "attack: torn bytes",
    "attack: votes left in doubt",
    "attack: words of a parent",
    "attack: wrong images",
];

/// The village of a seed, at the beginning of time.
pub(crate) fn settle(seed: u64, options: Options) -> Checked<World> {
    World::with_village(seed, options, village::draw)
}

/// Runs the whole story.
pub(crate) fn run(world: &mut World) -> Checked {
    intrusion::run(world)
}
