//! Villages whose homes go back in time (rule R9).
//!
//! They run the shipped machines, as all villages do, over the same links and disks. Their truth is another one: a home has a
//! list of histories, each of which branches from a prefix of another. Two faults make histories. *DiskGoesBack*: at a crash a
//! home's disk is as it was when a copy was made, at the end of a life or in its middle. *TwoCopies*: a copy runs beside the
//! home, and some nodes reach the one, some the other. An operator opens later what is closed, and ends what runs twice.
//!
//! | file | what it demands |
//! |---|---|
//! | `verdicts` | a stream goes on from what a child holds only if that is in the history of the stream |
//! | `truth` | each history is serializable, nodes hold nothing of another one, and nobody is told what is not so |
//! | `branch` | nothing new is recorded for registrations of an earlier incarnation |
//! | `end` | acknowledged commits are there, or their loss was named; surviving homes agree, or are in doubt |
//!
//! After the last confirmation everybody makes progress.

mod branch;
mod disks;
mod drive;
mod end;
mod faults;
mod ledger;
mod network;
mod node;
mod plan;
mod program;
mod sessions;
mod setup;
mod streams;
mod transaction;
mod truth;
mod verdicts;
mod world;

use crate::Story;
use crate::failure::{Checked, Failure, demand};
use crate::given::Given;
use crate::options::Options;
use crate::time::{At, Local, NodeNo, Planned};
use std::panic::{AssertUnwindSafe, catch_unwind};
use thorp_protocol::{HomeCommand, MemberCommand};
use world::World;

/// Transactions that each session has to end well, once the village is healed.
const PROGRESS_MIN: u64 = 3;

/// Simulated milliseconds that it has for that.
const PROGRESS_MS_MAX: u64 = 60_000;

/// Simulated milliseconds until a village at rest is quiet.
const QUIET_MS: u64 = 6_000;

/// Events after which a run is taken to be running away.
const EVENTS_MAX: u64 = 1_000_000;

/// What a large campaign has to see.
pub const EVERYTHING: &[&str] = &[
    "went back unnoticed",
    "went back and started closed",
    "confirmations",
    "copies opened apart",
    "homes that ran twice",
    "homes closed by a receipt",
    "members that forgot",
    "outcomes: committed",
    "outcomes: refused",
    "outcomes: lost",
    "outcomes: home went back",
];

/// Runs the village of a seed.
pub(crate) fn run(seed: u64, options: Options) -> Story {
    let mut world = World::new(seed, options);
    world.trace.line(|| format!("seed {seed}"));
    let told = catch_unwind(AssertUnwindSafe(|| tell(&mut world)));
    Story::of(seed, &world.trace, world.counts, told)
}

/// The whole story: faults, healing, progress, rest, and a last look.
fn tell(world: &mut World) -> Checked {
    begin(world)?;
    while !faults::is_over(world) {
        next(world)?;
    }
    run_for(world, 1_000)?;
    world.is_healed = true;
    await_progress(world)?;
    world.is_closing = true;
    rest(world)?;
    run_for(world, QUIET_MS)?;
    world.counts.simulated_ms = world.now.ms_since(At(0));
    end::check(world)
}

fn begin(world: &mut World) -> Checked {
    for (index, home) in world.plan.home_ids().enumerate() {
        drive::start(world, NodeNo(index))?;
        setup::found(world, NodeNo(index), home)?;
    }
    for index in world.plan.homes..world.nodes.len() {
        drive::start(world, NodeNo(index))?;
    }
    run_for(world, 500)?;
    faults::plan(world);
    faults::round(world)
}

fn programs(world: &World) -> impl Iterator<Item = (&str, &program::Program)> {
    let nodes = world.nodes.iter();
    nodes.filter_map(|node| Some((&*node.name, node.program.as_ref()?)))
}

fn await_progress(world: &mut World) -> Checked {
    for program in world
        .nodes
        .iter_mut()
        .filter_map(|node| node.program.as_mut())
    {
        program.sessions.iter_mut().for_each(|s| s.progress = 0);
    }
    let until = world.now.plus_ms(PROGRESS_MS_MAX);
    let all_up = |world: &World| world.nodes.iter().all(|node| node.is_up() || node.is_gone);
    while !all_up(world) || programs(world).any(|(_, program)| is_stuck(world, program)) {
        demand!(
            world.now < until,
            "liveness",
            "long after all faults these make no progress: {:?}",
            programs(world)
                .filter(|(_, program)| is_stuck(world, program))
                .map(|(name, program)| format!("{name}: {}", program.describe()))
                .collect::<Vec<_>>()
        );
        next(world)?;
    }
    Ok(())
}

/// Whether a session makes no progress, and does not wait for a transaction that a home holds in doubt.
fn is_stuck(world: &World, program: &program::Program) -> bool {
    let mut sessions = program.sessions.iter().enumerate();
    sessions.any(|(number, session)| {
        let in_doubt = |id| world.is_in_doubt(id);
        session.progress < PROGRESS_MIN && !program.waits_for(number).any(in_doubt)
    })
}

fn rest(world: &mut World) -> Checked {
    let until = world.now.plus_ms(PROGRESS_MS_MAX);
    let is_at_rest =
        |world: &World, program: &program::Program| program.is_at_rest(|id| world.is_in_doubt(id));
    while programs(world).any(|(_, program)| !is_at_rest(world, program)) {
        demand!(
            world.now < until,
            "liveness",
            "these do not come to an end: {:?}",
            programs(world)
                .map(|(name, program)| format!("{name}: {}", program.describe()))
                .collect::<Vec<_>>()
        );
        next(world)?;
    }
    Ok(())
}

fn run_for(world: &mut World, ms: u64) -> Checked {
    let until = world.now.plus_ms(ms);
    while world.now < until {
        next(world)?;
    }
    Ok(())
}

/// The next event.
fn next(world: &mut World) -> Checked {
    let Some((at, event)) = world.agenda.pop() else {
        return Err(Failure::new("liveness", "nothing happens any more"));
    };
    world.now = at;
    world.counts.events += 1;
    demand!(
        world.counts.events < EVENTS_MAX,
        "liveness",
        "{EVENTS_MAX} events and no end"
    );
    world.trace.digest(|digest| digest.number(at.0));
    match event {
        Planned::Arrive { edge, end } => match network::arrive(world, edge, end) {
            Some((no, event)) => drive::handle(world, no, Given::Event(event)),
            None => Ok(()),
        },
        Planned::At { node, life, local } => {
            let is_same = world.nodes[node.0].life == life && world.nodes[node.0].is_up();
            match is_same {
                true => happen(world, node, local),
                false => Ok(()),
            }
        }
        Planned::Restart(no) => match world.nodes[no.0].is_up() || world.nodes[no.0].is_gone {
            true => Ok(()),
            false => drive::start(world, no),
        },
        Planned::Strike => faults::strike(world),
        Planned::Relieve(_) => faults::round(world),
        Planned::ArriveBeside { .. } => Ok(()),
    }
}

/// Something happens at a node that is alive.
fn happen(world: &mut World, no: NodeNo, local: Local) -> Checked {
    match local {
        Local::Tick => drive::tick(world, no),
        Local::Dial { parent } => {
            network::dial(world, no, parent);
            Ok(())
        }
        Local::Sync { batches } => disks::sync(world, no, batches),
        Local::SyncTold(mark) => drive::handle(world, no, Given::Home(HomeCommand::Durable(mark))),
        Local::Read(page) => {
            let result = disks::read(world, no, page)?;
            drive::handle(world, no, Given::Home(HomeCommand::Loaded { page, result }))
        }
        Local::Step { session, wait } => {
            for (id, request) in sessions::step(world, no, session, wait)? {
                let command = MemberCommand::Request { id, request };
                drive::handle(world, no, Given::Member(command))?;
            }
            Ok(())
        }
        Local::Heal | Local::Hinted { .. } | Local::Answered { .. } | Local::Squeeze => Ok(()),
    }
}
