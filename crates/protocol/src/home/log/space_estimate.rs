//! What still fits in the store, as far as the home can know: so that one commit
//! that does not fit is refused *full* alone, before it is accepted. Nothing
//! rests on it: what was estimated wrong ends the home's life, as ever.

use alloc::collections::VecDeque;
use thorp_model::{Batch, Lack, Mark, Op, SpaceBound};

/// What the store told last, and what was appended since.
#[derive(Debug, Default)]
pub(in crate::home) struct SpaceEstimate {
    /// Bytes that could be brought, as of the last report; none before the first.
    free: Option<u64>,
    /// The same for what may take from the kept room.
    room: u64,
    /// What bounds both.
    of: Option<SpaceBound>,
    /// The charges of batches that no report covers.
    under_way: VecDeque<(Mark, Charge)>,
    spent: Charge,
}

/// What a batch takes, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Charge {
    all: u64,
    /// Without the home's own work: that goes beyond the kept room, and leaves the store no bigger.
    of_room: u64,
}

impl SpaceEstimate {
    /// The store could take so much when it had the batches up to a mark. That
    /// these are durable is not enough for their charges to go: only a report
    /// that covers them says what they took.
    pub(in crate::home) fn report(
        &mut self,
        (free, room, of): (u64, u64, SpaceBound),
        as_of: Mark,
    ) {
        (self.free, self.room, self.of) = (Some(free), room, Some(of));
        while let Some((_, charge)) = self.under_way.pop_front_if(|(mark, _)| *mark <= as_of) {
            self.spent.all -= charge.all;
            self.spent.of_room -= charge.of_room;
        }
    }

    /// A batch is appended; it may be the home's own work.
    pub(in crate::home) fn spend(&mut self, batch: &Batch, is_own_work: bool) {
        // Without reports nothing would ever go.
        if self.free.is_some() {
            let all = charge(batch.bytes(), batch.ops.len());
            let of_room = if is_own_work { 0 } else { all };
            self.spent.all += all;
            self.spent.of_room += of_room;
            let charge = Charge { all, of_room };
            self.under_way.push_back((batch.mark, charge));
        }
    }

    /// Bytes that could be brought yet; none before the first report.
    pub(in crate::home) fn free(&self) -> Option<u64> {
        self.free.map(|free| free.saturating_sub(self.spent.all))
    }

    /// Whether so many bytes in so many operations fit as well.
    pub(in crate::home) fn fits(&self, bytes: usize, ops: usize) -> bool {
        let wanted = self.spent.all.saturating_add(charge(bytes, ops));
        self.free.is_none_or(|free| wanted <= free)
    }

    /// What is lacking for so many bytes in so many operations.
    pub(in crate::home) fn lack(&self, bytes: usize, ops: usize) -> Lack {
        Lack {
            free: self.free().unwrap_or_default(),
            needed: charge(bytes, ops),
            of: self.of.unwrap_or(SpaceBound::Limit),
        }
    }

    /// What is lacking for so many bytes in so many operations, where so many bytes are taken by what is still to come.
    pub(in crate::home) fn lack_beside(
        &self,
        coming: u64,
        (bytes, ops): (usize, usize),
    ) -> Option<Lack> {
        let lack = Lack {
            free: self.free()?.saturating_sub(coming),
            ..self.lack(bytes, ops)
        };
        (lack.needed > lack.free).then_some(lack)
    }

    /// Bytes that are left for what may take from the kept room.
    pub(in crate::home) fn room_left(&self) -> u64 {
        match self.free {
            Some(_) => self.room.saturating_sub(self.spent.of_room),
            None => u64::MAX,
        }
    }
}

/// Bytes of keys and values of operations.
pub(in crate::home) fn bytes_of(ops: &[Op]) -> usize {
    ops.iter().map(Op::bytes).sum()
}

/// What a store may need for an operation beside its key and value, in bytes.
const OP_BYTES: usize = 68;

/// What a store may need for operations with so many bytes of keys and values.
pub(in crate::home) fn charge(bytes: usize, ops: usize) -> u64 {
    (bytes + ops * OP_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{Purpose, Table};

    fn batch(mark: u64) -> Batch {
        let op = Op::Put {
            table: Table::Log,
            key: vec![0; 8],
            value: vec![0; 92],
        };
        let (mark, ops) = (Mark(mark), vec![op]);
        let purpose = Purpose::NewData;
        Batch { mark, purpose, ops }
    }

    #[test]
    fn what_is_under_way_counts_until_a_report_covers_it() {
        let mut left = SpaceEstimate::default();
        left.spend(&batch(1), false);
        assert_eq!(left.room_left(), u64::MAX);
        assert!(left.fits(usize::MAX / 2, 1), "nothing is known");
        left.report((500, 600, SpaceBound::Volume), Mark(1));
        assert!(left.fits(432, 1) && !left.fits(433, 1));
        assert_eq!(left.room_left(), 600);
        (2..=3).for_each(|mark| left.spend(&batch(mark), mark == 2));
        // Twice 100 bytes, and what goes with them.
        assert!(left.fits(96, 1) && !left.fits(97, 1));
        // The home's own work takes nothing of the kept room.
        assert_eq!(left.room_left(), 600 - 168);
        left.report((332, 432, SpaceBound::Volume), Mark(2));
        assert!(left.fits(96, 1) && !left.fits(97, 1));
        left.report((164, 264, SpaceBound::Volume), Mark(3));
        assert_eq!(left.room_left(), 264);
        assert!(left.fits(96, 1) && !left.fits(97, 1));
        left.report((0, 0, SpaceBound::Volume), Mark(3));
        assert!(!left.fits(0, 1));
        let lack = Lack {
            free: 0,
            needed: 100 + OP_BYTES as u64,
            of: SpaceBound::Volume,
        };
        assert_eq!(left.lack(100, 1), lack);
    }

    #[test]
    fn what_is_still_to_come_is_not_free_for_others() {
        let mut left = SpaceEstimate::default();
        assert_eq!(left.lack_beside(u64::MAX, (usize::MAX / 2, 1)), None);
        left.report((1_000, 1_000, SpaceBound::Volume), Mark(1));
        left.spend(&batch(2), false);
        let free = 1_000 - 168 - 300;
        assert_eq!(left.lack_beside(300, (free - OP_BYTES, 1)), None);
        let lack = Lack {
            free: free as u64,
            needed: free as u64 + 1,
            of: SpaceBound::Volume,
        };
        assert_eq!(left.lack_beside(300, (free - OP_BYTES + 1, 1)), Some(lack));
    }
}
