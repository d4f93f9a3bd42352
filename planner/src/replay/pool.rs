//! Memory of several nodes that is used as one.

use crate::evict::Order;
use crate::trace::share;

/// Which node a page belongs to by its number alone: each node gets a part of all pages as large as its part of the memory.
pub(super) struct Spread {
    /// The pages of all nodes up to each.
    up_to: Vec<usize>,
    seed: u64,
}

impl Spread {
    pub(super) fn new(pages_by_node: impl IntoIterator<Item = usize>, seed: u64) -> Self {
        let sum = |sum: &mut usize, pages| {
            *sum += pages;
            Some(*sum)
        };
        Spread {
            up_to: pages_by_node.into_iter().scan(0, sum).collect(),
            seed,
        }
    }

    /// `None` if nobody has any memory.
    pub(super) fn node(&self, page: u32) -> Option<usize> {
        let pages = *self.up_to.last().filter(|&&pages| pages > 0)?;
        let at = share(page, self.seed, pages);
        Some(self.up_to.partition_point(|&up_to| up_to <= at))
    }
}

/// One LRU over the memory of several nodes: what is the oldest page of all goes, wherever it is.
pub(super) struct Pool {
    pages: Order,
    hosts: Vec<u16>,
    free: Vec<usize>,
}

impl Pool {
    pub(super) fn new(free: Vec<usize>, footprint: usize) -> Self {
        Pool {
            pages: Order::new(footprint),
            hosts: vec![0; footprint],
            free,
        }
    }

    /// Takes note of a request: which node has the page.
    pub(super) fn touch(&mut self, page: u32) -> Option<usize> {
        if !self.pages.holds(page) {
            return None;
        }
        self.pages.renew(page);
        Some(usize::from(self.hosts[page as usize]))
    }

    /// Takes in a page that is not there: which node gets it, `None` if nobody has any memory.
    pub(super) fn admit(&mut self, page: u32) -> Option<usize> {
        let (node, free) = self
            .free
            .iter()
            .copied()
            .enumerate()
            .max_by_key(|&(_, free)| free)?;
        let host = if free > 0 {
            self.free[node] -= 1;
            node
        } else {
            usize::from(self.hosts[self.pages.pop_oldest()? as usize])
        };
        // There are fewer nodes than that.
        self.hosts[page as usize] = host as u16;
        self.pages.push(page);
        Some(host)
    }

    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }
}
