//! The laboratory: villages over wide-area networks that lie on one machine. No part of the product.
//!
//! - [`net`]: the networks.
//! - [`measure`]: what a network really does, beside what was asked of it.
//! - [`village`]: a village of real processes over such a network.
//! - [`experiment`]: what members of villages wait for.
//! - [`peer`]: other systems that do the same.
//! - [`chart`]: samples as pictures.

pub mod chart;
pub mod experiment;
pub mod measure;
pub mod net;
pub mod peer;
pub mod quantity;
pub mod stop;
pub mod village;

mod system;

use std::error::Error;
use std::fmt;

/// Whatever goes wrong here is told and ends the experiment.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Only root may make network namespaces and devices.
#[derive(Debug)]
pub struct NeedsRoot;

impl fmt::Display for NeedsRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lab makes network namespaces and needs root for that: run it with sudo")
    }
}

impl Error for NeedsRoot {}

/// Whether it may.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
