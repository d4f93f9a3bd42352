//! How deep in the LRU stack pages are found: thesis, figure 3.5.

/// How many requests found their page at each position of the LRU stack, from the top. All LRU memories are told by it: one
/// of `n` pages answers what is found at the first `n` positions (Mattson and others, 1970).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StackDistances {
    counts: Vec<u64>,
    firsts: u64,
}

impl StackDistances {
    /// Counts them in O(n log n): a page's position is how many others were asked for since it was, each at its latest
    /// request, and a Fenwick tree over all requests counts those.
    pub(crate) fn of(pages: &[u32], footprint: usize) -> Self {
        let mut latest = vec![usize::MAX; footprint];
        let mut is_latest = Fenwick::new(pages.len());
        let mut told = StackDistances {
            counts: vec![0; footprint],
            firsts: 0,
        };
        let mut seen = 0;
        for (at, &page) in pages.iter().enumerate() {
            let before = std::mem::replace(&mut latest[page as usize], at);
            if before == usize::MAX {
                told.firsts += 1;
                seen += 1;
            } else {
                let position = seen - is_latest.sum(before + 1);
                told.counts[position] += 1;
                is_latest.add(before, -1);
            }
            is_latest.add(at, 1);
        }
        told
    }

    /// For each position from the top the requests that found their page there.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Requests for pages that had not been asked for before.
    pub(crate) fn firsts(&self) -> u64 {
        self.firsts
    }

    /// All requests.
    pub(crate) fn requests(&self) -> u64 {
        self.firsts + self.counts.iter().sum::<u64>()
    }

    /// How many requests an LRU memory of so many pages answers.
    pub(crate) fn hits(&self, capacity: usize) -> u64 {
        self.counts.iter().take(capacity).sum()
    }
}

/// Sums of the first so many numbers, with each number changed in O(log n).
struct Fenwick {
    sums: Vec<i32>,
}

impl Fenwick {
    fn new(len: usize) -> Self {
        Fenwick {
            sums: vec![0; len + 1],
        }
    }

    fn add(&mut self, at: usize, change: i32) {
        let mut node = at + 1;
        while node < self.sums.len() {
            self.sums[node] += change;
            node += node & node.wrapping_neg();
        }
    }

    /// Of the numbers before `end`.
    fn sum(&self, end: usize) -> usize {
        let (mut node, mut sum) = (end, 0);
        while node > 0 {
            sum += self.sums[node];
            node &= node - 1;
        }
        // Ones and zeros are summed.
        sum as usize
    }
}
