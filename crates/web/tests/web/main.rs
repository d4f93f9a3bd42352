//! The proxy and its keeper beside a real PostgreSQL.

mod coherent;
mod database;
mod homes;
mod kept;
mod messages;
mod origin;
mod origins;
mod plain;
mod postgres;
mod process;
mod processes;
mod proxy;
mod refusals;
mod secure;
mod setup;
mod tunnel;
