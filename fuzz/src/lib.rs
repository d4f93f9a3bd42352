//! A home, a redirector and a member, as targets of fuzzing.

mod disk;
mod script;
mod village;

pub use script::{play, script};
pub use village::{NODES, Village};
