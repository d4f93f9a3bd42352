//! Whole villages simulated from one seed: homes, sites, members, their
//! programs, disks and connections, in simulated time, with faults. Checkers
//! hold everything that any node or program sees against the truth, which is
//! what the homes' durable logs say.
//!
//! A seed always tells the same story. Whatever fails prints the seed and the
//! command that tells the story again.

mod anomalies;
mod back;
pub mod byzantine;
pub mod campaign;
mod certificates;
pub mod checkpoint;
pub mod checks;
pub mod counts;
pub mod digest;
pub mod disk;
pub mod drive;
pub mod failure;
pub mod faults;
mod forger;
pub mod freshness;
mod given;
mod going_back;
pub mod history;
mod hostile;
pub mod link;
mod logs;
mod made_up;
pub mod members;
pub mod network;
pub mod node;
pub mod options;
pub mod oracle;
mod pace;
pub mod program;
pub mod role;
pub mod sameness;
pub mod shards;
pub mod time;
pub mod trace;
pub mod turn;
pub mod village;
pub mod world;

pub use anomalies::{FirstSeeds, SHOWN_BY_SEEDS, first_seeds, table as table_of_anomalies};
pub use back::EVERYTHING as EVERYTHING_OF_GOING_BACK;
pub use certificates::Authority;
pub use hostile::ATTACKS;
pub use logs::EVERYTHING as EVERYTHING_OF_LOGS;
pub use options::Options;
pub use trace::Mode;

use counts::Counts;
use failure::{Checked, Failure};
use std::panic::{AssertUnwindSafe, catch_unwind};
use trace::Trace;
use world::World;

/// What came of one seed.
#[derive(Clone, Debug)]
pub struct Story {
    /// The seed.
    pub seed: u64,
    /// What was counted.
    pub counts: Counts,
    /// A hash of everything that happened, if the trace was kept.
    pub hash: u64,
    /// The last events, if the trace was kept.
    pub tail: Vec<String>,
    /// What went wrong, if anything did.
    pub result: Checked,
}

impl Story {
    fn of(seed: u64, trace: &Trace, counts: Counts, told: std::thread::Result<Checked>) -> Self {
        Story {
            seed,
            counts,
            hash: trace.hash(),
            tail: trace.tail().map(str::to_string).collect(),
            result: told.unwrap_or_else(|_| Err(Failure::new("panic", campaign::last_panic()))),
        }
    }
}

/// Runs the village of a seed whose homes go back.
pub fn run_back(seed: u64, options: Options) -> Story {
    back::run(seed, options)
}

/// Runs the village of a seed in which programs run sessions of all presets on the same objects.
pub fn run_mixed(seed: u64, options: Options) -> Story {
    logs::run_mixed(seed, options)
}

/// Runs the village of a seed whose members write by logs.
pub fn run_logs(seed: u64, options: Options) -> Story {
    logs::run(seed, options)
}

/// Runs the village of a seed.
pub fn run(seed: u64, options: Options) -> Story {
    tell(seed, World::new(seed, options), World::run)
}

/// Runs the village of a seed in which hostile nodes stay.
pub fn run_hostile(seed: u64, options: Options) -> Story {
    tell(seed, hostile::settle(seed, options), hostile::run)
}

fn tell(seed: u64, world: Checked<World>, run: fn(&mut World) -> Checked) -> Story {
    let mut world = match world {
        Ok(world) => world,
        Err(failure) => {
            return Story {
                seed,
                counts: Counts::default(),
                hash: 0,
                tail: Vec::new(),
                result: Err(failure),
            };
        }
    };
    let told = catch_unwind(AssertUnwindSafe(|| run(&mut world)));
    Story::of(seed, &world.trace, world.counts, told)
}
