//! What holds in the end: what was acknowledged is there, or its loss was named; and homes agree.

use super::branch::BranchNo;
use super::ledger::{Asked, Told};
use super::world::World;
use crate::failure::{Checked, demand};
use std::collections::BTreeMap;
use thorp_model::{CommitId, HomeId, Outcome, Refusal, Stamp};

type Finals = BTreeMap<HomeId, BranchNo>;

/// Looks at a village at rest.
pub(super) fn check(world: &World) -> Checked {
    let finals = world.final_branches();
    for (id, told) in &world.ledger.told {
        let Some(asked) = world.ledger.asked.get(id) else {
            continue;
        };
        if asked.content.written.is_empty() {
            continue;
        }
        match &told.outcome {
            Outcome::Committed { .. } => losses_are_named(world, &finals, *id, (asked, told))?,
            Outcome::Refused(refusal) => refused(world, &finals, *id, (refusal, told))?,
        }
    }
    for (id, asked) in &world.ledger.asked {
        if asked.homes.len() > 1 && !asked.content.written.is_empty() {
            agree(world, &finals, *id, asked)?;
        }
    }
    for branch in finals.values() {
        stamps_rise(world, *branch)?;
    }
    readings(world)
}

/// A commit that was acknowledged is there, or its program was told that a home of it has gone back, if it lives.
fn losses_are_named(
    world: &World,
    finals: &Finals,
    id: CommitId,
    (asked, told): (&Asked, &Told),
) -> Checked {
    let (no, life) = asked.process;
    if world.nodes[no.0].life != life {
        return Ok(());
    }
    // One over several homes is told before each of them has it.
    let since = match asked.homes.len() {
        1 => told.event,
        _ => asked.event,
    };
    let has = |home: &HomeId| {
        let branch = world.branch(finals[home]);
        branch.oracle.commits.contains_key(&id) || branch.is_in_doubt(id)
    };
    let is_whole = asked.homes.iter().all(has);
    let mut homes = asked.homes.iter();
    let is_named = homes.any(|home| world.ledger.is_warned(asked.process, *home, since));
    demand!(
        is_whole || is_named,
        "losses",
        "{id:?} of {} was acknowledged, and is lost; nobody told that: {told:?}, {asked:?}",
        world.nodes[no.0].name
    );
    Ok(())
}

/// What was refused in a history is not in it, nor in what goes on from it.
fn refused(
    world: &World,
    finals: &Finals,
    id: CommitId,
    (refusal, told): (&Refusal, &Told),
) -> Checked {
    if matches!(refusal, Refusal::Lost | Refusal::Forgotten) && told.branches.len() > 1 {
        return Ok(());
    }
    for (home, branch) in &told.branches {
        let last = finals[home];
        demand!(
            !world.goes_on_from(last, *branch)
                || !world.branch(last).oracle.commits.contains_key(&id),
            "exactly once",
            "{id:?} was refused ({refusal:?}) in {branch:?}, and is in {last:?}"
        );
    }
    Ok(())
}

/// Homes that lost nothing of a transaction all have it, or none has, or they hold it in doubt. It has one stamp.
fn agree(world: &World, finals: &Finals, id: CommitId, asked: &Asked) -> Checked {
    let stamp = |home: &HomeId| world.branch(finals[home]).oracle.commits.get(&id);
    let stamps: Vec<Stamp> = asked
        .homes
        .iter()
        .filter_map(stamp)
        .map(|(_, stamp)| *stamp)
        .collect();
    demand!(
        stamps.windows(2).all(|pair| pair[0] == pair[1]),
        "surviving homes",
        "{id:?} has the stamps {stamps:?}"
    );
    if stamps.is_empty() {
        return Ok(());
    }
    for home in &asked.homes {
        let own = finals[home];
        let branch = world.branch(own);
        let has_lost = world.others_of(own).any(|other| other.knows(id));
        demand!(
            branch.oracle.commits.contains_key(&id) || branch.is_in_doubt(id) || has_lost,
            "surviving homes",
            "{id:?} is committed, and home {home} has lost nothing of it and does not have it"
        );
    }
    Ok(())
}

/// Whoever comes after another one at an object of a history has a higher stamp: so the orders of all homes fit into one. Where
/// two histories of a home may have given one stamp, and another home may have met both, it has no lower one.
fn stamps_rise(world: &World, branch: BranchNo) -> Checked {
    let history = world.branch(branch);
    let mut commits: Vec<_> = history.oracle.commits.iter().collect();
    commits.sort_by_key(|(_, (position, _))| *position);
    let mut written = BTreeMap::new();
    let mut read: BTreeMap<_, Stamp> = BTreeMap::new();
    let rises =
        |from: Stamp, to: Stamp| from < to || history.oracle.lets_stamps_repeat() && from == to;
    for (id, (position, stamp)) in commits {
        let Some(asked) = world.ledger.asked.get(id) else {
            continue;
        };
        let seen = asked.content.seen.keys();
        for (_, object) in seen.filter(|(home, _)| *home == history.home) {
            let before = written.get(object).copied().unwrap_or_default();
            let writes = asked.content.written.contains_key(&(history.home, *object));
            let readers = read.get(object).copied().unwrap_or_default();
            demand!(
                rises(before, *stamp) && (!writes || rises(readers, *stamp)),
                "serializability",
                "{id:?} at {position} of {branch:?} has stamp {stamp:?}; {object} was written at \
                 {before:?}, and read at {readers:?}"
            );
            match writes {
                true => written.insert(*object, *stamp),
                false => read.insert(*object, readers.max(*stamp)),
            };
        }
    }
    Ok(())
}

/// Whoever only read stands where all that it saw was there, in the histories that it followed.
fn readings(world: &World) -> Checked {
    for reading in &world.ledger.readings {
        for (branch, object, evidence) in &reading.seen {
            let (since, next) = world
                .branch(*branch)
                .oracle
                .stamps_around(*object, *evidence);
            demand!(
                since.is_none_or(|since| since <= reading.stamp)
                    && next.is_none_or(|next| reading.stamp < next),
                "snapshot",
                "a transaction that stands at {:?} saw {object} of {branch:?} as of {evidence}: it \
                 was so since {since:?}, until {next:?}",
                reading.stamp
            );
        }
    }
    Ok(())
}
