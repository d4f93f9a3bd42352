//! Rule 2: a parent knows of every page that a child's subtree holds.

use crate::failure::{Checked, demand};
use crate::link::Edge;
use crate::node::Machine;
use crate::time::NodeNo;
use crate::world::World;
use thorp_model::{EdgeId, HomeId, PageId};

/// Looks at an edge that has just delivered something: if nothing is on its
/// way, its parent has to know what its child holds.
pub fn check_edge(world: &World, id: EdgeId) -> Checked {
    let Some(edge) = world.edges.get(&id).filter(|edge| edge.is_idle()) else {
        return Ok(());
    };
    let Some(child) = &world.nodes[edge.child.0].machine else {
        return Ok(());
    };
    for home in world.oracles.keys().copied() {
        for (page, _) in child.images(home) {
            check_way_up(world, edge.child, id, edge, home, page)?;
        }
    }
    Ok(())
}

/// Walks up as far as nothing is on its way.
fn check_way_up(
    world: &World,
    holder: NodeNo,
    id: EdgeId,
    edge: &Edge,
    home: HomeId,
    page: PageId,
) -> Checked {
    let parent = &world.nodes[edge.parent.0];
    let Some(machine) = &parent.machine else {
        return Ok(());
    };
    // A stream that has ended tells nothing more: what is held grows old, and is known to. What is held is another
    // parent's business as long as the child listens to that one.
    // A report goes up in pieces, and the last of them may wait at the child.
    let child = world.nodes[edge.child.0].machine.as_ref();
    let listens = |child: &Machine| child.listens(home, id) && !child.is_resynchronising(home);
    if !machine.streams(home, id) || !child.is_some_and(listens) {
        return Ok(());
    }
    demand!(
        machine.holds(home, id, page),
        "directory",
        "{} holds page {page}; {} does not know that on edge {id}",
        world.nodes[holder.0].name,
        parent.name
    );
    let above = world.edges.iter().find(|(_, above)| {
        above.child == edge.parent && above.is_idle() && {
            let kind = world.nodes[above.parent.0].home.as_ref();
            kind.is_none_or(|(id, _)| *id == home)
        }
    });
    match above {
        Some((id, above)) => check_way_up(world, holder, *id, above, home, page),
        None => Ok(()),
    }
}
