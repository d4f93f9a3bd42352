//! Connections: dialling, sending, arriving, breaking.

use super::verdicts;
use super::world::World;
use crate::failure::Checked;
use crate::link::{Edge, Item, Lane};
use crate::time::{At, End, NodeNo, Planned};
use std::collections::BTreeMap;
use std::convert::Infallible;
use thorp_model::{Direction, EdgeId, Event, Message, NodeKind};

/// What an end of an edge is given.
pub(super) type Arrived = (NodeNo, Event<Infallible>);

/// Microseconds to a site, one way.
const NEAR_US: u64 = 200;

/// A child tries to connect to a parent.
pub(super) fn dial(world: &mut World, child: NodeNo, parent: NodeNo) {
    let connected = |edge: &Edge| edge.child == child && edge.parent == parent && !edge.down.closed;
    let is_wanted = world.nodes[child.0].parents.contains(&parent);
    if !is_wanted || world.edges.values().any(connected) {
        return;
    }
    match world.nodes[parent.0].is_up() {
        true => connect(world, child, parent),
        false => world.redial(child, parent),
    }
}

fn connect(world: &mut World, child: NodeNo, parent: NodeNo) {
    world.last_edge = world.last_edge.next();
    let id = world.last_edge;
    let delay_us = match world.nodes[parent.0].kind {
        NodeKind::Home => world.plan.far_us,
        _ => NEAR_US,
    };
    let mut edge = Edge {
        child,
        parent,
        down: Lane::default(),
        up: Lane::default(),
        beside: BTreeMap::new(),
        beside_sent: 0,
        delay_us,
        jitter_us: delay_us / 4,
    };
    let up = edge.up.send(world.now.plus_us(delay_us), Item::Open);
    let down = edge.down.send(world.now.plus_us(2 * delay_us), Item::Open);
    world.edges.insert(id, edge);
    plan_arrival(world, id, End::Parent, up);
    plan_arrival(world, id, End::Child, down);
}

fn plan_arrival(world: &mut World, edge: EdgeId, end: End, at: Option<At>) {
    if let Some(at) = at {
        world.agenda.plan(at, Planned::Arrive { edge, end });
    }
}

fn delay(world: &mut World, id: EdgeId) -> u64 {
    let edge = world.edges.get(&id);
    let (least, jitter) = edge.map_or((0, 0), |edge| (edge.delay_us, edge.jitter_us));
    least + world.prng.below(jitter + 1)
}

/// A node sends a message; on an edge that is gone it is forgotten.
pub(super) fn send(world: &mut World, from: NodeNo, id: EdgeId, message: Message) -> Checked {
    let arrives = world.now.plus_us(delay(world, id));
    let Some(edge) = world.edges.get_mut(&id) else {
        return Ok(());
    };
    let own = edge.end_of(from);
    if edge.lane(own).closed {
        return Ok(());
    }
    verdicts::sent(world, from, id, &message)?;
    world.counts.messages += 1;
    let Some(edge) = world.edges.get_mut(&id) else {
        return Ok(());
    };
    let at = edge
        .lane(own.other())
        .send(arrives, Item::Message(message, None));
    plan_arrival(world, id, own.other(), at);
    Ok(())
}

/// The next thing on its way to one end arrives: what its node is given.
pub(super) fn arrive(world: &mut World, id: EdgeId, end: End) -> Option<Arrived> {
    let now = world.now;
    let edge = world.edges.get_mut(&id)?;
    let (no, other) = (edge.node(end), edge.node(end.other()));
    let opened = edge.lane(end).opened;
    let event = match edge.lane(end).receive(now)? {
        Item::Open => Event::Connected {
            edge: id,
            direction: match end {
                End::Child => Direction::Up,
                End::Parent => Direction::Down,
            },
            peer: world.nodes[other.0].peer(),
        },
        Item::Message(message, _) => Event::Received { edge: id, message },
        Item::End => {
            ended(world, id, end);
            if !opened {
                return None;
            }
            Event::Disconnected { edge: id }
        }
    };
    Some((no, event))
}

fn ended(world: &mut World, id: EdgeId, end: End) {
    let Some(edge) = world.edges.get(&id) else {
        return;
    };
    let child = edge.child;
    if edge.is_dead() {
        world.edges.remove(&id);
    }
    if end == End::Child {
        for parent in world.nodes[child.0].parents.clone() {
            world.redial(child, parent);
        }
    }
}

/// A node closes its end of an edge.
pub(super) fn close(world: &mut World, no: NodeNo, id: EdgeId) {
    let now = world.now;
    let Some(edge) = world.edges.get_mut(&id) else {
        return;
    };
    let own = edge.end_of(no);
    edge.lane(own).lose_from(0);
    let at = edge.lane(own).send(now, Item::End);
    plan_arrival(world, id, own, at);
    lose(world, id, own.other());
}

/// An edge breaks: each end hears of it in its own time.
pub(super) fn cut(world: &mut World, id: EdgeId) {
    lose(world, id, End::Child);
    lose(world, id, End::Parent);
}

/// An end hears of the end of an edge, after some of what was on its way.
fn lose(world: &mut World, id: EdgeId, end: End) {
    let at = world.now.plus_us(delay(world, id));
    let share = world.prng.bits();
    let Some(edge) = world.edges.get_mut(&id) else {
        return;
    };
    let lane = edge.lane(end);
    lane.lose_from(share as usize % (lane.len() + 1));
    let at = lane.send(at, Item::End);
    plan_arrival(world, id, end, at);
}

/// All connections of a node that has died.
pub(super) fn break_all(world: &mut World, no: NodeNo) {
    let own = |edge: &Edge| edge.child == no || edge.parent == no;
    let edges = world.edges.iter().filter(|(_, edge)| own(edge));
    let ids: Vec<EdgeId> = edges.map(|(id, _)| *id).collect();
    for id in ids {
        let Some(edge) = world.edges.get_mut(&id) else {
            continue;
        };
        let end = edge.end_of(no);
        edge.lane(end).close();
        match edge.is_dead() {
            true => {
                world.edges.remove(&id);
            }
            false => lose(world, id, end.other()),
        }
    }
}

/// A child turns from a parent to another one.
pub(super) fn turn(world: &mut World, child: NodeNo, from: NodeNo, to: NodeNo) {
    let parents = &mut world.node(child).parents;
    if let Some(parent) = parents.iter_mut().find(|parent| **parent == from) {
        *parent = to;
    }
    let own = |edge: &Edge| edge.child == child && edge.parent == from;
    let edges = world.edges.iter().filter(|(_, edge)| own(edge));
    let ids: Vec<EdgeId> = edges.map(|(id, _)| *id).collect();
    for id in ids {
        cut(world, id);
    }
    world.redial(child, to);
}
