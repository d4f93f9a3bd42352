//! What a seed draws of a village whose members write by logs.

use thorp_model::{HomeId, PageId, Place, SegmentId, Xoshiro256};

/// The only home.
pub(super) const HOME: HomeId = HomeId(1);

/// The only segment.
pub(super) const SEGMENT: SegmentId = SegmentId(1);

/// What a seed has drawn.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Each site, and the site above it.
    pub(super) sites: Vec<Option<usize>>,
    /// Each member, and its site; none is straight at the home.
    pub(super) members: Vec<Option<usize>>,
    /// Shared objects.
    pub(super) objects: u16,
    /// Pages over which they are spread.
    pub(super) pages: u16,
    /// Programs run sessions of all presets, and do not only append.
    pub(super) is_mixed: bool,
    /// Microseconds to the home, one way.
    pub(super) far_us: u64,
    /// Milliseconds that a disk takes, at most.
    pub(super) sync_ms_max: u64,
    /// Milliseconds between *alive* messages.
    pub(super) alive_ms: u64,
    /// How long a lease lasts, in milliseconds.
    pub(super) lease_ms: u32,
    /// Thousandths by which monotone clocks go wrong, at most. Two of them together stay below the margin of leases.
    pub(super) drift_per_mille: u64,
    /// Milliseconds between two deeds of a scribe, at most.
    pub(super) think_ms_max: u64,
    /// Of a thousand updates those that the home has to refuse.
    pub(super) wrong: u64,
    /// Of a hundred writes those that are commits, and go by no log.
    pub(super) commits: u64,
    /// Faults that are to come.
    pub(super) troubles: u32,
    /// The first member of each site keeps its log, and the others there have none (rule C6).
    has_site_logs: bool,
}

impl Plan {
    /// Draws a village.
    pub(super) fn draw(prng: &mut Xoshiro256, is_mixed: bool) -> Self {
        let mut sites: Vec<Option<usize>> = Vec::new();
        for site in 0..prng.below(4) as usize {
            let below = site > 0 && prng.percent(70);
            sites.push(below.then(|| site - 1));
        }
        let mut members = Vec::new();
        for _ in 0..prng.range(2, 4) {
            let site = prng.below(sites.len() as u64 + 1) as usize;
            members.push((site < sites.len()).then_some(site));
        }
        Plan {
            sites,
            members,
            objects: match is_mixed {
                true => prng.range(2, 4) as u16,
                false => prng.range(1, 3) as u16,
            },
            pages: if is_mixed { 2 } else { 1 },
            is_mixed,
            far_us: prng.range(500, 30_000),
            sync_ms_max: prng.range(1, 20),
            alive_ms: prng.range(50, 400),
            lease_ms: prng.range(300, 3_000) as u32,
            drift_per_mille: prng.below(2) * 30,
            think_ms_max: match is_mixed {
                true => prng.range(1, 20),
                false => prng.range(5, 120),
            },
            wrong: prng.below(2) * 60,
            troubles: prng.range(3, 12) as u32,
            commits: [0, 30, 100][prng.below(3) as usize],
            has_site_logs: prng.percent(40),
        }
    }

    /// The member that keeps the log of a site.
    pub(super) fn keeper(&self, site: usize) -> Option<usize> {
        let mut members = self.members.iter();
        let first = members.position(|of| *of == Some(site));
        first.filter(|_| self.has_site_logs)
    }

    /// Whether a member keeps the log of its site.
    pub(super) fn is_keeper(&self, member: usize) -> bool {
        self.members[member].and_then(|site| self.keeper(site)) == Some(member)
    }

    /// Whether a member has a log.
    pub(super) fn has_log(&self, member: usize) -> bool {
        let keeper = self.members[member].and_then(|site| self.keeper(site));
        keeper.is_none_or(|keeper| keeper == member)
    }
}

/// Where an object lies.
pub(super) fn place_of(slot: u16, pages: u16) -> Place {
    Place {
        home: HOME,
        page: PageId::new(SEGMENT.0, 1 + u32::from(slot % pages)),
    }
}
