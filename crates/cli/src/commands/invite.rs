//! `thorp invite`: a certificate for another node.

use super::authority::{self, Village};
use super::issued::Issued;
use super::{context, say, say_json};
use crate::failure::{Code, Failure};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thorp_client::{Context, Contexts};
use thorp_net::{Address, CertificateAuthority, Grant, IdentityError, NodeRole, may_hold_identity};

/// What `thorp invite` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The node's name: letters, digits, hyphens and full stops
    name: String,
    /// Where to put it; without it a token is printed, for `thorp join` on the node's machine
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How long the token works
    #[arg(long, value_name = "N", default_value_t = 24, conflicts_with = "out", value_parser = clap::value_parser!(u32).range(1..=720))]
    hours: u32,
    /// What the node may be: member (a program), site, home, or operator (a program that administers the village)
    #[arg(long, value_name = "ROLE", default_value = "member", value_parser = role())]
    role: NodeRole,
    /// For a member that may carry its site's redirector: makes a second certificate, of role site, in DIR/site
    #[arg(long)]
    with_site: bool,
    /// The directory of the authority, or of the home that made the village [default: thorp-home, or that of the current
    /// context]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The context of a village on this machine whose authority it is, in place of the current one [env: THORP_CONTEXT]
    #[arg(long, value_name = "NAME", conflicts_with = "dir")]
    context: Option<String>,
    /// Where the node is to join, for the token: a site or home [default: where the current context joins, if the authority
    /// is that of its village]
    #[arg(
        long,
        value_name = "ADDR",
        value_delimiter = ',',
        conflicts_with = "out"
    )]
    via: Vec<Address>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints what to do with the directory.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if let Some(out) = &options.out {
        check_out(out)?;
    }
    if options.with_site && options.role != NodeRole::Member {
        let what = format!("{} {} carries no redirector", options.role, options.name);
        let todo = "only a member does: leave out --role, or --with-site";
        return Err(Failure::new(what, todo).with(Code::Usage));
    }
    let grant = Grant {
        with_site: options.with_site,
        ..Grant::new(options.role, &*options.name)
    };
    let context = match &options.context {
        Some(name) => Some(Contexts::of_user()?.get(name)?),
        None => context::current(),
    };
    let is_named = options.context.is_some();
    let dir = authority::find(options.dir.as_deref(), is_named, context.as_ref())?;
    let failed = |error: IdentityError| {
        let out = options.out.as_deref();
        failed(&error, &grant, out.unwrap_or(Path::new("")))
    };
    let authority = CertificateAuthority::open(&dir).map_err(failed)?;
    let village = Village::of(&authority).map_err(failed)?;
    options.note_other_village(&dir, context.as_ref(), &village);
    let Some(out) = &options.out else {
        return token(options, &grant, (&authority, &village), context);
    };
    authority.check_free(&grant, Some(out)).map_err(failed)?;
    let issued = Issued::to(&authority, &grant, out).map_err(failed)?;
    match options.json {
        true => say_json(&issued.as_json(&village)),
        false => issued.say(&village),
    }
}

/// Makes a token, and says what to do with it.
fn token(
    options: &Options,
    grant: &Grant,
    (authority, village): (&CertificateAuthority, &Village),
    context: Option<Context>,
) -> Result<(), Failure> {
    let failed = |error: IdentityError| failed(&error, grant, Path::new(""));
    let same = context.filter(|context| context.village == authority.village());
    let join = match options.via.is_empty() {
        false => options.via.clone(),
        // What is in a file of this user is an address, or else the token does without.
        true => same.map_or_else(Vec::new, |context| {
            context.join.iter().flat_map(|one| one.parse()).collect()
        }),
    };
    let life = Duration::from_secs(u64::from(options.hours) * 60 * 60);
    authority.check_free(grant, None).map_err(failed)?;
    let token = authority.invite(grant, life, &join).map_err(failed)?;
    if options.json {
        return say_json(&serde_json::json!({
            "name": grant.name,
            "role": grant.role.as_str(),
            "village": authority.village(),
            "home": village.home,
            "token": token.to_string(),
            "hours": options.hours,
        }));
    }
    say(&format!(
        "{} {} may join {village} with this token, once and within {}, while `thorp ca serve` (or `thorp dev`) runs:",
        grant.role,
        grant.name,
        hours(options.hours)
    ))?;
    let how = match grant.role {
        NodeRole::Site | NodeRole::Home => format!(" --out {}-identity", grant.name),
        _ if join.is_empty() => " --via SITE_OR_HOME".to_owned(),
        _ => String::new(),
    };
    say(&format!("  thorp join {token}{how}"))
}

impl Options {
    /// A variable says where commands join, and this goes by the context: that may be another village.
    fn note_other_village(&self, dir: &Path, context: Option<&Context>, village: &Village) {
        let is_by_flag = self.dir.is_some() || self.context.is_some();
        let is_set = std::env::var_os("THORP_VIA").is_some_and(|value| !value.is_empty());
        let Some(context) = context.filter(|one| one.authority.as_deref() == Some(dir)) else {
            return;
        };
        if is_set && !is_by_flag {
            // Whoever reads no errors misses nothing that the result does not say.
            let _ = crate::text::note(&format!(
                "THORP_VIA says where commands join, but not whose authority this is: it is that of context {}, of {village}; \
                 --dir names another one",
                context.name
            ));
        }
    }
}

/// Shells complete what is listed here.
fn role() -> impl TypedValueParser<Value = NodeRole> {
    PossibleValuesParser::new(["member", "site", "home", "operator"])
        .try_map(|word| word.parse::<NodeRole>())
}

fn hours(count: u32) -> String {
    match count {
        1 => "an hour".to_owned(),
        _ => format!("{count} hours"),
    }
}

/// A key among other files would be carried to wherever these go.
pub(super) fn check_out(out: &Path) -> Result<(), Failure> {
    if may_hold_identity(out) {
        return Ok(());
    }
    let what = format!("{} holds other files", out.display());
    Err(Failure::new(what, EMPTY))
}

/// Why there is no certificate, and what to do.
pub(super) fn failed(error: &IdentityError, grant: &Grant, out: &Path) -> Failure {
    Failure::new(error.to_string(), advice(error, grant, out))
}

fn advice(error: &IdentityError, grant: &Grant, out: &Path) -> &'static str {
    match error {
        IdentityError::BadName { .. } => "take a name such as office or anna.laptop",
        IdentityError::NameTaken { held, .. }
            if held.role() == NodeRole::Member && grant.with_site =>
        {
            "take another name: only `thorp invite NAME --with-site` makes both certificates of a member that carries a site"
        }
        IdentityError::NameTaken { .. } => {
            "take another name, or give the --role that the name has"
        }
        IdentityError::NameHeld { .. } => {
            "take another name; to replace a node, revoke it first (`thorp ca revoke`); `thorp ca issue` gives one name to several keys"
        }
        IdentityError::OwnHome { .. } | IdentityError::HomeIdTaken { .. } => "take another name",
        IdentityError::Token { .. } => {
            "or give --out DIR: then the directory with key and certificate is carried to the node"
        }
        IdentityError::OtherNode { .. }
        | IdentityError::OtherVillage { .. }
        | IdentityError::Revoked { .. } => EMPTY,
        IdentityError::File { path, .. } if out.file_name().is_some() && path.starts_with(out) => {
            EMPTY
        }
        _ => {
            "give the authority's directory with --dir, or that of the home that was started first: its first start makes the \
             authority; `thorp dev` makes one, too"
        }
    }
}

const EMPTY: &str = "give a directory that is empty, or not there yet, with --out";

const HELP: &str = "\
Makes a directory with a certificate and a key for another node: to be carried to its machine \
and named there with --identity (or THORP_IDENTITY). Without --out it prints a token instead: with \
`thorp join`, the node makes a key of its own and gets the certificate from `thorp ca serve`. A node \
that has a certificate may join, with that name and in that role. A site needs --role site, a further home \
--role home. A name has one role for ever: the authority keeps a list of what it issued. Doing it again \
for the same name and the same directory renews the certificate in the last third of its life, and else \
changes nothing.

THORP_VIA does not choose the authority: --dir and --context do, then an authority in ./thorp-home, then THORP_CONTEXT, \
then the current context. The first line says which village it is.

Examples:
  thorp invite anna                    # a token, where `thorp dev` or `thorp ca serve` runs
  thorp invite office --role site --out office-identity
  thorp invite ben --dir village --out ben-identity --json";
