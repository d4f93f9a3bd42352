//! The OO7 benchmark (Carey, DeWitt, Naughton, SIGMOD 1993): a database of designs, and traversals of it.
//!
//! A [`Module`] is a tree of assemblies; its leaves use composite parts; each of those is a graph of atomic parts with a
//! document. [`build`] makes one from a [`Config`], [`traverse`] goes through it, and [`Mix`] does what a member of a
//! multi-user run does. One module lies in one segment, a composite's parts and connections side by side, so that they
//! share a page.
//!
//! [`query`] finds objects by the module's [`Indexes`], and [`insert`] and [`remove`] change its structure. In a multi-user
//! run each member has a module of its own whose base assemblies also use composites of one that all share
//! ([`build_sharing`], [`Scope`]).

mod build;
mod config;
mod draws;
mod graph;
mod index;
mod layout;
mod mix;
mod module;
mod query;
mod structure;
#[cfg(test)]
mod tests;
mod traverse;

pub use build::{build, build_sharing};
pub use config::{BadConfig, Config};
pub use index::Indexes;
pub use mix::{Mix, Turn};
pub use module::{Module, ROOT};
pub use query::{Query, query};
pub use structure::{insert, remove};
pub use traverse::{
    Counts, Done, Scope, Traversal, traverse, traverse_changing_one, traverse_from, traverse_scope,
};
