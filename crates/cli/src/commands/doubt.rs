//! `thorp doubt`: transactions over several homes whose outcome a home does not know.

use super::{lost_parts, say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::text::{Side, Table, note};
use clap::{Args, Subcommand};
use thorp_client::{CommitId, Doubt, DoubtHome, Error, ErrorKind, Outcome, Ruling, Stamp};

/// What `thorp doubt` is told.
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
    /// Print the transactions in doubt at a home, the oldest first
    #[command(after_help = LIST_HELP)]
    List {
        /// The home's name
        home: String,
        /// Print the transactions over several homes that lost a part instead, as far as the homes remember them
        #[arg(long)]
        lost: bool,
    },
    /// End a transaction at a home, because another home of it is gone for ever
    #[command(after_help = SETTLE_HELP)]
    Settle(Settle),
}

#[derive(Args, Debug)]
struct Settle {
    /// The home's name
    home: String,
    /// The commit, as `thorp doubt list` prints it
    #[arg(value_name = "COMMIT")]
    id: CommitId,
    #[command(flatten)]
    ruling: HowItEnds,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct HowItEnds {
    /// What it wrote at this home counts
    #[arg(long)]
    commit: bool,
    /// What it wrote at this home does not count
    #[arg(long)]
    abort: bool,
}

/// Prints what is in doubt, or ends one of it.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    match &options.action {
        Action::List { home, lost: true } => {
            let found = options.via.join()?.lost_parts(home).map_err(failure)?;
            lost_parts::print(home, &found, options.json)
        }
        Action::List { home, .. } => {
            let doubts = options.via.join()?.doubts(home).map_err(failure)?;
            list(home, &doubts, options.json)
        }
        Action::Settle(settle) => settle.run(options),
    }
}

impl Settle {
    fn run(&self, options: &Options) -> Result<(), Failure> {
        let ruling = match self.ruling.commit {
            true => Ruling::Commit,
            false => Ruling::Abort,
        };
        let member = options.via.join()?;
        let doubts = member.doubts(&self.home).map_err(failure)?;
        if let Some(doubt) = doubts.iter().find(|doubt| doubt.commit == self.id) {
            // Whoever reads no errors was told by the help.
            let _ = note(&warning(ruling, doubt));
        }
        let ended = member.settle_doubt(&self.home, self.id, ruling);
        let ended = ended.map_err(|error| self.failure(error))?;
        let how = how(&ended);
        match (ruling, &ended) {
            (Ruling::Commit, Outcome::Committed(_)) | (Ruling::Abort, Outcome::Refused(_)) => {
                match options.json {
                    true => say_json(&self.as_json(&ended)),
                    false => say(&format!("{} has ended at {}: {how}", self.id, self.home)),
                }
            }
            _ => {
                let what = format!("{} had ended at {} before: {how}", self.id, self.home);
                Err(Failure::new(what, "nothing was changed"))
            }
        }
    }

    fn as_json(&self, ended: &Outcome) -> serde_json::Value {
        let (word, position) = match ended {
            Outcome::Committed(committed) => ("committed", committed.position),
            Outcome::Refused(_) => ("aborted", None),
        };
        serde_json::json!({
            "home": self.home,
            "commit": self.id.to_string(),
            "outcome": word,
            "position": position.map(|at| at.0),
        })
    }

    fn failure(&self, error: Error) -> Failure {
        match error.kind() {
            ErrorKind::NotFound => {
                let what = format!("{} knows of no commit {}", self.home, self.id);
                let todo = format!("`thorp doubt list {}` prints those in doubt", self.home);
                Failure::new(what, todo)
            }
            _ => failure(error),
        }
    }
}

fn failure(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::NoRight => {
            let todo = "join at the home itself (--via), as an operator: `thorp invite NAME --role operator`";
            Failure::new(error.to_string(), todo).with(Code::NoRight)
        }
        _ => error.into(),
    }
}

fn how(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Committed(committed) => {
            let position = committed.position.map(|at| format!(" at position {at}"));
            format!("committed{}", position.unwrap_or_default())
        }
        Outcome::Refused(_) => "aborted".to_owned(),
    }
}

/// What it means if another home knows better.
fn warning(ruling: Ruling, doubt: &Doubt) -> String {
    let others: Vec<String> = doubt.others.iter().map(name).collect();
    let others = others.join(" and ");
    let (here, there) = match ruling {
        Ruling::Commit => ("counts here", "does not count there"),
        Ruling::Abort => ("does not count here", "counts there"),
    };
    let mixed = format!(
        "warning: if {others} did end it otherwise, what the transaction wrote {here} and {there}, and nothing repairs that"
    );
    let reached: Vec<String> = doubt
        .others
        .iter()
        .filter(|other| other.is_reached)
        .map(name)
        .collect();
    match reached.is_empty() {
        true => mixed,
        false => format!(
            "{mixed}; there is a way to {}, which is asked again and again: this may end by itself",
            reached.join(" and ")
        ),
    }
}

fn name(home: &DoubtHome) -> String {
    match &home.name {
        Some(name) => name.clone(),
        None => format!("home id {}", home.home),
    }
}

fn list(home: &str, doubts: &[Doubt], json: bool) -> Result<(), Failure> {
    if json {
        return say_json(&doubts.iter().map(as_json).collect::<Vec<_>>());
    }
    if doubts.is_empty() {
        return say(&format!("nothing is in doubt at {home}"));
    }
    let mut table = Table::new(&[
        ("commit", Side::Left),
        ("member", Side::Left),
        ("in doubt for", Side::Right),
        ("other homes", Side::Left),
    ]);
    for doubt in doubts {
        table.row(vec![
            doubt.commit.to_string(),
            doubt.name.clone().unwrap_or_default(),
            format!("{} s", doubt.age_ms / 1_000),
            doubt
                .others
                .iter()
                .map(other)
                .collect::<Vec<_>>()
                .join(", "),
        ]);
    }
    say(&table.render())
}

fn other(home: &DoubtHome) -> String {
    let id = match home.name {
        Some(_) => format!(" (id {})", home.home),
        None => String::new(),
    };
    let way = if home.is_reached {
        "reached"
    } else {
        "NOT reached"
    };
    let vote = if home.vote.is_some() {
        ", has voted"
    } else {
        ""
    };
    format!("{}{id}: {way}{vote}", name(home))
}

fn as_json(doubt: &Doubt) -> serde_json::Value {
    let stamp = |stamp: Stamp| serde_json::json!({"clock": stamp.clock, "home": stamp.home.0});
    let others = doubt.others.iter().map(|other| {
        serde_json::json!({
            "home": other.home.0,
            "name": other.name,
            "reached": other.is_reached,
            "vote": other.vote.map(stamp),
        })
    });
    serde_json::json!({
        "commit": doubt.commit.to_string(),
        "member": doubt.name,
        "vote": stamp(doubt.stamp),
        "age_ms": doubt.age_ms,
        "homes": others.collect::<Vec<_>>(),
    })
}

const HELP: &str = "\
A home that has voted for a transaction over several homes, and does not know how it ended, is in doubt. It locks what \
the transaction touched, and asks the other homes. If one of them is gone for ever, nobody can answer: then an operator \
ends it, joined at the home itself. The audit records that.

If the other home did decide otherwise, what the transaction wrote counts at one home and not at the other, and nothing \
repairs that. A commit gets the highest stamp among the votes that this home knows. The other homes that are still in \
doubt ask this one, and end the transaction as it did here.

A home that has gone back in time, as one that is restored from a backup, has lost what it did after that. Each home \
remembers its last 65,536 transactions over several homes. `thorp doubt list --lost` has the home ask the others, and names \
each transaction that one home has and another one has not. Nothing repairs that: what they wrote says what is missing. \
It ends with 1 if a home could not be asked.

Examples:
  thorp doubt list dev --via 127.0.0.1:7420 --identity olga";

const LIST_HELP: &str = "\
Examples:
  thorp doubt list dev --via 127.0.0.1:7420 --identity olga
  thorp doubt list dev --via 127.0.0.1:7420 --identity olga --lost";

const SETTLE_HELP: &str = "\
Examples:
  thorp doubt settle alps 9b0b94badc64ae45:17 --abort --via 127.0.0.1:7420 --identity olga";
