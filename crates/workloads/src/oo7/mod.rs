//! The OO7 benchmark (Carey, DeWitt, Naughton, SIGMOD 1993): a database of designs, and traversals of it.
//!
//! A [`Module`] is a tree of assemblies; its leaves use composite parts; each of those is a graph of atomic parts with a
//! document. [`build`] makes one from a [`Config`], [`traverse`] goes through it, and [`Mix`] does what a member of a
//! multi-user run does. One module lies in one segment, a composite's parts and connections side by side, so that they
//! share a page.
//!
//! What this benchmark does not yet have are indexes, queries, the traversals T3 that change an indexed date, structural
//! changes, and the shared module of a multi-user run. The objects already hold what those need: dates, titles, the way back from each
//! part to its users, lists of all composites and base assemblies, and room for shared composites.

mod build;
mod config;
mod layout;
mod mix;
mod module;
mod traverse;

pub use build::build;
pub use config::{BadConfig, Config};
pub use mix::{Mix, Turn};
pub use module::{Module, ROOT};
pub use traverse::{Counts, Done, Traversal, traverse, traverse_from};
