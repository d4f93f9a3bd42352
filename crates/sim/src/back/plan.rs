//! What a seed draws of a village whose homes go back.

use thorp_model::{HomeId, ObjectId, PageId, Slot, Xoshiro256};

/// What a seed has drawn.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Homes.
    pub(super) homes: usize,
    /// Each site, and the site above it.
    pub(super) sites: Vec<Option<usize>>,
    /// Each member, and its site; none joins the homes themselves.
    pub(super) members: Vec<Option<usize>>,
    /// Sessions of each member.
    pub(super) sessions: usize,
    /// Slots in use on each of the two pages of a home.
    pub(super) slots: u16,
    /// Microseconds to a home, one way.
    pub(super) far_us: u64,
    /// Milliseconds that a disk takes at most.
    pub(super) sync_ms_max: u64,
    /// Milliseconds between *alive* messages.
    pub(super) alive_ms: u64,
    /// Milliseconds between transactions of a session, at most.
    pub(super) think_ms_max: u64,
    /// Of a hundred commits those whose program goes on before they are answered.
    pub(super) early: u64,
    /// Of a hundred transactions those that take in all homes.
    pub(super) joint: u64,
    /// Bytes of modified objects before a home installs.
    pub(super) mob_bytes_high: usize,
    /// Homes that go back, or run twice.
    pub(super) deeds: u32,
    /// Smaller faults: crashes and cuts.
    pub(super) troubles: u32,
}

/// The only segment of each home.
pub(super) const SEGMENT: u32 = 1;

/// The pages in use.
const PAGES: [u32; 2] = [1, 2];

impl Plan {
    /// Draws a village.
    pub(super) fn draw(prng: &mut Xoshiro256) -> Self {
        let homes = if prng.percent(50) { 2 } else { 1 };
        let sites = prng.below(3) as usize;
        let mut above = Vec::new();
        for site in 0..sites {
            let below = site > 0 && prng.percent(40);
            above.push(below.then(|| site - 1));
        }
        let mut members = Vec::new();
        for _ in 0..prng.range(2, 4) {
            let site = prng.below(sites as u64 + 1) as usize;
            members.push((site < sites).then_some(site));
        }
        Plan {
            homes,
            sites: above,
            members,
            sessions: 1 + prng.below(2) as usize,
            slots: prng.range(2, 5) as u16,
            far_us: prng.range(500, 20_000),
            sync_ms_max: prng.range(1, 30),
            alive_ms: prng.range(200, 2_000),
            think_ms_max: prng.range(5, 80),
            early: prng.below(2) * 40,
            joint: prng.range(20, 70),
            mob_bytes_high: [500, 100_000][prng.index(2)],
            deeds: prng.range(1, 3) as u32,
            troubles: prng.below(6) as u32,
        }
    }

    /// The homes.
    pub(super) fn home_ids(&self) -> impl Iterator<Item = HomeId> + use<> {
        (1..=self.homes as u32).map(HomeId)
    }

    /// Every object that programs use at each home.
    pub(super) fn objects(&self) -> Vec<ObjectId> {
        let mut objects = Vec::new();
        for page in PAGES {
            let page = PageId::new(SEGMENT, page);
            objects.extend((0..self.slots).map(|slot| ObjectId {
                page,
                slot: Slot(slot),
            }));
        }
        objects
    }
}
