//! The proxy and its keeper beside a real PostgreSQL.

mod audit;
mod coherent;
mod database;
mod kept;
mod messages;
mod operator;
mod origin;
mod origins;
mod plain;
mod postgres;
mod process;
mod processes;
mod proxy;
mod refusals;
mod reload;
mod secure;
mod setup;
mod tunnel;
