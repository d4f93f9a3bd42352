//! `thorp root`: the named roots of a segment.

use super::{say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::names;
use crate::text::{Side, Table};
use clap::{Args, Subcommand};
use thorp_client::Member;

/// What `thorp root` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// List the roots of a segment, and what they name
    #[command(after_help = LS_HELP)]
    Ls {
        /// thorp://HOME/path
        #[arg(value_parser = names::segment)]
        segment: String,
    },
    /// Let a root name an object
    #[command(after_help = SET_HELP)]
    Set {
        /// thorp://HOME/path
        #[arg(value_parser = names::segment)]
        segment: String,
        /// The root's name
        name: String,
        /// thorp://HOME/path#PAGE.SLOT.GENERATION, in this or another segment
        #[arg(value_parser = names::segment_or_object)]
        object: String,
    },
    /// Take a root away; the object that it names stays
    #[command(after_help = RM_HELP)]
    Rm {
        /// thorp://HOME/path
        #[arg(value_parser = names::segment)]
        segment: String,
        /// The root's name
        name: String,
    },
}

/// One transaction.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    match &options.action {
        Action::Ls { segment } => list(&options.via.join()?, segment, options.json),
        Action::Set {
            segment,
            name,
            object,
        } => {
            if !object.contains('#') {
                let what = format!("{object} is a segment, and a root names an object");
                let todo = "`thorp inspect SEGMENT --objects` tells which there are";
                return Err(Failure::new(what, todo).with(Code::Usage));
            }
            let member = options.via.join()?;
            let reference = member.parse(object)?;
            member.open(segment)?.set_root(name, Some(reference))?;
            match options.json {
                true => say_json(&serde_json::json!({"root": name, "object": object})),
                false => say(&format!("root {name} = {object}")),
            }
        }
        Action::Rm { segment, name } => remove(&options.via.join()?, segment, (name, options.json)),
    }
}

fn list(member: &Member, segment: &str, json: bool) -> Result<(), Failure> {
    let roots = member.open(segment)?.roots()?;
    let mut named = Vec::new();
    for (name, reference) in &roots {
        named.push((name, names::of_root(member, reference)?));
    }
    if json {
        let each = named
            .iter()
            .map(|(name, object)| serde_json::json!({"root": name, "object": object}));
        return say_json(&serde_json::json!({"roots": each.collect::<Vec<_>>()}));
    }
    let mut table = Table::new(&[("root", Side::Left), ("object", Side::Left)]);
    for (name, object) in named {
        let object = object.as_deref().unwrap_or(names::NO_SEGMENT);
        table.row(vec![name.clone(), object.to_owned()]);
    }
    say(&table.render())
}

fn remove(member: &Member, name: &str, (root, json): (&str, bool)) -> Result<(), Failure> {
    let segment = member.open(name)?;
    let was_there = member.transact(|tx| {
        let there = tx.root(&segment, root)?.is_some();
        if there {
            tx.set_root(&segment, root, None)?;
        }
        Ok(there)
    })?;
    if !was_there {
        let what = format!("{name} has no root {root:?}");
        let todo = "`thorp root ls SEGMENT` lists them";
        return Err(Failure::new(what, todo).with(Code::NotThere));
    }
    match json {
        true => say_json(&serde_json::json!({"removed": root})),
        false => say(&format!("removed root {root}")),
    }
}

const HELP: &str = "\
A root is a name for an object, by which programs find where to begin.

Examples:
  thorp root ls thorp://dev/notes";

const LS_HELP: &str = "Examples:\n  thorp root ls thorp://dev/notes";
const SET_HELP: &str =
    "Examples:\n  thorp root set thorp://dev/notes greeting 'thorp://dev/notes#1.0.1'";
const RM_HELP: &str = "Examples:\n  thorp root rm thorp://dev/notes greeting";
