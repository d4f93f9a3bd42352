//! `thorp salvage`: copies what can be read of a damaged home.

use super::home::{IDENTITY_DIR, STORE_DIR, store_in};
use super::{say, say_json};
use crate::failure::{Code, Failure};
use crate::text::pasted;
use clap::Args;
use rustix::fs::Mode;
use rustix::process::umask;
use std::path::PathBuf;
use thorp_store::{OpenError, Salvaged};

/// What `thorp salvage` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The damaged home's directory, or the store in it
    dir: PathBuf,
    /// The directory of the home to be made; it must be empty or missing
    into: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Exit code 3 if something is lost.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let dir = store_in(&options.dir);
    umask(Mode::RWXG | Mode::RWXO);
    let salvaged = thorp_store::salvage(&dir, options.into.join(STORE_DIR));
    let salvaged = salvaged.map_err(|error| match error {
        OpenError::Damaged { .. } => {
            Failure::new(error.to_string(), "restore it from a copy").with(Code::Wrong)
        }
        _ => Failure::new(
            error.to_string(),
            "give the directory of a stopped home, and an empty one for what can be read",
        ),
    })?;
    match options.json {
        true => say_json(&as_json(&salvaged))?,
        false => tell(options, &salvaged)?,
    }
    if salvaged.is_whole() {
        return Ok(());
    }
    let what = format!("{} lacks what was lost", options.into.display());
    let todo = "compare it with a backup, and open the better one with `thorp confirm`";
    Err(Failure::new(what, todo).with(Code::Wrong))
}

fn tell(options: &Options, salvaged: &Salvaged) -> Result<(), Failure> {
    for remark in &salvaged.remarks {
        say(&format!("remark: {remark}"))?;
    }
    if let Some(groups) = &salvaged.groups {
        say(&format!(
            "lost: groups {} to {}, with all commits above position {}",
            groups.start(),
            groups.end(),
            salvaged.position
        ))?;
    }
    for lost in &salvaged.lost {
        say(&format!("lost: {lost}"))?;
    }
    let unlisted = salvaged.lost_count - salvaged.lost.len() as u64;
    if unlisted > 0 {
        say(&format!("lost: {unlisted} records more"))?;
    }
    say(&format!(
        "{} records were copied, up to position {}",
        salvaged.records, salvaged.position
    ))?;
    let into = pasted(&options.into);
    let identity = pasted(&options.dir.join(IDENTITY_DIR));
    say("The copy is closed: only operators get in until one of them opens it.")?;
    say(&format!(
        "    thorp home --dir {into} --identity {identity} --name NAME"
    ))?;
    say(&format!("    thorp confirm {into}"))
}

fn as_json(salvaged: &Salvaged) -> serde_json::Value {
    let groups = salvaged.groups.as_ref();
    serde_json::json!({
        "records": salvaged.records,
        "position": salvaged.position.0,
        "lost_groups": groups.map(|groups| [*groups.start(), *groups.end()]),
        "lost_count": salvaged.lost_count,
        "lost": salvaged.lost.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "remarks": salvaged.remarks,
    })
}

const HELP: &str = "\
Copies all that can be read, up to the first damaged group of the journal, into a new directory. The home must not run; its \
directory is not changed. Prints the groups, positions and pages that are lost. A page that is lost is empty in the copy. \
The copy has no identity: name that of the damaged home (--identity). Exit code 3 if something is lost.

Examples:
  thorp salvage alps alps-salvaged";
