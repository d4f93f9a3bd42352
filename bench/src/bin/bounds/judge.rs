//! Whether a read has kept its bounds, by what writers were answered.
//!
//! A change *counts* from its answer on. One that a log answered without a lease counts only when the log answers a later one with
//! a lease, or from the home: C10.3 counts it from its arrival there (record 0025). A read begins before its visit is opened.

use crate::clock::MS_NS;
use crate::record::{Answer, Read};
use thorp_bench::Result;
use thorp_client::Consistency;

/// When each change counts.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// By object: of value `n` the time is at `n - 1`. They rise.
    times: Vec<Vec<u64>>,
    /// Changes that were answered without a lease.
    pub(crate) unleased: usize,
}

/// What was found of the reads of one class.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) reads: usize,
    /// Visits that failed: they say nothing.
    pub(crate) failed: usize,
    /// Reads that the member served without a message to the home.
    pub(crate) silent: usize,
    /// Reads that saw another value than the read before.
    pub(crate) changed: usize,
    /// Of each read the age in microseconds: how long before its begin the oldest change counted that it missed.
    pub(crate) ages_us: Vec<u32>,
    /// Of each read the changes that it missed, in the segment with the most of them.
    pub(crate) missed: Vec<u32>,
    pub(crate) too_old: usize,
    pub(crate) missed_too_many: usize,
    /// The first violation, for people.
    pub(crate) first: Option<String>,
}

/// Judges the reads of one class, in their order.
pub(crate) struct Judge<'a> {
    answers: &'a Answers,
    consistency: Consistency,
    /// By segment, in the order of the values of a read.
    objects: &'a [Vec<usize>],
    /// A shorter opening has asked nobody at the home.
    round_trip_ns: u64,
    last: Vec<Option<u64>>,
    verdict: Verdict,
}

impl Answers {
    /// All answers to a writer, in their order.
    pub(crate) fn add(&mut self, object: usize, answers: &[Answer]) -> Result<()> {
        let is_whole = answers
            .iter()
            .zip(1..)
            .all(|(answer, value)| answer.object == object && answer.value == value);
        if !is_whole {
            return Err(format!("object {object}: its answers are not 1, 2, 3 and so on").into());
        }
        let mut times: Vec<u64> = Vec::with_capacity(answers.len());
        let mut counts = u64::MAX;
        for answer in answers.iter().rev() {
            match answer.is_leased {
                true => counts = answer.at_ns,
                false => self.unleased += 1,
            }
            times.push(counts);
        }
        times.reverse();
        if self.times.len() <= object {
            self.times.resize(object + 1, Vec::new());
        }
        self.times[object] = times;
        Ok(())
    }

    /// How many changes were answered.
    pub(crate) fn count(&self, object: usize) -> usize {
        self.times.get(object).map_or(0, Vec::len)
    }

    /// When the change after a value counts, and how many changes after it count before a time.
    fn missed(&self, object: usize, value: u64, at_ns: u64) -> (u64, usize) {
        let times = self.times.get(object).map_or(&[][..], Vec::as_slice);
        let seen = usize::try_from(value).unwrap_or(usize::MAX);
        let later = times.get(seen..).unwrap_or_default();
        let first = later.first().copied().unwrap_or(u64::MAX);
        (first, later.partition_point(|time| *time < at_ns))
    }
}

impl<'a> Judge<'a> {
    pub(crate) fn new(
        answers: &'a Answers,
        (consistency, objects): (Consistency, &'a [Vec<usize>]),
        round_trip_ns: u64,
    ) -> Self {
        Judge {
            answers,
            consistency,
            objects,
            round_trip_ns,
            last: Vec::new(),
            verdict: Verdict::default(),
        }
    }

    /// The next read of a thread.
    pub(crate) fn judge(&mut self, read: &Read) -> Result<()> {
        if read.values.is_empty() {
            self.verdict.failed += 1;
            return Ok(());
        }
        let (mut oldest, mut most, mut next) = (u64::MAX, 0, 0);
        for segment in self.objects {
            let mut missed = 0;
            for object in segment {
                let value = read.values.get(next).copied().flatten();
                next += 1;
                if let Some(value) = value {
                    self.check_possible(*object, value)?;
                    let (first, count) = self.answers.missed(*object, value, read.at_ns);
                    oldest = oldest.min(first);
                    missed += count;
                }
            }
            most = most.max(missed);
        }
        self.note(read, read.at_ns.saturating_sub(oldest), most);
        Ok(())
    }

    /// A writer waits for each answer. So what it has written is at most one more than what was answered.
    fn check_possible(&self, object: usize, value: u64) -> Result<()> {
        match value <= self.answers.count(object) as u64 + 1 {
            true => Ok(()),
            false => Err(format!("object {object} was never {value}").into()),
        }
    }

    fn note(&mut self, read: &Read, age_ns: u64, missed: usize) {
        let verdict = &mut self.verdict;
        verdict.reads += 1;
        let opening_ns = read.opened_ns.saturating_sub(read.at_ns);
        verdict.silent += usize::from(opening_ns < self.round_trip_ns);
        let mut both = self.last.iter().zip(&read.values);
        let is_new = |(last, now): (&Option<u64>, &Option<u64>)| now.is_some() && now > last;
        verdict.changed += usize::from(both.any(is_new));
        self.last.resize(read.values.len(), None);
        for (last, now) in self.last.iter_mut().zip(&read.values) {
            *last = now.or(*last);
        }
        let age_us = u32::try_from(age_ns / 1_000).unwrap_or(u32::MAX);
        verdict.ages_us.push(age_us);
        verdict
            .missed
            .push(u32::try_from(missed).unwrap_or(u32::MAX));
        if !self.consistency.is_hard() {
            return;
        }
        let bound = self.consistency.time();
        let is_too_old = bound.is_some_and(|bound| u128::from(age_ns) > bound.as_nanos());
        let mods = self.consistency.mods();
        let is_too_many = mods.is_some_and(|mods| missed > mods as usize);
        verdict.too_old += usize::from(is_too_old);
        verdict.missed_too_many += usize::from(is_too_many);
        if (is_too_old || is_too_many) && verdict.first.is_none() {
            let age_ms = age_ns as f64 / MS_NS as f64;
            verdict.first = Some(format!(
                "a read at {} ns saw {:?}: {age_ms:.3} ms old, {missed} changes missed",
                read.at_ns, read.values
            ));
        }
    }

    pub(crate) fn verdict(self) -> Verdict {
        self.verdict
    }
}

impl Verdict {
    pub(crate) fn violations(&self) -> usize {
        self.too_old + self.missed_too_many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of object 0: values 1, 2 and so on were answered at these milliseconds.
    fn answers(times: &[(u64, bool)]) -> Answers {
        let mut answers = Answers::default();
        let of = |((ms, is_leased), value): (&(u64, bool), u64)| Answer {
            object: 0,
            value,
            at_ns: ms * MS_NS,
            is_leased: *is_leased,
        };
        let all: Vec<Answer> = times.iter().zip(1..).map(of).collect();
        answers.add(0, &all).expect("they are in order");
        answers
    }

    /// Reads of object 0, by when they began and what they saw.
    fn judged(answers: &Answers, consistency: &str, reads: &[(u64, u64)]) -> Verdict {
        let consistency = format!("bounded,{consistency},mode=rd");
        let consistency = consistency.parse().expect("a consistency");
        let objects = [vec![0]];
        let mut judge = Judge::new(answers, (consistency, &objects), 40 * MS_NS);
        for (ms, value) in reads {
            let read = Read {
                at_ns: ms * MS_NS,
                opened_ns: ms * MS_NS,
                values: vec![Some(*value)],
            };
            judge.judge(&read).expect("possible");
        }
        judge.verdict()
    }

    #[test]
    fn an_answered_change_must_be_seen_within_the_bound_in_time() {
        let answers = answers(&[(10, true), (20, true), (30, true)]);
        let at_once = |reads: &[(u64, u64)]| judged(&answers, "time=0ms,hard", reads).too_old;
        assert_eq!(
            at_once(&[(10, 0), (20, 1), (31, 3)]),
            0,
            "answered at the same moment"
        );
        assert_eq!(at_once(&[(11, 0), (21, 1), (21, 2)]), 2);
        let later = |reads: &[(u64, u64)]| judged(&answers, "time=5ms,hard", reads).too_old;
        assert_eq!(later(&[(15, 0), (16, 0), (25, 1)]), 1);
        let soft = judged(&answers, "time=5ms", &[(35, 0)]);
        assert_eq!((soft.too_old, soft.ages_us), (0, vec![25_000]));
    }

    #[test]
    fn no_more_changes_are_missed_than_the_bound_says() {
        let answers = answers(&[(1, true), (2, true), (3, true), (4, true)]);
        let verdict = judged(&answers, "mods=2,hard", &[(3, 0), (4, 0), (9, 2), (9, 1)]);
        assert_eq!(verdict.missed_too_many, 2);
        assert_eq!(verdict.missed, [2, 3, 2, 3]);
        assert!(verdict.first.expect("one").contains("3 changes missed"));
    }

    #[test]
    fn an_update_without_a_lease_counts_when_a_later_one_is_answered_with_one() {
        let answers = answers(&[(10, false), (20, false), (30, true), (40, false)]);
        assert_eq!(answers.unleased, 3);
        let verdict = judged(
            &answers,
            "time=0ms,hard",
            &[(30, 0), (31, 0), (31, 2), (90, 3)],
        );
        assert_eq!((verdict.reads, verdict.too_old), (4, 2));
    }

    #[test]
    fn it_counts_what_was_served_without_a_message_and_what_had_changed() {
        let answers = answers(&[(10, true)]);
        let verdict = judged(
            &answers,
            "time=0ms,hard",
            &[(1, 0), (2, 0), (11, 1), (12, 1)],
        );
        assert_eq!((verdict.silent, verdict.changed), (4, 1));
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        let mut answers = answers(&[(10, true)]);
        let objects = [vec![0]];
        let consistency = "bounded,time=0ms,hard,mode=rd".parse().expect("it is one");
        let mut judge = Judge::new(&answers, (consistency, &objects), 0);
        let read = |value| Read {
            at_ns: 0,
            opened_ns: 0,
            values: vec![Some(value)],
        };
        assert!(judge.judge(&read(2)).is_ok(), "its answer is on its way");
        assert!(judge.judge(&read(3)).is_err());
        let gap = Answer {
            object: 0,
            value: 2,
            at_ns: 0,
            is_leased: true,
        };
        assert!(answers.add(0, &[gap]).is_err());
    }
}
