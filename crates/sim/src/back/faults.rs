//! Disks go back, homes run twice, nodes crash, edges break; and an operator puts things right.

use super::node::Store;
use super::world::{Copied, World};
use super::{drive, network};
use crate::failure::{Checked, Failure};
use crate::time::{NodeNo, Planned};
use thorp_model::{EdgeId, HomeId, NodeKind, ReceiptKey};

/// Milliseconds between two rounds of the operator.
const ROUND_MS: u64 = 400;

/// The key of a copy that was opened apart.
const APART_KEY: u8 = 99;

/// A fault strikes.
pub(super) fn strike(world: &mut World) -> Checked {
    let (deeds, troubles) = (world.plan.deeds, world.plan.troubles);
    if deeds + troubles == 0 {
        return Ok(());
    }
    for home in world.plan.home_ids() {
        if world.prng.percent(50) {
            copy(world, home);
        }
    }
    let is_deed = world.prng.below(u64::from(deeds + troubles)) < u64::from(deeds);
    match is_deed {
        true => {
            world.plan.deeds -= 1;
            deed(world)?;
        }
        false => {
            world.plan.troubles -= 1;
            trouble(world)?;
        }
    }
    plan(world);
    Ok(())
}

/// Plans the next fault.
pub(super) fn plan(world: &mut World) {
    let at = world.now.plus_ms(world.prng.range(50, 1_500));
    world.agenda.plan(at, Planned::Strike);
}

/// Whether no more faults strike.
pub(super) fn is_over(world: &World) -> bool {
    world.plan.deeds + world.plan.troubles == 0
}

/// Keeps a copy of a store, as it is now: from the middle of a life, if its home runs.
fn copy(world: &mut World, home: HomeId) {
    let nodes = world.nodes_of(home);
    let no = nodes[world.prng.index(nodes.len())];
    let Some(store) = &world.nodes[no.0].store else {
        return;
    };
    let mut disk = store.disk.clone();
    disk.crash(0);
    let copied = Copied {
        home,
        disk,
        branch: world.branch(store.branch).clone(),
        of: store.branch,
    };
    world.copies.push(copied);
}

fn trouble(world: &mut World) -> Checked {
    if world.prng.percent(40) {
        let edges: Vec<EdgeId> = world.edges.keys().copied().collect();
        if !edges.is_empty() {
            world.counts.answered("edges cut");
            let edge = edges[world.prng.index(edges.len())];
            network::cut(world, edge);
        }
        return Ok(());
    }
    let up: Vec<NodeNo> = (0..world.nodes.len())
        .map(NodeNo)
        .filter(|no| world.nodes[no.0].is_up())
        .collect();
    if up.is_empty() {
        return Ok(());
    }
    let no = up[world.prng.index(up.len())];
    world.counts.answered(match world.nodes[no.0].kind {
        NodeKind::Home => "homes that crashed",
        NodeKind::Redirector => "sites that crashed",
        NodeKind::Member => "members that crashed",
    });
    drive::kill(world, no)?;
    if let Some(home) = world.nodes[no.0].home() {
        // From the end of a life.
        copy(world, home);
    }
    restart(world, no, 800);
    Ok(())
}

fn restart(world: &mut World, no: NodeNo, ms_max: u64) {
    let at = world.now.plus_ms(world.prng.range(30, ms_max));
    world.agenda.plan(at, Planned::Restart(no));
}

fn deed(world: &mut World) -> Checked {
    let home = HomeId(1 + world.prng.below(world.plan.homes as u64) as u32);
    if world.nodes_of(home).len() > 1 || world.prng.percent(60) {
        return go_back(world, home);
    }
    run_twice(world, home)
}

/// *DiskGoesBack*: a home dies, and its disk is as it was.
fn go_back(world: &mut World, home: HomeId) -> Checked {
    let nodes = world.nodes_of(home);
    let no = nodes[world.prng.index(nodes.len())];
    drive::kill(world, no)?;
    // From the end of this life, sometimes: nothing is lost then.
    if world.prng.percent(10) || !world.copies.iter().any(|copy| copy.home == home) {
        copy(world, home);
    }
    let store = restored(world, home);
    world.node(no).store = Some(store);
    opens(world, no, false)?;
    restart(world, no, 600);
    Ok(())
}

/// A store from one of the copies, mostly from one of the last.
fn restored(world: &mut World, home: HomeId) -> Store {
    let copies = world.copies.iter().enumerate();
    let of_home = copies.filter(|(_, copied)| copied.home == home);
    let numbers: Vec<usize> = of_home.map(|(number, _)| number).collect();
    let back = match world.prng.percent(70) {
        true => world.prng.below(2).min(numbers.len() as u64 - 1) as usize,
        false => world.prng.index(numbers.len()),
    };
    let copied = &world.copies[numbers[numbers.len() - 1 - back]];
    let disk = copied.disk.clone();
    let mut branch = copied.branch.clone();
    branch.parent = Some(copied.of);
    let branch = world.add_branch(branch);
    Store { home, disk, branch }
}

/// How a store that went back is opened: unnoticed, as its marker file is unchanged; closed; or by the operator at once.
fn opens(world: &mut World, no: NodeNo, may_be_apart: bool) -> Checked {
    match world.prng.below(100) {
        0..40 => world.counts.answered("went back unnoticed"),
        40..75 => {
            world.counts.answered("went back and started closed");
            if let Some(store) = &mut world.node(no).store {
                store.disk.lose_proof();
            }
        }
        75..90 if may_be_apart => return open_apart(world, no),
        _ => return open(world, no),
    }
    Ok(())
}

/// `thorp confirm`, or a start with `--restored`.
fn open(world: &mut World, no: NodeNo) -> Checked {
    world.counts.answered("confirmations");
    let store = world.nodes[no.0].store.as_mut();
    let store = store.ok_or_else(|| Failure::new("driver", "only a home is opened"))?;
    let opened = store.disk.reopen();
    opened.map_err(|error| Failure::new("disk", error.to_string()))?;
    world.branches[store.branch.0].incarnation = store.disk.history(0).incarnation;
    Ok(())
}

/// A copy is opened for a test, with a key of its own.
fn open_apart(world: &mut World, no: NodeNo) -> Checked {
    world.counts.answered("copies opened apart");
    let key = ReceiptKey::new([APART_KEY; 32]);
    let store = world.nodes[no.0].store.as_mut();
    let store = store.ok_or_else(|| Failure::new("driver", "only a home is opened"))?;
    let opened = store.disk.open_apart(key.clone());
    opened.map_err(|error| Failure::new("disk", error.to_string()))?;
    let branch = &mut world.branches[store.branch.0];
    branch.incarnation = store.disk.history(0).incarnation;
    branch.key = key;
    Ok(())
}

/// *TwoCopies*: a copy of a home runs beside it, and some nodes reach the one, some the other.
fn run_twice(world: &mut World, home: HomeId) -> Checked {
    let first = world.nodes_of(home)[0];
    if world.prng.percent(50) || !world.copies.iter().any(|copy| copy.home == home) {
        copy(world, home);
    }
    world.counts.answered("homes that ran twice");
    let (name, parents) = (
        world.nodes[first.0].name.clone(),
        world.nodes[first.0].parents.clone(),
    );
    let second = world.add(NodeKind::Home, name, parents);
    let store = restored(world, home);
    let wall_ms_ahead = world.nodes[first.0].wall_ms_ahead;
    let node = world.node(second);
    node.store = Some(store);
    node.wall_ms_ahead = wall_ms_ahead;
    let is_alone = world.plan.homes == 1;
    opens(world, second, is_alone)?;
    drive::start(world, second)?;
    let children = world.nodes.iter();
    let children = children.filter(|node| node.parents.contains(&first));
    for child in children.map(|node| node.no).collect::<Vec<_>>() {
        if world.prng.percent(50) {
            network::turn(world, child, first, second);
        }
    }
    Ok(())
}

// --- The operator ---

/// The operator looks around: opens what is closed, and ends what runs twice.
pub(super) fn round(world: &mut World) -> Checked {
    let is_now = |world: &mut World, percent| world.is_healed || world.prng.percent(percent);
    for home in world.plan.home_ids() {
        if world.nodes_of(home).len() > 1 && is_now(world, 15) {
            end_copies(world, home)?;
        }
        for no in world.nodes_of(home) {
            if world.nodes[no.0].is_closed() && is_now(world, 30) {
                drive::kill(world, no)?;
                open(world, no)?;
                restart(world, no, 300);
            }
        }
    }
    let at = world.now.plus_ms(ROUND_MS);
    world.agenda.plan(at, Planned::Relieve(0));
    Ok(())
}

/// One of two copies is given up; a copy for a test always is.
fn end_copies(world: &mut World, home: HomeId) -> Checked {
    let mut nodes = world.nodes_of(home);
    let is_apart = |no: &NodeNo| {
        let branch = world.branch_of(*no);
        branch.is_some_and(|no| world.branch(no).key == ReceiptKey::new([APART_KEY; 32]))
    };
    let given_up = nodes.iter().position(is_apart);
    let given_up = given_up.unwrap_or_else(|| world.prng.index(nodes.len()));
    let gone = nodes.swap_remove(given_up);
    let survivor = nodes[0];
    drive::kill(world, gone)?;
    world.node(gone).is_gone = true;
    let children = world.nodes.iter();
    let children = children.filter(|node| node.parents.contains(&gone));
    for child in children.map(|node| node.no).collect::<Vec<_>>() {
        network::turn(world, child, gone, survivor);
    }
    Ok(())
}
