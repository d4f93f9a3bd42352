//! What happens next.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Events in the order of their times.
pub(super) struct Agenda<T> {
    events: BinaryHeap<Reverse<Entry<T>>>,
    added: u64,
}

struct Entry<T> {
    at_s: f64,
    // Of two at the same time the one that was added first happens first.
    number: u64,
    event: T,
}

impl<T> Agenda<T> {
    pub(super) fn new() -> Self {
        Agenda {
            events: BinaryHeap::new(),
            added: 0,
        }
    }

    pub(super) fn add(&mut self, at_s: f64, event: T) {
        let number = self.added;
        self.added += 1;
        self.events.push(Reverse(Entry {
            at_s,
            number,
            event,
        }));
    }

    pub(super) fn next(&mut self) -> Option<(f64, T)> {
        self.events
            .pop()
            .map(|Reverse(entry)| (entry.at_s, entry.event))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        let times = self.at_s.total_cmp(&other.at_s);
        times.then(self.number.cmp(&other.number))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_as_they_were_added() {
        let mut agenda = Agenda::new();
        for (at_s, event) in [(2.0, 'd'), (1.0, 'a'), (1.0, 'b'), (1.5, 'c')] {
            agenda.add(at_s, event);
        }
        let order: String = std::iter::from_fn(|| agenda.next())
            .map(|(_, event)| event)
            .collect();
        assert_eq!(order, "abcd");
    }
}
