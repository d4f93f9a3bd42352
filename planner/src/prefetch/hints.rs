//! What a process tells of the pages that it will reference.

use crate::{Invalid, fraction};
use serde::Serialize;

/// How much of a process's future is told, and how much of that is right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hinting {
    /// The part of the references that have a hint, 0 to 1. Which these are is drawn.
    pub hinted: f64,
    /// The part of the hints that name a page that is never referenced, each another one, 0 to 1: whoever believes such a hint
    /// pays for it and gets nothing. (One of the pages that are referenced anyhow would be prefetched usefully by chance.)
    pub wrong: f64,
    /// What the drawing starts from.
    pub seed: u64,
}

impl Hinting {
    /// The whole future, as it will be.
    pub const COMPLETE: Hinting = Hinting {
        hinted: 1.0,
        wrong: 0.0,
        seed: 0,
    };

    /// Nothing.
    pub const NONE: Hinting = Hinting {
        hinted: 0.0,
        ..Hinting::COMPLETE
    };

    /// Refuses what cannot be.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the parameter and why.
    pub fn check(&self) -> Result<(), Invalid> {
        fraction("hinted", self.hinted)?;
        fraction("wrong", self.wrong)
    }

    fn is_complete(&self) -> bool {
        self.hinted >= 1.0 && self.wrong <= 0.0
    }
}

/// The hints of one process, with what follows what.
#[derive(Clone, Debug)]
pub(super) struct Hints {
    /// The page that each reference is told to be; [`NEVER`] where nothing is.
    page_at: Vec<u32>,
    /// Where the hinted page of each reference is told to be referenced next.
    next: Vec<u32>,
    /// Where each page is told to be referenced first.
    first: Vec<u32>,
    /// Whether what is not told does not happen.
    is_complete: bool,
}

impl Hints {
    /// As much as is hinted of dense pages.
    pub(super) fn of(pages: &[u32], page_count: usize, hinting: &Hinting) -> Self {
        let (page_at, page_count) = match hinting.is_complete() {
            true => (pages.to_vec(), page_count),
            false => drawn(pages, page_count, hinting),
        };
        let mut next = vec![NEVER; pages.len()];
        let mut first = vec![NEVER; page_count];
        for (position, &page) in page_at.iter().enumerate().rev() {
            if page != NEVER {
                next[position] = std::mem::replace(&mut first[page as usize], position as u32);
            }
        }
        Hints {
            page_at,
            next,
            first,
            is_complete: hinting.is_complete(),
        }
    }

    /// How many pages are referenced or told to be.
    pub(super) fn page_count(&self) -> usize {
        self.first.len()
    }

    /// The page that a reference is told to be.
    pub(super) fn page_at(&self, position: u32) -> Option<u32> {
        let page = self.page_at[position as usize];
        (page != NEVER).then_some(page)
    }

    /// Where the page told at a position is told next.
    pub(super) fn next(&self, position: u32) -> u32 {
        self.next[position as usize]
    }

    /// Where a page is told first.
    pub(super) fn first(&self, page: u32) -> u32 {
        self.first[page as usize]
    }

    /// Whether what is not told does not happen.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }
}

/// No position, no page.
pub(super) const NEVER: u32 = u32::MAX;

/// The pages that are told, and how many there are with those that are told and never referenced.
fn drawn(pages: &[u32], page_count: usize, hinting: &Hinting) -> (Vec<u32>, usize) {
    let mut random = fastrand::Rng::with_seed(hinting.seed);
    let mut all = page_count;
    let mut hint = |page: u32| {
        let (is_hinted, is_wrong) = (random.f64() < hinting.hinted, random.f64() < hinting.wrong);
        match (is_hinted, is_wrong) {
            (false, _) => NEVER,
            (true, false) => page,
            (true, true) => {
                all += 1;
                all as u32 - 1
            }
        }
    };
    let told = pages.iter().map(|&page| hint(page)).collect();
    (told, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_hints_are_the_future() {
        let hints = Hints::of(&[0, 1, 0, 2], 3, &Hinting::COMPLETE);
        assert!(hints.is_complete());
        let next: Vec<u32> = (0..4).map(|position| hints.next(position)).collect();
        assert_eq!(next, [2, NEVER, NEVER, NEVER]);
        let first: Vec<u32> = (0..3).map(|page| hints.first(page)).collect();
        assert_eq!(first, [0, 1, 3]);
    }

    #[test]
    fn as_much_is_hinted_and_wrong_as_was_said() {
        let pages: Vec<u32> = (0..20_000).map(|position| position % 100).collect();
        let hinting = Hinting {
            hinted: 0.6,
            wrong: 0.25,
            seed: 7,
        };
        let hints = Hints::of(&pages, 100, &hinting);
        assert!(!hints.is_complete());
        let told: Vec<(u32, u32)> = (0..20_000)
            .filter_map(|position| Some((hints.page_at(position)?, pages[position as usize])))
            .collect();
        let wrong: Vec<u32> = told
            .iter()
            .filter(|(told, page)| told != page)
            .map(|&(told, _)| told)
            .collect();
        assert!((told.len() as f64 / 20_000.0 - 0.6).abs() < 0.02);
        assert!((wrong.len() as f64 / told.len() as f64 - 0.25).abs() < 0.02);
        // Each names a page of its own that is never referenced.
        let others: Vec<u32> = (100..hints.page_count() as u32).collect();
        assert_eq!(wrong, others);
    }
}
