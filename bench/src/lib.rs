//! Measurements, each as a ratio against something run in the same minute.
//!
//! Each program in `src/bin` prints one line of JSON for each figure: what was measured, against what, their ratio, the
//! target, and whether it was met. `docs/performance.md` has the figures of one machine.

pub mod counting;
pub mod figure;
pub mod process;
pub mod reading;
pub mod roles;
pub mod samples;
pub mod village;

/// What can go wrong.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// What goes wrong in a measurement ends it.
pub type Result<T, E = Error> = std::result::Result<T, E>;
