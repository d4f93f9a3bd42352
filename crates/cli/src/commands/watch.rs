//! `thorp watch`: changes as they come.

use super::say;
use crate::connect::Via;
use crate::failure::Failure;
use crate::names;
use clap::Args;
use std::time::{Duration, Instant};
use thorp_client::{Change, Changed, ErrorKind, Lost, Member};

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
    /// Print a line of JSON for each change
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// Watches; nothing is asked for in between, changes are sent by the home.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let member = options.via.join_for_long()?;
    let segment = member.open(&options.segment)?;
    let mut watch = segment.watch()?;
    // To standard error: who starts something when this is there has missed nothing.
    let _ = crate::text::note(&format!("watching {}", segment.name()));
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
        if let Some(changed) = watch.next(patience)? {
            left = print(options, &segment.name(), &changed, left)?;
            if changed.lost.is_some() && is_removed(&member, options)? {
                return tell_removed(options, &segment.name());
            }
        }
    }
    Ok(())
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

/// Prints up to `left` changes; gives how many may still be printed.
fn print(
    options: &Options,
    segment: &str,
    changed: &Changed,
    mut left: u64,
) -> Result<u64, Failure> {
    if let Some(lost) = changed.lost {
        let went_back = lost == Lost::HomeWentBack;
        say(&match (options.json, went_back) {
            (true, _) => {
                serde_json::json!({"lost": true, "home_went_back": went_back}).to_string()
            }
            (false, true) => {
                "the home has gone back in time, and goes on from an older state: look at everything anew".to_owned()
            }
            (false, false) => "some changes were lost: look at everything anew".to_owned(),
        })?;
    }
    for change in &changed.changes {
        if left == 0 {
            break;
        }
        let (page, slot) = (change.object.page.page, change.object.slot);
        say(&if options.json {
            let position = change.position.to_string();
            serde_json::json!({"position": position, "page": page, "slot": slot.to_string()})
                .to_string()
        } else {
            format!("{}  {}", change.position, in_words(segment, change))
        })?;
        left -= 1;
    }
    Ok(left)
}

fn in_words(segment: &str, change: &Change) -> String {
    let (page, slot) = (change.object.page.page, change.object.slot);
    if change.is_extent() {
        format!("{segment}: pages were added")
    } else if change.is_roots() {
        format!("{segment}: its roots")
    } else {
        format!("{segment}#{page}.{slot}")
    }
}

/// Between looks at the clock.
const PATIENCE: Duration = Duration::from_secs(1);

const HELP: &str = "\
Prints a line for each object of a segment that is written, created or deleted from now on: the
commit's position, the object's page and slot; in words what a segment itself keeps (slots 0 and 1
of page 0). Ends when interrupted, or when the segment is removed.";

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_client::{ObjectId, PageId, PageNo, Position, SegmentId, Slot};

    #[test]
    fn what_a_segment_itself_keeps_is_told_in_words() {
        let told = |page, slot| {
            let object = ObjectId {
                page: PageId {
                    segment: SegmentId(3),
                    page: PageNo(page),
                },
                slot: Slot(slot),
            };
            let position = Position(9);
            in_words("thorp://alps/shop", &Change { object, position })
        };
        assert_eq!(told(0, 0), "thorp://alps/shop: pages were added");
        assert_eq!(told(0, 1), "thorp://alps/shop: its roots");
        assert_eq!(told(0, 2), "thorp://alps/shop#0.2");
        assert_eq!(told(4, 0), "thorp://alps/shop#4.0");
    }
}
