//! One file a command.

pub(crate) mod audit;
mod authority;
pub(crate) mod bench;
pub(crate) mod ca;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod confirm;
pub(crate) mod consistency;
pub(crate) mod context;
mod copying;
pub(crate) mod cp;
pub(crate) mod dev;
pub(crate) mod dev_village;
pub(crate) mod doctor;
pub(crate) mod doubt;
pub(crate) mod dump;
pub(crate) mod get;
pub(crate) mod group;
pub(crate) mod home;
pub(crate) mod ifc;
pub(crate) mod inspect;
pub(crate) mod invite;
mod issued;
pub(crate) mod join;
pub(crate) mod load;
pub(crate) mod lock;
mod lost_parts;
pub(crate) mod ls;
pub(crate) mod mv;
mod node;
mod node_status;
#[cfg(feature = "planner")]
pub(crate) mod plan;
pub(crate) mod put;
mod reading;
pub(crate) mod rights;
pub(crate) mod rm;
pub(crate) mod root;
pub(crate) mod salvage;
pub(crate) mod shell;
pub(crate) mod signals;
pub(crate) mod site;
mod site_log;
mod source;
pub(crate) mod status;
mod toml;
pub(crate) mod top;
pub(crate) mod updates;
pub(crate) mod watch;
pub(crate) mod web;

use crate::failure::Failure;
use crate::text;

/// Prints a line of results.
pub(crate) fn say(line: &str) -> Result<(), Failure> {
    text::line(line).map_err(|error| Failure::new(format!("standard output: {error}"), ""))
}

/// Prints a value as JSON.
pub(crate) fn say_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("it cannot be told as JSON: {error}"), ""))?;
    say(&text::json(&text))
}
