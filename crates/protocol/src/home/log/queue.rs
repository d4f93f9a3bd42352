//! The queue for the disk: what the home sends when each batch is durable (rule 1).

use crate::home::pages::waiters::Waiter;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::mem::size_of;
use thorp_model::{
    Audience, CallError, CallId, CallResponse, CommitId, Doubt, DoubtHome, EdgeId, HomeId, Joint,
    JointAnswer, LogState, Mark, Outcome, PageChange, PageId, PartDigest, Position, SegmentId,
    SegmentInfo, SlotSet, Stamp, UpdateId, message,
};

/// What an entry of the queue is charged beside its batch, in bytes.
const PENDING_ENTRY_BYTES: usize = 512;

/// What the home sends when a batch is durable.
#[derive(Debug)]
pub(in crate::home) enum OnDurable {
    /// A position is reached: it goes to the children.
    Reach(Reached),
    /// A vote goes to its coordinator (rule 10).
    Vote(EdgeId, CommitId, Stamp),
    /// The outcome of a commit without a place in the log.
    Tell(EdgeId, CommitId, Outcome),
    /// A commit's outcome is sent again: its answer may still be kept back (rule C2).
    TellAgain(EdgeId, CommitId, Outcome),
    /// An update is refused: its log hears it, and whoever follows its segment (rule C6).
    Reject(EdgeId, CommitId, Outcome, UpdateId),
    /// A call is answered.
    Answer(EdgeId, CallId, Result<CallResponse, CallError>),
    /// A member learns how its commit has ended, when that may be told (rule C2).
    Outcome(EdgeId, CallId, CommitId, Result<CallResponse, CallError>),
    /// A reader learns what is promised (rule 5).
    Watermark(EdgeId, CallId),
    /// A pull goes to a child, behind the leases that the child was granted (rule C3).
    Ask(EdgeId, message::Get),
    /// Leases to write are wanted back (rule C1).
    Recall(EdgeId, Vec<SegmentId>),
    /// There is no such page.
    NoPage(PageId, Waiter),
    /// Nothing is sent.
    Nothing,
}

/// A position of the log that is accepted, and what the children hear of it once it is durable.
#[derive(Debug)]
pub(in crate::home) struct Reached {
    pub(in crate::home) position: Position,
    pub(in crate::home) stamp: Stamp,
    pub(in crate::home) changes: Vec<PageChange>,
    /// The commit, if it is one.
    pub(in crate::home) commit: Option<CommitId>,
    /// The child that sent it, if that is there.
    pub(in crate::home) origin: Option<(EdgeId, CommitId)>,
    /// The update that was saved (rule C6).
    pub(in crate::home) update: Option<UpdateId>,
    /// The part of the commit that was executed.
    pub(in crate::home) executed: Option<PartDigest>,
    /// Slots in which a procedure of the commit ran (rule C8).
    pub(in crate::home) run: BTreeMap<PageId, SlotSet>,
    /// The segments that other nodes may read from here on, and which (rule R4).
    pub(in crate::home) readers: Vec<(SegmentId, Audience)>,
    /// A segment that was removed: its pages are invalidated as a whole.
    pub(in crate::home) removed: Option<SegmentId>,
    /// Bytes of page images that stay in memory until the position is durable.
    pub(in crate::home) image_bytes: usize,
}

impl OnDurable {
    /// The edge that asked for it.
    pub(in crate::home) fn edge(&self) -> Option<EdgeId> {
        match self {
            OnDurable::Reach(reached) => reached.origin.map(|(edge, _)| edge),
            OnDurable::Tell(edge, ..)
            | OnDurable::TellAgain(edge, ..)
            | OnDurable::Reject(edge, ..)
            | OnDurable::Vote(edge, ..)
            | OnDurable::Answer(edge, ..)
            | OnDurable::Outcome(edge, ..)
            | OnDurable::Watermark(edge, _) => Some(*edge),
            OnDurable::NoPage(..)
            | OnDurable::Ask(..)
            | OnDurable::Recall(..)
            | OnDurable::Nothing => None,
        }
    }

    /// Whether it is a position.
    pub(in crate::home) fn is_reach(&self) -> bool {
        matches!(self, OnDurable::Reach(_))
    }

    /// Bytes that stay in memory until it is sent, beside its batch.
    fn bytes(&self) -> usize {
        match self {
            OnDurable::Reach(reached) => reached.image_bytes,
            OnDurable::Answer(_, _, Ok(CallResponse::Segments { segments, .. })) => {
                let bytes = |info: &SegmentInfo| size_of::<SegmentInfo>() + info.path.len();
                segments.iter().map(bytes).sum()
            }
            OnDurable::Answer(_, _, Ok(CallResponse::Following { logs, .. })) => {
                let refused = logs.iter().map(|log| log.refused.len());
                logs.len() * size_of::<LogState>() + refused.sum::<usize>() * size_of::<u64>()
            }
            OnDurable::Answer(_, _, Ok(CallResponse::Doubts { doubts, .. })) => {
                let others = doubts.iter().map(|doubt| doubt.others.len());
                doubts.len() * size_of::<Doubt>() + others.sum::<usize>() * size_of::<DoubtHome>()
            }
            OnDurable::Answer(_, _, Ok(CallResponse::Joint(JointAnswer::List { joints, .. }))) => {
                let homes = joints.iter().map(|joint| joint.homes.len());
                joints.len() * size_of::<Joint>() + homes.sum::<usize>() * size_of::<HomeId>()
            }
            _ => 0,
        }
    }
}

#[derive(Debug)]
struct Pending {
    mark: Mark,
    bytes: usize,
    then: OnDurable,
}

/// The marks that are in the store for certain. A batch that changes nothing is in no group, so its mark is not there.
#[derive(Debug, Default)]
struct SavedMarks {
    last: Mark,
    /// Those of batches that are not durable yet.
    coming: VecDeque<Mark>,
}

impl SavedMarks {
    fn made_durable(&mut self, durable: Mark) {
        while let Some(mark) = self.coming.pop_front_if(|mark| *mark <= durable) {
            self.last = mark;
        }
    }
}

/// What waits for the disk, in the order in which it is sent.
///
/// The marks never fall along the queue, and `bytes` is the sum of what its entries are charged.
/// So the entry in front is always the first one that becomes due.
#[derive(Debug, Default)]
pub(in crate::home) struct DurabilityQueue {
    /// The mark of the last batch.
    last: Mark,
    /// All batches up to this one are durable.
    durable: Mark,
    saved: SavedMarks,
    pending: VecDeque<Pending>,
    bytes: usize,
}

impl DurabilityQueue {
    /// The mark of the last batch that was appended.
    pub(in crate::home) fn last_mark(&self) -> Mark {
        self.last
    }

    /// All batches up to this one are durable.
    pub(in crate::home) fn durable_mark(&self) -> Mark {
        self.durable
    }

    /// How many entries wait.
    pub(in crate::home) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Bytes that wait, with those of their batches.
    pub(in crate::home) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives the next batch its mark; `is_saved`: its mark reaches the store for certain.
    pub(in crate::home) fn take_mark(&mut self, is_saved: bool) -> Mark {
        self.last = self.last.next();
        if is_saved {
            self.saved.coming.push_back(self.last);
        }
        self.last
    }

    /// The highest durable mark that is in the store, or one below it: what a receipt may name (rule R9).
    pub(in crate::home) fn saved_mark(&self) -> Mark {
        self.saved.last
    }

    /// Adds what is sent when the last batch is durable, which has so many bytes.
    pub(in crate::home) fn push(&mut self, batch_bytes: usize, then: OnDurable) {
        self.push_at(self.last, batch_bytes, then);
    }

    /// Adds what is sent when everything in the queue is. A batch of the home's own work has no
    /// entry: nothing waits for it.
    pub(in crate::home) fn push_behind(&mut self, then: OnDurable) {
        let mark = self.pending.back().map_or(self.durable, |p| p.mark);
        self.push_at(mark, 0, then);
    }

    fn push_at(&mut self, mark: Mark, batch_bytes: usize, then: OnDurable) {
        let bytes = batch_bytes + PENDING_ENTRY_BYTES + then.bytes();
        self.bytes += bytes;
        self.pending.push_back(Pending { mark, bytes, then });
    }

    /// All batches up to this one are durable. What is due now comes out of [`pop`](Self::pop).
    pub(in crate::home) fn made_durable(&mut self, mark: Mark) {
        self.durable = self.durable.max(mark);
        self.saved.made_durable(self.durable);
    }

    /// Takes out what is due next: its batch is durable.
    pub(in crate::home) fn pop(&mut self) -> Option<OnDurable> {
        let durable = self.durable;
        let due = self.pending.pop_front_if(|first| first.mark <= durable)?;
        Some(self.leave(due))
    }

    /// A planted bug: takes out what is next, durable or not.
    pub(in crate::home) fn pop_early(&mut self) -> Option<OnDurable> {
        let first = self.pending.pop_front()?;
        Some(self.leave(first))
    }

    fn leave(&mut self, pending: Pending) -> OnDurable {
        self.bytes -= pending.bytes;
        pending.then
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::MemberId;

    fn outcome(number: u64) -> OnDurable {
        let member = MemberId(1);
        OnDurable::Watermark(EdgeId(1), CallId { member, number })
    }

    fn popped(queue: &mut DurabilityQueue) -> Vec<u64> {
        let due = core::iter::from_fn(|| queue.pop());
        due.map(|then| match then {
            OnDurable::Watermark(_, call) => call.number,
            other => panic!("{other:?}"),
        })
        .collect()
    }

    #[test]
    fn entries_leave_in_order_when_their_batches_are_durable() {
        let mut queue = DurabilityQueue::default();
        queue.push_behind(outcome(1));
        assert_eq!(popped(&mut queue), [1], "nothing is on its way");
        for number in 2..=3 {
            queue.take_mark(true);
            queue.push(100, outcome(number));
        }
        // The home's own work: the next entry does not wait for it.
        queue.take_mark(true);
        queue.push_behind(outcome(4));
        assert_eq!(popped(&mut queue), []);
        assert_eq!(queue.bytes(), 200 + 3 * PENDING_ENTRY_BYTES);
        queue.made_durable(Mark(1));
        assert_eq!(popped(&mut queue), [2]);
        queue.made_durable(Mark(2));
        assert_eq!(popped(&mut queue), [3, 4]);
        assert_eq!((queue.bytes(), queue.len()), (0, 0));
    }

    /// Who follows may be told of many refusals: they count until they are sent.
    #[test]
    fn an_answer_counts_what_it_tells_of_logs() {
        let member = MemberId(1);
        let logs = alloc::vec![LogState {
            log: thorp_model::LogId(member),
            saved: 100,
            refused: (1..=100).collect(),
        }];
        let position = Position(1);
        let following = Ok(CallResponse::Following { position, logs });
        let call = CallId { member, number: 1 };
        let answer = OnDurable::Answer(EdgeId(1), call, following);
        assert!(answer.bytes() >= 100 * size_of::<u64>());
    }

    #[test]
    fn a_receipt_names_no_mark_that_may_be_missing_in_the_store() {
        let mut queue = DurabilityQueue::default();
        for is_saved in [true, false, true, false] {
            queue.take_mark(is_saved);
        }
        for (durable, saved) in [(1, 1), (2, 1), (3, 3), (4, 3)] {
            queue.made_durable(Mark(durable));
            assert_eq!(queue.saved_mark(), Mark(saved));
        }
    }
}
