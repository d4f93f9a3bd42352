//! New values of commits on their way, kept until their positions arrive (rule 8).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use thorp_model::{
    CommitId, HomeId, Note, Outbox, PageChange, PageId, PageSlots, PageWrites, Slot, SlotChange,
    WriteOp,
};

/// The commits that passed through a node, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct PendingWrites {
    commits: BTreeMap<(HomeId, CommitId), Vec<PageWrites>>,
    order: VecDeque<(HomeId, CommitId)>,
    bytes: usize,
    bytes_max: usize,
}

impl PendingWrites {
    /// Keeps up to `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        PendingWrites {
            commits: BTreeMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Keeps what a commit writes at a home; the oldest are dropped at the limit: their
    /// objects will be invalidated instead (trap 17).
    pub(crate) fn put<A>(
        &mut self,
        home: HomeId,
        id: CommitId,
        writes: &[PageWrites],
        outbox: &mut Outbox<A>,
    ) {
        self.drop_commit(home, id);
        let bytes = bytes_of(writes);
        if writes.is_empty() {
            return;
        }
        self.bytes += bytes;
        self.commits.insert((home, id), writes.to_vec());
        self.order.push_back((home, id));
        while self.bytes > self.bytes_max {
            let Some((home, oldest)) = self.order.front().copied() else {
                break;
            };
            self.drop_commit(home, oldest);
            outbox.note(Note::KeptDropped);
        }
    }

    /// Forgets a commit: it was refused, or is delivered.
    pub(crate) fn drop_commit(&mut self, home: HomeId, id: CommitId) {
        if let Some(writes) = self.commits.remove(&(home, id)) {
            self.bytes -= bytes_of(&writes);
            self.order.retain(|other| *other != (home, id));
        }
    }

    /// Forgets all of a home: its stream has ended, and no answer comes.
    pub(crate) fn forget_home(&mut self, home: HomeId) {
        let gone: Vec<CommitId> = self
            .order
            .iter()
            .filter(|(of, _)| *of == home)
            .map(|(_, id)| *id)
            .collect();
        for id in gone {
            self.drop_commit(home, id);
        }
    }

    /// Puts the values that were kept of a commit into what the stream says of
    /// it. The stream lists the changed objects and has the last word on where
    /// they are: what it says to be spilled or gone, is.
    pub(crate) fn fill(&mut self, home: HomeId, id: CommitId, changes: &mut [PageChange]) {
        if let Some(writes) = self.commits.get(&(home, id)) {
            for change in changes {
                fill_page(change, writes);
            }
        }
        self.drop_commit(home, id);
    }

    /// Commits kept.
    pub(crate) fn len(&self) -> usize {
        self.commits.len()
    }
}

fn bytes_of(writes: &[PageWrites]) -> usize {
    let slots = writes.iter().flat_map(|page| &page.slots);
    slots.map(|(_, op)| 64 + op.bytes()).sum()
}

fn fill_page(change: &mut PageChange, writes: &[PageWrites]) {
    let page = change.page;
    let PageSlots::Some(slots) = &mut change.slots else {
        return;
    };
    for (slot, slot_change) in slots {
        if *slot_change == SlotChange::Invalid
            && let Some(op) = find(writes, page, *slot)
        {
            *slot_change = op.effect();
        }
    }
}

fn find(writes: &[PageWrites], page: PageId, slot: Slot) -> Option<&WriteOp> {
    let index = writes.binary_search_by_key(&page, |w| w.page).ok()?;
    let slots = &writes[index].slots;
    let index = slots.binary_search_by_key(&slot, |(s, _)| *s).ok()?;
    Some(&slots[index].1)
}
