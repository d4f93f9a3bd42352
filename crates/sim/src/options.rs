//! How a run is to be made.

use crate::trace::Mode;

/// What is asked of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What becomes of its events.
    pub trace: Mode,
}
