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
    /// What each page takes that there could be: a list, and the room for four copies that it begins with.
    pub(super) const PAGE_BYTES: usize = size_of::<Vec<Copy>>() + 4 * size_of::<Copy>();

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

    fn at_mut(&mut self, page: u32, node: usize) -> Option<&mut Copy> {
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

/// What a policy has to find quickly among copies: each is put to its place, which depends on whether it is the last one of its
/// page.
pub(super) trait Shelves {
    fn put(&mut self, page: u32, copy: Copy, is_last: bool);
    fn take(&mut self, page: u32, copy: Copy, is_last: bool);
}

/// All copies, each on its shelf.
pub(super) struct Filed<S> {
    pub(super) copies: Copies,
    pub(super) shelves: S,
}

impl<S: Shelves> Filed<S> {
    pub(super) fn new(footprint: usize, shelves: S) -> Self {
        Filed {
            copies: Copies::new(footprint),
            shelves,
        }
    }

    pub(super) fn add(&mut self, page: u32, copy: Copy) {
        let others = self.copies.of(page);
        let is_last = others.is_empty();
        if let &[only] = others {
            self.shelves.take(page, only, true);
            self.shelves.put(page, only, false);
        }
        self.shelves.put(page, copy, is_last);
        self.copies.add(page, copy);
    }

    pub(super) fn remove(&mut self, page: u32, node: usize) -> Option<Copy> {
        let copy = self.copies.remove(page, node)?;
        let others = self.copies.of(page);
        self.shelves.take(page, copy, others.is_empty());
        if let &[only] = others {
            self.shelves.take(page, only, false);
            self.shelves.put(page, only, true);
        }
        Some(copy)
    }

    /// A node uses its copy; false if it has none.
    pub(super) fn renew(&mut self, page: u32, renewed: Copy) -> bool {
        let is_last = self.copies.of(page).len() == 1;
        let Some(copy) = self.copies.at_mut(page, renewed.node.into()) else {
            return false;
        };
        let before = std::mem::replace(copy, renewed);
        self.shelves.take(page, before, is_last);
        self.shelves.put(page, renewed, is_last);
        true
    }
}
