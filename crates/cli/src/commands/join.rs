//! `thorp join`: a node makes its key and gets its first certificate.

use super::context::{make_current, told};
use super::invite::check_out;
use super::issued::say_how;
use super::{say, say_json};
use crate::failure::{Code, Failure};
use clap::Args;
use std::path::{Path, PathBuf};
use thorp_client::{Context, ContextError, Contexts};
use thorp_net::{Address, Identity, IdentityError, JoinToken, NodeRole, site_dir};

/// What `thorp join` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// What `thorp invite NAME` has printed
    token: JoinToken,
    /// Keep it as the context of this name [default: the name of the village's first home]
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    context: Option<String>,
    /// The site or home to join from now on, if the token does not say: tcp://HOST:PORT or unix:/PATH.sock
    #[arg(
        long,
        value_name = "ADDR",
        value_delimiter = ',',
        conflicts_with = "out"
    )]
    via: Vec<Address>,
    /// Put key and certificate into this directory, and make no context: for a site or a home
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints what to do with what it got.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if let Some(out) = &options.out {
        check_out(out)?;
        let identity = get_certificate(&options.token, out)?;
        let has_site = site_dir(out).is_dir();
        return match options.json {
            true => say_json(&as_json(&identity, out, None)),
            false => say_how(&identity, out, has_site),
        };
    }
    let contexts = Contexts::of_user()?;
    let name = options.context_name()?;
    let join = options.where_to_join()?;
    let dir = contexts.identity_of(name)?;
    check_is_same(&contexts, name)?;
    let identity = get_certificate(&options.token, &dir)?;
    if matches!(identity.role(), NodeRole::Site | NodeRole::Home) {
        return say_server(&identity, &dir, options);
    }
    contexts.put(&Context {
        name: name.to_owned(),
        join,
        village: identity.village().to_owned(),
        identity: dir.clone(),
        authority: None,
        status: Vec::new(),
    })?;
    let is_current = make_current(&contexts, name)?;
    if options.json {
        return say_json(&as_json(&identity, &dir, Some((name, is_current))));
    }
    say(&format!(
        "{} is let into village {}",
        identity.certified(),
        identity.village()
    ))?;
    say(&told(name, is_current))
}

impl Options {
    fn context_name(&self) -> Result<&str, Failure> {
        let name = self.context.as_deref().or(self.token.home());
        name.ok_or_else(|| {
            let what = "the token does not say what its village is called";
            Failure::new(what, "give a name for the context with --context").with(Code::Usage)
        })
    }

    /// Known before the token is used: it works once.
    fn where_to_join(&self) -> Result<Vec<String>, Failure> {
        let addresses = match self.via.is_empty() {
            false => &self.via[..],
            true => self.token.join(),
        };
        if addresses.is_empty() {
            let todo = "ask whoever gave it, and give the address of a site or home with --via; for a site or a home, give --out DIR";
            let failure = Failure::new("the token does not say where to join", todo);
            return Err(failure.with(Code::Usage));
        }
        Ok(addresses.iter().map(ToString::to_string).collect())
    }
}

/// A context that was made otherwise is left alone; one that this command has begun is completed.
fn check_is_same(contexts: &Contexts, name: &str) -> Result<(), Failure> {
    match contexts.get(name) {
        Err(ContextError::NotThere { .. }) => Ok(()),
        Ok(context) if context.authority.is_none() => Ok(()),
        Ok(_) => {
            let what = format!("context {name} is that of a village on this machine");
            Err(Failure::new(what, OTHER_NAME))
        }
        Err(error) => Err(error.into()),
    }
}

fn get_certificate(token: &JoinToken, dir: &Path) -> Result<Identity, Failure> {
    let runtime = thorp_server::runtime().map_err(|error| {
        let what = format!("the system gives no runtime: {error}");
        Failure::new(what, "try again")
    })?;
    let joined = runtime.block_on(thorp_net::join(token, dir));
    joined.map_err(|error| failure(token, &error))
}

fn failure(token: &JoinToken, error: &IdentityError) -> Failure {
    match error {
        // Nobody is there who could say it.
        IdentityError::Authority { .. } if token.has_expired() => {
            let todo = "ask for a new one: `thorp invite NAME`; if it should be good, look at the clock of this machine";
            Failure::new(format!("the token has expired; {error}"), todo)
        }
        IdentityError::Authority { .. } => {
            let todo = "if it says so, ask for a new token: `thorp invite NAME`; else look whether `thorp ca serve` (or `thorp dev`) runs \
                        where the token says, and do the same again";
            Failure::new(error.to_string(), todo).with(Code::Unreachable)
        }
        IdentityError::HoldsOther { .. } => Failure::new(
            error.to_string(),
            format!("{OTHER_NAME}, or a directory that is empty or not there yet with --out"),
        ),
        _ => Failure::new(
            error.to_string(),
            "give a directory that is empty, or not there yet, with --out",
        ),
    }
}

/// A site or a home is no program: it needs no context.
fn say_server(identity: &Identity, dir: &Path, options: &Options) -> Result<(), Failure> {
    match options.json {
        true => say_json(&as_json(identity, dir, None)),
        false => say_how(identity, dir, false),
    }
}

fn as_json(identity: &Identity, dir: &Path, context: Option<(&str, bool)>) -> serde_json::Value {
    serde_json::json!({
        "name": identity.name(),
        "role": identity.role().as_str(),
        "village": identity.village(),
        "identity": dir.display().to_string(),
        "context": context.map(|(name, _)| name),
        "current": context.map(|(_, is_current)| is_current),
    })
}

const OTHER_NAME: &str = "give another name for the context with --context";

const HELP: &str = "\
The key is made here and goes nowhere else. What is received is kept as a context, with which commands and \
programs join from now on; it is the current one if there is none. The node renews its certificate by itself in the last \
third of its life, while it runs and the authority's process does. Doing it again with the same token \
completes what was cut short; a token works for no second node.

Examples:
  thorp join thorp2-…                        # a member: keeps it as a context
  thorp join thorp2-… --out office-identity  # a site or a home: name it with --identity";
