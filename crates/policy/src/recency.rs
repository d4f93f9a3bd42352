//! Pages in a row, each found at once: what LRU and most other policies are made of.

use alloc::vec::Vec;
use core::num::NonZeroU32;

/// Pages from the newest to the oldest: a doubly linked list in one vector.
///
/// A page that comes is the newest. A policy that renews a page at each use and takes the oldest is LRU; one that renews
/// none is FIFO.
///
/// Invariant: the links from `newest` over `older` and those from `oldest` over `newer` pass the same nodes, in opposite
/// order. `free` lists all other nodes. So every operation takes the same time, however many pages there are.
///
/// The caller keeps the [`Handle`] of each page. A handle is right until its page is removed. After that another page
/// may get it.
#[derive(Clone, Debug)]
pub struct RecencyList<K> {
    nodes: Vec<Node<K>>,
    newest: Option<Handle>,
    oldest: Option<Handle>,
    free: Vec<Handle>,
}

/// Where a page is in its list: an index that starts at 1, so that `Option<Handle>` has four bytes, too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle(NonZeroU32);

#[derive(Clone, Copy, Debug)]
struct Node<K> {
    key: K,
    newer: Option<Handle>,
    older: Option<Handle>,
}

impl<K> RecencyList<K> {
    /// What a page in the list takes, before the vector's growth by doubling.
    pub const NODE_BYTES: usize = size_of::<Node<K>>();

    /// An empty list.
    pub const fn new() -> Self {
        RecencyList {
            nodes: Vec::new(),
            newest: None,
            oldest: None,
            free: Vec::new(),
        }
    }

    /// How many pages are in the list.
    pub fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Whether the list has no page.
    pub fn is_empty(&self) -> bool {
        self.oldest.is_none()
    }
}

impl<K> Default for RecencyList<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy> RecencyList<K> {
    /// Adds a page as the newest.
    ///
    /// # Panics
    ///
    /// If the list has four billion pages.
    pub fn push(&mut self, key: K) -> Handle {
        let node = Node {
            key,
            newer: None,
            older: None,
        };
        let handle = match self.free.pop() {
            Some(handle) => {
                *self.node_mut(handle) = node;
                handle
            }
            None => {
                self.nodes.push(node);
                let number = u32::try_from(self.nodes.len()).ok();
                let number = number.and_then(NonZeroU32::new);
                Handle(number.expect("a list has fewer than four billion pages"))
            }
        };
        self.link(handle);
        handle
    }

    /// Makes a page the newest.
    pub fn renew(&mut self, handle: Handle) {
        if self.newest != Some(handle) {
            self.unlink(handle);
            self.link(handle);
        }
    }

    /// Removes a page.
    pub fn remove(&mut self, handle: Handle) {
        self.unlink(handle);
        self.free.push(handle);
    }

    /// The page that came, or was renewed, before all others.
    pub fn oldest(&self) -> Option<K> {
        self.oldest.map(|handle| self.node(handle).key)
    }

    /// The next newer page.
    pub fn newer(&self, handle: Handle) -> Option<K> {
        let newer = self.node(handle).newer;
        newer.map(|handle| self.node(handle).key)
    }

    /// Puts a node that is in no list before the newest.
    fn link(&mut self, handle: Handle) {
        let older = self.newest.replace(handle);
        let node = self.node_mut(handle);
        (node.newer, node.older) = (None, older);
        match older {
            Some(older) => self.node_mut(older).newer = Some(handle),
            None => self.oldest = Some(handle),
        }
    }

    fn unlink(&mut self, handle: Handle) {
        let Node { newer, older, .. } = *self.node(handle);
        match newer {
            Some(newer) => self.node_mut(newer).older = older,
            None => self.newest = older,
        }
        match older {
            Some(older) => self.node_mut(older).newer = newer,
            None => self.oldest = newer,
        }
    }

    fn node(&self, handle: Handle) -> &Node<K> {
        &self.nodes[handle.0.get() as usize - 1]
    }

    fn node_mut(&mut self, handle: Handle) -> &mut Node<K> {
        &mut self.nodes[handle.0.get() as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    /// A list and the handles of its pages.
    #[derive(Default)]
    struct Pages {
        list: RecencyList<u32>,
        handles: BTreeMap<u32, Handle>,
    }

    impl Pages {
        fn push(&mut self, page: u32) {
            self.handles.insert(page, self.list.push(page));
        }

        fn renew(&mut self, page: u32) {
            self.list.renew(self.handles[&page]);
        }

        fn remove(&mut self, page: u32) {
            let handle = self.handles.remove(&page).expect("it is in the list");
            self.list.remove(handle);
        }

        /// From the oldest to the newest.
        fn all(&self) -> Vec<u32> {
            let newer = |page: &u32| self.list.newer(self.handles[page]);
            core::iter::successors(self.list.oldest(), newer).collect()
        }
    }

    #[test]
    fn the_page_that_was_not_renewed_for_longest_is_the_oldest() {
        let mut pages = Pages::default();
        (1..=4).for_each(|page| pages.push(page));
        assert_eq!(pages.all(), [1, 2, 3, 4]);
        pages.renew(1);
        pages.renew(3);
        pages.renew(3);
        assert_eq!(pages.all(), [2, 4, 1, 3]);
    }

    #[test]
    fn a_page_leaves_from_any_place() {
        let mut pages = Pages::default();
        (1..=5).for_each(|page| pages.push(page));
        pages.remove(1);
        pages.remove(3);
        pages.remove(5);
        assert_eq!((pages.all().as_slice(), pages.list.len()), (&[2, 4][..], 2));
        pages.remove(4);
        pages.remove(2);
        assert!(pages.list.is_empty() && pages.list.oldest().is_none());
    }

    #[test]
    fn the_space_of_pages_that_left_is_used_again() {
        let mut pages = Pages::default();
        for page in 0..100 {
            pages.push(page);
            if let Some(gone) = page.checked_sub(3) {
                pages.remove(gone);
            }
        }
        assert_eq!(pages.all(), [97, 98, 99]);
        assert_eq!(pages.list.nodes.len(), 4);
    }

    #[test]
    fn no_handle_takes_more_space_than_a_number() {
        assert_eq!(size_of::<Option<Handle>>(), size_of::<u32>());
        assert_eq!(RecencyList::<u32>::NODE_BYTES, 12);
    }
}
