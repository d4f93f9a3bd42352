//! Experiments: each is one command, shows how far it is, can be cut short, and keeps its raw samples.

mod cold;
mod hot;
mod model;
mod samples;

pub use cold::{Cold, cold};
pub use hot::{Hot, hot};
pub use model::{Cost, Model};
pub use samples::{Samples, median};

use crate::village::Programs;
use std::path::PathBuf;
use std::time::Duration;

/// What all experiments are told.
#[derive(Clone, Debug)]
pub struct Common {
    /// Where the programs are.
    pub programs: Programs,
    /// Between the home and everybody else.
    pub round_trip: Duration,
    /// How often each case is run; medians are told.
    pub repeats: usize,
    /// OO7's size: tiny, small, medium.
    pub size: String,
    /// Where the raw samples go.
    pub out: PathBuf,
}

/// The home's place, and that of the site and its members.
const HOME: &str = "home";
const SITE: &str = "site";
/// A second site, for whom is not in the group.
const OTHER: &str = "other";
/// After what there was until somebody wanted the end.
const CUT_SHORT: &str = "cut short: NaN is what was not measured\n";
/// As the paper's clients have (section 6.2).
const CACHE_BYTES: usize = 40 << 20;
