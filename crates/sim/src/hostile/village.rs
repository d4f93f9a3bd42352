//! Villages in which nothing goes wrong but that some nodes are hostile.

use crate::village::Village;
use thorp_model::Xoshiro256;

/// Messages that a driver queues for a peer: floods are limited by the machines.
const QUEUE_MAX: usize = 10_000;

/// Microseconds to a home, at most: what is demanded does not depend on the way.
const FAR_US_MAX: u64 = 40_000;

/// Members, at most.
const MEMBERS_MAX: usize = 6;

/// Names of hostile nodes: a site, and two members.
const HOSTILE_NAMES: usize = 3;

/// Draws the village of a seed: no faults, and programs that think longer, because it lives longer. What is demanded of
/// each member within seconds has to hold without hostile nodes.
pub(crate) fn draw(prng: &mut Xoshiro256) -> Village {
    let mut village = Village::draw(prng);
    village.faults.clear();
    village.strikes = 0;
    village.turns = false;
    village.queue_max = QUEUE_MAX;
    village.far.least_us = village.far.least_us.min(FAR_US_MAX);
    village.members.truncate(MEMBERS_MAX);
    // A site may bring half of what a home remembers, and then forgets the only one of a name (rule R2). Hostile names come
    // to those for which other villages draw their tables.
    let names = 2 * village.members.len() + HOSTILE_NAMES;
    for home in &mut village.homes {
        home.registrations_max = home.registrations_max.max(2 * names);
    }
    let habits = &mut village.habits;
    habits.think_ms_max = prng.range(300, 1_000);
    (habits.flood, habits.given_up) = (0, 0);
    // Honest members that conflict with each other all the time would stop each other: so few do.
    habits.full_pages = false;
    habits.pages = habits.pages.clamp(4, 6);
    habits.slots = habits.slots.max(4);
    habits.actions_max = habits.actions_max.min(4);
    habits.read_only = habits.read_only.min(30);
    habits.slow = habits.slow.min(5);
    village
}
