//! Villages whose members write by logs (rules C3, C4, C6 and C7).
//!
//! They run the shipped machines over trees of sites up to four deep, with clocks that drift, disks that lose what is not
//! synced, logs that are full for a while, and campuses that are cut off for longer than leases last. Each member has a
//! *scribe*: a program that appends tokens, each its own, to shared objects.
//!
//! | file | what it demands |
//! |---|---|
//! | `truth` | no token is shown twice; whoever wrote one sees it from its answer on; a pull finds what was answered before |
//! | `end` | when all is healed, logs are empty, views are equal, and each token was saved or rejected, once |

mod anomalies;
mod drive;
mod end;
mod faults;
mod founding;
mod ledger;
mod link;
mod mixed;
mod network;
mod plan;
pub(crate) mod preset;
mod program;
mod record;
mod scribe;
mod session;
mod token;
mod truth;
mod world;

use crate::Story;
use crate::failure::{Checked, Failure, demand};
use crate::given::Given;
use crate::options::Options;
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::{Local, What, World};

/// What a large campaign has to see.
pub const EVERYTHING: &[&str] = &[
    "updates kept with a lease",
    "updates kept without one",
    "updates not kept",
    "updates in the log of a site",
    "updates rejected",
    "commits answered",
    "pulls answered",
    "pulls that awaited somebody",
    "pulls that nobody answered for",
    "tokens of others read before they were saved",
    "members that crashed",
    "sites that crashed",
    "homes that crashed",
    "edges cut",
    "edges silent",
    "members that turned",
];

/// Events after which a run is taken to be running away.
const EVENTS_MAX: u64 = 2_000_000;

/// Simulated milliseconds until a healed village is at rest.
const REST_MS_MAX: u64 = 120_000;

/// Runs the village of a seed.
pub(crate) fn run(seed: u64, options: Options) -> Story {
    told(seed, options, false)
}

/// Runs the village of a seed in which programs run sessions of all presets on the same objects.
pub(crate) fn run_mixed(seed: u64, options: Options) -> Story {
    told(seed, options, true)
}

fn told(seed: u64, options: Options, is_mixed: bool) -> Story {
    let mut world = World::new(seed, options, is_mixed);
    let told = catch_unwind(AssertUnwindSafe(|| tell(&mut world)));
    Story::of(seed, &world.trace, world.counts, told)
}

/// The whole story: faults, healing, rest, and a last look.
fn tell(world: &mut World) -> Checked {
    founding::found(world)?;
    for no in 1..world.nodes.len() {
        drive::start(world, no)?;
    }
    let strike = world.now + 300_000;
    world.plan(strike, What::Strike);
    while world.plan.troubles > 0 {
        next(world)?;
    }
    let until = world.now + 2_000_000;
    while world.now < until {
        next(world)?;
    }
    world.is_healed = true;
    let until = world.now + REST_MS_MAX * 1000;
    while let Some(why) = end::unrest(world) {
        demand!(
            world.now < until,
            "liveness",
            "long after all faults: {why}"
        );
        next(world)?;
    }
    world.counts.simulated_ms = world.now / 1000;
    end::check(world)
}

/// The next event.
fn next(world: &mut World) -> Checked {
    let Some((at, what)) = world.pop() else {
        return Err(Failure::new("liveness", "nothing happens any more"));
    };
    world.now = at;
    world.counts.events += 1;
    demand!(
        world.counts.events < EVENTS_MAX,
        "liveness",
        "{EVENTS_MAX} events and no end"
    );
    world.trace.digest(|digest| digest.number(at));
    match what {
        What::Arrive { edge, down } => match network::arrive(world, edge, down) {
            Some((no, event)) => drive::handle(world, no, Given::Event(event)),
            None => Ok(()),
        },
        What::Strike => faults::strike(world),
        What::Mend { edge } => {
            network::mend(world, edge);
            Ok(())
        }
        What::Restart { no } => drive::start(world, no),
        What::Refill { no } => {
            drive::refill(world, no);
            Ok(())
        }
        What::At { no, life, .. } if world.nodes[no].life != life => Ok(()),
        What::At { no, local, .. } => match local {
            Local::Step => scribe::step(world, no),
            Local::Answered(request) => scribe::answered(world, no, request),
            _ => drive::happen(world, no, local),
        },
    }
}
