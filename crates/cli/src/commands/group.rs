//! `thorp group`: names that rights lists mean by one word.

use super::rights::change_list;
use super::{say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use clap::{Args, Subcommand};
use thorp_client::{ErrorKind, Member, Right, RightsList, Segment, Subject};

/// What `thorp group` is told.
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
    /// Print the names in a group
    #[command(after_help = SHOW_HELP)]
    Show {
        /// thorp://HOME/@GROUP
        group: String,
    },
    /// Put names into a group; an operator makes it, if it is not there
    #[command(after_help = ADD_HELP)]
    Add {
        /// thorp://HOME/@GROUP
        group: String,
        /// Names of nodes
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Subject>,
    },
    /// Take names out of a group
    #[command(after_help = REMOVE_HELP)]
    Remove {
        /// thorp://HOME/@GROUP
        group: String,
        /// Names of nodes
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Subject>,
    },
}

/// Prints who is in the group, or who is after the change.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    match &options.action {
        Action::Show { group } => {
            let path = path_of(group)?;
            let list = options.via.join()?.open(&path)?.rights()?;
            show(group, &list.unwrap_or_default(), options.json)
        }
        Action::Add { group, names } => {
            check(names)?;
            let path = path_of(group)?;
            let member = options.via.join()?;
            let segment = open_or_create(&member, group, &path)?;
            let changed = change(&member, group, &segment, |list| {
                for name in names {
                    if !list.entries().any(|(held, _)| held == name) {
                        list.grant(name.clone(), Right::Read);
                    }
                }
                Ok(())
            })?;
            show(group, &changed, options.json)
        }
        Action::Remove { group, names } => {
            let path = path_of(group)?;
            let member = options.via.join()?;
            let segment = member.open(&path)?;
            let changed = change(&member, group, &segment, |list| {
                let missing = names.iter().find(|name| list.revoke(name).is_none());
                missing.map_or(Ok(()), |name| Err(is_not_in(group, name)))
            })?;
            show(group, &changed, options.json)
        }
    }
}

/// The segment of `thorp://HOME/@GROUP`.
fn path_of(group: &str) -> Result<String, Failure> {
    let parts = group.rsplit_once("/@");
    let is_group = |name: &str| matches!(format!("@{name}").parse(), Ok(Subject::Group(_)));
    match parts {
        Some((home, name)) if is_group(name) => Ok(format!("{home}/.group/{name}")),
        _ => {
            let todo = "name it as thorp://HOME/@GROUP, in lower-case letters, digits, hyphens and full stops";
            Err(Failure::new(format!("{group} is no group"), todo).with(Code::Usage))
        }
    }
}

/// A group has names, and no other groups.
fn check(names: &[Subject]) -> Result<(), Failure> {
    let is_name = |name: &&Subject| name.id().is_some();
    match names.iter().find(|name| !is_name(name)) {
        None => Ok(()),
        Some(other) => {
            let todo = "give names of nodes: a group has no other groups in it";
            let what = format!("{other} is no name");
            Err(Failure::new(what, todo).with(Code::Usage))
        }
    }
}

fn open_or_create(member: &Member, group: &str, path: &str) -> Result<Segment, Failure> {
    match member.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => return Ok(opened?),
    }
    member.create(path).map_err(|error| match error.kind() {
        ErrorKind::NoRight => {
            let todo = "only an operator makes a group; it is not there, or this node is not in it";
            Failure::new(format!("{group} cannot be made by this node"), todo).with(Code::NoRight)
        }
        _ => error.into(),
    })
}

/// All names in one commit.
fn change(
    member: &Member,
    group: &str,
    segment: &Segment,
    change: impl Fn(&mut RightsList) -> Result<(), Failure>,
) -> Result<RightsList, Failure> {
    change_list(member, segment, RightsList::default, change, |error| {
        let todo = "only an operator, and who has admin in the group, may change it";
        Failure::new(format!("{group}: {error}"), todo)
    })
}

fn is_not_in(group: &str, name: &Subject) -> Failure {
    let todo = format!("`thorp group show {group}` prints who is");
    Failure::new(format!("{name} is not in {group}"), todo)
}

fn show(group: &str, list: &RightsList, json: bool) -> Result<(), Failure> {
    let names = list.entries().map(|(name, _)| name.to_string());
    let names: Vec<String> = names.collect();
    if json {
        return say_json(&names);
    }
    match names.is_empty() {
        true => say(&format!("nobody is in {group}")),
        false => say(&names.join("\n")),
    }
}

const HELP: &str = "\
A rights list names a group as @GROUP: `thorp rights grant thorp://alps/plans read @staff`. A group belongs to \
a home. It is a segment, thorp://HOME/.group/GROUP: who has a right there by name is in the group, and who \
has admin there may change it. A change is a commit: from its position on, whoever has left the group gets \
nothing newer.

Examples:
  thorp group add    thorp://dev/@staff anna ben --identity olga
  thorp group show   thorp://dev/@staff --identity olga
  thorp group remove thorp://dev/@staff ben --identity olga";

const SHOW_HELP: &str = "\
Examples:
  thorp group show thorp://dev/@staff --identity olga";

const ADD_HELP: &str = "\
Examples:
  thorp group add thorp://dev/@staff anna ben --identity olga";

const REMOVE_HELP: &str = "\
Examples:
  thorp group remove thorp://dev/@staff ben --identity olga";
