//! What a process does.

use super::hints::Hinting;
use crate::Invalid;

/// The references of one process, which runs on a node of its own.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The pages that it references, as dense numbers. Processes do not share pages: each has its own page 0.
    pub pages: &'a [u32],
    /// What it computes after each reference, microseconds; without it the hierarchy's time.
    pub compute_us: Option<&'a [u32]>,
    /// What it tells of its future.
    pub hinting: Hinting,
}

impl<'a> Job<'a> {
    /// References whose future is told completely.
    pub fn hinted(pages: &'a [u32]) -> Self {
        Job {
            pages,
            compute_us: None,
            hinting: Hinting::COMPLETE,
        }
    }

    /// Refuses what cannot be.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the parameter and why.
    pub fn check(&self) -> Result<(), Invalid> {
        self.hinting.check()?;
        if self.pages.is_empty() || self.pages.len() >= u32::MAX as usize {
            let why = format!("must have 1 to {} references", u32::MAX - 1);
            return Err(Invalid::new("pages", why));
        }
        let (count, most) = (self.page_count(), 4 * self.pages.len() + 1024);
        if count > most {
            let why = format!(
                "must be numbered densely: {} references cannot have page {}",
                self.pages.len(),
                count - 1
            );
            return Err(Invalid::new("pages", why));
        }
        if self.hinting.wrong > 0.0 && count + self.pages.len() >= u32::MAX as usize {
            let why = format!("must be 0 for more than {} references", u32::MAX / 5);
            return Err(Invalid::new("wrong", why));
        }
        self.check_compute()
    }

    fn check_compute(&self) -> Result<(), Invalid> {
        let Some(times) = self.compute_us else {
            return Ok(());
        };
        if times.len() != self.pages.len() {
            let why = format!(
                "must be as many as references: {} for {}",
                times.len(),
                self.pages.len()
            );
            return Err(Invalid::new("compute_us", why));
        }
        let sum: u64 = times.iter().map(|&time| u64::from(time)).sum();
        if sum > WORK_MAX_US {
            let why = format!("must be at most {WORK_MAX_US} together, not {sum}");
            return Err(Invalid::new("compute_us", why));
        }
        Ok(())
    }

    /// How many pages it can name.
    pub(super) fn page_count(&self) -> usize {
        self.pages.iter().max().map_or(0, |&most| most as usize + 1)
    }

    /// The work before each reference and in all, microseconds.
    pub(super) fn work_us(&self, each_us: u64) -> Vec<u64> {
        let compute = |position: usize| match self.compute_us {
            Some(times) => u64::from(times[position]),
            None => each_us,
        };
        let mut sum = 0;
        let sums = (0..self.pages.len()).map(|position| {
            sum += compute(position);
            sum
        });
        std::iter::once(0).chain(sums).collect()
    }
}

/// The clock counts to four times that.
const WORK_MAX_US: u64 = i64::MAX as u64 / 4;

/// The same references with pages numbered densely, in the order in which they come.
pub fn dense(pages: &[u32]) -> Vec<u32> {
    let mut numbers = std::collections::HashMap::new();
    let number = |&page: &u32| {
        let next = numbers.len() as u32;
        *numbers.entry(page).or_insert(next)
    };
    pages.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(Job::hinted(&[0, 1, 0]).check().is_ok());
        assert!(Job::hinted(&[]).check().is_err());
        let sparse = Job::hinted(&[0, 4_000_000_000]).check();
        let why = sparse.expect_err("sparse").to_string();
        assert!(why.contains("densely"), "{why}");
        let mut job = Job::hinted(&[0, 1]);
        job.compute_us = Some(&[5]);
        assert!(job.check().is_err());
        job.compute_us = None;
        job.hinting.wrong = f64::NAN;
        assert!(job.check().is_err());
    }

    #[test]
    fn pages_are_numbered_as_they_come() {
        assert_eq!(dense(&[70, 5, 70, 9]), [0, 1, 0, 2]);
    }
}
