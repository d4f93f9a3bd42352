//! Watches: above, a redirector watches what those below it watch, and no more
//! than any site may (rule 15). The names below share that (rule R7).

use crate::edge::downstream::Children;
use crate::edge::upstream::Upstream;
use crate::redirector::Outbox;
use crate::redirector::waiter::Waiter;
use alloc::collections::BTreeSet;
use thorp_model::limits::WATCHES_PER_SITE_MAX;
use thorp_model::planted::Bug;
use thorp_model::{Down, EdgeId, Note, SegmentId, message, planted};

/// The segments that this node watches above.
///
/// Invariant: while the stream is live, they are the segments that any child watches. They are at most
/// [`WATCHES_PER_SITE_MAX`].
#[derive(Debug, Default)]
pub(super) struct Watched(BTreeSet<SegmentId>);

impl Watched {
    /// How many segments.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a segment is among them.
    pub(super) fn has(&self, segment: SegmentId) -> bool {
        self.0.contains(&segment)
    }

    /// A stream begins: nothing is watched on it.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether a segment may be watched above, if it is not, for a name that watches so many others. No name watches more
    /// than it leaves free (record 0009).
    fn has_space(&self, segment: SegmentId, own: usize) -> bool {
        let free = WATCHES_PER_SITE_MAX.checked_sub(self.len() + 1);
        let is_shared = |free| own < free || planted::is(Bug::WatchesNotShared);
        self.has(segment) || free.is_some_and(is_shared)
    }

    /// These segments are wanted from now on. Returns what changes: what is no longer watched goes first, so that there is
    /// never one too many above.
    fn follow(&mut self, wanted: BTreeSet<SegmentId>) -> impl Iterator<Item = (SegmentId, bool)> {
        let before = core::mem::replace(&mut self.0, wanted.clone());
        let begun: BTreeSet<SegmentId> = wanted.difference(&before).copied().collect();
        let ended = before.into_iter().filter(move |of| !wanted.contains(of));
        let ended = ended.map(|segment| (segment, false));
        ended.chain(begun.into_iter().map(|segment| (segment, true)))
    }
}

/// Takes the watches of children, and watches above.
#[derive(Debug)]
pub(super) struct Watching<'a> {
    pub(super) up: &'a mut Upstream<Waiter>,
    pub(super) children: &'a mut Children,
    pub(super) watched: &'a mut Watched,
}

impl Watching<'_> {
    /// A child begins or ends to watch a segment. What cannot be watched above
    /// is refused at once: the child's program has to know.
    pub(super) fn watch(&mut self, edge: EdgeId, watch: &message::Watch, outbox: &mut Outbox) {
        let (segment, on) = (watch.segment, watch.on);
        let own = || self.children.watched_by_name_of(edge).len();
        let full = on && !self.watched.has_space(segment, own());
        // Of a segment that it may not read, a child gets nothing (rule R4).
        let is_hidden = on && !self.children.may_read(edge, segment);
        if is_hidden {
            self.children.deny(edge, segment, outbox);
        } else if !full && self.children.watch(edge, segment, on) {
            return self.follow(outbox);
        } else {
            outbox.note(Note::ChildLimited);
        }
        self.refuse(edge, segment, outbox);
    }

    /// A child is not told the changes of a segment.
    pub(super) fn refuse(&self, edge: EdgeId, segment: SegmentId, outbox: &mut Outbox) {
        let home = self.up.home;
        outbox.down(edge, Down::Unwatched(message::Unwatched { home, segment }));
    }

    /// The parent does not send the changes of a segment: nobody below gets
    /// them.
    pub(super) fn unwatched(&mut self, segment: SegmentId, outbox: &mut Outbox) {
        self.children.unwatch(segment, outbox);
        // Asked for anew meanwhile, it may be watched above: that is ended too.
        self.follow(outbox);
    }

    /// Watches above what is watched below.
    pub(super) fn follow(&mut self, outbox: &mut Outbox) {
        if self.up.edge.is_none() {
            return;
        }
        for (segment, on) in self.watched.follow(self.children.watched()) {
            self.up.watch(segment, on, outbox);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn follow(watched: &mut Watched, wanted: &[u32]) -> Vec<(u32, bool)> {
        let wanted = wanted.iter().map(|segment| SegmentId(*segment));
        let changes = watched.follow(wanted.collect());
        changes.map(|(segment, on)| (segment.0, on)).collect()
    }

    #[test]
    fn what_is_no_longer_watched_goes_first() {
        let mut watched = Watched::default();
        assert_eq!(follow(&mut watched, &[3, 2]), [(2, true), (3, true)]);
        assert_eq!(follow(&mut watched, &[1, 2]), [(3, false), (1, true)]);
        assert_eq!(follow(&mut watched, &[1, 2]), []);
    }

    #[test]
    fn no_more_is_watched_above_than_any_site_may_watch() {
        let mut watched = Watched::default();
        let all: Vec<u32> = (0..WATCHES_PER_SITE_MAX as u32).collect();
        follow(&mut watched, &all);
        assert!(watched.has_space(SegmentId(0), 0));
        assert!(!watched.has_space(SegmentId(WATCHES_PER_SITE_MAX as u32), 0));
    }

    #[test]
    fn no_name_watches_more_than_it_leaves_free() {
        let (mut watched, mut all) = (Watched::default(), Vec::new());
        let mut flood = |watched: &mut Watched| {
            let before = all.len();
            while watched.has_space(SegmentId(all.len() as u32), all.len() - before) {
                all.push(all.len() as u32);
                follow(watched, &all);
            }
            all.len() - before
        };
        let names = [(); 3].map(|()| flood(&mut watched));
        let half = WATCHES_PER_SITE_MAX / 2;
        assert_eq!(names, [half, half / 2, half / 4]);
        assert!(
            watched.has_space(SegmentId(0), half),
            "it is watched already"
        );
    }
}
