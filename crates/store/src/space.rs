//! Whether a group may be written: the store's own limit and the space on the
//! volume. Both are asked before anything is written, because an engine that
//! met a full disk must be opened again.

use crate::options::Options;
use crate::volume::{SHARE_MIN, Volume};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use thorp_model::{Lack, Purpose, SpaceBound};

/// What a group would do to the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand<'a> {
    /// Of each of its batches. The group is refused if it would be refused for one of them.
    pub(crate) purposes: &'a [Purpose],
    /// Bytes of the store's content after it.
    pub(crate) after: u64,
    /// Bytes that it brings: the engine writes them to a journal, and later to a table.
    pub(crate) brought: u64,
}

impl Demand<'_> {
    /// The purpose of the batch that a store with a limit refuses first.
    pub(crate) fn first_refused(&self) -> Purpose {
        let first = self.purposes.iter().min();
        first.copied().unwrap_or(Purpose::Removal)
    }
}

/// What a store has, as its volume and its limit see it, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    /// Its content.
    pub(crate) content: u64,
    /// Of that, what the home still has to install in pages.
    pub(crate) to_install: u64,
    /// What waits in memory to be written out.
    pub(crate) waiting: u64,
    /// What compactions may write before they delete what they read.
    pub(crate) merges: u64,
    /// The engine compacts nothing by itself.
    pub(crate) is_idle: bool,
}

/// The limits of a store.
pub(crate) struct Space {
    dir: PathBuf,
    /// `u64::MAX` for none.
    limit: AtomicU64,
    disk_reserve: Option<u64>,
}

impl Space {
    pub(crate) fn new(dir: &Path, options: &Options) -> Space {
        Space {
            dir: dir.to_path_buf(),
            limit: AtomicU64::new(options.limit_bytes.unwrap_or(u64::MAX)),
            disk_reserve: options.disk_reserve_bytes,
        }
    }

    pub(crate) fn limit(&self) -> Option<u64> {
        let limit = self.limit.load(Ordering::Relaxed);
        (limit != u64::MAX).then_some(limit)
    }

    pub(crate) fn set_limit(&self, limit: Option<u64>) {
        self.limit
            .store(limit.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The volume, as it is now; none if it is not to be asked, or does not answer.
    pub(crate) fn volume(&self) -> Option<Volume> {
        match self.disk_reserve {
            Some(0) => None,
            _ => Volume::of(&self.dir),
        }
    }

    /// Refuses a group that does not fit, with what is lacking.
    pub(crate) fn ask(&self, demand: Demand<'_>, held: Held) -> Result<(), Lack> {
        self.ask_limit(demand, held)?;
        self.ask_volume(demand, held)
    }

    /// Bytes that could be brought for a purpose, and what bounds them.
    pub(crate) fn left(&self, purpose: Purpose, held: Held) -> (u64, SpaceBound) {
        let by_limit = self.limit().map_or(u64::MAX, |limit| {
            allowed(purpose, limit).saturating_sub(held.content)
        });
        let by_volume = self.volume().map_or(u64::MAX, |volume| {
            let left_alone = self.left_alone(purpose, volume, held);
            content_of(volume.free.saturating_sub(left_alone))
        });
        match by_volume < by_limit {
            true => (by_volume, SpaceBound::Volume),
            false => (by_limit, SpaceBound::Limit),
        }
    }

    /// What a group of a purpose leaves alone on the volume, in bytes: what the engine needs to finish its own work, and the
    /// share of what a full store refuses later. So it does not rise with the purpose.
    ///
    /// An idle engine is the exception. It frees nothing, so an installation would only use up the room of deletions:
    /// housekeeping leaves as much alone there as ever.
    pub(crate) fn left_alone(&self, purpose: Purpose, volume: Volume, held: Held) -> u64 {
        if held.is_idle && matches!(purpose, Purpose::Kept | Purpose::Removal) {
            // Nothing but what is written now takes room, and it may be what frees some. Memory is written out when it fits.
            return LITTLE_LEFT;
        }
        let told = self.disk_reserve.map(|reserve| reserve.max(SHARE_MIN));
        let share = told.unwrap_or_else(|| volume.share());
        // What is written out now is compacted later.
        let engine = held.waiting.saturating_mul(2).saturating_add(held.merges);
        let kept = match purpose {
            // All that it brings is written again when it is installed in pages.
            Purpose::NewData => share.saturating_add(held.to_install),
            Purpose::Kept => share - share / 4,
            Purpose::Housekeeping => share / 2,
            Purpose::Removal => share / 4,
        };
        kept.saturating_add(engine)
    }

    fn ask_limit(&self, demand: Demand<'_>, held: Held) -> Result<(), Lack> {
        let Some(limit) = self.limit() else {
            return Ok(());
        };
        let allowed = allowed(demand.first_refused(), limit);
        if demand.after <= held.content || demand.after <= allowed {
            return Ok(());
        }
        Err(Lack {
            free: allowed.saturating_sub(held.content),
            needed: demand.after - held.content,
            of: SpaceBound::Limit,
        })
    }

    fn ask_volume(&self, demand: Demand<'_>, held: Held) -> Result<(), Lack> {
        // Without an answer the engine will find out itself.
        let Some(volume) = self.volume() else {
            return Ok(());
        };
        let left_alone = |purpose| match purpose == Purpose::Housekeeping {
            true if demand.brought > LITTLE_BYTES => self.left_alone(purpose, volume, held),
            true if held.is_idle => LITTLE_LEFT,
            true => held.waiting.saturating_add(LITTLE_LEFT),
            false => self.left_alone(purpose, volume, held),
        };
        // Each is judged: on an idle engine housekeeping leaves more alone than a deletion.
        let purposes = demand.purposes.iter().copied();
        let left_alone = purposes.map(left_alone).max().unwrap_or_default();
        let written = demand.brought.saturating_mul(WRITTEN_TIMES);
        let needed = written.saturating_add(left_alone);
        if needed <= volume.free {
            return Ok(());
        }
        Err(Lack {
            free: volume.free,
            needed,
            of: SpaceBound::Volume,
        })
    }
}

/// The content for which so many bytes on the volume are enough. Only what was brought just now is there several times.
fn content_of(bytes: u64) -> u64 {
    let beside = (WRITTEN_TIMES - 1) * BROUGHT_AT_ONCE;
    (bytes / WRITTEN_TIMES).max(bytes.saturating_sub(beside))
}

/// What the engine has several times at most, of what is brought, in bytes: what waits in memory, and more.
const BROUGHT_AT_ONCE: u64 = 64 << 20;

/// How often the engine writes what is brought before it deletes any of it: to a journal, to a table, and in a compaction.
const WRITTEN_TIMES: u64 = 3;

/// What a store with a limit may hold after a group of a purpose, in bytes.
fn allowed(purpose: Purpose, limit: u64) -> u64 {
    let beyond = match purpose {
        Purpose::NewData => 0,
        Purpose::Kept => limit / KEPT_PART,
        Purpose::Housekeeping | Purpose::Removal => limit / HOUSEKEEPING_PART,
    };
    limit.saturating_add(beyond)
}

/// Housekeeping of so few bytes is done while there is any room: a home that cannot reserve its clock serves no reads.
const LITTLE_BYTES: u64 = 4 << 10;

/// What it leaves alone, in bytes.
const LITTLE_LEFT: u64 = 256 << 10;

/// The part of the limit by which changes of rights, deletions and audit records may go beyond it (rule R7).
const KEPT_PART: u64 = 32;

/// The part of the limit by which housekeeping may go beyond it.
pub(crate) const HOUSEKEEPING_PART: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::SplitMix64;

    fn space(limit_bytes: Option<u64>, disk_reserve_bytes: Option<u64>) -> Space {
        let options = Options {
            limit_bytes,
            disk_reserve_bytes,
            ..Options::default()
        };
        Space::new(&std::env::temp_dir(), &options)
    }

    const MIB: u64 = 1 << 20;

    const ALL: [Purpose; 4] = [
        Purpose::NewData,
        Purpose::Kept,
        Purpose::Housekeeping,
        Purpose::Removal,
    ];

    fn held(content: u64) -> Held {
        Held {
            content,
            ..Held::default()
        }
    }

    fn ask(space: &Space, purpose: Purpose, before: u64, after: u64) -> Result<(), Lack> {
        let demand = Demand {
            purposes: &[purpose],
            after,
            brought: 1,
        };
        space.ask(demand, held(before))
    }

    #[test]
    fn the_limit_leaves_space_for_what_frees_some() {
        let space = space(Some(1600), Some(0));
        assert_eq!(ask(&space, Purpose::NewData, 1000, 1600), Ok(()));
        let lack = Lack {
            free: 600,
            needed: 601,
            of: SpaceBound::Limit,
        };
        assert_eq!(ask(&space, Purpose::NewData, 1000, 1601), Err(lack));
        assert!(ask(&space, Purpose::Kept, 1000, 1650).is_ok());
        assert!(ask(&space, Purpose::Kept, 1000, 1651).is_err());
        assert!(ask(&space, Purpose::Housekeeping, 1000, 1700).is_ok());
        assert!(ask(&space, Purpose::Housekeeping, 1000, 1701).is_err());
        assert!(ask(&space, Purpose::NewData, 5000, 4999).is_ok());
        space.set_limit(None);
        assert!(ask(&space, Purpose::NewData, 1000, 1601).is_ok());
    }

    #[test]
    fn the_room_that_is_kept_back_lies_beyond_what_is_left_for_commits() {
        let limited = space(Some(1600), Some(0));
        let left = |bytes| (bytes, SpaceBound::Limit);
        assert_eq!(limited.left(Purpose::NewData, held(1500)), left(100));
        assert_eq!(limited.left(Purpose::Kept, held(1500)), left(150));
        assert_eq!(limited.left(Purpose::NewData, held(1620)), left(0));
        assert_eq!(limited.left(Purpose::Kept, held(1620)), left(30));
    }

    #[test]
    fn what_the_engine_may_still_write_is_left_alone_by_all() {
        let volume = Volume {
            size: 80 * MIB,
            free: 0,
        };
        let held = Held {
            content: 30 * MIB,
            to_install: 5 * MIB,
            waiting: 2 * MIB,
            merges: 20 * MIB,
            is_idle: false,
        };
        let left_alone = |space: Space| ALL.map(|purpose| space.left_alone(purpose, volume, held));
        // The share is 10 MiB, if nobody says otherwise.
        let quarters = [156, 126, 116, 106].map(|quarters| quarters * MIB / 4);
        assert_eq!(left_alone(space(None, None)), quarters);
        let told = [41, 33, 30, 27].map(|mib| mib * MIB);
        assert_eq!(left_alone(space(None, Some(12 * MIB))), told);
        let least = left_alone(space(None, Some(SHARE_MIN)));
        assert_eq!(left_alone(space(None, Some(1))), least);
        let idle = Held {
            is_idle: true,
            ..held
        };
        let left_alone = |purpose| space(None, None).left_alone(purpose, volume, idle);
        assert_eq!(left_alone(Purpose::NewData), 39 * MIB);
        assert_eq!(left_alone(Purpose::Removal), LITTLE_LEFT);
    }

    #[test]
    fn most_of_a_large_volume_is_left_for_content() {
        assert_eq!(content_of(30), 10);
        assert_eq!(content_of(192 * MIB), 64 * MIB);
        assert_eq!(content_of(100_000 * MIB), 99_872 * MIB);
    }

    #[test]
    fn a_little_housekeeping_is_done_on_a_volume_that_is_nearly_full() {
        let space = space(None, None);
        let free = space.volume().unwrap().free;
        let ask = |purpose, brought| {
            let demand = Demand {
                purposes: &[purpose],
                after: 0,
                brought,
            };
            let held = Held {
                merges: free,
                ..Held::default()
            };
            space.ask(demand, held).is_ok()
        };
        assert!(ask(Purpose::Housekeeping, LITTLE_BYTES));
        assert!(!ask(Purpose::Housekeeping, LITTLE_BYTES + 1));
        assert!(!ask(Purpose::Kept, LITTLE_BYTES));
    }

    /// A store at random, and how it stands with its volume.
    fn drawn(random: &mut SplitMix64) -> (Space, Volume, Held) {
        let mut bytes = || random.bits() >> (random.bits() % 64);
        let reserve = [None, Some(1), Some(bytes())];
        let (size, free) = (bytes(), bytes());
        let held = Held {
            content: bytes(),
            to_install: bytes(),
            waiting: bytes(),
            merges: bytes(),
            is_idle: bytes() % 2 == 0,
        };
        let reserve = reserve[bytes() as usize % reserve.len()];
        (space(None, reserve), Volume { size, free }, held)
    }

    #[test]
    fn what_is_left_alone_does_not_rise_with_the_purpose() {
        let mut random = SplitMix64::new(8);
        for _ in 0..10_000 {
            let (space, volume, held) = drawn(&mut random);
            let judged = ALL.map(|purpose| (purpose, space.left_alone(purpose, volume, held)));
            // An idle engine does no housekeeping in the room of deletions.
            let in_order =
                |(purpose, _): &&(Purpose, u64)| !held.is_idle || *purpose != Purpose::Housekeeping;
            let in_order: Vec<u64> = judged
                .iter()
                .filter(in_order)
                .map(|(_, left)| *left)
                .collect();
            assert!(
                in_order.is_sorted_by(|a, b| a >= b),
                "{volume:?} {held:?}: {judged:?}"
            );
            let [new, _, housekeeping, removal] = judged.map(|(_, left)| left);
            assert!(
                new >= housekeeping && housekeeping >= removal,
                "{held:?}: {judged:?}"
            );
        }
    }

    #[test]
    fn a_group_is_refused_if_one_of_its_batches_would_be() {
        let room = space(None, None);
        let free = room.volume().unwrap().free;
        for is_idle in [false, true] {
            let held = Held {
                waiting: free / 5 * 2,
                is_idle,
                ..Held::default()
            };
            let fits = |purposes: &[Purpose]| {
                let (after, brought) = (0, free / 12);
                let demand = Demand {
                    purposes,
                    after,
                    brought,
                };
                room.ask(demand, held).is_ok()
            };
            for (one, other) in ALL.iter().flat_map(|one| ALL.map(|other| (*one, other))) {
                let each = fits(&[one]) && fits(&[other]);
                assert_eq!(fits(&[one, other]), each, "{one:?} and {other:?}");
            }
            assert_eq!(fits(&[Purpose::Kept]), is_idle);
        }
        let limited = space(Some(1600), Some(0));
        let fits = |purposes: &[Purpose]| {
            let (after, brought) = (1690, 1);
            let demand = Demand {
                purposes,
                after,
                brought,
            };
            limited.ask(demand, held(1000)).is_ok()
        };
        assert!(fits(&[Purpose::Removal, Purpose::Housekeeping]));
        assert!(!fits(&[
            Purpose::Removal,
            Purpose::Kept,
            Purpose::Housekeeping
        ]));
    }

    #[test]
    fn a_volume_without_space_refuses_and_says_what_it_lacks() {
        let lack = ask(&space(None, Some(u64::MAX)), Purpose::Removal, 9, 1).unwrap_err();
        assert_eq!(lack.of, SpaceBound::Volume);
        assert!(lack.free > 0 && lack.needed > lack.free, "{lack}");
    }
}
