//! What holds when a healed village is at rest.

use super::drive::in_log;
use super::ledger::tokens_of;
use super::token::Token;
use super::world::World;
use super::{anomalies, truth};
use crate::failure::{Checked, Failure, demand};
use crate::node::Machine;
use std::collections::BTreeSet;

/// Why a healed village is not at rest yet.
pub(super) fn unrest(world: &World) -> Option<String> {
    for (no, node) in world.nodes.iter().enumerate() {
        let name = &node.name;
        let Some(machine) = &node.machine else {
            return Some(format!("{name} is dead"));
        };
        let Machine::Member(member) = machine else {
            continue;
        };
        if member.unsaved() > 0 {
            let unsaved = member.unsaved();
            return Some(format!("the log of {name} has {unsaved} updates"));
        }
        if node.disk.as_ref().is_some_and(|disk| disk.pending() > 0) {
            return Some(format!("the disk of {name} is busy"));
        }
        let scribe = node.scribe.as_ref()?;
        if scribe.is_writing() {
            return Some(format!("{name} waits for its log"));
        }
        if scribe.session.is_some() {
            return Some(format!("{name} is in a session"));
        }
        if scribe.cache.tentative() > 0 {
            return Some(format!("{name} shows updates that are saved"));
        }
        for slot in 0..world.plan.objects {
            match (scribe.read(slot), first(world, no, slot)) {
                (Some(own), Some(other)) if own.shown == other => {}
                (Some(own), Some(other)) => {
                    return Some(format!("{name} shows {:?}, and not {other:?}", own.shown));
                }
                _ => return Some(format!("{name} has object {slot} not cached")),
            }
        }
    }
    None
}

/// What the first member shows of an object.
fn first(world: &World, no: usize, slot: u16) -> Option<Vec<Token>> {
    let first = world.members().next().filter(|first| *first != no);
    let first = first.unwrap_or(no);
    let scribe = world.nodes[first].scribe.as_ref()?;
    Some(scribe.read(slot)?.shown)
}

/// Looks at a village at rest.
pub(super) fn check(world: &mut World) -> Checked {
    anomalies::judge(world)?;
    let world = &*world;
    let mut saved = BTreeSet::new();
    let first = world.members().next();
    let scribe = first.and_then(|no| world.nodes[no].scribe.as_ref());
    for slot in 0..world.plan.objects {
        let seen = scribe.and_then(|scribe| scribe.read(slot));
        let seen = seen.ok_or_else(|| Failure::new("end", "an object is not cached"))?;
        saved.extend(seen.committed);
    }
    for token in truth::answered(world) {
        demand!(
            saved.contains(&token),
            "losses",
            "{token:?} was answered, and is neither saved nor rejected"
        );
    }
    for no in world.members() {
        let Some(disk) = &world.nodes[no].disk else {
            continue;
        };
        for record in in_log(disk)? {
            let tokens = tokens_of(&record.update);
            demand!(
                record.rejected.is_some() && tokens.iter().all(|token| !saved.contains(token)),
                "logs",
                "the log of {} has {tokens:?}: {:?}",
                world.nodes[no].name,
                record.rejected
            );
        }
    }
    Ok(())
}
