//! `thorp plan`, as a user calls it.

mod all;
mod common;
mod memory;
mod prefetch;
mod replay;
mod site;
mod traces;
mod web;
