//! New values of commits on their way, kept until their positions arrive (rule 8).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, HomeId, Note, Outbox, PageChange, PageId, PageSlots, PageWrites, Part, PartDigest,
    Slot, SlotChange, WriteOp, planted,
};

/// What one part writes.
#[derive(Debug)]
struct Kept {
    writes: Vec<PageWrites>,
    /// Of the whole part: a home may have executed another one under the same id (rule R2).
    part: Option<PartDigest>,
}

/// The commits that passed through a node, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct PendingWrites {
    commits: BTreeMap<(HomeId, CommitId), Kept>,
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

    /// Keeps what a part of a commit writes; the oldest are dropped at the limit: their
    /// objects will be invalidated instead (trap 17).
    pub(crate) fn put<A>(&mut self, id: CommitId, part: &Part, outbox: &mut Outbox<A>) {
        let (home, writes) = (part.home, &part.writes);
        self.drop_commit(home, id);
        let bytes = bytes_of(writes);
        if writes.is_empty() {
            return;
        }
        self.bytes += bytes;
        let kept = Kept {
            writes: writes.clone(),
            part: part.digest(),
        };
        self.commits.insert((home, id), kept);
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
        if let Some(kept) = self.commits.remove(&(home, id)) {
            self.bytes -= bytes_of(&kept.writes);
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
    /// they are: what it says to be spilled or gone, is. Values of another part than the home
    /// executed under this id fill nothing (rule R2).
    pub(crate) fn fill(
        &mut self,
        (home, id): (HomeId, CommitId),
        executed: Option<PartDigest>,
        changes: &mut [PageChange],
    ) {
        let kept = self.commits.get(&(home, id));
        let is_executed = |kept: &&Kept| {
            (executed.is_some() && kept.part == executed) || planted::is(Bug::ContentBelieved)
        };
        if let Some(kept) = kept.filter(is_executed) {
            for change in changes {
                fill_page(change, &kept.writes);
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{Blob, Generation, MemberId, NewValue, Position};

    const HOME: HomeId = HomeId(1);
    const ID: CommitId = CommitId {
        member: MemberId(1),
        sequence: 1,
    };

    fn part(value: &[u8]) -> Part {
        let generation = Generation(1);
        let value = NewValue::Inline(Blob::from(value));
        let write = WriteOp::Write { generation, value };
        Part {
            home: HOME,
            evidence: Position(1),
            reads: Vec::new(),
            writes: vec![PageWrites {
                page: PageId::new(1, 1),
                slots: vec![(Slot(0), write)],
            }],
            under: None,
        }
    }

    /// What children get of a part that the home executed, after these were kept.
    fn filled(kept: &[Part], executed: Option<PartDigest>) -> SlotChange {
        let (mut pending, mut outbox) = (PendingWrites::new(1_000), Outbox::<()>::new());
        for part in kept {
            pending.put(ID, part, &mut outbox);
        }
        let mut changes = [PageChange {
            page: PageId::new(1, 1),
            slots: PageSlots::Some(vec![(Slot(0), SlotChange::Invalid)]),
        }];
        pending.fill((HOME, ID), executed, &mut changes);
        assert_eq!((pending.len(), pending.bytes), (0, 0));
        let [PageChange { slots, .. }] = changes;
        match slots {
            PageSlots::Some(mut slots) => slots.remove(0).1,
            PageSlots::Whole => panic!("its slots are listed"),
        }
    }

    #[test]
    fn only_values_of_the_part_that_the_home_executed_are_filled_in() {
        let (sent, other) = (part(b"anna"), part(b"evil"));
        let value = |part: &Part| part.writes[0].slots[0].1.effect();
        let alone = core::slice::from_ref(&sent);
        assert_eq!(filled(alone, sent.digest()), value(&sent));
        // The other one came later under the same id.
        let both = [sent.clone(), other.clone()];
        assert_eq!(filled(&both, sent.digest()), SlotChange::Invalid);
        assert_eq!(filled(&both, other.digest()), value(&other));
        assert_eq!(filled(alone, None), SlotChange::Invalid);
    }
}
