//! `thorp watch`: changes as they come.

use super::reading::{self, Reading};
use super::{consistency, say};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::names;
use clap::Args;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use thorp_client::{
    Change, Consistency, ErrorKind, Generation, Lost, Member, ObjectId, Reference, Segment,
    Transaction,
};

/// What `thorp watch` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// thorp://HOME/path
    #[arg(value_parser = names::segment)]
    segment: String,
    /// End after so many changes
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// How fresh the look at each change is: a preset or options without a lock, as `thorp consistency` lists them. It only
    /// reads, so mode=wr counts as mode=rd [default: serializable]
    #[arg(long, value_name = "VALUE", value_parser = consistency::parse)]
    consistency: Option<Consistency>,
    /// Print a line of JSON for each change
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// Watches; changes are sent by the home. A page with a change is read, to say what happened.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let reading = Reading::of(options.consistency)?.without_locks()?;
    let member = options.via.join_for_long()?;
    let segment = member.open(&options.segment)?;
    let mut watch = segment.watch()?;
    let mut look = Look {
        member: &member,
        segment: &segment,
        reading,
        left_out: Vec::new(),
    };
    look.again()?;
    let mut seen = Seen::of(&look)?;
    // Who starts something when this is there has missed nothing. To a person it goes to standard error.
    match options.json {
        true => say(&serde_json::json!({"watching": segment.name()}).to_string())?,
        false => _ = crate::text::note(&format!("watching {}", segment.name())),
    }
    let end = options
        .seconds
        .map(|s| Instant::now() + Duration::from_secs(s));
    let mut left = options.count.unwrap_or(u64::MAX);
    while left > 0 {
        let patience = end.map_or(PATIENCE, |end| {
            end.saturating_duration_since(Instant::now()).min(PATIENCE)
        });
        if end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        let Some(changed) = watch.next(patience)? else {
            continue;
        };
        if let Some(lost) = changed.lost {
            if is_removed(&member, options)? {
                return tell_removed(options, &segment.name());
            }
            say(&lost_in(options, lost))?;
        }
        look.again()?;
        for change in &changed.changes {
            if left == 0 {
                break;
            }
            say(&seen.tell(&look, change)?.shown(options.json))?;
            left -= 1;
        }
    }
    Ok(())
}

/// How the command looks at what has changed.
struct Look<'a> {
    member: &'a Member,
    segment: &'a Segment,
    reading: Reading,
    /// Homes that did not answer the last time.
    left_out: Vec<String>,
}

impl Look<'_> {
    /// With a consistency, a visit asks for what its bounds want to have here. Transactions look at that.
    fn again(&mut self) -> Result<(), Failure> {
        let visit = match self.reading.open(self.member, self.segment) {
            // It was removed meanwhile: that is told as what it is.
            Err(failure) if failure.code() == Code::NotThere => None,
            visit => visit?,
        };
        self.left_out = visit.as_ref().map_or_else(Vec::new, reading::left_out);
        Ok(())
    }

    fn transact<T>(
        &self,
        work: impl FnMut(&mut Transaction) -> thorp_client::Result<T>,
    ) -> thorp_client::Result<T> {
        let session = self.reading.session(self.member.session());
        self.member.transact_with(session, work)
    }
}

/// The objects that the command knows of: by these it tells what happened to one.
struct Seen {
    generations: BTreeMap<ObjectId, Generation>,
    /// There are too many to know all: then none is said to be new.
    is_all: bool,
}

impl Seen {
    fn of(look: &Look<'_>) -> Result<Self, Failure> {
        let mut seen = Seen {
            generations: BTreeMap::new(),
            is_all: true,
        };
        look.transact(|tx| {
            seen.generations.clear();
            tx.scan_references(look.segment, |reference| {
                seen.note(&reference);
                Ok(())
            })
        })?;
        Ok(seen)
    }

    fn note(&mut self, reference: &Reference) {
        match self.generations.len() < KNOWN_MAX {
            true => {
                _ = self
                    .generations
                    .insert(reference.object, reference.generation)
            }
            false => self.is_all = false,
        }
    }

    /// What a change was. It is told as of now: the object may have been changed again.
    fn tell(&mut self, look: &Look<'_>, change: &Change) -> Result<Told, Failure> {
        let (member, segment) = (look.member, look.segment);
        let mut told = Told {
            position: change.position.0,
            what: "changed",
            page: change.object.page.page.0,
            slot: change.object.slot.0,
            object: None,
            segment: segment.name(),
            left_out: look.left_out.clone(),
        };
        if let Some(what) = of_segment(change) {
            told.what = what;
            return Ok(told);
        }
        let now = match look.transact(|tx| tx.object_at(segment, change.object)) {
            // The segment was removed since.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            now => now?,
        };
        let before = self.generations.get(&change.object).copied();
        let shown = match now {
            Some(reference) => {
                if self.is_all && before != Some(reference.generation) {
                    told.what = "created";
                }
                self.note(&reference);
                Some(reference)
            }
            None => {
                told.what = "deleted";
                self.generations.remove(&change.object);
                before.map(|generation| Reference {
                    home: segment.home(),
                    object: change.object,
                    generation,
                    offset: 0,
                })
            }
        };
        told.object = match shown {
            Some(reference) => Some(member.format(&reference)?),
            None => None,
        };
        Ok(told)
    }
}

/// A change that is shown.
struct Told {
    position: u64,
    what: &'static str,
    page: u32,
    slot: u16,
    /// As `thorp get` takes it. None: it is the segment's own, or was gone before it was seen.
    object: Option<String>,
    segment: String,
    left_out: Vec<String>,
}

impl Told {
    fn shown(&self, json: bool) -> String {
        let Told {
            position,
            what,
            page,
            slot,
            object,
            segment,
            left_out,
        } = self;
        match (json, object) {
            (true, _) => serde_json::json!({
                "position": position,
                "change": what.replace(' ', "_"),
                "object": object,
                "page": page,
                "slot": slot,
                "left_out": left_out,
            })
            .to_string(),
            (false, Some(object)) => format!("{position}  {what}  {object}"),
            (false, None) if *page == 0 => format!("{position}  {what}  {segment}"),
            (false, None) => format!("{position}  {what}  {segment}#{page}.{slot}"),
        }
    }
}

/// What a segment itself keeps.
fn of_segment(change: &Change) -> Option<&'static str> {
    if change.is_extent() {
        Some("pages added")
    } else if change.is_roots() {
        Some("roots changed")
    } else if change.is_rights() {
        Some("rights changed")
    } else {
        None
    }
}

fn is_removed(member: &Member, options: &Options) -> Result<bool, Failure> {
    match member.open(&options.segment) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() != ErrorKind::HomeUnreachable => Err(error.into()),
        _ => Ok(false),
    }
}

fn tell_removed(options: &Options, segment: &str) -> Result<(), Failure> {
    match options.json {
        true => say(r#"{"removed":true}"#),
        false => say(&format!("{segment} was removed")),
    }
}

fn lost_in(options: &Options, lost: Lost) -> String {
    let went_back = lost == Lost::HomeWentBack;
    match (options.json, went_back) {
        (true, _) => serde_json::json!({"lost": true, "home_went_back": went_back}).to_string(),
        (false, true) => {
            "the home has gone back in time, and goes on from an older state: look at everything anew".to_owned()
        }
        (false, false) => "some changes were lost: look at everything anew".to_owned(),
    }
}

/// Between looks at the clock.
const PATIENCE: Duration = Duration::from_secs(1);

/// Objects that are known at most, of some bytes each.
const KNOWN_MAX: usize = 1_000_000;

const HELP: &str = "\
Prints a line for each object of a segment that is created, changed or deleted from now on: the commit's \
position, what happened, and the object as `thorp get` takes it; also when the segment gets pages, or its roots or \
rights change. What happened is told as of the time of printing. Ends when interrupted, or when the segment is \
removed. In a segment of more than a million objects, a new one is told as changed.
With --consistency a visit asks before each look for what its bounds want to have here. What is told is always
what the home has executed: an update that is still in a log is no change yet.

Examples:
  thorp watch thorp://dev/notes
  thorp watch thorp://dev/notes --json --count 10
  thorp watch thorp://dev/notes --consistency close-to-open";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_happened_and_to_what() {
        let told = |object: Option<&str>, page| Told {
            position: 9,
            what: "created",
            page,
            slot: 2,
            object: object.map(str::to_owned),
            segment: "thorp://alps/shop".to_owned(),
            left_out: Vec::new(),
        };
        let object = "thorp://alps/shop#4.2.1";
        assert_eq!(
            told(Some(object), 4).shown(false),
            format!("9  created  {object}")
        );
        assert_eq!(
            told(None, 4).shown(false),
            "9  created  thorp://alps/shop#4.2"
        );
        assert_eq!(told(None, 0).shown(false), "9  created  thorp://alps/shop");
        let json: serde_json::Value =
            serde_json::from_str(&told(Some(object), 4).shown(true)).unwrap();
        assert_eq!((&json["position"], &json["slot"]), (&9.into(), &2.into()));
    }
}
