//! `thorp rm`: a segment or an object less.

use super::{say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::names;
use clap::Args;
use thorp_client::{ErrorKind, Member};

/// What `thorp rm` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// thorp://HOME/path for a segment with all its objects, or thorp://HOME/path#PAGE.SLOT.GENERATION for one object
    #[arg(required = true, value_name = "URL", value_parser = names::segment_or_object)]
    urls: Vec<String>,
    /// Do not complain about what is not there
    #[arg(long, short)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// Removes one after the other, up to the first that cannot be removed.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let member = options.via.join()?;
    let mut removed = Vec::new();
    let ended = remove(&member, options, &mut removed);
    if options.json {
        say_json(&serde_json::json!({ "removed": removed }))?;
    }
    ended
}

fn remove<'a>(
    member: &Member,
    options: &'a Options,
    removed: &mut Vec<&'a str>,
) -> Result<(), Failure> {
    for name in &options.urls {
        if name.contains('#') {
            remove_object(member, name, options, removed)?;
            continue;
        }
        match member.open(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !options.force {
                    return Err(not_there(name));
                }
            }
            opened => {
                opened?;
                member.remove(name)?;
                removed.push(name);
                if !options.json {
                    say(&format!("removed {name}"))?;
                }
            }
        }
    }
    Ok(())
}

fn remove_object<'a>(
    member: &Member,
    name: &'a str,
    options: &Options,
    removed: &mut Vec<&'a str>,
) -> Result<(), Failure> {
    let deleted = member
        .parse(name)
        .and_then(|reference| member.transact(|tx| tx.delete(&reference)));
    match deleted {
        Err(error)
            if options.force && matches!(error.kind(), ErrorKind::Gone | ErrorKind::NotFound) => {}
        deleted => {
            deleted?;
            removed.push(name);
            if !options.json {
                say(&format!("removed {name}"))?;
            }
        }
    }
    Ok(())
}

fn not_there(name: &str) -> Failure {
    let todo = "`thorp ls` tells what there is; with --force the others that you named are removed all the same";
    Failure::new(format!("there is no segment {name}"), todo).with(Code::NotThere)
}

const HELP: &str = "\
Removes segments with all their objects, or single objects; their room is free for others afterwards. What refers \
to a removed object finds that it is gone. A full home takes removals.

Examples:
  thorp rm 'thorp://dev/notes#1.0.1'
  thorp rm thorp://dev/notes
  thorp rm --force thorp://dev/a thorp://dev/b";
