//! What is on its way, by when it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Things with a time; of the same time the first put in comes out first.
#[derive(Debug)]
pub(super) struct DelayQueue<T> {
    heap: BinaryHeap<Reverse<Due<T>>>,
    turn: u64,
}

#[derive(Debug)]
struct Due<T> {
    at: Instant,
    turn: u64,
    item: T,
}

impl<T> DelayQueue<T> {
    pub(super) fn new() -> Self {
        DelayQueue {
            heap: BinaryHeap::new(),
            turn: 0,
        }
    }

    pub(super) fn put(&mut self, at: Instant, item: T) {
        self.turn += 1;
        let turn = self.turn;
        self.heap.push(Reverse(Due { at, turn, item }));
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(due)| due.at)
    }

    /// The next one with its time, if it is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<(Instant, T)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| (due.at, due.item))
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
}

impl<T> Ord for Due<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.turn).cmp(&(other.at, other.turn))
    }
}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Due<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn comes_out_by_time_and_not_before_it() {
        let (mut queue, start) = (DelayQueue::new(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        for ms in [30, 10, 20] {
            queue.put(at(ms), ms);
        }
        assert_eq!(queue.next(), Some(at(10)));
        assert_eq!(queue.take(at(9)), None);
        assert_eq!(queue.take(at(25)), Some((at(10), 10)));
        assert_eq!(queue.take(at(25)), Some((at(20), 20)));
        assert_eq!(queue.take(at(25)), None);
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn what_is_due_together_keeps_its_order() {
        let (mut queue, start) = (DelayQueue::new(), Instant::now());
        (0..1000).for_each(|n| queue.put(start, n));
        let out: Vec<_> = std::iter::from_fn(|| queue.take(start))
            .map(|(_, n)| n)
            .collect();
        assert_eq!(out, (0..1000).collect::<Vec<_>>());
    }
}
