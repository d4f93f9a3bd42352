//! What the demo and the benchmarks run: OO7 and IFC building models.
//!
//! Both work over [`objects::Store`], so that the same code runs on a member of a village and, for tests and as the
//! bound that no store can beat, on this process's memory.

pub mod ifc;
pub mod objects;
pub mod oo7;
pub mod step;
