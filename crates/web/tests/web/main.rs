//! The proxy and its keeper beside a real PostgreSQL.

mod application;
mod audit;
mod coherent;
mod database;
mod homes;
mod homes_seen;
mod kept;
mod key_fields;
mod messages;
mod next_recipe;
mod operator;
mod origin;
mod origins;
mod plain;
mod postgres;
mod process;
mod processes;
mod proxy;
mod race;
mod refusals;
mod reload;
mod requests;
mod secure;
mod servants;
mod setup;
mod tunnel;
