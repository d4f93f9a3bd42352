//! Experiments: each is one command, shows how far it is, can be cut short, and keeps its raw samples.

mod busy;
mod chain;
mod cold;
mod cold_told;
mod costs;
mod hot;
mod hot_told;
mod idle;
mod lossy;
mod model;
mod ocean;
mod paper;
mod samples;
mod scale;
mod stage;

pub use chain::{Chain, chain};
pub use cold::{Cold, cold};
pub use costs::{Costs, costs};
pub use hot::{Hot, hot};
pub use idle::{Idle, idle};
pub use lossy::{Lossy, lossy};
pub use model::{Cost, Model};
pub use ocean::ocean;
pub use paper::{Paper, Part, paper};
pub use samples::{Samples, median};
pub use scale::{Scale, scale};

pub(crate) use busy::busy;
pub(crate) use stage::{
    CUT_SHORT, HOME, OTHER, PLAIN, SITE, TUNED, built, each, network, set_round_trip,
};

use crate::Outcome;
use crate::village::Programs;
use std::path::PathBuf;
use std::time::Duration;

/// What all experiments are told.
#[derive(Clone, Debug)]
pub struct Common {
    /// Where the programs are.
    pub programs: Programs,
    /// Between the home and everybody else: one after the other.
    pub round_trips: Vec<Duration>,
    /// How often each case is run; medians are told.
    pub repeats: usize,
    /// OO7's size: tiny, small, medium.
    pub size: String,
    /// Where the raw samples go.
    pub out: PathBuf,
}

impl Common {
    /// The only round trip, of an experiment that makes no series of them.
    pub(crate) fn round_trip(&self) -> Outcome<Duration> {
        match self.round_trips[..] {
            [only] => Ok(only),
            _ => Err("this experiment takes one round trip at a time".into()),
        }
    }
}

/// A round trip as samples name it.
pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
