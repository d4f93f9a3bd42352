//! `thorp web updates`: which unsafe requests are under way, or may be, and an end by hand for what stays open.

use super::source::{runtime, table_by_name};
use crate::commands::{say, say_json};
use crate::failure::{Code, Failure};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use thorp_web::{ByHand, HandError, ShownUpdate, ShownUpdates, end_by_hand, open_updates};

/// What `thorp web updates` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The --table of the keeper
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// The --name of the keeper
    #[arg(long, value_name = "NAME", default_value = "thorp")]
    name: String,
    /// End this update, which you know to be over: its number, or `all` for each one that nobody follows
    #[arg(long, value_name = "NUMBER")]
    end: Option<End>,
    /// Tell it in JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug)]
enum End {
    One(u64),
    All,
}

impl std::str::FromStr for End {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "all" => Ok(End::All),
            _ => {
                let number = text.parse().map(End::One);
                number.map_err(|_| "give the number of an update, or `all`")
            }
        }
    }
}

/// Ends what is to be ended, and lists what is open then.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let table = table_by_name(options.table.as_ref(), &options.name)?;
    runtime()?.block_on(async {
        let ended = match options.end {
            None => Vec::new(),
            Some(End::One(id)) => end_one(&table, id).await?,
            Some(End::All) => end_all(&table).await?,
        };
        let shown = open_updates(&table).await.map_err(refused)?;
        tell(options, &ended, &shown)
    })
}

async fn end_one(table: &Path, id: u64) -> Result<Vec<u64>, Failure> {
    match end_by_hand(table, id).await.map_err(refused)? {
        ByHand::Ended => Ok(vec![id]),
        ByHand::Followed => Err(Failure::new(
            format!("the proxy of update {id} follows its request: it ends with the answer"),
            "wait, or end the request at the application",
        )),
        _ => {
            let what = format!("no update {id} is open");
            let todo = "`thorp web updates` lists those that are";
            Err(Failure::new(what, todo).with(Code::NotThere))
        }
    }
}

/// Ends each one that nobody follows now. What comes meanwhile is not meant.
async fn end_all(table: &Path) -> Result<Vec<u64>, Failure> {
    let mut ended = Vec::new();
    let first = open_updates(table).await.map_err(refused)?;
    let mut left = first.open;
    let mut shown = first;
    while left > 0 {
        let lingers = |update: &&ShownUpdate| update.left_ms.is_some();
        let ids: Vec<u64> = shown
            .updates
            .iter()
            .filter(lingers)
            .map(|of| of.id)
            .collect();
        if ids.is_empty() {
            break;
        }
        left = left.saturating_sub(ids.len());
        for id in ids {
            if end_by_hand(table, id).await.map_err(refused)? == ByHand::Ended {
                ended.push(id);
            }
        }
        shown = open_updates(table).await.map_err(refused)?;
    }
    Ok(ended)
}

fn tell(options: &Options, ended: &[u64], shown: &ShownUpdates) -> Result<(), Failure> {
    if options.json {
        let ShownUpdates { open, updates, .. } = shown;
        return say_json(&json!({ "ended": ended, "open": open, "updates": updates }));
    }
    for id in ended {
        say(&format!("ended {id}"))?;
    }
    for update in &shown.updates {
        say(&line(update))?;
    }
    let more = shown.open - shown.updates.len();
    match (shown.open, more) {
        (0, _) => say("no update is open"),
        (_, 0) => Ok(()),
        _ => say(&format!("and {more} more")),
    }
}

fn line(update: &ShownUpdate) -> String {
    let whose = match update.process {
        Some(process) => format!("of process {process}"),
        None => String::from("of proxies that have not come to this keeper"),
    };
    let what = match &update.keys.keys {
        None => String::from("anything"),
        Some(keys) if keys.is_empty() => String::from("nothing"),
        Some(keys) => match update.keys.more_keys {
            0 => keys.join(", "),
            more => format!("{} and {more} more", keys.join(", ")),
        },
    };
    let ends = match update.left_ms {
        None => String::from("its proxy follows it"),
        Some(left_ms) => format!(
            "nobody follows it: it ends in {} s",
            left_ms.div_ceil(1_000)
        ),
    };
    let age = update.age_ms / 1_000;
    format!("{} {whose}: {what}; open for {age} s, {ends}", update.id)
}

fn refused(error: HandError) -> Failure {
    let todo = "start a keeper with `thorp web keeper --requests`; name the --table of one that is a service";
    Failure::new(error.to_string(), todo).with(Code::Unreachable)
}

const HELP: &str = "\
With --requests, what an unsafe request changes is not cached while the request is under way. If its \
proxy cannot learn its end, it stays so for as long as the origin may work on one request: after a \
gateway's 502 or 504, a cut answer, or the death of the proxy. Number 0 is all that proxies of before \
may have open, which have not come to this keeper. End what you know to be over: an end too early lets \
old answers be cached.

Examples:
  thorp web updates
  thorp web updates --end all";
