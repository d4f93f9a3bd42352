//! `thorp ls`: which segments there are.

use super::{say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::names;
use crate::text::{Side, Table};
use clap::Args;
use thorp_client::{ErrorKind, Member, SegmentEntry};

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

/// What was found, and who did not answer.
#[derive(Default)]
struct Listing {
    entries: Vec<SegmentEntry>,
    /// Names of homes, and why.
    missed: Vec<(String, String)>,
}

/// Prints a line for each segment.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let member = options.via.join()?;
    let listing = match &options.prefix {
        Some(prefix) => Listing {
            entries: member.list(prefix)?,
            missed: Vec::new(),
        },
        None => Listing::of_all(&member)?,
    };
    match options.json {
        true => say_json(&listing.as_json())?,
        false => listing.show(options.prefix.is_some())?,
    }
    listing.check()
}

impl Listing {
    /// Of all homes that the site is to reach. It has told of those that are there, so nothing is waited for.
    fn of_all(member: &Member) -> Result<Self, Failure> {
        let mut listing = Listing::default();
        let names = member.home_names()?.names;
        if names.is_empty() {
            let todo = "`thorp status` on the machine of the site tells why";
            let failure = Failure::new("nobody has said in time which homes there are", todo);
            return Err(failure.with(Code::Unreachable));
        }
        let homes = member.homes();
        let is_reached = |name: &String| {
            homes
                .iter()
                .any(|home| home.name == *name && home.reachable)
        };
        for name in names {
            if !is_reached(&name) {
                let why = "it is out of reach";
                listing.missed.push((name, why.to_owned()));
                continue;
            }
            match member.list(&format!("thorp://{name}/")) {
                Ok(entries) => listing.entries.extend(entries),
                Err(error) if error.kind() == ErrorKind::HomeUnreachable => {
                    listing.missed.push((name, error.to_string()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(listing)
    }

    fn as_json(&self) -> serde_json::Value {
        let segments = self.entries.iter();
        let segments =
            segments.map(|entry| serde_json::json!({"name": entry.name, "pages": pages(entry)}));
        let missed = self.missed.iter();
        let missed = missed.map(|(home, why)| serde_json::json!({"home": home, "why": why}));
        serde_json::json!({
            "segments": segments.collect::<Vec<_>>(),
            "not_reached": missed.collect::<Vec<_>>(),
        })
    }

    fn show(&self, is_prefix: bool) -> Result<(), Failure> {
        if self.entries.is_empty() {
            if self.missed.is_empty() {
                // Nothing is the result; this is for whoever looks.
                let such = if is_prefix { "such " } else { "" };
                let _ = crate::text::note(&format!("there are no {such}segments"));
            }
            return Ok(());
        }
        let mut table = Table::new(&[("segment", Side::Left), ("pages", Side::Right)]);
        for entry in &self.entries {
            table.row(vec![entry.name.clone(), pages(entry).to_string()]);
        }
        say(&table.render())
    }

    /// What is there was listed; whoever did not answer is named.
    fn check(&self) -> Result<(), Failure> {
        if self.missed.is_empty() {
            return Ok(());
        }
        let missed = self
            .missed
            .iter()
            .map(|(home, why)| format!("home {home}: {why}"));
        let what = format!(
            "not all segments are listed: {}",
            missed.collect::<Vec<_>>().join("; ")
        );
        let todo = "`thorp status` on the machine of the site tells why; list one home with `thorp ls thorp://HOME/`";
        Err(Failure::new(what, todo).with(Code::Unreachable))
    }
}

/// Pages that may hold objects: the first has only what the home itself notes there.
fn pages(entry: &SegmentEntry) -> u32 {
    entry.pages.saturating_sub(1)
}

const HELP: &str = "\
Lists segments whose names begin as given; of all homes if nothing is given. Homes that did not answer are \
named, and the exit code is 4 then. Pages are given to members by the dozen, and cost nothing while nothing is in \
them.

Examples:
  thorp ls
  thorp ls thorp://dev/shop --json";
