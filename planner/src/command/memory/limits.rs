//! Above these limits nobody means what was told.

/// Of machines, and of servers.
pub(super) const COUNT_MAX: f64 = 1e6;

/// Of times and rates, in the units of their flags.
pub(super) const VALUE_MAX: f64 = 1e9;
