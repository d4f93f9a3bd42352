//! `thorp ls`: which segments there are.

use super::{say, say_json};
use crate::connect::Via;
use crate::failure::Failure;
use crate::text::{Side, Table};
use clap::Args;

/// Lists segments whose names begin as given; of all homes if nothing is given.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// thorp://HOME/beginning-of-path
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
        None => member
            .homes()
            .iter()
            .map(|home| format!("thorp://{}/", home.name))
            .collect(),
    };
    let mut entries = Vec::new();
    for prefix in prefixes {
        entries.extend(member.list(&prefix)?);
    }
    if options.json {
        let list: Vec<_> = entries
            .iter()
            .map(|entry| serde_json::json!({"name": entry.name, "pages": entry.pages}))
            .collect();
        return say_json(&list);
    }
    let mut table = Table::new(&[("segment", Side::Left), ("pages", Side::Right)]);
    for entry in &entries {
        table.row(vec![entry.name.clone(), entry.pages.to_string()]);
    }
    say(&table.render())
}
