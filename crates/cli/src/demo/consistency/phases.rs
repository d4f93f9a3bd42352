//! What happened in each phase of the demo of consistency: the table, and the document.

use super::errand::{Read, Story, Write};
use crate::text::{Side, Table};
use serde::Serialize;

/// When the phases begin, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) cut: u64,
    /// The lease of the silent site ends at the home.
    pub(super) lease_end: u64,
    pub(super) mended: u64,
    pub(super) again: u64,
    pub(super) end: u64,
}

/// A member and what it has to tell.
#[derive(Debug)]
pub(super) struct Teller {
    pub(super) name: &'static str,
    /// How it reads, where it reads with a hard bound.
    pub(super) consistency: &'static str,
    /// How old its reads may be, in microseconds.
    pub(super) bound: u64,
    pub(super) story: Story,
}

/// All members.
#[derive(Debug)]
pub(super) struct Tellers {
    pub(super) writers: [Teller; 2],
    pub(super) readers: [Teller; 2],
}

/// A row of the table.
#[derive(Clone, Debug, Serialize)]
pub(in crate::demo) struct Phase {
    phase: &'static str,
    seconds: f64,
    writers: Vec<Wrote>,
    readers: Vec<HardReads>,
}

/// What one member of the site wrote, and when its neighbour saw it.
#[derive(Clone, Debug, Serialize)]
pub(in crate::demo) struct Wrote {
    who: &'static str,
    updates: usize,
    pub(super) median_ms: Option<f64>,
    pub(super) slowest_ms: Option<f64>,
    /// From the start of a write until the neighbour shows it.
    seen_by: &'static str,
    pub(super) seen: usize,
    pub(super) seen_median_ms: Option<f64>,
    pub(super) seen_slowest_ms: Option<f64>,
}

/// What hard reads did elsewhere.
#[derive(Clone, Debug, Serialize)]
pub(in crate::demo) struct HardReads {
    who: &'static str,
    consistency: &'static str,
    pub(super) answered: usize,
    pub(super) slowest_ms: Option<f64>,
    pub(super) failed: usize,
    /// Updates that were answered before a read began, and that it did not show: the most of one read.
    pub(super) missing: u64,
}

impl Teller {
    /// What its updates begin with.
    pub(super) fn letter(&self) -> char {
        self.name.chars().next().unwrap_or('?')
    }

    /// Updates that it wrote.
    pub(super) fn updates(&self) -> impl Iterator<Item = &Write> {
        self.story.adds.iter().chain(&self.story.appends)
    }
}

impl Tellers {
    /// How many updates a read lacks that were answered before it began, or before its bound.
    pub(super) fn missing(&self, reader: &Teller, read: &Read) -> u64 {
        let Ok(view) = &read.seen else { return 0 };
        let before = read.began.saturating_sub(reader.bound);
        let answered = |writes: &[Write]| writes.partition_point(|write| write.answered < before);
        let mut adds = 0;
        let mut missing = 0;
        for writer in &self.writers {
            adds += answered(&writer.story.adds) as u64;
            let appends = answered(&writer.story.appends) as u64;
            missing += appends.saturating_sub(view.of_letter(writer.letter()));
        }
        let counted = u64::try_from(view.counter).unwrap_or(0);
        missing + adds.saturating_sub(counted)
    }

    /// How long after the start of each write in a stretch of time the neighbour showed it, and how many it did not show before
    /// the end.
    pub(super) fn seen(&self, writer: usize, from: u64, to: u64, end: u64) -> (Vec<u64>, usize) {
        let (writer, neighbour) = (&self.writers[writer], &self.writers[1 - writer]);
        let (letter, mut unseen) = (writer.letter(), 0);
        let mut delays = Vec::new();
        for (index, write) in writer.story.appends.iter().enumerate() {
            if !(from..to).contains(&write.began) {
                continue;
            }
            let number = index as u64 + 1;
            let mut seen = neighbour.story.seen.iter();
            let seen = seen.find(|seen| (seen.letter, seen.number) == (letter, number));
            match seen.filter(|seen| seen.at < end) {
                Some(seen) => delays.push(seen.at.saturating_sub(write.began)),
                None => unseen += 1,
            }
        }
        (delays, unseen)
    }

    /// The phases, with what happened in each.
    pub(super) fn phases(&self, times: &Times) -> Vec<Phase> {
        let starts = [
            ("both sites reach the home", 0, times.cut),
            ("A is cut off, its lease lasts", times.cut, times.lease_end),
            (
                "A is cut off, without a lease",
                times.lease_end,
                times.mended,
            ),
            ("A comes back", times.mended, times.again),
            ("both sites reach the home again", times.again, times.end),
        ];
        let phase = |(phase, from, to): (&'static str, u64, u64)| Phase {
            phase,
            seconds: ms(to.saturating_sub(from)) / 1_000.,
            writers: (0..2).map(|writer| self.wrote(writer, from, to)).collect(),
            readers: self
                .readers
                .iter()
                .map(|reader| self.hard_reads(reader, times, (from, to)))
                .collect(),
        };
        starts.map(phase).to_vec()
    }

    fn wrote(&self, writer: usize, from: u64, to: u64) -> Wrote {
        let who = &self.writers[writer];
        let here = who
            .updates()
            .filter(|write| (from..to).contains(&write.began));
        let took: Vec<u64> = here
            .map(|write| write.answered.saturating_sub(write.began))
            .collect();
        let (delays, _) = self.seen(writer, from, to, u64::MAX);
        Wrote {
            who: who.name,
            updates: took.len(),
            median_ms: median(&took).map(ms),
            slowest_ms: took.iter().max().copied().map(ms),
            seen_by: self.writers[1 - writer].name,
            seen: delays.len(),
            seen_median_ms: median(&delays).map(ms),
            seen_slowest_ms: delays.iter().max().copied().map(ms),
        }
    }

    fn hard_reads(&self, reader: &Teller, times: &Times, (from, to): (u64, u64)) -> HardReads {
        // A read that the cut met counts as one of the cut.
        let when = |read: &&Read| match read.began < times.cut && read.ended >= times.cut {
            true => times.cut,
            false => read.began,
        };
        let reads = reader
            .story
            .reads
            .iter()
            .filter(|read| (from..to).contains(&when(read)));
        let reads: Vec<&Read> = reads.collect();
        let answered: Vec<&&Read> = reads.iter().filter(|read| read.seen.is_ok()).collect();
        let took = answered
            .iter()
            .map(|read| read.ended.saturating_sub(read.began));
        HardReads {
            who: reader.name,
            consistency: reader.consistency,
            answered: answered.len(),
            slowest_ms: took.max().map(ms),
            failed: reads.len() - answered.len(),
            missing: answered
                .iter()
                .map(|read| self.missing(reader, read))
                .max()
                .unwrap_or(0),
        }
    }
}

/// For a terminal: what happened at each site.
pub(super) fn table(phases: &[Phase]) -> String {
    let right = |name| (name, Side::Right);
    let mut near = Table::new(&[
        ("phase", Side::Left),
        right("s"),
        ("writer", Side::Left),
        right("updates"),
        right("median ms"),
        right("slowest ms"),
        ("neighbour", Side::Left),
        right("sees"),
        right("median ms"),
        right("slowest ms"),
    ]);
    let mut far = Table::new(&[
        ("phase", Side::Left),
        ("reader", Side::Left),
        ("consistency", Side::Left),
        right("answered"),
        right("slowest ms"),
        right("failed"),
        right("missing"),
    ]);
    for phase in phases {
        let mut head = [phase.phase.to_owned(), format!("{:.1}", phase.seconds)];
        for wrote in &phase.writers {
            let [name, seconds] = std::mem::take(&mut head);
            near.row(vec![
                name,
                seconds,
                wrote.who.to_owned(),
                wrote.updates.to_string(),
                shown(wrote.median_ms),
                shown(wrote.slowest_ms),
                wrote.seen_by.to_owned(),
                wrote.seen.to_string(),
                shown(wrote.seen_median_ms),
                shown(wrote.seen_slowest_ms),
            ]);
        }
        let mut head = phase.phase;
        for reads in &phase.readers {
            far.row(vec![
                std::mem::take(&mut head).to_owned(),
                reads.who.to_owned(),
                reads.consistency.to_owned(),
                reads.answered.to_string(),
                shown(reads.slowest_ms),
                reads.failed.to_string(),
                reads.missing.to_string(),
            ]);
        }
    }
    format!(
        "Site A: eventual updates, and when a neighbour shows them\n\n{}\n\n\
         Site B: hard reads. Missing: the most updates that one read lacked although they were answered \
         before it began (with a bound: so long before)\n\n{}",
        near.render(),
        far.render()
    )
}

fn shown(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"))
}

/// Of microseconds.
pub(super) fn ms(us: u64) -> f64 {
    us as f64 / 1_000.
}

/// The middle one.
pub(super) fn median(all: &[u64]) -> Option<u64> {
    let mut all = all.to_vec();
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}
