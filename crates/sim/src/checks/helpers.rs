//! Rule R6: no honest helper counts as a wrong one, and a wrong one is asked no more.

use crate::failure::{Checked, demand};
use crate::made_up::is_rogues;
use crate::time::NodeNo;
use crate::world::World;
use thorp_model::{Down, EdgeId, Message};

/// Looks at whom a redirector holds for wrong.
pub fn check(world: &World, no: NodeNo) -> Checked {
    let node = &world.nodes[no.0];
    let Some(machine) = &node.machine else {
        return Ok(());
    };
    for home in world.oracles.keys() {
        let wrong = machine.wrong_helpers(*home);
        let honest = wrong.iter().find(|name| !is_rogues(**name));
        demand!(
            honest.is_none(),
            "helpers",
            "{} holds {honest:?} for a helper that sends wrong images",
            node.name
        );
    }
    Ok(())
}

/// Looks at a message as it is sent.
pub fn sent(world: &World, from: NodeNo, edge: EdgeId, message: &Message) -> Checked {
    let Message::Down(Down::Redirect(redirect)) = message else {
        return Ok(());
    };
    let (node, machine) = (&world.nodes[from.0], &world.nodes[from.0].machine);
    let machine = machine.as_ref();
    let wrong = machine.map_or_else(Vec::new, |machine| machine.wrong_helpers(redirect.home));
    let helper = world.edges.get(&edge).map(|edge| edge.child);
    let name = helper.map(|helper| world.nodes[helper.0].id.name());
    demand!(
        name.is_none_or(|name| !wrong.contains(&name)),
        "helpers",
        "{} asks {name:?} for help again, which sent it a wrong image",
        node.name
    );
    Ok(())
}
