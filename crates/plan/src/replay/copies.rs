//! Who holds which page.

/// A copy of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Copy {
    /// The client or server that has it.
    pub(super) node: u16,
    /// The request at which it was last used.
    pub(super) used: u32,
    /// What the policy wants to know of it.
    pub(super) mark: u8,
}

/// All copies of all pages.
pub(super) struct Copies {
    by_page: Vec<Vec<Copy>>,
}

impl Copies {
    pub(super) fn new(footprint: usize) -> Self {
        Copies {
            by_page: vec![Vec::new(); footprint],
        }
    }

    pub(super) fn of(&self, page: u32) -> &[Copy] {
        &self.by_page[page as usize]
    }

    /// Adds a copy at a node that has none.
    pub(super) fn add(&mut self, page: u32, copy: Copy) {
        debug_assert!(self.at(page, copy.node.into()).is_none());
        self.by_page[page as usize].push(copy);
    }

    pub(super) fn remove(&mut self, page: u32, node: usize) -> Option<Copy> {
        let copies = &mut self.by_page[page as usize];
        let at = copies
            .iter()
            .position(|copy| usize::from(copy.node) == node)?;
        Some(copies.swap_remove(at))
    }

    pub(super) fn at(&self, page: u32, node: usize) -> Option<Copy> {
        let mut copies = self.of(page).iter();
        copies.find(|copy| usize::from(copy.node) == node).copied()
    }

    pub(super) fn at_mut(&mut self, page: u32, node: usize) -> Option<&mut Copy> {
        let mut copies = self.by_page[page as usize].iter_mut();
        copies.find(|copy| usize::from(copy.node) == node)
    }

    /// Who has a page, drawn from all that have; nothing is drawn if nobody or one has it.
    pub(super) fn any_holder(&self, page: u32, random: &mut fastrand::Rng) -> Option<usize> {
        match self.of(page) {
            [] => None,
            [copy] => Some(copy.node.into()),
            copies => Some(copies[random.usize(..copies.len())].node.into()),
        }
    }
}
