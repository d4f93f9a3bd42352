//! What had to hold in the demo of consistency.

use super::errand::{Read, View};
use super::phases::{Teller, Tellers, Times, median, ms};
use crate::demo::checks::Checks;
use crate::failure::Failure;

/// What the judge knows besides what the members tell.
pub(super) struct Case<'a> {
    pub(super) tellers: &'a Tellers,
    pub(super) times: &'a Times,
    pub(super) round_trip_ms: u64,
    /// The name of the site that is cut off.
    pub(super) site: &'a str,
    /// What each member saw at the ends: after the site came back, and at last.
    pub(super) ends: &'a [Vec<Result<View, String>>],
    /// How many appends each writer had made by then.
    pub(super) made: &'a [[usize; 2]],
}

impl Case<'_> {
    /// Prints what was seen of each thing that had to hold.
    pub(super) fn judge(&self, checks: &mut Checks) -> Result<(), Failure> {
        self.writes(checks)?;
        self.neighbours(checks)?;
        self.impatient(checks)?;
        self.patient(checks)?;
        self.afterwards(checks)?;
        self.comes_back(checks)?;
        self.nothing_missing(checks)?;
        self.same_state(checks)?;
        self.once(checks)
    }

    fn writes(&self, checks: &mut Checks) -> Result<(), Failure> {
        let writers = &self.tellers.writers;
        let refused: Vec<&String> = writers.iter().flat_map(|who| &who.story.refused).collect();
        let updates: usize = writers.iter().map(|who| who.updates().count()).sum();
        let seen = match refused.first() {
            None => format!("{updates} updates, none refused"),
            Some(why) => format!("{} refused, the first: {why}", refused.len()),
        };
        let is_good = refused.is_empty() && updates > 0;
        checks.check(
            is_good,
            "every update at A is answered, also while A is cut off",
            &seen,
        )?;
        // Without a link that takes time there is nothing to compare with.
        if self.round_trip_ms < ROUND_TRIP_MS_MIN {
            return Ok(());
        }
        self.sooner(checks)
    }

    /// Both slow down alike where a machine is busy.
    fn sooner(&self, checks: &mut Checks) -> Result<(), Failure> {
        let Times { cut, again, .. } = *self.times;
        let updates = self.tellers.writers.iter().flat_map(Teller::updates);
        let updates: Vec<u64> = updates.map(|write| write.answered - write.began).collect();
        let patient = &self.tellers.readers[1];
        let reads = patient.story.reads.iter();
        let reads = reads.filter(|read| read.ended < cut || read.began >= again);
        // Under a read lease a hard read asks nobody: those are left out.
        let asked = |took: &u64| *took >= self.round_trip_ms * 1_000;
        let reads: Vec<u64> = reads.map(|read| read.ended - read.began).collect();
        let reads: Vec<u64> = reads.into_iter().filter(asked).collect();
        let [update, read] = [updates, reads].map(|all| median(&all).unwrap_or(0));
        let what = "an update of A is answered sooner than what asks the home";
        let seen = format!(
            "the median update took {:.1} ms, the median hard read of {} that asked the home {:.1} ms, a round trip takes {} ms",
            ms(update),
            patient.name,
            ms(read),
            self.round_trip_ms
        );
        checks.check(update < read, what, &seen)
    }

    fn neighbours(&self, checks: &mut Checks) -> Result<(), Failure> {
        let Times { cut, mended, .. } = *self.times;
        for writer in 0..2 {
            let names = [writer, 1 - writer].map(|at| self.tellers.writers[at].name);
            let until = mended.saturating_sub(SEEN_WITHIN_US);
            let (delays, unseen) = self.tellers.seen(writer, cut, until, mended);
            let what = format!(
                "{} sees what {} writes while A is cut off",
                names[1], names[0]
            );
            let slowest = delays.iter().max().copied().map_or(0., ms);
            let middle = median(&delays).map_or(0., ms);
            let seen = format!(
                "{} of {}, in the median {middle:.1} ms after the start of the write, {slowest:.1} ms at most",
                delays.len(),
                delays.len() + unseen
            );
            checks.check(!delays.is_empty() && unseen == 0, &what, &seen)?;
        }
        Ok(())
    }

    /// The reads of a reader that ended while the site was cut off.
    fn cut_reads(&self, reader: usize) -> impl Iterator<Item = &Read> {
        let Times { cut, mended, .. } = *self.times;
        let reads = self.tellers.readers[reader].story.reads.iter();
        reads.filter(move |read| (cut..mended).contains(&read.ended))
    }

    fn impatient(&self, checks: &mut Checks) -> Result<(), Failure> {
        let reader = self.tellers.readers[0].name;
        let failed = self
            .cut_reads(0)
            .filter_map(|read| read.seen.as_ref().err());
        let failed: Vec<&String> = failed.collect();
        let is_named = |why: &&&String| {
            why.contains(&format!("node {} ", self.site)) && lease_left(why).is_some()
        };
        let named: Vec<&&String> = failed.iter().filter(is_named).collect();
        let seen = match named.first() {
            None => format!("{} failed, none of them so", failed.len()),
            Some(why) => format!(
                "{} of {} failures, the first: {why}",
                named.len(),
                failed.len()
            ),
        };
        let what = format!(
            "hard reads of {reader}, with little patience, fail and name whom the home awaits, and how long"
        );
        checks.check(!named.is_empty(), &what, &seen)
    }

    fn patient(&self, checks: &mut Checks) -> Result<(), Failure> {
        let [impatient, patient] = &self.tellers.readers;
        let what = format!(
            "a hard read of {} waits for the end of the lease, and then answers without A's updates",
            patient.name
        );
        let cut = self.times.cut;
        let waited = self.cut_reads(1).max_by_key(|read| read.ended - read.began);
        let (Some(read), Some(named)) = (waited, lease_end(self.tellers, self.times)) else {
            return checks.check(false, &what, "none waited");
        };
        let apart = ms(read.ended.abs_diff(named));
        let writers = self.tellers.writers.iter().flat_map(Teller::updates);
        let meanwhile = writers.filter(|write| write.began >= cut && write.answered < read.ended);
        let seen = format!(
            "answered {:.2} s after the cut, {apart:.0} ms from the end that {} was told, without the {} updates that A had answered since \
             the cut",
            ms(read.ended - cut) / 1_000.,
            impatient.name,
            meanwhile.count()
        );
        let is_good = read.seen.is_ok() && apart < APART_MS_MAX && !self.shows_cut(read);
        checks.check(is_good, &what, &seen)
    }

    fn afterwards(&self, checks: &mut Checks) -> Result<(), Failure> {
        let Times {
            cut,
            lease_end,
            mended,
            ..
        } = *self.times;
        for reader in 0..2 {
            let later = self
                .cut_reads(reader)
                .filter(|read| read.began >= lease_end);
            let later: Vec<&Read> = later.collect();
            let failed = later.iter().filter(|read| read.seen.is_err()).count();
            let slowest = later.iter().map(|read| read.ended - read.began).max();
            let shown = later.iter().filter(|read| self.shows_cut(read)).count();
            let what = format!(
                "after the lease hard reads of {} are answered again, without A's updates",
                self.tellers.readers[reader].name
            );
            let seen = format!(
                "{} reads until A came back after {:.1} s, {failed} failed, the slowest took {:.1} ms; {shown} showed what A wrote meanwhile",
                later.len(),
                ms(mended - cut) / 1_000.,
                slowest.map_or(0., ms)
            );
            checks.check(!later.is_empty() && failed == 0 && shown == 0, &what, &seen)?;
        }
        Ok(())
    }

    /// Whether a read shows an update that was begun after the cut.
    fn shows_cut(&self, read: &Read) -> bool {
        let cut = self.times.cut;
        let Ok(view) = &read.seen else { return false };
        self.tellers.writers.iter().any(|writer| {
            let before = writer
                .story
                .appends
                .partition_point(|write| write.began < cut);
            view.of_letter(writer.letter()) > before as u64
        })
    }

    fn comes_back(&self, checks: &mut Checks) -> Result<(), Failure> {
        let Times { cut, mended, .. } = *self.times;
        let writers = &self.tellers.writers;
        let until = |end: u64| {
            writers.each_ref().map(|writer| {
                let appends = &writer.story.appends;
                appends.partition_point(|write| write.answered < end) as u64
            })
        };
        let (before, all) = (until(cut), until(mended));
        let has_all = |read: &&Read| {
            let has = |view: &View| {
                let mut each = writers.iter().zip(all);
                each.all(|(writer, count)| view.of_letter(writer.letter()) >= count)
            };
            read.began >= mended && read.seen.as_ref().is_ok_and(has)
        };
        let reader = &self.tellers.readers[0];
        let first = reader.story.reads.iter().find(has_all);
        let what = format!("{} sees all that A wrote while it was cut off", reader.name);
        let words = all.iter().sum::<u64>() - before.iter().sum::<u64>();
        let seen = match first {
            Some(read) => format!(
                "all {words} words, {:.2} s after the link was mended",
                ms(read.ended - mended) / 1_000.
            ),
            None => format!("no read had all {words} words"),
        };
        checks.check(first.is_some(), &what, &seen)
    }

    /// Before the cut and from the end of the return on, and while the lease of the silent site lasted.
    fn nothing_missing(&self, checks: &mut Checks) -> Result<(), Failure> {
        let Times { cut, again, .. } = *self.times;
        let leased =
            lease_end(self.tellers, self.times).map_or(cut, |end| end.saturating_sub(MARGIN_US));
        for reader in &self.tellers.readers {
            let counts = |read: &&Read| read.ended < leased || read.began >= again;
            let reads = reader.story.reads.iter().filter(counts);
            let reads: Vec<&Read> = reads.filter(|read| read.seen.is_ok()).collect();
            let violations = reads
                .iter()
                .filter(|read| self.tellers.missing(reader, read) > 0)
                .count();
            let bound = match reader.bound {
                0 => String::new(),
                us => format!(" more than {:.0} ms", ms(us)),
            };
            let what = format!(
                "while A has its lease, hard reads of {} miss nothing that was answered{bound} before they began",
                reader.name
            );
            let later = reads.iter().filter(|read| read.began >= again).count();
            let seen = format!(
                "{} reads, {later} of them after A has come back: {violations} violations",
                reads.len()
            );
            checks.check(violations == 0 && later > 0, &what, &seen)?;
        }
        Ok(())
    }

    fn same_state(&self, checks: &mut Checks) -> Result<(), Failure> {
        let when = ["after A has come back", "at the end"];
        for ((end, made), when) in self.ends.iter().zip(self.made).zip(when) {
            let expected = expected(&self.tellers.writers, *made);
            let same = end
                .iter()
                .filter(|view| view.as_ref() == Ok(&expected))
                .count();
            let wrong = end.iter().find(|view| view.as_ref() != Ok(&expected));
            let mut seen = format!(
                "{same} of {} programs: counter {}, {} words",
                end.len(),
                expected.counter,
                expected
                    .appended
                    .iter()
                    .map(|(_, count)| count)
                    .sum::<u64>()
            );
            if let Some(wrong) = wrong {
                seen = format!("{seen}; another sees {wrong:?}");
            }
            let what =
                format!("{when} all programs see the same state, and each update is in it once");
            checks.check(wrong.is_none(), &what, &seen)?;
        }
        Ok(())
    }

    fn once(&self, checks: &mut Checks) -> Result<(), Failure> {
        let all = self.tellers.writers.iter().chain(&self.tellers.readers);
        let twice: u64 = all.map(|teller| teller.story.twice).sum();
        let seen = format!("{twice} views with an update twice");
        checks.check(
            twice == 0,
            "no view of any program ever showed an update twice",
            &seen,
        )
    }
}

/// The state in which everything is, once.
pub(super) fn expected(writers: &[Teller; 2], made: [usize; 2]) -> View {
    let appended = [0, 1].map(|at| (writers[at].letter(), made[at] as u64));
    let mut appended = appended.to_vec();
    appended.sort_unstable();
    View {
        counter: i64::try_from(made[0] + made[1]).unwrap_or(i64::MAX),
        appended,
        is_twice: false,
    }
}

/// When the lease of the silent site ends, as the home told those whose reads failed.
pub(super) fn lease_end(tellers: &Tellers, times: &Times) -> Option<u64> {
    let reads = tellers
        .readers
        .iter()
        .flat_map(|reader| &reader.story.reads);
    let reads = reads.filter(|read| (times.cut..times.mended).contains(&read.ended));
    let end = |read: &Read| Some(read.ended + lease_left(read.seen.as_ref().err()?)?);
    reads.filter_map(end).max()
}

/// How long a lease lasts, in microseconds, as the error of a read says.
fn lease_left(why: &str) -> Option<u64> {
    let (_, rest) = why.split_once("its lease ends in ")?;
    let (left, _) = rest.split_once(" ms")?;
    Some(left.parse::<u64>().ok()? * 1_000)
}

/// Below that a round trip is no measure.
const ROUND_TRIP_MS_MIN: u64 = 20;
/// A neighbour has so long to show what was written before the end of the cut.
const SEEN_WITHIN_US: u64 = 500_000;
/// How far the end of a wait may be from the end of the lease: the way of the answer, and a busy machine.
const APART_MS_MAX: f64 = 1_000.;
/// The home's clock is known that well here.
const MARGIN_US: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_how_long_a_lease_lasts() {
        let why = "node office may have written it: its lease ends in 3612 ms; try again then";
        assert_eq!(lease_left(why), Some(3_612_000));
        assert_eq!(lease_left("the home did not answer"), None);
    }
}
