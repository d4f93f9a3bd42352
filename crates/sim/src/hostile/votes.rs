//! Votes that lock what honest members want, and that nobody decides (rules 10 and R7).

use super::attack::{Attack, Target, ToParent};
use super::eyes::{Eyes, nothing};
use thorp_model::limits::SLOTS_MAX;
use thorp_model::{
    CommitId, HomeId, PageId, PageNo, Participant, Registration, Slot, SlotSet, Up, Xoshiro256,
};

/// Takes part in transactions over two homes, reads all shared pages, and goes away.
#[derive(Default)]
pub(crate) struct Votes {
    sent: u64,
}

/// Its numbers lie above those of other attacks.
const FIRST: u64 = 1 << 22;

/// A home that is not there. No vote may wait for it.
const NOBODYS: HomeId = HomeId(u32::MAX);

/// Pages that it reads of each segment.
const PAGES: u32 = 7;

impl Attack for Votes {
    fn name(&self) -> &'static str {
        "attack: votes left in doubt"
    }

    fn strike(&mut self, at: Target, eyes: &Eyes, prng: &mut Xoshiro256, outbox: &mut ToParent) {
        let Some(registration) = eyes.registration(at.home) else {
            return;
        };
        let others = eyes.homes.iter().filter(|other| **other != at.home);
        let others: Vec<HomeId> = others.copied().collect();
        let real = prng.pick(&others).copied();
        let other = real.filter(|_| prng.percent(80)).unwrap_or(NOBODYS);
        self.sent += 1;
        let id = CommitId {
            member: eyes.member,
            sequence: FIRST + self.sent,
        };
        let mut request = nothing(id, registration, at.home);
        let there = eyes.registration(other).unwrap_or(Registration(1));
        let mut with = [(at.home, registration), (other, there)];
        with.sort_unstable();
        let with = with.map(|(home, registration)| Participant { home, registration });
        request.with = Vec::from(with);
        request.part.evidence = eyes.position(at.home);
        request.part.reads = all_pages(eyes, at.home);
        outbox.up(at.edge, Up::Commit(request));
    }
}

fn all_pages(eyes: &Eyes, home: HomeId) -> Vec<(PageId, SlotSet)> {
    let mut segments = eyes.segments(home).to_vec();
    segments.sort_unstable();
    let pages = segments.into_iter().flat_map(|segment| {
        (1..PAGES).map(move |page| PageId {
            segment,
            page: PageNo(page),
        })
    });
    let all: SlotSet = (0..SLOTS_MAX).map(Slot).collect();
    pages.map(|page| (page, all)).collect()
}
