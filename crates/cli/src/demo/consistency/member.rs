//! What a member of the demo of consistency does.

use super::errand::{Errand, Read, Seen, Span, Story, View, Write};
use crate::demo::wire::Done;
use crate::failure::Failure;
use std::collections::BTreeSet;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thorp_client::{Consistency, Error, ErrorKind, Member, Procedure, Reference, Segment, Visit};

/// Does an errand.
pub(in crate::demo) fn obey(member: &Member, errand: Errand) -> Result<Done, Failure> {
    let story = match errand {
        Errand::Make { segment } => make(member, &segment).map(|()| Story::default())?,
        Errand::Share {
            segment,
            letter,
            from,
            span,
        } => Village::find(member, &segment)?.share(letter, from, span)?,
        Errand::Read {
            segment,
            consistency,
            span,
        } => Village::find(member, &segment)?.read(consistency_of(&consistency)?, span),
        Errand::Look {
            segment,
            consistency,
        } => Village::find(member, &segment)?.read(consistency_of(&consistency)?, ONCE),
    };
    Ok(Done {
        story,
        ..Done::default()
    })
}

fn consistency_of(text: &str) -> Result<Consistency, Failure> {
    text.parse()
        .map_err(|error| Failure::new(format!("{text}: {error}"), ""))
}

fn make(member: &Member, name: &str) -> Result<(), Error> {
    let segment = member.create(name)?;
    member.transact(|tx| {
        // Zero, as procedures have it.
        let counter = tx.create(&segment, vec![0])?;
        let text = tx.create(&segment, Vec::new())?;
        tx.set_root(&segment, COUNTER, Some(counter))?;
        tx.set_root(&segment, TEXT, Some(text))
    })
}

/// What everybody reads and writes.
struct Village<'a> {
    member: &'a Member,
    segment: Segment,
    counter: Reference,
    text: Reference,
}

impl<'a> Village<'a> {
    fn find(member: &'a Member, name: &str) -> Result<Self, Failure> {
        let segment = member.open(name)?;
        let roots = (segment.root(COUNTER)?, segment.root(TEXT)?);
        let (Some(counter), Some(text)) = roots else {
            return Err(Failure::new(format!("{name} has no counter"), ""));
        };
        Ok(Village {
            member,
            segment,
            counter,
            text,
        })
    }

    fn visit(&self, consistency: Consistency) -> Result<Visit, Error> {
        Visit::open(self.member, consistency, &[&self.segment])
    }

    fn view(&self, visit: &mut Visit) -> Result<View, Error> {
        let text = visit.read(&self.text)?;
        let counter = visit.read(&self.counter)?;
        let counter = postcard::from_bytes(&counter).map_err(Error::aborted_by)?;
        Ok(View::of(counter, &String::from_utf8_lossy(&text)))
    }

    // --- At the site that is cut off ---

    /// One thread writes, and one watches.
    fn share(&self, letter: char, from: u64, span: Span) -> Result<Story, Failure> {
        scope(|scope| {
            let watching = scope.spawn(|| self.watch(letter, span));
            let mut story = self.write(letter, from, span);
            let watched = watching.join();
            let watched = watched.map_err(|_| Failure::new("the watch has ended", ""))??;
            story.append(watched);
            Ok(story)
        })
    }

    fn write(&self, letter: char, from: u64, span: Span) -> Story {
        let mut story = Story::default();
        let clock = Clock::new(span);
        for number in from.. {
            if clock.is_over() {
                break;
            }
            let add = self.update(&clock, &self.counter, Procedure::Add(1));
            let word = format!("{letter}{number} ").into_bytes();
            let append = self.update(&clock, &self.text, Procedure::Append(word.into()));
            for (update, answered) in [(add, &mut story.adds), (append, &mut story.appends)] {
                match update {
                    Ok(write) => answered.push(write),
                    Err(error) => story.refused.push(error.to_string()),
                }
            }
            clock.pause();
        }
        story
    }

    fn update(&self, clock: &Clock, at: &Reference, procedure: Procedure) -> Result<Write, Error> {
        let began = clock.now();
        let mut visit = self.visit(Consistency::EVENTUAL)?;
        visit.apply(at, procedure)?;
        visit.close()?;
        Ok(Write {
            began,
            answered: clock.now(),
        })
    }

    fn watch(&self, own: char, span: Span) -> Result<Story, Failure> {
        let (clock, mut story) = (Clock::new(span), Story::default());
        let (mut known, mut last) = (BTreeSet::new(), Vec::new());
        let mut visit = self.visit(consistency_of(WATCHING)?)?;
        while !clock.is_over() {
            sleep(WATCH_PAUSE);
            let text = visit.read(&self.text)?;
            if text == last {
                continue;
            }
            let at = clock.now();
            let words = String::from_utf8_lossy(&text).into_owned();
            story.twice += u64::from(View::of(0, &words).is_twice);
            for (letter, number) in words.split_whitespace().filter_map(named) {
                if letter != own && known.insert((letter, number)) {
                    story.seen.push(Seen { letter, number, at });
                }
            }
            last = text;
        }
        Ok(story)
    }

    // --- Elsewhere ---

    fn read(&self, consistency: Consistency, span: Span) -> Story {
        let (clock, mut story) = (Clock::new(span), Story::default());
        loop {
            let read = self.read_once(consistency, &clock);
            story.reads.extend(read);
            if clock.is_over() {
                break;
            }
            clock.pause();
        }
        let views = story
            .reads
            .iter()
            .filter_map(|read| read.seen.as_ref().ok());
        story.twice = views.filter(|view| view.is_twice).count() as u64;
        story
    }

    /// None: something changed between two accesses, and the old state is not kept. It needs another visit.
    fn read_once(&self, consistency: Consistency, clock: &Clock) -> Option<Read> {
        let began = clock.now();
        let visit = self.visit(consistency);
        let seen = match visit.and_then(|mut visit| self.view(&mut visit)) {
            Err(error) if error.kind() == ErrorKind::Conflict => return None,
            seen => seen.map_err(|error| error.to_string()),
        };
        Some(Read {
            began,
            ended: clock.now(),
            seen,
        })
    }
}

/// A word of the text.
fn named(word: &str) -> Option<(char, u64)> {
    let letter = word.chars().next()?;
    let number = word.strip_prefix(letter)?.parse().ok()?;
    Some((letter, number))
}

/// The time that all processes have.
struct Clock {
    span: Span,
    end: Instant,
}

impl Clock {
    fn new(span: Span) -> Self {
        Clock {
            span,
            end: Instant::now() + Duration::from_millis(span.ms),
        }
    }

    fn now(&self) -> u64 {
        now_us().saturating_sub(self.span.zero_us)
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    fn pause(&self) {
        sleep(Duration::from_millis(self.span.pause_ms));
    }
}

/// In microseconds since 1970.
pub(super) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let us = since.unwrap_or_default().as_micros();
    u64::try_from(us).unwrap_or(u64::MAX)
}

/// One read, and no more.
const ONCE: Span = Span {
    zero_us: 0,
    ms: 0,
    pause_ms: 0,
};
const COUNTER: &str = "counter";
const TEXT: &str = "text";
/// How a neighbour reads: what is near, at each access.
const WATCHING: &str = "eventual,isolation=access,mode=rd";
const WATCH_PAUSE: Duration = Duration::from_millis(2);
