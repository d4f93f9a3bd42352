//! Whoever keeps the rules goes on, whatever hostile nodes do: aim 1 of the pages about rights.

use crate::failure::{Checked, demand};
use crate::time::At;
use crate::world::World;

/// Simulated milliseconds in which each honest member commits while it is attacked.
pub const ATTACKED_MS_MAX: u64 = 60_000;

/// Simulated milliseconds in which each honest member commits once hostile nodes are quiet.
pub const QUIET_MS_MAX: u64 = 10_000;

/// The honest members that have not heard since a time that they have committed, of those that lived then.
fn silent(world: &World, since: At) -> Vec<&str> {
    let honest = world.nodes.iter().filter(|node| node.resident.is_some());
    let older = honest.filter(|node| node.started <= since);
    let silent = older.filter(|node| !world.pace.has_committed(node.id, since));
    silent.map(|node| node.name.as_str()).collect()
}

/// Looks at a village under attack: nothing else is wrong with it, so everybody is connected.
pub fn while_attacked(world: &World) -> Checked {
    let Some(since) = world.now.0.checked_sub(ATTACKED_MS_MAX * 1000) else {
        return Ok(());
    };
    let silent = silent(world, At(since));
    demand!(
        silent.is_empty(),
        "under attack",
        "{silent:?} have committed nothing for {ATTACKED_MS_MAX} ms"
    );
    Ok(())
}

/// Lets time pass in a village in which hostile nodes have just become quiet.
pub fn once_quiet(world: &mut World) -> Checked {
    let since = world.now;
    world.pace.await_all(since);
    world.run_for(QUIET_MS_MAX)?;
    world.pace.go_on();
    let silent = silent(world, since);
    demand!(
        silent.is_empty(),
        "after an attack",
        "{silent:?} have committed nothing for {QUIET_MS_MAX} ms, and nobody attacks"
    );
    Ok(())
}
