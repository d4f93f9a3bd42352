//! Connections of these villages: what travels keeps its order, and what breaks loses the rest.

use super::link::{Edge, Item, Lane};
use super::world::{Local, What, World};
use std::convert::Infallible;
use thorp_model::{Direction, EdgeId, Event, Message, NodeKind};

/// Microseconds to a site, one way.
const NEAR_US: u64 = 200;

fn put(world: &mut World, edge: EdgeId, down: bool, item: Item) {
    let Some(of) = world.edges.get(&edge) else {
        return;
    };
    let least = match world.nodes[of.parent].kind {
        NodeKind::Home => world.plan.far_us,
        _ => NEAR_US,
    };
    let at = world.now + least + world.prng.below(least / 2 + 1);
    let Some(of) = world.edges.get_mut(&edge) else {
        return;
    };
    let lane = of.lane(down);
    let at = at.max(lane.last + 1);
    lane.last = at;
    lane.items.push_back((at, item));
    world.plan(at, What::Arrive { edge, down });
}

/// A child tries to connect to a parent.
pub(super) fn dial(world: &mut World, child: usize, parent: usize) {
    let is_wanted = world.nodes[child].parents.contains(&parent);
    let mut edges = world.edges.values();
    let is_there = edges.any(|e| e.child == child && e.parent == parent && !e.down.is_closed);
    if !is_wanted || is_there {
        return;
    }
    if world.nodes[parent].machine.is_none() {
        return redial(world, child, parent);
    }
    world.last_edge = world.last_edge.next();
    let id = world.last_edge;
    let edge = Edge {
        child,
        parent,
        down: Lane::default(),
        up: Lane::default(),
        is_silent: false,
    };
    world.edges.insert(id, edge);
    put(world, id, false, Item::Open);
    put(world, id, true, Item::Open);
}

/// A child is to try again.
pub(super) fn redial(world: &mut World, child: usize, parent: usize) {
    let at = world.now + world.prng.range(20_000, 300_000);
    world.plan_local(child, at, Local::Dial(parent));
}

/// A node sends a message; on an edge that is gone it is forgotten.
pub(super) fn send(world: &mut World, from: usize, id: EdgeId, message: Message) {
    let Some(edge) = world.edges.get_mut(&id) else {
        return;
    };
    let down = edge.parent == from;
    if edge.is_silent || edge.lane(down).is_closed {
        return;
    }
    world.counts.messages += 1;
    put(world, id, down, Item::Message(Box::new(message)));
}

/// The next thing on its way to one end arrives: what its node is given.
pub(super) fn arrive(
    world: &mut World,
    id: EdgeId,
    down: bool,
) -> Option<(usize, Event<Infallible>)> {
    let now = world.now;
    let edge = world.edges.get_mut(&id)?;
    let (to, other) = match down {
        true => (edge.child, edge.parent),
        false => (edge.parent, edge.child),
    };
    let lane = edge.lane(down);
    // What was to arrive now may have been lost.
    let (_, item) = lane.items.pop_front_if(|(at, _)| *at <= now)?;
    let event = match item {
        Item::Open => Event::Connected {
            edge: id,
            direction: if down { Direction::Up } else { Direction::Down },
            peer: world.nodes[other].peer(),
        },
        Item::Message(message) => Event::Received {
            edge: id,
            message: *message,
        },
        Item::End => {
            lane.is_closed = true;
            let (child, parent) = (edge.child, edge.parent);
            if edge.down.is_closed && edge.up.is_closed {
                world.edges.remove(&id);
            }
            if down {
                for parent in world.nodes[child].parents.clone() {
                    redial(world, child, parent);
                }
                let _ = parent;
            }
            Event::Disconnected { edge: id }
        }
    };
    world.nodes[to].machine.is_some().then_some((to, event))
}

/// A node closes its end of an edge.
pub(super) fn close(world: &mut World, id: EdgeId) {
    for down in [true, false] {
        end_lane(world, id, down);
    }
}

/// An end hears of the end of an edge, after some of what was on its way.
fn end_lane(world: &mut World, id: EdgeId, down: bool) {
    let share = world.prng.bits() as usize;
    let Some(edge) = world.edges.get_mut(&id) else {
        return;
    };
    let lane = edge.lane(down);
    if lane.is_closed {
        return;
    }
    let keep = share % (lane.items.len() + 1);
    // Who has not heard of the beginning hears of that before the end.
    let is_new = matches!(lane.items.front(), Some((_, Item::Open)));
    lane.items.truncate(keep.max(usize::from(is_new)));
    put(world, id, down, Item::End);
}

/// All connections of a node that has died.
pub(super) fn break_all(world: &mut World, no: usize) {
    let own = world.edges.iter();
    let own = own.filter(|(_, edge)| edge.child == no || edge.parent == no);
    let ids: Vec<EdgeId> = own.map(|(id, _)| *id).collect();
    for id in ids {
        let Some(edge) = world.edges.get_mut(&id) else {
            continue;
        };
        let down = edge.parent == no;
        // Its own end hears nothing any more.
        let lane = edge.lane(!down);
        lane.items.clear();
        lane.is_closed = true;
        match edge.lane(down).is_closed {
            true => {
                world.edges.remove(&id);
            }
            false => end_lane(world, id, down),
        }
    }
}

/// An edge that was silent is given up, and another one comes.
pub(super) fn mend(world: &mut World, id: EdgeId) {
    if let Some(edge) = world.edges.get_mut(&id) {
        edge.is_silent = false;
        close(world, id);
    }
}
