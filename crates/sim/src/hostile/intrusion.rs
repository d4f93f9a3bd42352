//! How hostile nodes come into a village, and what is demanded of everybody else meanwhile.

use super::eyes::{Eyes, Loot};
use super::machine::Hostile;
use super::rogue::Rogue;
use crate::certificates::Authority;
use crate::checks::pace;
use crate::failure::Checked;
use crate::made_up::{ROGUE, ROGUE_BELOW, ROGUE_SITE};
use crate::node::Machine;
use crate::time::NodeNo;
use crate::world::World;
use std::borrow::Cow;
use thorp_model::{MemberId, NodeKind};

/// Simulated milliseconds before they come: programs open what they work with.
const PEACE_MS: u64 = 2_000;

/// Simulated milliseconds in which they attack.
const ATTACK_MS: u64 = 90_000;

/// How often it is looked whether everybody goes on, in simulated milliseconds.
const LOOK_MS: u64 = 1_000;

/// Of a hundred villages with sites, those where the hostile site is below one of them.
const BELOW_PERCENT: u64 = 30;

/// Of a hundred villages, those with a second hostile member.
const SECOND_PERCENT: u64 = 50;

/// They come, attack, are quiet, and go. Then the village is looked at as usual.
pub(super) fn run(world: &mut World) -> Checked {
    world.run_for(PEACE_MS)?;
    let rogues = intrude(world)?;
    let until = world.now.plus_ms(ATTACK_MS);
    while world.now < until {
        world.run_for(LOOK_MS)?;
        pace::while_attacked(world)?;
    }
    for no in &rogues {
        be_quiet(world, *no);
    }
    pace::once_quiet(world)?;
    for no in rogues {
        if world.nodes[no.0].is_up() {
            world.kill(no)?;
        }
    }
    world.finish()
}

fn intrude(world: &mut World) -> Checked<Vec<NodeNo>> {
    let loot = Loot::default();
    let homes = world.nodes_of(NodeKind::Home);
    let sites = world.nodes_of(NodeKind::Redirector);
    let some_site = world.fault_prng.pick(&sites).copied();
    let below = some_site.filter(|_| world.fault_prng.percent(BELOW_PERCENT));
    let above_site = below.map_or_else(|| homes.clone(), |site| vec![site]);
    let mut rogues = vec![
        enter(world, ROGUE_SITE, above_site, &loot)?,
        enter(world, ROGUE, homes.clone(), &loot)?,
    ];
    if world.fault_prng.percent(SECOND_PERCENT) {
        let parents = some_site.map_or(homes, |site| vec![site]);
        rogues.push(enter(world, ROGUE_BELOW, parents, &loot)?);
    }
    Ok(rogues)
}

/// A hostile node of this name comes.
fn enter(world: &mut World, name: &str, parents: Vec<NodeNo>, loot: &Loot) -> Checked<NodeNo> {
    let no = world.add_node(NodeKind::Member, usize::MAX, parents, None);
    let node = world.node(no);
    node.rogue = true;
    node.name = String::from(name);
    world.start(no)?;
    let is_site = name == ROGUE_SITE;
    let eyes = eyes(world, no, is_site, loot);
    let rogue = Hostile::new(world.fault_prng.fork(), eyes);
    let node = world.node(no);
    if is_site {
        node.greets_as = NodeKind::Redirector;
    }
    node.machine = Some(Machine::Byzantine(Rogue::Staying(Box::new(rogue))));
    node.resident = None;
    world.plan_tick(no);
    Ok(no)
}

fn eyes(world: &World, no: NodeNo, is_site: bool, loot: &Loot) -> Eyes {
    let members = world.nodes.iter().filter(|node| node.resident.is_some());
    let honest = members.filter(|node| !node.rogue);
    let honest: Vec<(MemberId, String)> = honest.map(|n| (n.id, n.name.clone())).collect();
    let node = &world.nodes[no.0];
    let homes = world.oracles.keys().copied().collect();
    let signer = Authority::default().signer(&node.name, node.who());
    let loot = Loot::clone(loot);
    let mut eyes = Eyes::new(node.id, honest, homes, signer, loot);
    eyes.is_site = is_site;
    eyes
}

/// It attacks no more, and what it did is counted.
fn be_quiet(world: &mut World, no: NodeNo) {
    let Some(Machine::Byzantine(Rogue::Staying(rogue))) = &mut world.nodes[no.0].machine else {
        return;
    };
    rogue.be_quiet();
    for (attack, times) in rogue.struck().clone() {
        let seen = world.counts.answers.entry(Cow::Borrowed(attack));
        *seen.or_default() += times;
    }
}
