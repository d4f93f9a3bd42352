//! `thorp consistency`: what a session may choose, explained.

use super::{say, say_json};
use crate::failure::Failure;
use crate::text::{Side, Table};
use clap::Args;
use thorp_client::{
    AccessMode, Consistency, Failures, Moment, NoConsistency, SessionKind, UpdateOrder, Visit,
};

/// What `thorp consistency` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// A preset, options with commas between them, or both: eventual,mode=rd [default: all presets]
    #[arg(value_name = "VALUE", value_parser = parse)]
    value: Option<Consistency>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Explains one value, or lists the presets.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let presets = || Consistency::PRESETS.iter().map(|(_, preset)| *preset);
    let shown: Vec<Consistency> = match options.value {
        Some(value) => vec![value],
        None => presets().collect(),
    };
    if options.json {
        let each: Vec<_> = shown.iter().map(as_json).collect();
        return say_json(&serde_json::json!({ "consistencies": each }));
    }
    let Some(value) = options.value else {
        return list();
    };
    say(&value.to_string())?;
    explained(&value)
        .iter()
        .try_for_each(|line| say(&format!("  {line}")))?;
    match refusal(&value) {
        Some(why) => say(&format!("  this build refuses it: {why}")),
        None => Ok(()),
    }
}

/// A consistency as it is written on a command line.
pub(crate) fn parse(text: &str) -> Result<Consistency, NoConsistency> {
    text.parse()
}

fn list() -> Result<(), Failure> {
    let mut table = Table::new(&[
        ("preset", Side::Left),
        ("as options", Side::Left),
        ("what it gives", Side::Left),
    ]);
    for (word, preset) in Consistency::PRESETS {
        let about = ABOUT.iter().find(|(of, _)| *of == word);
        let about = about.map_or("", |(_, about)| about);
        let note = match refusal(&preset) {
            _ if word == "bounded" => " (add time= or mods=)",
            Some(_) if preset.kind() == SessionKind::Visit => " (not built yet)",
            _ => "",
        };
        table.row(vec![
            word.to_owned(),
            preset.to_string(),
            format!("{about}{note}"),
        ]);
    }
    say(&table.render())?;
    say("")?;
    say(OPTIONS)
}

/// Why no visit of it can be opened here. Transactions are no visits.
fn refusal(value: &Consistency) -> Option<String> {
    match value.kind() {
        SessionKind::Visit => Visit::check(value).err().map(|error| error.to_string()),
        SessionKind::Serializable | SessionKind::Strict => None,
    }
}

fn as_json(value: &Consistency) -> serde_json::Value {
    let preset = Consistency::PRESETS
        .iter()
        .find(|(_, preset)| preset == value);
    serde_json::json!({
        "consistency": value.to_string(),
        "preset": preset.map(|(word, _)| word),
        "explained": explained(value),
        "refused": refusal(value),
    })
}

/// What it means, a sentence for each option.
fn explained(value: &Consistency) -> Vec<String> {
    match value.kind() {
        SessionKind::Serializable => {
            return vec!["a transaction: all or nothing, as if it were alone".to_owned()];
        }
        SessionKind::Strict => {
            return vec![
                "a transaction: as if it were alone, and after all that was answered before it began; reading costs a round trip"
                    .to_owned(),
            ];
        }
        SessionKind::Visit => {}
    }
    let mode = match value.mode() {
        AccessMode::Read => "it only reads, beside all others",
        AccessMode::Write => "it reads and updates, beside all others",
        AccessMode::ReadLock => "it reads, and nobody writes meanwhile",
        AccessMode::WriteLock => "it reads and updates, and nobody else does meanwhile",
    };
    let mut lines = vec![mode.to_owned(), bounds(value)];
    let failures = match value.failures() {
        Failures::Pessimistic => "it waits for nodes that do not answer, or fails".to_owned(),
        Failures::Optimistic { cutoff: None } => {
            "it goes on without nodes that do not answer, and names them".to_owned()
        }
        Failures::Optimistic { cutoff: Some(_) } => format!(
            "it goes on without nodes that do not answer in time, and names them ({})",
            value.failures()
        ),
    };
    lines.push(failures);
    lines.push(match value.isolation() {
        Moment::Session => "all that it reads is as of its opening".to_owned(),
        Moment::Access => "each access reads what is there then".to_owned(),
        Moment::Manual => "what it reads is as of its last refresh".to_owned(),
    });
    if value.mode().writes() {
        lines.extend(writing(value));
    }
    lines
}

fn bounds(value: &Consistency) -> String {
    let time = value.time().map(|time| match time.as_micros() {
        0 => "is the newest".to_owned(),
        _ => format!("is at most {time:?} old"),
    });
    let mods = value.mods().map(|mods| match mods {
        0 => "misses no answered update".to_owned(),
        1 => "misses at most one answered update".to_owned(),
        mods => format!("misses at most {mods} answered updates"),
    });
    let all: Vec<String> = time.into_iter().chain(mods).collect();
    let what = match all.is_empty() {
        true => "may be as old as it is".to_owned(),
        false => all.join(" and "),
    };
    let from = match value.counts_since_sync() {
        true => " (its age counts from the last answer, and not from the question)",
        false => "",
    };
    match (value.is_hard(), all.is_empty()) {
        (true, _) => format!("what it reads {what}, always: it asks, or others wait{from}"),
        (false, true) => "what it reads is what is near, however old".to_owned(),
        (false, false) => {
            format!(
                "what it reads is what is near: {} is tried, and nobody waits for it{from}",
                tried(value)
            )
        }
    }
}

/// A soft bound.
fn tried(value: &Consistency) -> String {
    let time = value.time().map(|time| match time.as_micros() {
        0 => "the newest state".to_owned(),
        _ => format!("an age of at most {time:?}"),
    });
    let mods = value
        .mods()
        .map(|mods| format!("missing at most {mods} updates"));
    let all: Vec<String> = time.into_iter().chain(mods).collect();
    all.join(" and ")
}

fn writing(value: &Consistency) -> Vec<String> {
    let order = match value.order() {
        UpdateOrder::Unordered => "its updates are shown in the order in which they come",
        UpdateOrder::Total => "all see its updates in one order in the end",
        UpdateOrder::Serial => "each of its updates waits for its home",
        UpdateOrder::Stamp => "of updates that write over each other the later one stays",
    };
    let leave = match value.visibility() {
        Moment::Session => "its updates leave at its close",
        Moment::Access => "its updates leave at once",
        Moment::Manual => "its updates leave when the program publishes them",
    };
    let mut lines = vec![order.to_owned(), leave.to_owned()];
    if value.is_causal() {
        lines.push("nobody sees its updates before those that it had seen".to_owned());
    }
    if value.is_atomic() {
        lines.push("its updates are seen all or none".to_owned());
    }
    lines
}

/// What each preset is for.
const ABOUT: [(&str, &str); 9] = [
    (
        "serializable",
        "a transaction; what all have that choose nothing",
    ),
    ("strict", "a transaction after all that was answered before"),
    ("locking", "nobody else writes meanwhile"),
    ("master-slave", "updates wait for the home, reads are near"),
    (
        "close-to-open",
        "sees all that was answered before it opened",
    ),
    ("bounded", "with time= or mods=: no older, no more missed"),
    ("eventual", "what is near counts, also without the home"),
    ("snapshot", "the state of one moment"),
    ("stream", "each update as soon as it comes"),
];

const OPTIONS: &str = "\
A value is a preset, options with commas between them, or a preset and what is otherwise: eventual,mode=rd.
Options; (*) is what counts if nobody says otherwise:
  mode=wr (*), rd         it reads and updates, or it only reads
  mode=wrlk, rdlk         the same under a lock: nobody else writes meanwhile
  time=0 (*), 100ms, none how old what it reads may be
  mods=none (*), 5        how many updates it may miss
  soft (*), hard          these bounds are tried, or never exceeded: it asks, or others wait
  failures=pessimistic (*), optimistic, optimistic:50ms
                          it waits for who does not answer, or goes on (after that time) and says who was left out
  isolation=session (*), access, manual
                          what it reads is as of its opening, of each access, of its last refresh
  visibility=session (*), access, manual
                          its updates leave at its close, at once, when the program publishes
  order=total (*), none, serial, stamp
                          all see one order in the end; none is promised; each update waits for the home; the later one stays
  causal                  nobody sees its updates before those that it had seen
  atomic                  its updates are seen all or none
  since_sync              age counts from the last answer, and not from the question";

const HELP: &str = "\
A session that needs less than a transaction chooses what it needs. `thorp get` takes such a value with \
--consistency, and programs open a visit with it. docs/consistency.md says which preset is for what.

Examples:
  thorp consistency
  thorp consistency bounded,time=100ms,hard
  thorp consistency close-to-open --json";
