//! `thorp audit`: what a home has recorded about rights, about what operators did, and about its history.

use super::{say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::text::{Side, Table};
use clap::Args;
use std::time::Duration;
use thorp_client::{AuditEntry, AuditEvent, ErrorKind};
use thorp_net::Utc;

/// What `thorp audit` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The home's name
    home: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// Prints a line for each record, the oldest first.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let member = options.via.join()?;
    let entries = member.audit(&options.home).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let what = format!("{} has no audit that this node may read", options.home);
            let todo = "the audit is for operators (`thorp invite NAME --role operator`), and begins with its first record";
            Failure::new(what, todo).with(Code::NotThere)
        }
        _ => error.into(),
    })?;
    if options.json {
        return say_json(&entries.iter().map(as_json).collect::<Vec<_>>());
    }
    let mut table = Table::new(&[
        ("no", Side::Right),
        ("time", Side::Left),
        ("position", Side::Right),
        ("who", Side::Left),
        ("what", Side::Left),
        ("segment", Side::Left),
        ("by site", Side::Left),
        ("times", Side::Right),
    ]);
    for entry in &entries {
        table.row(vec![
            entry.number.to_string(),
            Utc(Duration::from_millis(entry.wall_ms)).to_string(),
            entry.position.to_string(),
            entry.who.clone(),
            what(entry),
            segment(entry),
            entry.site.clone().unwrap_or_default(),
            entry.count.to_string(),
        ]);
    }
    say(&table.render())
}

fn what(entry: &AuditEntry) -> String {
    match entry.event {
        AuditEvent::Denied { right } => format!("wanted {right}, and has no right to"),
        AuditEvent::RightsChanged => "changed the rights".to_owned(),
        AuditEvent::DoubtSettled { commit, ruling } => {
            format!("ended {commit}, which was in doubt: {ruling}")
        }
        AuditEvent::Opened {
            how,
            incarnation,
            life,
            position,
        } => format!(
            "opened the home ({how}) with incarnation {incarnation}, from position {position} of life {life}"
        ),
        AuditEvent::OtherHistory {
            incarnation,
            life,
            position,
        } => format!(
            "brought a receipt of another history: position {position} of life {life}, incarnation {incarnation}"
        ),
        AuditEvent::ClaimUnproven => "claimed to hold what nothing proves".to_owned(),
        AuditEvent::TurnedAway { why, from } => match from {
            Some(from) => format!("called from {from} and was turned away: {}", why.words()),
            None => format!("called and was turned away: {}", why.words()),
        },
    }
}

fn segment(entry: &AuditEntry) -> String {
    match entry.path.is_empty() {
        true if entry.segment.0 == 0 => "(none)".to_owned(),
        true => format!("(number {})", entry.segment),
        false => entry.path.clone(),
    }
}

fn as_json(entry: &AuditEntry) -> serde_json::Value {
    let event = match entry.event {
        AuditEvent::Denied { .. } => "denied",
        AuditEvent::RightsChanged => "rights_changed",
        AuditEvent::DoubtSettled { .. } => "doubt_settled",
        AuditEvent::Opened { .. } => "opened",
        AuditEvent::OtherHistory { .. } => "other_history",
        AuditEvent::ClaimUnproven => "claim_unproven",
        AuditEvent::TurnedAway { .. } => "turned_away",
    };
    let (commit, ruling) = match entry.event {
        AuditEvent::DoubtSettled { commit, ruling } => {
            (Some(commit.to_string()), Some(ruling.to_string()))
        }
        _ => (None, None),
    };
    let (how, history) = match entry.event {
        AuditEvent::Opened {
            how,
            incarnation,
            life,
            position,
        } => (Some(how.to_string()), Some((incarnation, life, position))),
        AuditEvent::OtherHistory {
            incarnation,
            life,
            position,
        } => (None, Some((incarnation, life, position))),
        _ => (None, None),
    };
    let (why, from) = match entry.event {
        AuditEvent::TurnedAway { why, from } => (Some(why.word()), from.map(|ip| ip.to_string())),
        _ => (None, None),
    };
    let history = history.map(|(incarnation, life, position)| {
        serde_json::json!({
            "incarnation": incarnation.get(),
            "life": life,
            "position": position.0,
        })
    });
    serde_json::json!({
        "number": entry.number,
        "wall_ms": entry.wall_ms,
        "position": entry.position.0,
        "who": entry.who,
        "event": event,
        "right": entry.missing().map(thorp_client::Right::word),
        "commit": commit,
        "ruling": ruling,
        "opened": how,
        "history": history,
        "why": why,
        "from": from,
        "segment": entry.segment.0,
        "path": entry.path,
        "site": entry.site,
        "count": entry.count,
    })
}

const HELP: &str = "\
Equal events are one record with a count; time and position are those of the last one. A home keeps the last 992 \
records. What a site denied carries the site's name. Only operators may read the audit, and whom they let.

Examples:
  thorp audit dev --identity olga      # olga is an operator";
