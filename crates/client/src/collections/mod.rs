//! Collections of objects: data structures that are larger than one object, and that many members change at once.

mod access;
mod node;
#[cfg(test)]
mod tests;
mod tree_map;

pub use access::{Access, Change};
pub use node::NODE_BYTES_MAX;
pub use tree_map::{KEY_BYTES_MAX, TreeMap, VALUE_BYTES_MAX};
