//! The reference patterns of section 4.4.3.

use crate::{Invalid, at_least, positive};
use serde::Serialize;

/// A synthetic reference stream that a process can hint completely.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pattern {
    /// Which.
    pub shape: Shape,
    /// Pages of the file that is read.
    pub file_pages: u32,
    /// How often the same stream comes: 1, or 3 for the thesis's *cyclic* variants.
    pub rounds: u32,
    /// What drawing starts from.
    pub seed: u64,
}

/// In which order a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Shape {
    /// Part of the pages of a hot fifth and of a cold rest, phase by phase, in groups of neighbours.
    HotCold(Phases),
    /// Each page once, in an order that is drawn.
    Random,
    /// From the last page to the first.
    Reverse,
    /// From the first page to the last; the thesis measures no such pattern.
    Sequential,
}

/// What hot and cold phases are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Phases {
    /// How many, each first hot and then cold.
    pub phases: u32,
    /// Pages of the hot part; the rest of the file is cold.
    pub hot_pages: u32,
    /// Reads of the hot part in each phase.
    pub hot_reads: u32,
    /// Reads of the cold part in each phase.
    pub cold_reads: u32,
    /// Neighbours that are read one after the other.
    pub group: u32,
}

impl Pattern {
    /// The thesis's patterns with its sizes, in pages of 8 KB, with their names; the last is not among those that it measures.
    pub fn of_thesis(rounds: u32) -> [(&'static str, Pattern); 4] {
        let pattern = |shape| Pattern {
            shape,
            file_pages: 12_800,
            rounds,
            seed: 1999,
        };
        let phases = Phases {
            phases: 20,
            hot_pages: 2_560,
            hot_reads: 512,
            cold_reads: 256,
            group: 4,
        };
        [
            ("hotcold", pattern(Shape::HotCold(phases))),
            ("random", pattern(Shape::Random)),
            ("reverse", pattern(Shape::Reverse)),
            ("sequential", pattern(Shape::Sequential)),
        ]
    }

    /// The references, as dense page numbers.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if a parameter cannot be.
    pub fn pages(&self) -> Result<Vec<u32>, Invalid> {
        self.check()?;
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut once: Vec<u32> = match self.shape {
            Shape::HotCold(phases) => phases.pages(self.file_pages, &mut random),
            Shape::Reverse => (0..self.file_pages).rev().collect(),
            Shape::Random | Shape::Sequential => (0..self.file_pages).collect(),
        };
        if self.shape == Shape::Random {
            random.shuffle(&mut once);
        }
        Ok(super::dense(&once.repeat(self.rounds as usize)))
    }

    /// Whether another seed is another pattern.
    pub fn is_drawn(&self) -> bool {
        matches!(self.shape, Shape::HotCold(_) | Shape::Random)
    }

    fn check(&self) -> Result<(), Invalid> {
        at_least("file_pages", f64::from(self.file_pages), 1.0)?;
        at_least("rounds", f64::from(self.rounds), 1.0)?;
        let reads = match self.shape {
            Shape::HotCold(phases) => phases.check(self.file_pages)?,
            _ => u64::from(self.file_pages),
        };
        let references = reads.saturating_mul(self.rounds.into());
        if references > REFERENCES_MAX {
            let why = format!("must leave at most {REFERENCES_MAX} references, not {references}");
            return Err(Invalid::new("rounds", why));
        }
        Ok(())
    }
}

impl Phases {
    fn check(&self, file_pages: u32) -> Result<u64, Invalid> {
        positive("group", f64::from(self.group))?;
        let parts = [
            ("hot_pages", self.hot_pages),
            ("file_pages", file_pages.saturating_sub(self.hot_pages)),
        ];
        for (parameter, pages) in parts {
            if pages < self.group {
                let why = format!("must leave {} pages in each part", self.group);
                return Err(Invalid::new(parameter, why));
            }
        }
        let reads = u64::from(self.hot_reads) + u64::from(self.cold_reads);
        positive("hot_reads", reads as f64)?;
        positive("phases", f64::from(self.phases))?;
        Ok(reads.saturating_mul(self.phases.into()))
    }

    fn pages(&self, file_pages: u32, random: &mut fastrand::Rng) -> Vec<u32> {
        let mut all = Vec::new();
        let mut read = |part: std::ops::Range<u32>, reads: u32| {
            let mut left = reads;
            while left > 0 {
                let first = random.u32(part.start..=part.end - self.group);
                let group = self.group.min(left);
                all.extend(first..first + group);
                left -= group;
            }
        };
        for _ in 0..self.phases {
            read(0..self.hot_pages, self.hot_reads);
            read(self.hot_pages..file_pages, self.cold_reads);
        }
        all
    }
}

/// References that a pattern may have: of more, comparing policies would take many minutes.
pub const REFERENCES_MAX: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn patterns_are_as_long_and_as_wide_as_the_thesis_says() {
        for (name, pattern) in Pattern::of_thesis(1) {
            let pages = pattern.pages().expect(name);
            let distinct = pages.iter().collect::<HashSet<_>>().len();
            let expected = match name {
                // 20 phases of 512 and 256; of 12,800 pages, most hot ones and about a third of the cold.
                "hotcold" => (15_360, 5_500..7_500),
                _ => (12_800, 12_800..12_801),
            };
            assert_eq!(pages.len(), expected.0, "{name}");
            assert!(expected.1.contains(&distinct), "{name}: {distinct}");
        }
        let (name, cyclic) = Pattern::of_thesis(3)[1];
        let pages = cyclic.pages().expect(name);
        assert_eq!(pages[..12_800], pages[25_600..]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let [(_, hotcold), (_, random), ..] = Pattern::of_thesis(1);
        let none = Pattern {
            file_pages: 0,
            ..random
        };
        let endless = Pattern {
            rounds: u32::MAX,
            ..random
        };
        let all_hot = Pattern {
            file_pages: 2_560,
            ..hotcold
        };
        for wrong in [none, endless, all_hot] {
            assert!(wrong.pages().is_err(), "{wrong:?}");
        }
    }
}
