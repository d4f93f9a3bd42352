//! `thorp rights`: who may do what in a segment.

use super::{say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::text::{Side, Table};
use clap::{Args, Subcommand};
use thorp_client::{ErrorKind, Member, Right, RightsList, Segment, Subject};

/// What `thorp rights` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    via: Via,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Print who may do what in a segment
    Show {
        /// thorp://HOME/path
        segment: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Give a right, instead of the one that the subject has
    Grant {
        /// thorp://HOME/path
        segment: String,
        /// read; write (includes read); admin (includes both, may change rights and remove the segment)
        right: Right,
        /// Names of nodes, or @members for every member of the village
        #[arg(required = true, value_name = "SUBJECT")]
        subjects: Vec<Subject>,
    },
    /// Take all rights that the subject has in an entry of its own
    Revoke {
        /// thorp://HOME/path
        segment: String,
        /// Names of nodes, or @members
        #[arg(required = true, value_name = "SUBJECT")]
        subjects: Vec<Subject>,
    },
}

/// Prints the list, or what it is after the change.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let member = options.via.join()?;
    match &options.action {
        Action::Show { segment, json } => {
            let list = open(&member, segment)?.rights()?;
            show(list.as_ref(), *json)
        }
        Action::Grant {
            segment,
            right,
            subjects,
        } => {
            let change = |list: &mut RightsList, subject: &Subject| {
                list.grant(subject.clone(), *right);
                Ok(())
            };
            changed(&member, segment, subjects, change)
        }
        Action::Revoke { segment, subjects } => {
            let change = |list: &mut RightsList, subject: &Subject| {
                let had = list.revoke(subject);
                had.map(drop).ok_or_else(|| no_entry(segment, subject))
            };
            changed(&member, segment, subjects, change)
        }
    }
}

fn open(member: &Member, segment: &str) -> Result<Segment, Failure> {
    if segment.contains('#') {
        let todo = "name the segment without what follows the #: rights are those of a segment";
        return Err(Failure::new(format!("{segment} is an object"), todo).with(Code::Usage));
    }
    Ok(member.open(segment)?)
}

/// Changes a segment's list in one commit. What the change refuses, leaves the list as it was.
pub(super) fn change_list(
    member: &Member,
    segment: &Segment,
    without: fn() -> RightsList,
    change: impl Fn(&mut RightsList) -> Result<(), Failure>,
    no_right: impl FnOnce(&thorp_client::Error) -> Failure,
) -> Result<RightsList, Failure> {
    let mut refused = None;
    let list = member.transact(|tx| {
        let mut list = tx.rights(segment)?.unwrap_or_else(without);
        refused = change(&mut list).err();
        if refused.is_none() {
            tx.set_rights(segment, &list)?;
        }
        Ok(list)
    });
    match (refused, list) {
        (Some(refused), _) => Err(refused),
        (None, Err(error)) if error.kind() == ErrorKind::NoRight => Err(no_right(&error)),
        (None, list) => Ok(list?),
    }
}

/// All subjects in one commit.
fn changed(
    member: &Member,
    name: &str,
    subjects: &[Subject],
    change: impl Fn(&mut RightsList, &Subject) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let segment = open(member, name)?;
    let all = |list: &mut RightsList| subjects.iter().try_for_each(|of| change(list, of));
    let list = change_list(member, &segment, RightsList::without_list, all, |error| {
        let todo = format!(
            "only an admin of {name} and an operator may change its rights: `thorp rights show {name}` names the admins"
        );
        Failure::new(error.to_string(), todo)
    })?;
    show(Some(&list), false)
}

fn no_entry(segment: &str, subject: &Subject) -> Failure {
    let todo = format!("`thorp rights show {segment}` tells who has an entry");
    let what = format!("{subject} has no entry of its own in the rights of {segment}");
    Failure::new(what, todo)
}

fn show(list: Option<&RightsList>, json: bool) -> Result<(), Failure> {
    let open = RightsList::without_list();
    let entries = list.unwrap_or(&open).entries();
    if json {
        let entries = entries.map(|(subject, right)| {
            serde_json::json!({"subject": subject.to_string(), "right": right.word()})
        });
        return say_json(&entries.collect::<Vec<_>>());
    }
    let mut table = Table::new(&[("right", Side::Left), ("subject", Side::Left)]);
    let mut rows = 0;
    for (subject, right) in entries {
        table.row(vec![right.to_string(), subject.to_string()]);
        rows += 1;
    }
    match rows {
        0 => say("nobody but operators has a right"),
        _ => say(&table.render()),
    }
}

const HELP: &str = "\
A new segment gives `admin` to the node that made it, and `write` to @members. A change is a commit: from its
position on, whoever has lost the right to read gets nothing newer. What was read before cannot be taken
back. Whoever may not read a segment is told that there is none. `#` and 16 digits are a name of which the
home knows only the id.

  thorp rights grant  thorp://alps/plans read anna
  thorp rights revoke thorp://alps/plans @members";
