//! `thorp context`: where commands join, and as whom.

use super::{say, say_json};
use crate::failure::Failure;
use crate::text::{Side, Table, absolute};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use thorp_client::{Context, Contexts, Identity};
use thorp_net::Address;

/// What is to be done with contexts.
#[derive(Subcommand, Debug)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    /// List contexts; a star marks the current one
    #[command(after_help = LS_HELP)]
    Ls(Ls),
    /// Make a context the current one
    #[command(after_help = USE_HELP)]
    Use(Use),
    /// Make a context of an address and an identity
    #[command(after_help = ADD_HELP)]
    Add(Add),
    /// Remove a context, with the certificate and the key that it keeps
    #[command(after_help = RM_HELP)]
    Rm(Rm),
}

/// What `thorp context ls` is told.
#[derive(Args, Debug)]
pub(crate) struct Ls {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `thorp context use` is told.
#[derive(Args, Debug)]
pub(crate) struct Use {
    /// The context
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `thorp context add` is told.
#[derive(Args, Debug)]
pub(crate) struct Add {
    /// What to call it
    name: String,
    /// The site or home to join: tcp://HOST:PORT or unix:/PATH.sock; after a comma, or given again, where else to turn to
    #[arg(long, value_name = "ADDR", value_delimiter = ',', required = true)]
    via: Vec<Address>,
    /// The directory of a certificate and its key, made by `thorp invite`: it stays where it is
    #[arg(long, value_name = "DIR")]
    identity: PathBuf,
    /// Where a node of the village serves its status, for `thorp status`; may be given several times
    #[arg(long, value_name = "ADDR")]
    status: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `thorp context rm` is told.
#[derive(Args, Debug)]
pub(crate) struct Rm {
    /// The context
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows or changes the contexts of whoever runs the command.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    let contexts = Contexts::of_user()?;
    match command {
        Command::Ls(ls) => ls.run(&contexts),
        Command::Use(options) => {
            contexts.set_current(&options.name)?;
            let said = format!("context {} is the current one", options.name);
            tell(options.json, "current", &options.name, &said)
        }
        Command::Add(add) => add.run(&contexts),
        Command::Rm(options) => {
            contexts.remove(&options.name)?;
            let said = format!("context {} is removed", options.name);
            tell(options.json, "removed", &options.name, &said)
        }
    }
}

impl Ls {
    /// One that cannot be read is shown with the reason: it can be removed then.
    fn run(&self, contexts: &Contexts) -> Result<(), Failure> {
        let current = contexts.current()?;
        let names = contexts.names()?;
        if self.json {
            let all = names.iter().map(|name| {
                let is_current = current.as_deref() == Some(name);
                match contexts.get(name) {
                    Ok(context) => as_json(&context, is_current),
                    Err(error) => serde_json::json!({
                        "name": name,
                        "current": is_current,
                        "error": error.to_string(),
                    }),
                }
            });
            return say_json(&all.collect::<Vec<_>>());
        }
        if names.is_empty() {
            let _ = crate::text::note(
                "there are no contexts: `thorp dev` and `thorp join TOKEN` make some",
            );
            return Ok(());
        }
        let mut table = Table::new(&[
            ("", Side::Left),
            ("context", Side::Left),
            ("village", Side::Left),
            ("as", Side::Left),
            ("joins", Side::Left),
        ]);
        for name in &names {
            let star = if current.as_deref() == Some(name) {
                "*"
            } else {
                ""
            };
            let mut row = vec![star.to_owned(), name.clone()];
            match contexts.get(name) {
                Ok(context) => row.extend([
                    context.village.clone(),
                    whose(&context),
                    context.join.join(", "),
                ]),
                Err(error) => row.extend([String::new(), String::new(), error.to_string()]),
            }
            table.row(row);
        }
        say(&table.render())
    }
}

impl Add {
    fn run(&self, contexts: &Contexts) -> Result<(), Failure> {
        check_free(contexts, &self.name)?;
        let identity = Identity::load(&self.identity).map_err(|error| {
            let todo = "give a directory that `thorp invite` made with --identity";
            Failure::new(error.to_string(), todo)
        })?;
        let context = Context {
            name: self.name.clone(),
            join: self.via.iter().map(ToString::to_string).collect(),
            village: identity.village().to_owned(),
            identity: absolute(&self.identity),
            authority: None,
            status: self.status.clone(),
        };
        contexts.put(&context)?;
        let is_current = make_current(contexts, &self.name)?;
        match self.json {
            true => say_json(&as_json(&context, is_current)),
            false => say(&told(&self.name, is_current)),
        }
    }
}

/// The context that counts, if there is a good one.
pub(super) fn current() -> Option<Context> {
    let contexts = Contexts::of_user().ok()?;
    let named = std::env::var("THORP_CONTEXT").ok();
    let name = named.filter(|name| !name.is_empty());
    let name = name.or_else(|| contexts.current().ok().flatten())?;
    contexts.get(&name).ok()
}

/// The same for where commands join: a variable that says it goes before every context.
pub(super) fn that_counts() -> Option<Context> {
    let is_said = std::env::var_os("THORP_VIA").is_some_and(|via| !via.is_empty());
    match is_said {
        true => None,
        false => current(),
    }
}

/// Nothing that a user has is overwritten.
pub(super) fn check_free(contexts: &Contexts, name: &str) -> Result<(), Failure> {
    if !contexts.dir_of(name)?.exists() {
        return Ok(());
    }
    let what = format!("there is a context {name} already");
    let todo = format!("take another name, or remove it with `thorp context rm {name}`");
    Err(Failure::new(what, todo))
}

/// Makes a new context the current one if there is none. Whether it is.
pub(super) fn make_current(contexts: &Contexts, name: &str) -> Result<bool, Failure> {
    match contexts.current()? {
        // One that is not there any more was chosen by nobody who still wants it.
        Some(current) if contexts.get(&current).is_ok() => Ok(current == name),
        _ => {
            contexts.set_current(name)?;
            Ok(true)
        }
    }
}

/// How a new context is used.
pub(super) fn told(name: &str, is_current: bool) -> String {
    match is_current {
        true => format!("context {name} is the current one: commands join there"),
        false => {
            format!("context {name} is made: `thorp context use {name}` makes it the current one")
        }
    }
}

fn whose(context: &Context) -> String {
    match Identity::load(&context.identity) {
        Ok(identity) => identity.certified().to_string(),
        Err(_) => format!("(no good identity in {})", context.identity.display()),
    }
}

fn as_json(context: &Context, is_current: bool) -> serde_json::Value {
    serde_json::json!({
        "name": context.name,
        "current": is_current,
        "village": context.village,
        "join": context.join,
        "identity": context.identity.display().to_string(),
        "authority": context.authority.as_ref().map(|dir| dir.display().to_string()),
        "status": context.status,
    })
}

fn tell(json: bool, key: &str, name: &str, said: &str) -> Result<(), Failure> {
    match json {
        true => say_json(&serde_json::json!({ key: name })),
        false => say(said),
    }
}

const HELP: &str = "\
A context is where commands join, and as whom. `thorp dev` and `thorp join TOKEN` make one, `thorp context add` \
makes one of what is there. The current context counts where neither a flag (--via, --identity, --context) nor \
a variable (THORP_VIA, THORP_IDENTITY, THORP_CONTEXT) says it.

Examples:
  thorp context ls
  thorp context use dev";

const LS_HELP: &str = "\
Examples:
  thorp context ls
  thorp context ls --json";

const USE_HELP: &str = "\
Examples:
  thorp context use dev";

const ADD_HELP: &str = "\
Examples:
  thorp context add alps --via alps.example.org:7420 --identity anna-identity";

const RM_HELP: &str = "\
Examples:
  thorp context rm alps";
