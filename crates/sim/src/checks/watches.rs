//! Watches: every committed change of a watched segment is told, or that something is lost;
//! nothing else is told, and nothing before a read would find it.

use crate::failure::{Checked, demand};
use crate::oracle::Oracle;
use crate::time::NodeNo;
use crate::world::World;
use std::collections::BTreeMap;
use thorp_cache::{Cache, Changes, Cursor};
use thorp_model::limits::WATCHES_PER_CHILD_MAX;
use thorp_model::{HomeId, PageId, Place, Position, SegmentId, SlotSet};

/// What a member's program watches.
#[derive(Debug, Default)]
pub struct Watches {
    all: BTreeMap<(HomeId, SegmentId), Watch>,
    /// Watches begun so far.
    begun: u64,
}

/// A watch of one segment.
#[derive(Debug)]
struct Watch {
    /// Which watch it is, and how often something was lost: what was asked before says nothing of
    /// what is told after.
    number: u64,
    cursor: Cursor,
    /// Everything committed above is told; none until an answer came down the stream after the
    /// watch was told up it, nor after something was lost.
    since: Option<Position>,
    /// The last position told.
    last: Position,
    /// Publications between two looks: a program is not always quick.
    patience: u64,
    waited: u64,
}

/// Between the numbers of two watches.
const WATCHES_APART: u64 = 1 << 32;

/// Most publications between two looks.
const PATIENCE_MAX: u64 = 4;

impl Watches {
    /// The program asks its member to watch a segment, or no more. Members refuse one too many.
    pub fn ask(&mut self, cache: &Cache, home: HomeId, segment: SegmentId, on: bool) {
        let key = (home, segment);
        if !on {
            return self.end(home, segment);
        }
        let of_home = self.all.keys().filter(|(of, _)| *of == home).count();
        if self.all.contains_key(&key) || of_home >= WATCHES_PER_CHILD_MAX {
            return;
        }
        self.begun += WATCHES_APART;
        let watch = Watch {
            number: self.begun,
            cursor: cache.now(home),
            since: None,
            last: Position(0),
            patience: 1 + self.begun / WATCHES_APART % PATIENCE_MAX,
            waited: 0,
        };
        self.all.insert(key, watch);
    }

    /// A segment is watched no more: the program ended it, or was told that nobody keeps it.
    pub fn end(&mut self, home: HomeId, segment: SegmentId) {
        self.all.remove(&(home, segment));
    }

    /// The number of the watch of a segment.
    pub fn number(&self, home: HomeId, segment: SegmentId) -> Option<u64> {
        self.all.get(&(home, segment)).map(|watch| watch.number)
    }

    /// Whether a segment is watched, and nothing is promised of that yet, or any more.
    pub fn wants_fence(&self, home: HomeId, segment: SegmentId) -> bool {
        let watch = self.all.get(&(home, segment));
        watch.is_some_and(|watch| watch.since.is_none())
    }

    /// The answer came to something that was asked after the watch was, in the same life of the
    /// stream: from now on everything is told.
    pub fn fence(&mut self, key: (HomeId, SegmentId), number: u64, cache: &Cache, end: Position) {
        let now = cache.now(key.0);
        let asked = |w: &&mut Watch| w.number == number && w.cursor.is_same_stream(now);
        if let Some(watch) = self.all.get_mut(&key).filter(asked) {
            watch.cursor = now;
            watch.since = Some(end);
            watch.last = Position(0);
        }
    }
}

/// A member has published something: whoever watches may look.
pub fn look(world: &mut World, no: NodeNo, home: HomeId) -> Checked {
    let node = &mut world.nodes[no.0];
    let (Some(resident), Some(oracle)) = (&mut node.resident, world.oracles.get(&home)) else {
        return Ok(());
    };
    for ((of, segment), watch) in &mut resident.watches.all {
        watch.waited += 1;
        if *of != home || watch.waited < watch.patience {
            continue;
        }
        watch.waited = 0;
        let told = resident.cache.changes_since(home, watch.cursor);
        if told.lost {
            world.counts.answered("watches told lost");
        }
        let changes = check(watch, &resident.cache, oracle, (home, *segment), told);
        let changes = changes.map_err(|mut failure| {
            failure.detail = format!("{} watches {segment}: {}", node.name, failure.detail);
            failure
        })?;
        for _ in 0..changes {
            world.counts.answered("changes told to watches");
        }
    }
    Ok(())
}

/// Looks at what one watch is told; tells how many changes that is.
fn check(
    watch: &mut Watch,
    cache: &Cache,
    oracle: &Oracle,
    (home, segment): (HomeId, SegmentId),
    told: Changes,
) -> Checked<usize> {
    let position = cache.position(home);
    watch.cursor = told.cursor;
    let mut changes = Vec::new();
    for (at, page, slots) in told.touched {
        if page.segment == segment {
            check_told(watch, cache, oracle, home, (at, page, slots))?;
            changes.push((at, page, slots));
        }
    }
    if told.lost {
        // What runs meanwhile is not told; the program asks once more and looks at everything anew.
        watch.since = None;
        watch.number += 1;
    }
    let Some(since) = watch.since else {
        return Ok(changes.len());
    };
    for (at, page, slots) in oracle.touched(since, position, segment) {
        demand!(
            changes.contains(&(at, page, slots)),
            "watches",
            "it is not told that page {page} changed at {at}; told, as of {position}: {changes:?}"
        );
    }
    watch.since = Some(since.max(position));
    Ok(changes.len())
}

/// What is told has happened, is told in order, and is there for whoever looks.
fn check_told(
    watch: &mut Watch,
    cache: &Cache,
    oracle: &Oracle,
    home: HomeId,
    (at, page, slots): (Position, PageId, SlotSet),
) -> Checked {
    demand!(
        oracle.has_touched(at, page, slots),
        "watches",
        "it is told that {slots:?} of page {page} changed at {at}, which is not so"
    );
    demand!(
        at >= watch.last && at <= cache.position(home),
        "watches",
        "it is told of {at} after {}, and reads are as of {}",
        watch.last,
        cache.position(home)
    );
    watch.last = at;
    // A page that has ended by now may have been asked for again, and is found empty.
    let least = at.min(oracle.image(page, cache.position(home)).version());
    let image = cache.image(Place { home, page });
    demand!(
        image.as_ref().is_none_or(|image| image.version() >= least),
        "watches",
        "it is told that page {page} changed at {at}, and a read finds {image:?}"
    );
    Ok(())
}
