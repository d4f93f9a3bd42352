//! What goes wrong: edges break or fall silent, logs are full, members turn, nodes die.

use super::world::{What, World};
use super::{drive, network};
use crate::failure::Checked;
use thorp_model::{EdgeId, NodeKind};

/// A fault strikes, and the next one is planned.
pub(super) fn strike(world: &mut World) -> Checked {
    if world.plan.troubles == 0 {
        return Ok(());
    }
    world.plan.troubles -= 1;
    let at = world.now + world.prng.range(50_000, 1_500_000);
    world.plan(at, What::Strike);
    let edges: Vec<EdgeId> = world.edges.keys().copied().collect();
    match world.prng.below(100) {
        0..20 if !edges.is_empty() => {
            world.counts.answered("edges cut");
            let edge = edges[world.prng.index(edges.len())];
            network::close(world, edge);
        }
        20..50 if !edges.is_empty() => silence(world, &edges),
        50..60 => fill(world),
        60..75 => turn(world),
        _ => return crash(world),
    }
    Ok(())
}

/// An edge carries nothing, mostly for longer than a lease.
fn silence(world: &mut World, edges: &[EdgeId]) {
    world.counts.answered("edges silent");
    let id = edges[world.prng.index(edges.len())];
    let ms = world.prng.below(u64::from(world.plan.lease_ms) * 3) + 50;
    if let Some(edge) = world.edges.get_mut(&id) {
        edge.is_silent = true;
        let at = world.now + ms * 1000;
        world.plan(at, What::Mend { edge: id });
    }
}

/// The disk under a log is full for a while.
fn fill(world: &mut World) {
    let members: Vec<usize> = world.members().collect();
    let no = members[world.prng.index(members.len())];
    if let Some(disk) = &mut world.nodes[no].disk {
        disk.full = true;
        let at = world.now + world.prng.range(10_000, 800_000);
        world.plan(at, What::Refill { no });
    }
}

/// A member turns to another parent.
fn turn(world: &mut World) {
    world.counts.answered("members that turned");
    let members: Vec<usize> = world.members().collect();
    let no = members[world.prng.index(members.len())];
    let to = world.prng.below(world.plan.sites.len() as u64 + 1) as usize;
    world.nodes[no].parents = vec![to];
    let edges = world.edges.iter();
    let ids: Vec<EdgeId> = edges
        .filter(|(_, edge)| edge.child == no)
        .map(|(id, _)| *id)
        .collect();
    for id in ids {
        network::close(world, id);
    }
    network::redial(world, no, to);
}

fn crash(world: &mut World) -> Checked {
    let up: Vec<usize> = (0..world.nodes.len())
        .filter(|no| world.nodes[*no].machine.is_some())
        .collect();
    if up.is_empty() {
        return Ok(());
    }
    let no = up[world.prng.index(up.len())];
    world.counts.answered(match world.nodes[no].kind {
        NodeKind::Home => "homes that crashed",
        NodeKind::Redirector => "sites that crashed",
        NodeKind::Member => "members that crashed",
    });
    drive::kill(world, no);
    let at = world.now + world.prng.range(30_000, 900_000);
    world.plan(at, What::Restart { no });
    Ok(())
}
