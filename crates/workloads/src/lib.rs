//! What the demo and the benchmarks run: OO7 and IFC building models.

pub mod ifc;
pub mod step;
