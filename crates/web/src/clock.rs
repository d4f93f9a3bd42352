//! The clock of beats: it also counts the time in which the machine sleeps (rule W7).

pub(crate) use thorp_versions::now_ms;
