//! What a process tells of the pages that it will reference.

use crate::{Invalid, fraction};
use serde::Serialize;

/// How much of a process's future is told, and how much of that is right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hinting {
    /// The part of the references that have a hint, 0 to 1. Which these are is drawn.
    pub hinted: f64,
    /// The part of the hints that name another page than is referenced, 0 to 1.
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
        let page_at = match hinting.is_complete() {
            true => pages.to_vec(),
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

fn drawn(pages: &[u32], page_count: usize, hinting: &Hinting) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(hinting.seed);
    let mut hint = |page: u32| {
        let (is_hinted, is_wrong) = (
            random.f64() < hinting.hinted,
            random.f64() < hinting.wrong && page_count > 1,
        );
        let other = random.u32(1..page_count.max(2) as u32);
        match (is_hinted, is_wrong) {
            (false, _) => NEVER,
            (true, false) => page,
            (true, true) => (page + other) % page_count as u32,
        }
    };
    pages.iter().map(|&page| hint(page)).collect()
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
        let wrong = told.iter().filter(|(told, page)| told != page).count();
        assert!((told.len() as f64 / 20_000.0 - 0.6).abs() < 0.02);
        assert!((wrong as f64 / told.len() as f64 - 0.25).abs() < 0.02);
        assert!(told.iter().all(|(told, _)| *told < 100));
    }
}
