//! Whoever keeps the rules goes on, whatever hostile nodes do: aim 1 of the pages about rights.

use crate::failure::{Checked, demand};
use crate::node::Node;
use crate::time::At;
use crate::world::World;
use std::collections::BTreeMap;
use thorp_model::MemberId;

/// Simulated milliseconds in which each honest member commits while it is attacked.
pub const ATTACKED_MS_MAX: u64 = 60_000;

/// Simulated milliseconds in which each honest member commits once hostile nodes are quiet.
pub const QUIET_MS_MAX: u64 = 10_000;

/// When members last heard that they have committed what they wrote.
#[derive(Debug, Default)]
pub struct Pace {
    last: BTreeMap<MemberId, At>,
}

impl Pace {
    /// A member has heard so.
    pub fn committed(&mut self, member: MemberId, at: At) {
        self.last.insert(member, at);
    }

    /// The members that have not heard so since a time, of those that lived then.
    fn silent<'a>(&self, nodes: &'a [Node], since: At) -> Vec<&'a str> {
        let honest = nodes.iter().filter(|node| node.resident.is_some());
        let older = honest.filter(|node| node.started <= since);
        let silent = older.filter(|node| self.last.get(&node.id).is_none_or(|at| *at <= since));
        silent.map(|node| node.name.as_str()).collect()
    }
}

/// Looks at a village under attack: nothing else is wrong with it, so everybody is connected.
pub fn while_attacked(world: &World) -> Checked {
    let Some(since) = world.now.0.checked_sub(ATTACKED_MS_MAX * 1000) else {
        return Ok(());
    };
    let silent = world.pace.silent(&world.nodes, At(since));
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
    world.run_for(QUIET_MS_MAX)?;
    let silent = world.pace.silent(&world.nodes, since);
    demand!(
        silent.is_empty(),
        "after an attack",
        "{silent:?} have committed nothing for {QUIET_MS_MAX} ms, and nobody attacks"
    );
    Ok(())
}
