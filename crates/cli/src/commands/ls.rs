//! `thorp ls`: which segments there are.

use super::{say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::names;
use crate::text::{Side, Table};
use clap::Args;
use std::thread::sleep;
use std::time::Duration;
use thorp_client::{HomeStatus, Member, SegmentEntry};

/// What `thorp ls` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// thorp://HOME/beginning-of-path
    #[arg(value_parser = names::prefix)]
    prefix: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// Prints a line for each segment.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let member = options.via.join()?;
    let prefixes = match &options.prefix {
        Some(prefix) => vec![prefix.clone()],
        None => everywhere(&member)?,
    };
    let mut entries = Vec::new();
    for prefix in prefixes {
        entries.extend(member.list(&prefix)?);
    }
    if options.json {
        let list: Vec<_> = entries
            .iter()
            .map(|entry| serde_json::json!({"name": entry.name, "pages": pages(entry)}))
            .collect();
        return say_json(&list);
    }
    if entries.is_empty() {
        // Nothing is the result; this is for whoever looks.
        let such = if options.prefix.is_some() {
            "such "
        } else {
            ""
        };
        let _ = crate::text::note(&format!("there are no {such}segments"));
        return Ok(());
    }
    let mut table = Table::new(&[("segment", Side::Left), ("pages", Side::Right)]);
    for entry in &entries {
        table.row(vec![entry.name.clone(), pages(entry).to_string()]);
    }
    say(&table.render())
}

/// The prefixes of all homes. A site that reaches none knows of none: then it is not known what there is.
fn everywhere(member: &Member) -> Result<Vec<String>, Failure> {
    let homes = begun(member);
    if homes.is_empty() {
        let todo = "`thorp status` on its machine tells why";
        let failure = Failure::new("no home is reached by way of this site", todo);
        return Err(failure.with(Code::Unreachable));
    }
    let prefixes = homes.iter().map(|home| format!("thorp://{}/", home.name));
    Ok(prefixes.collect())
}

/// A site tells of one home after another when somebody has joined.
fn begun(member: &Member) -> Vec<HomeStatus> {
    let mut homes = member.homes();
    loop {
        sleep(NEXT_HOME_WITHIN);
        let more = member.homes();
        if more.len() <= homes.len() {
            return more;
        }
        homes = more;
    }
}

/// So soon after one home the next one is told of, if there is one.
const NEXT_HOME_WITHIN: Duration = Duration::from_millis(300);

/// Pages that may hold objects: the first has only what the home itself notes there.
fn pages(entry: &SegmentEntry) -> u32 {
    entry.pages.saturating_sub(1)
}

const HELP: &str = "\
Lists segments whose names begin as given; of all homes that are reached if nothing is given. Pages are
given to members by the dozen, and cost nothing while nothing is in them.";
