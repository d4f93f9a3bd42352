//! `thorp ca rotate`: a new key for the authority.

use crate::commands::{say, say_json};
use crate::failure::Failure;
use clap::{ArgGroup, Args};
use std::path::PathBuf;
use thorp_net::{CertificateAuthority, CertifiedName, IdentityError, Rotation};

/// What `thorp ca rotate` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP, group = ArgGroup::new("step").required(true))]
pub(crate) struct Options {
    /// The directory of the authority, or of the home that made the village
    #[arg(value_name = "DIR", default_value = crate::commands::home::DEFAULT_DIR)]
    dir: PathBuf,
    /// Make the new key: nodes trust both from now on, and the old one signs
    #[arg(long, group = "step")]
    begin: bool,
    /// The new key signs
    #[arg(long, group = "step")]
    switch: bool,
    /// The old one is trusted no longer; refused while a node has only a certificate of it
    #[arg(long, group = "step")]
    finish: bool,
    /// With --finish: nobody lets in nodes that have not renewed their certificates
    #[arg(long, requires = "finish")]
    leave_behind: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Says what has to happen before the next step.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let step = options.step();
    let dir = CertificateAuthority::find(&options.dir);
    let failed = |error: IdentityError| {
        let todo = "give the directory of the authority, and the steps in the order --begin, --switch, --finish";
        Failure::new(error.to_string(), todo)
    };
    if step == Rotation::Finish && !options.leave_behind {
        let authority = CertificateAuthority::open(&dir).map_err(failed)?;
        nobody_is_left(&authority.of_earlier_key().map_err(failed)?)?;
    }
    let authority = CertificateAuthority::rotate(dir, step).map_err(failed)?;
    let behind = match step {
        Rotation::Switch => Some(authority.of_earlier_key().map_err(failed)?),
        Rotation::Begin | Rotation::Finish => None,
    };
    let (word, next) = match step {
        Rotation::Begin => ("begin", NEXT_OF_BEGIN),
        Rotation::Switch => ("switch", NEXT_OF_SWITCH),
        Rotation::Finish => ("finish", NEXT_OF_FINISH),
    };
    if options.json {
        let nodes = behind.unwrap_or_default();
        return say_json(&serde_json::json!({
            "village": authority.village(),
            "step": word,
            "not_renewed": nodes.iter().map(as_json).collect::<Vec<_>>(),
        }));
    }
    say(&format!("village {}: {next}", authority.village()))?;
    match behind {
        Some(nodes) => say(&format!("  not renewed yet: {}", listed(&nodes))),
        None => Ok(()),
    }
}

impl Options {
    fn step(&self) -> Rotation {
        match (self.begin, self.switch) {
            (true, _) => Rotation::Begin,
            (false, true) => Rotation::Switch,
            (false, false) => Rotation::Finish,
        }
    }
}

fn as_json(node: &CertifiedName) -> serde_json::Value {
    serde_json::json!({"name": node.name(), "role": node.role().as_str()})
}

fn nobody_is_left(nodes: &[CertifiedName]) -> Result<(), Failure> {
    if nodes.is_empty() {
        return Ok(());
    }
    let what = format!(
        "these have certificates of the old key only: {}",
        listed(nodes)
    );
    let todo = "let each renew its certificate, or revoke it with `thorp ca revoke NAME`; --leave-behind goes on without them";
    Err(Failure::new(what, todo))
}

/// Some of them by name.
fn listed(nodes: &[CertifiedName]) -> String {
    let named = nodes.iter().take(NAMED_MAX).map(ToString::to_string);
    let named = named.collect::<Vec<_>>().join(", ");
    match nodes.len().saturating_sub(NAMED_MAX) {
        0 if named.is_empty() => "nobody".to_owned(),
        0 => named,
        more => format!("{named}, and {more} more"),
    }
}

const NAMED_MAX: usize = 20;

const NEXT_OF_BEGIN: &str = "both authorities are trusted by every node that renews its certificate, or is invited again into its \
     directory. When all of them are, go on with --switch";
const NEXT_OF_SWITCH: &str = "the new key signs. Start `thorp ca serve` again; tokens that are not used yet are void. When every node \
     has renewed its certificate, go on with --finish";
const NEXT_OF_FINISH: &str =
    "only the new authority is trusted, by every node that renews its certificate from now on";

const HELP: &str = "\
The village keeps its name. Between the steps, every node has to get what the step before has changed: \
by renewing its certificate, or by the same `thorp invite NAME --role ROLE --out DIR` as at first. Nodes take \
the files in their directories while they run, and no connection ends.

Examples:
  thorp ca rotate village --begin
  thorp ca rotate village --switch
  thorp ca rotate village --finish --leave-behind";
