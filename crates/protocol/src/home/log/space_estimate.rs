//! What still fits in the store, as far as the home can know: so that one commit
//! that does not fit is refused *full* alone, before it is accepted. Nothing
//! rests on it: what was estimated wrong ends the home's life, as ever.

use alloc::collections::VecDeque;
use thorp_model::{Batch, Mark, Op};

/// What the store told last, and what was appended since.
#[derive(Debug, Default)]
pub(in crate::home) struct SpaceEstimate {
    /// Bytes that could be brought, as of the last report; none before the first.
    free: Option<u64>,
    /// The charges of batches that no report covers.
    under_way: VecDeque<(Mark, u64)>,
    spent: u64,
}

impl SpaceEstimate {
    /// The store could take so much when it had the batches up to a mark. That
    /// these are durable is not enough for their charges to go: only a report
    /// that covers them says what they took.
    pub(in crate::home) fn report(&mut self, free: u64, as_of: Mark) {
        self.free = Some(free);
        while let Some((_, charge)) = self.under_way.pop_front_if(|(mark, _)| *mark <= as_of) {
            self.spent -= charge;
        }
    }

    /// A batch is appended.
    pub(in crate::home) fn spend(&mut self, batch: &Batch) {
        // Without reports nothing would ever go.
        if self.free.is_some() {
            let charge = charge(batch.bytes(), batch.ops.len());
            self.spent += charge;
            self.under_way.push_back((batch.mark, charge));
        }
    }

    /// Bytes that could be brought yet; none before the first report.
    pub(in crate::home) fn free(&self) -> Option<u64> {
        self.free.map(|free| free.saturating_sub(self.spent))
    }

    /// Whether so many bytes in so many operations fit as well.
    pub(in crate::home) fn fits(&self, bytes: usize, ops: usize) -> bool {
        let wanted = self.spent.saturating_add(charge(bytes, ops));
        self.free.is_none_or(|free| wanted <= free)
    }
}

/// Bytes of keys and values of operations.
pub(in crate::home) fn bytes_of(ops: &[Op]) -> usize {
    ops.iter().map(Op::bytes).sum()
}

/// What a store may need for an operation beside its key and value, in bytes.
const OP_BYTES: usize = 68;

fn charge(bytes: usize, ops: usize) -> u64 {
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
        left.spend(&batch(1));
        assert!(left.fits(usize::MAX / 2, 1), "nothing is known");
        left.report(500, Mark(1));
        assert!(left.fits(432, 1) && !left.fits(433, 1));
        (2..=3).for_each(|mark| left.spend(&batch(mark)));
        // Twice 100 bytes, and what goes with them.
        assert!(left.fits(96, 1) && !left.fits(97, 1));
        left.report(332, Mark(2));
        assert!(left.fits(96, 1) && !left.fits(97, 1));
        left.report(164, Mark(3));
        assert!(left.fits(96, 1) && !left.fits(97, 1));
        left.report(0, Mark(3));
        assert!(!left.fits(0, 1));
    }
}
