//! `thorp ca list`: what an authority has issued.

use crate::commands::{authority, context, say, say_json};
use crate::failure::Failure;
use crate::text::{Side, Table};
use clap::Args;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thorp_net::{CertificateAuthority, IssuedCertificate, Utc};

/// What `thorp ca list` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The directory of the authority, or of the home that made the village [default: thorp-home, or that of the current
    /// context]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints a line for each certificate, the oldest first.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let dir = authority::find(options.dir.as_deref(), false, context::current().as_ref())?;
    let authority = CertificateAuthority::open(dir);
    let issued = authority.and_then(|authority| authority.issued());
    let issued = issued.map_err(|error| {
        let todo = "give the directory of the authority, or of the home that made the village";
        Failure::new(error.to_string(), todo)
    })?;
    let now = SystemTime::now();
    if options.json {
        let all = issued.iter().map(|one| as_json(one, now));
        return say_json(&all.collect::<Vec<_>>());
    }
    let mut table = Table::new(&[
        ("name", Side::Left),
        ("role", Side::Left),
        ("until", Side::Left),
        ("days", Side::Right),
        ("state", Side::Left),
        ("home id", Side::Left),
        ("serial", Side::Left),
    ]);
    for one in &issued {
        let home = one.subject.home().map(|home| format!("{:08x}", home.0));
        table.row(vec![
            one.subject.name().to_owned(),
            one.subject.role().to_string(),
            Utc(Duration::from_millis(wall_ms(one.not_after))).to_string(),
            one.days.map(|days| days.to_string()).unwrap_or_default(),
            state(one, now).to_owned(),
            home.unwrap_or_default(),
            one.serial.clone(),
        ]);
    }
    say(&table.render())
}

fn state(one: &IssuedCertificate, now: SystemTime) -> &'static str {
    match (one.revoked, one.not_after < now) {
        (Some(_), _) => "revoked",
        (None, true) => "expired",
        (None, false) => "good",
    }
}

fn as_json(one: &IssuedCertificate, now: SystemTime) -> serde_json::Value {
    serde_json::json!({
        "name": one.subject.name(),
        "role": one.subject.role().as_str(),
        "home_id": one.subject.home().map(|home| home.0),
        "serial": one.serial,
        "days": one.days,
        "not_after_ms": wall_ms(one.not_after),
        "revoked_ms": one.revoked.map(wall_ms),
        "state": state(one, now),
    })
}

fn wall_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

const HELP: &str = "\
Examples:
  thorp ca list village
  thorp ca list village --json";
