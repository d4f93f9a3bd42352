//! What the commands of the web cache have in common.

use super::usage;
use crate::failure::{Code, Failure};
use clap::builder::RangedU64ValueParser;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use thorp_server::{LogConfig, init_logs};
use thorp_web::{Postgres, PostgresError, Recipe, table_of, table_of_requests};
use tokio::runtime::{Builder, Runtime};

/// How long the application may work on one request. More than a day is a mistake.
pub(super) const REQUEST_SECONDS: RangeInclusive<u64> = 1..=86_400;

/// Reads a `--request-seconds`.
pub(super) fn seconds() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(REQUEST_SECONDS)
}

/// A database at an address.
pub(super) fn source(address: &str, name: &str) -> Result<Postgres, Failure> {
    Postgres::new(address, name).map_err(usage)
}

/// A recipe that comes with Thorp, or one in a file.
pub(super) fn recipe(at: &Path) -> Result<Recipe, Failure> {
    let shipped = at.to_str().and_then(Recipe::shipped);
    let text = match shipped {
        Some(text) => text.to_owned(),
        None => fs::read_to_string(at).map_err(|error| Failure::file(at, &error))?,
    };
    Recipe::parse(&text).map_err(|error| {
        let what = format!("{}: {error}", at.display());
        Failure::new(what, "mend the recipe").with(Code::Usage)
    })
}

/// The file with the address of the table: the one that was named, or that of the database.
pub(super) fn table(named: Option<&PathBuf>, source: &Postgres) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return Ok(named.clone());
    }
    table_of(source).map_err(no_place)
}

/// The same with requests as the source.
pub(super) fn table_by_name(named: Option<&PathBuf>, name: &str) -> Result<PathBuf, Failure> {
    named
        .cloned()
        .map_or_else(|| table_of_requests(name).map_err(no_place), Ok)
}

fn no_place(error: std::io::Error) -> Failure {
    let what = format!("there is no place for the table: {error}");
    Failure::new(what, "name a file with --table").with(Code::Usage)
}

/// What the database said, for a person.
pub(super) fn refused(error: PostgresError) -> Failure {
    let code = match &error {
        PostgresError::Database(error) if error.as_db_error().is_none() => Code::Unreachable,
        PostgresError::NoPassword => Code::Usage,
        _ => Code::Failed,
    };
    let todo = match code {
        Code::Unreachable => "look whether the database runs, and whether --postgres is right",
        _ => "",
    };
    Failure::new(error.to_string(), todo).with(code)
}

/// Logs on standard error.
pub(super) fn log(level: &str) -> Result<(), Failure> {
    log_by(&LogConfig {
        level: level.to_owned(),
        ..LogConfig::default()
    })
}

/// Logs on standard error, in a form.
pub(super) fn log_by(log: &LogConfig) -> Result<(), Failure> {
    init_logs(log).map_err(|error| Failure::new(error.to_string(), "").with(Code::Usage))
}

/// Runs on one thread.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(format!("the system gives no runtime: {error}"), ""))
}
