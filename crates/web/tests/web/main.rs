//! The proxy and its keeper beside a real PostgreSQL.

mod database;
mod kept;
mod postgres;
mod process;
mod processes;
mod proxy;
mod refusals;
mod setup;
