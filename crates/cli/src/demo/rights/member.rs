//! What a member of the demo of rights does.

use super::errand::Errand;
use crate::demo::wire::Done;
use crate::failure::Failure;
use std::fmt::Display;
use std::thread::sleep;
use std::time::{Duration, Instant};
use thorp_client::{Error, Member, Reference, Right, RightsList, Segment, Session, Subject, Watch};

/// What a member remembers between its errands.
#[derive(Default)]
pub(in crate::demo) struct Kept {
    counter: Option<(Segment, Reference)>,
    watch: Option<Watch>,
}

/// Does an errand. `count` of the result is the counter, or 1 for what was done and 0 for what was refused.
pub(in crate::demo) fn obey(
    member: &Member,
    kept: &mut Kept,
    errand: Errand,
) -> Result<Done, Failure> {
    match errand {
        Errand::Make { segment } => make(member, &segment),
        Errand::Read { segment } => Ok(read(member, kept, &segment)),
        Errand::ReadAgain => Ok(told(value(member, &counter_of(kept)?.1))),
        Errand::WriteAgain => {
            let (_, counter) = counter_of(kept)?;
            let written = member.transact(|tx| tx.write(&counter, b"999999".to_vec()));
            Ok(told(written.map(|()| "written".to_owned())))
        }
        Errand::Watch => {
            let watch = counter_of(kept)?.0.watch()?;
            kept.watch = Some(watch);
            Ok(Done::default())
        }
        Errand::Watched => watched(kept),
        Errand::Grant {
            segment,
            right,
            subject,
        } => {
            let (right, subject) = (word::<Right>(&right)?, word::<Subject>(&subject)?);
            let list = member.open(&segment)?.grant(&subject, right)?;
            Ok(listed(&list, 0))
        }
        Errand::Revoke {
            segment,
            subject,
            after_ms,
        } => {
            sleep(Duration::from_millis(after_ms));
            revoke(member, &segment, &word(&subject)?)
        }
        Errand::Count { segment, ms } => count(member, &segment, Duration::from_millis(ms)),
        Errand::Look { segment, ms } => look(member, &segment, Duration::from_millis(ms)),
    }
}

fn word<T: std::str::FromStr<Err: Display>>(text: &str) -> Result<T, Failure> {
    text.parse()
        .map_err(|error| Failure::new(format!("{text}: {error}"), ""))
}

fn make(member: &Member, name: &str) -> Result<Done, Failure> {
    let segment = member.create(name)?;
    member.transact(|tx| {
        let counter = tx.create(&segment, b"1".to_vec())?;
        tx.set_root(&segment, ROOT, Some(counter))
    })?;
    Ok(Done::default())
}

fn read(member: &Member, kept: &mut Kept, name: &str) -> Done {
    let read = open(member, name).and_then(|(segment, counter)| {
        kept.counter = Some((segment, counter));
        Ok(value(member, &counter)?)
    });
    told(read)
}

fn open(member: &Member, name: &str) -> Result<(Segment, Reference), Failure> {
    let segment = member.open(name)?;
    let counter = segment.root(ROOT)?;
    match counter {
        Some(counter) => Ok((segment, counter)),
        None => Err(Failure::new(format!("{name} has no counter"), "")),
    }
}

fn value(member: &Member, counter: &Reference) -> Result<String, Error> {
    member.transact(|tx| {
        let bytes = tx.read(counter)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    })
}

fn counter_of(kept: &Kept) -> Result<(Segment, Reference), Failure> {
    let counter = kept.counter.clone();
    counter.ok_or_else(|| Failure::new("nothing was read before", ""))
}

/// What was read, or why it was refused.
fn told<E: Display>(result: Result<String, E>) -> Done {
    let (count, said) = match result {
        Ok(value) => (1, value),
        Err(error) => (0, first_line(&error)),
    };
    Done {
        count,
        said,
        ..Done::default()
    }
}

/// What a person could do about it is left out.
fn first_line(error: &impl Display) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

fn listed(list: &RightsList, count: u64) -> Done {
    Done {
        count,
        said: list.to_string().trim_end().replace('\n', ", "),
        ..Done::default()
    }
}

/// A watch says what changed until it ends.
fn watched(kept: &mut Kept) -> Result<Done, Failure> {
    let Some(watch) = kept.watch.as_mut() else {
        return Err(Failure::new("nothing is watched", ""));
    };
    for _ in 0..WATCHED_MAX {
        match watch.next(WATCHED_WITHIN) {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => return Ok(told::<Error>(Err(error))),
        }
    }
    Ok(told::<Error>(Ok("the watch goes on".to_owned())))
}

fn revoke(member: &Member, name: &str, subject: &Subject) -> Result<Done, Failure> {
    let (segment, counter) = open(member, name)?;
    let (list, count) = member.transact(|tx| {
        let mut list = tx.rights(&segment)?.unwrap_or_default();
        list.revoke(subject);
        tx.set_rights(&segment, &list)?;
        Ok((list, number(tx.read(&counter)?)))
    })?;
    Ok(listed(&list, count))
}

fn count(member: &Member, name: &str, time: Duration) -> Result<Done, Failure> {
    let (_, counter) = open(member, name)?;
    let end = Instant::now() + time;
    let mut last = 0;
    while Instant::now() < end {
        last = member.transact(|tx| {
            let next = number(tx.read(&counter)?) + 1;
            tx.write(&counter, next.to_string().into_bytes())?;
            Ok(next)
        })?;
    }
    Ok(Done {
        count: last,
        ..Done::default()
    })
}

/// The highest number that was seen, and what ended it.
fn look(member: &Member, name: &str, time: Duration) -> Result<Done, Failure> {
    let (_, counter) = open(member, name)?;
    let session = Session::new().fetch_timeout(time);
    let end = Instant::now() + time;
    let mut done = Done::default();
    while Instant::now() < end {
        match member.transact_with(session, |tx| Ok(number(tx.read(&counter)?))) {
            // It goes on: perhaps it sees something after it was refused.
            Ok(seen) => done.count = done.count.max(seen),
            Err(error) => done.said = first_line(&error),
        }
    }
    Ok(done)
}

fn number(bytes: &[u8]) -> u64 {
    String::from_utf8_lossy(bytes).parse().unwrap_or(0)
}

const ROOT: &str = "counter";
/// A watch that was ended says so before this many changes, and within this time.
const WATCHED_MAX: usize = 64;
const WATCHED_WITHIN: Duration = Duration::from_secs(2);
