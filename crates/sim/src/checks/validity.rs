//! Rule 3: at a node at position n, every cached object that is not a hole has
//! its committed value as of n.

use crate::failure::{Checked, demand};
use crate::oracle::Oracle;
use crate::time::NodeNo;
use crate::world::World;
use thorp_model::{Content, Image, NodeKind, PageId, Position};

/// Holds what a node has cached against the truth.
pub fn check(world: &World, no: NodeNo) -> Checked {
    let node = &world.nodes[no.0];
    let Some(machine) = &node.machine else {
        return Ok(());
    };
    for (home, oracle) in &world.oracles {
        let Some(position) = machine.position(*home) else {
            continue;
        };
        demand!(
            position <= oracle.end,
            "durable first",
            "{} stands at {position} of home {home}, whose log is durable to {}",
            node.name,
            oracle.end
        );
        for (page, image) in machine.images(*home) {
            check_image(oracle, &node.name, page, &image, position)?;
            if node.kind == NodeKind::Redirector {
                let site = (&*node.name, node.site());
                super::rights::carried(oracle, site, (page, image.version()), position)?;
            }
        }
    }
    Ok(())
}

/// Holds one image against the truth as of a position.
pub fn check_image(
    oracle: &Oracle,
    name: &str,
    page: PageId,
    image: &Image,
    position: Position,
) -> Checked {
    let is = oracle.image(page, position);
    if is == *image {
        return Ok(());
    }
    demand!(
        image.version() == is.version() && image.stamp() == is.stamp(),
        "validity",
        "{name} at {position} holds page {page} as {image:?} (stamp {:?}), the oracle is {is:?} \
         (stamp {:?})",
        image.stamp(),
        is.stamp()
    );
    let slots = image.slots().max(is.slots());
    for slot in (0..slots).map(thorp_model::Slot) {
        let held = image.slot(slot);
        demand!(
            held.1 == Content::Hole || held == is.slot(slot),
            "validity",
            "{name} at {position} holds page {page} slot {slot} as {held:?}, the oracle is {:?}",
            is.slot(slot)
        );
    }
    Ok(())
}
