//! Asking a proxy of this machine at the address of its --status.

use crate::failure::Failure;
use crate::{http, text};
use serde::de::DeserializeOwned;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where the examples of a proxy have it.
pub(super) const USUAL: &str = "127.0.0.1:7432";

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(5);

/// What a proxy says.
pub(super) fn ask<T: DeserializeOwned>(status: &str, path: &str) -> Result<T, Failure> {
    let answer = http::get(status, path, WITHIN).map_err(|failure| {
        let todo = "look whether `thorp web` runs, and give the address of its --status; it has none unless one was given";
        Failure::new(failure.what(), todo).with(failure.code())
    })?;
    serde_json::from_str(&answer).map_err(|error| {
        let what = format!("{status} is no proxy of this version: {error}");
        Failure::new(what, "give the address of the --status of `thorp web`")
    })
}

/// How long ago a moment was, for people.
pub(super) fn ago(unix_ms: u64) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    text::time(now.saturating_sub(Duration::from_millis(unix_ms)))
}
