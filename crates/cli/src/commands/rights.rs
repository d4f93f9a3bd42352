//! `thorp rights`: who may do what in a segment.

use super::{say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::names;
use crate::text::{Side, Table};
use clap::{Args, Subcommand};
use std::str::FromStr;
use thorp_client::{Carrier, ErrorKind, Member, Right, RightsList, Segment, Subject};

/// What `thorp rights` is told.
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
    /// Print who may do what in a segment
    #[command(after_help = SHOW_HELP)]
    Show {
        /// thorp://HOME/path
        #[arg(value_parser = names::segment)]
        segment: String,
    },
    /// Give a right, instead of the one that the subject has
    #[command(after_help = GRANT_HELP)]
    Grant {
        /// thorp://HOME/path
        #[arg(value_parser = names::segment)]
        segment: String,
        /// read; write (includes read); admin (includes both, may change rights and remove the segment); carry (a site
        /// may have the pages, for its members)
        right: Granted,
        /// Names of nodes, or @members for every member of the village; to carry: names of sites, @sites, or @nobody
        #[arg(required = true, value_name = "SUBJECT")]
        subjects: Vec<String>,
    },
    /// Take all rights that the subject has in an entry of its own, or the right to carry
    #[command(
        after_help = REVOKE_HELP,
        override_usage = "thorp rights revoke [OPTIONS] <SEGMENT> <SUBJECT>...\n       \
                                thorp rights revoke [OPTIONS] <SEGMENT> carry <SITE>..."
    )]
    Revoke {
        /// thorp://HOME/path
        #[arg(value_parser = names::segment)]
        segment: String,
        /// Names of nodes, or @members; after the word carry: names of sites, or @sites
        #[arg(required = true, value_name = "SUBJECT")]
        subjects: Vec<String>,
    },
}

/// What `thorp rights grant` gives.
#[derive(Clone, Copy, Debug)]
enum Granted {
    Right(Right),
    Carry,
}

impl FromStr for Granted {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            CARRY => Ok(Granted::Carry),
            word => match word.parse() {
                Ok(right) => Ok(Granted::Right(right)),
                Err(_) => Err("the rights are read, write, admin and carry".to_owned()),
            },
        }
    }
}

/// Begins what is revoked of sites.
const CARRY: &str = "carry";

/// One change of a list.
enum Change {
    Grant(Subject, Right),
    Revoke(Subject),
    GrantCarry(Carrier),
    RevokeCarry(Carrier),
}

impl Change {
    fn grant(right: Granted, word: &str) -> Result<Self, Failure> {
        Ok(match right {
            Granted::Right(right) => Change::Grant(parsed(word)?, right),
            Granted::Carry => Change::GrantCarry(parsed(word)?),
        })
    }

    /// Changes the list of a segment.
    fn apply(&self, list: &mut RightsList, segment: &str) -> Result<(), Failure> {
        match self {
            Change::Grant(subject, right) => list.grant(subject.clone(), *right),
            Change::GrantCarry(carrier) => list.grant_carry(carrier.clone()),
            Change::Revoke(subject) => {
                let had = list.revoke(subject);
                had.ok_or_else(|| no_entry(segment, subject))?;
            }
            Change::RevokeCarry(carrier) if list.revoke_carry(carrier) => {}
            Change::RevokeCarry(carrier) => return Err(no_carrier(segment, carrier)),
        }
        Ok(())
    }
}

/// What a list calls somebody.
fn parsed<T: FromStr<Err: std::fmt::Display>>(word: &str) -> Result<T, Failure> {
    word.parse().map_err(|error: T::Err| {
        let what = format!("{word:?} is nobody whom a rights list may name");
        Failure::new(what, error.to_string()).with(Code::Usage)
    })
}

/// Prints the list, or what it is after the change.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let list = match &options.action {
        Action::Show { segment } => {
            let member = options.via.join()?;
            open(&member, segment)?.rights()?
        }
        Action::Grant {
            segment,
            right,
            subjects,
        } => {
            let changes = subjects.iter().map(|word| Change::grant(*right, word));
            let changes = changes.collect::<Result<Vec<_>, _>>()?;
            note_bare_words(subjects);
            Some(changed(&options.via, segment, &changes)?)
        }
        Action::Revoke { segment, subjects } => {
            Some(changed(&options.via, segment, &revocations(subjects)?)?)
        }
    };
    show(list.as_ref(), options.json)
}

/// A node may have such a name, and hardly one has.
fn note_bare_words(subjects: &[String]) {
    for word in subjects.iter().filter(|word| GROUPS.contains(&&***word)) {
        // Whoever reads no errors sees it in the list.
        let _ = crate::text::note(&format!(
            "{word} is taken as the name of a node: with @{word} it is the group"
        ));
    }
}

/// What is a group with an @ before it.
const GROUPS: [&str; 3] = ["members", "sites", "nobody"];

fn revocations(words: &[String]) -> Result<Vec<Change>, Failure> {
    match words {
        [carry, sites @ ..] if carry == CARRY && !sites.is_empty() => sites
            .iter()
            .map(|word| Ok(Change::RevokeCarry(parsed(word)?)))
            .collect(),
        words => words
            .iter()
            .map(|word| Ok(Change::Revoke(parsed(word)?)))
            .collect(),
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
        (None, Err(error)) if error.kind() == ErrorKind::NoRight => {
            Err(no_right(&error).with(Code::NoRight))
        }
        (None, list) => Ok(list?),
    }
}

/// All changes in one commit.
fn changed(via: &Via, name: &str, changes: &[Change]) -> Result<RightsList, Failure> {
    let member = via.join()?;
    let segment = open(&member, name)?;
    let all = |list: &mut RightsList| changes.iter().try_for_each(|one| one.apply(list, name));
    change_list(&member, &segment, RightsList::without_list, all, |error| {
        let todo = format!(
            "only an admin of {name} and an operator may change its rights: `thorp rights show {name}` names the admins. By way of a \
             site that may not carry it nobody does: join at the home (--via)"
        );
        Failure::new(error.to_string(), todo)
    })
}

fn no_entry(segment: &str, subject: &Subject) -> Failure {
    let todo = format!("`thorp rights show {segment}` tells who has an entry");
    let what = format!("{subject} has no entry of its own in the rights of {segment}");
    Failure::new(what, todo)
}

fn no_carrier(segment: &str, carrier: &Carrier) -> Failure {
    let todo = format!(
        "`thorp rights show {segment}` tells which sites it names; without any, every site carries the segment: \
         `thorp rights grant {segment} carry SITE` names the only ones"
    );
    let what = format!("no line of the rights of {segment} lets {carrier} carry it");
    Failure::new(what, todo)
}

fn show(list: Option<&RightsList>, json: bool) -> Result<(), Failure> {
    let open = RightsList::without_list();
    let list = list.unwrap_or(&open);
    let entries = list.entries();
    let entries = entries.map(|(subject, right)| (right.word(), subject.to_string()));
    let carriers = list.carriers();
    let carriers = carriers.map(|carrier| (CARRY, carrier.to_string()));
    if json {
        let all = entries
            .chain(carriers)
            .map(|(right, subject)| serde_json::json!({"subject": subject, "right": right}));
        return say_json(&all.collect::<Vec<_>>());
    }
    if list.entries().next().is_none() {
        say("nobody but operators has a right")?;
    }
    let mut table = Table::new(&[("right", Side::Left), ("subject", Side::Left)]);
    let mut rows = 0;
    for (right, subject) in entries.chain(carriers) {
        table.row(vec![right.to_owned(), subject]);
        rows += 1;
    }
    match rows {
        0 => Ok(()),
        _ => say(&table.render()),
    }
}

const HELP: &str = "\
A new segment gives `admin` to the node that made it, and `write` to @members. A change is a commit: from its \
position on, whoever has lost the right to read gets nothing newer. What was read before cannot be taken \
back. Whoever may not read a segment is told that there is none. `#` and 16 digits are a name of which the \
home knows only the id.

Every site may have the pages, for its members, until the list says which sites `carry` the segment. From then \
on only these do, and a site that a member carries if that member may read. After the last one is revoked, no \
site does: members have to join the home. `grant carry @sites` lets every site carry the segment again, except \
those that members carry.

Examples:
  thorp rights show   thorp://dev/plans
  thorp rights grant  thorp://dev/plans read anna
  thorp rights revoke thorp://dev/plans anna";

const SHOW_HELP: &str = "\
Examples:
  thorp rights show thorp://dev/plans";

const GRANT_HELP: &str = "\
Examples:
  thorp rights grant thorp://dev/plans read anna ben
  thorp rights grant thorp://dev/plans carry site";

const REVOKE_HELP: &str = "\
Examples:
  thorp rights revoke thorp://dev/plans @members
  thorp rights revoke thorp://dev/plans carry site";
