//! Watches: above, a redirector watches what those below it watch, and no more
//! than any child may (rule 15).

use crate::redirector::{Outbox, Proxy};
use thorp_model::limits::WATCHES_PER_CHILD_MAX;
use thorp_model::{Down, EdgeId, Note, SegmentId, message};

impl Proxy {
    /// A child begins or ends to watch a segment. What cannot be watched above
    /// is refused at once: the child's program has to know.
    pub(super) fn watch(&mut self, edge: EdgeId, watch: &message::Watch, outbox: &mut Outbox) {
        let (segment, on) = (watch.segment, watch.on);
        let is_new = on && !self.watched.contains(&segment);
        let full = is_new && self.watched.len() >= WATCHES_PER_CHILD_MAX;
        if full || !self.children.watch(edge, segment, on) {
            let home = self.up.home;
            outbox.note(Note::ChildLimited);
            return outbox.down(edge, Down::Unwatched(message::Unwatched { home, segment }));
        }
        self.follow_watches(outbox);
    }

    /// The parent does not tell the changes of a segment: nobody below hears
    /// of them.
    pub(super) fn unwatched(&mut self, segment: SegmentId, outbox: &mut Outbox) {
        self.children.unwatch(segment, outbox);
        // Asked for anew meanwhile, it may be watched above: that is ended too.
        self.follow_watches(outbox);
    }

    /// Watches above what is watched below.
    pub(super) fn follow_watches(&mut self, outbox: &mut Outbox) {
        let wanted = self.children.watched();
        if self.up.edge.is_none() {
            return;
        }
        // What is no longer watched goes first: there is never one too many above.
        let ended = self.watched.difference(&wanted).copied();
        let begun = wanted.difference(&self.watched).copied();
        for segment in ended.chain(begun) {
            self.up.watch(segment, wanted.contains(&segment), outbox);
        }
        self.watched = wanted;
    }
}
