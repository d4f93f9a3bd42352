//! The missing pages of a process in the order in which they are needed, and when the first of them has to be fetched.

/// A tree over the references of a process: at each that needs a missing page lies what fetching that takes.
///
/// The local prefetch predicate (section 4.2.2) is true when for some *j* the first *j* missing pages together take at least the
/// time until the *j*-th is needed. With *w* for the work done before a reference, that is: the least of *w* less all fetches up
/// to there is not above the work that is done now. The tree keeps that least number up to date: a change costs the logarithm of
/// the number of references, the predicate nothing.
#[derive(Clone, Debug)]
pub(super) struct Missing {
    leaves: usize,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// What all missing pages below take, microseconds.
    fetch_us: u64,
    /// The work after which fetching has to have begun, microseconds; [`LATEST`] if nothing is missing.
    start_us: i64,
}

impl Missing {
    /// For so many references, of which some need missing pages: what their fetches take and the work before them.
    pub(super) fn new(references: usize, missing: impl Iterator<Item = (u32, u64, u64)>) -> Self {
        let leaves = references.next_power_of_two();
        let mut nodes = vec![NOTHING; 2 * leaves];
        for (position, fetch_us, work_us) in missing {
            nodes[leaves + position as usize] = leaf(fetch_us, work_us);
        }
        for above in (1..leaves).rev() {
            nodes[above] = Node::over(nodes[2 * above], nodes[2 * above + 1]);
        }
        Missing { leaves, nodes }
    }

    /// A reference needs a missing page whose fetch takes so long, after so much work; or nothing, if that is 0.
    pub(super) fn set(&mut self, position: u32, fetch_us: u64, work_us: u64) {
        let mut at = self.leaves + position as usize;
        if self.nodes[at].fetch_us == fetch_us {
            return;
        }
        self.nodes[at] = leaf(fetch_us, work_us);
        while at > 1 {
            at /= 2;
            self.nodes[at] = Node::over(self.nodes[2 * at], self.nodes[2 * at + 1]);
        }
    }

    /// The work after which the first missing page has to be fetched, microseconds; [`LATEST`] if none is missing.
    pub(super) fn start_us(&self) -> i64 {
        self.nodes[1].start_us
    }

    /// The first reference that needs a missing page.
    pub(super) fn first(&self) -> Option<u32> {
        if self.nodes[1].fetch_us == 0 {
            return None;
        }
        let mut at = 1;
        while at < self.leaves {
            at *= 2;
            if self.nodes[at].fetch_us == 0 {
                at += 1;
            }
        }
        Some((at - self.leaves) as u32)
    }
}

impl Node {
    fn over(left: Node, right: Node) -> Node {
        let after = match right.start_us {
            LATEST => LATEST,
            start_us => start_us - left.fetch_us as i64,
        };
        Node {
            fetch_us: left.fetch_us + right.fetch_us,
            start_us: left.start_us.min(after),
        }
    }
}

fn leaf(fetch_us: u64, work_us: u64) -> Node {
    match fetch_us {
        0 => NOTHING,
        _ => Node {
            fetch_us,
            start_us: work_us as i64 - fetch_us as i64,
        },
    }
}

/// Never.
pub(super) const LATEST: i64 = i64::MAX;

const NOTHING: Node = Node {
    fetch_us: 0,
    start_us: LATEST,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_says_what_the_sums_say() {
        let mut random = fastrand::Rng::with_seed(4);
        for references in [1, 2, 3, 13, 64] {
            let mut fetches = vec![0_u64; references];
            let mut tree = Missing::new(references, std::iter::empty());
            for _ in 0..300 {
                let position = random.usize(..references);
                fetches[position] = [0, 3, 40][random.usize(..3)];
                tree.set(position as u32, fetches[position], 10 * position as u64);
                assert_eq!(tree.start_us(), by_sums(&fetches));
                let first = fetches.iter().position(|&fetch| fetch > 0);
                assert_eq!(tree.first(), first.map(|first| first as u32));
            }
        }
    }

    fn by_sums(fetches: &[u64]) -> i64 {
        let mut sum = 0;
        let starts = fetches.iter().enumerate().filter(|(_, fetch)| **fetch > 0);
        let starts = starts.map(|(position, &fetch)| {
            sum += fetch as i64;
            10 * position as i64 - sum
        });
        starts.min().unwrap_or(LATEST)
    }
}
