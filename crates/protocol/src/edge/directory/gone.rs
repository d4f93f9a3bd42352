//! Children that have gone. Their entries are taken out bit by bit: the end of
//! a child costs no walk over all pages, and many that end together do not hold
//! up those that go on (rule 15). Meanwhile nobody sees them.

use crate::edge::directory::{ChildNo, Directory, Holder, Holders, Key, Record};
use alloc::vec::Vec;
use core::ops::Bound;
use thorp_model::PageId;

/// Which children have gone and still have entries.
#[derive(Debug, Default)]
pub(super) struct Gone {
    children: Vec<ChildNo>,
    /// The same by number; empty if there are none.
    by_no: Vec<bool>,
    /// The sweep goes round: it was here. Who has gone since it passed is met
    /// when it comes round again.
    swept: Option<Key>,
}

impl Gone {
    pub(super) fn has(&self, child: ChildNo) -> bool {
        let gone = self.by_no.get(usize::from(child.0));
        gone.copied().unwrap_or_default()
    }

    fn add(&mut self, child: ChildNo) {
        let index = usize::from(child.0);
        if self.by_no.len() <= index {
            self.by_no.resize(index + 1, false);
        }
        if !self.by_no[index] {
            self.by_no[index] = true;
            self.children.push(child);
        }
    }

    fn retain(&mut self, mut has_entries: impl FnMut(ChildNo) -> bool) {
        let by_no = &mut self.by_no;
        self.children.retain(|child| {
            let stays = has_entries(*child);
            by_no[usize::from(child.0)] = stays;
            stays
        });
        if self.children.is_empty() {
            *self = Gone::default();
        }
    }
}

impl Directory {
    /// A child has gone: it is struck from all pages, by [`sweep`](Self::sweep).
    pub fn child_went(&mut self, child: ChildNo) {
        if self.held(child) > 0 {
            self.gone.add(child);
        }
    }

    /// Whether a number still belongs to a child that has gone.
    pub fn is_going(&self, child: ChildNo) -> bool {
        self.gone.has(child)
    }

    /// Looks at so many pages for children that have gone; tells the pages that
    /// nobody holds any more.
    pub fn sweep(&mut self, pages: usize) -> Vec<PageId> {
        if self.gone.children.is_empty() {
            return Vec::new();
        }
        let from = self.gone.swept.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut unheld, mut seen, mut last) = (Vec::new(), 0, None);
        let records = self.pages.range_mut((from, Bound::Unbounded));
        let mut lists = Lists {
            lists: &mut self.lists,
            free: &mut self.free,
            held: &mut self.held,
            gone: &self.gone,
        };
        for (key, record) in records.take(pages) {
            seen += 1;
            last = Some(*key);
            if lists.strike_gone(record) {
                unheld.push(PageId::new(key.0, key.1));
            }
        }
        self.gone.swept = last.filter(|_| seen == pages);
        for page in &unheld {
            self.forget_if_empty(*page);
        }
        let held = &self.held;
        self.gone.retain(|child| held[usize::from(child.0)] > 0);
        unheld
    }
}

/// What a directory has beside its records.
struct Lists<'a> {
    lists: &'a mut [Vec<Holder>],
    free: &'a mut Vec<u32>,
    held: &'a mut [usize],
    gone: &'a Gone,
}

impl Lists<'_> {
    /// Strikes those who have gone from a page. True if one had, and nobody holds it now.
    fn strike_gone(&mut self, record: &mut Record) -> bool {
        match record.holders {
            Holders::One(one) if self.is_struck(one.child) => record.holders = Holders::None,
            Holders::None | Holders::One(_) => return false,
            Holders::List(list) => {
                let mut holders = core::mem::take(&mut self.lists[list as usize]);
                holders.retain(|holder| !self.is_struck(holder.child));
                record.holders = match holders[..] {
                    [] => Holders::None,
                    [one] => Holders::One(one),
                    _ => {
                        self.lists[list as usize] = holders;
                        return false;
                    }
                };
                self.free.push(list);
            }
        }
        matches!(record.holders, Holders::None)
    }

    /// Whether a holder has gone; then its entry is counted out.
    fn is_struck(&mut self, child: ChildNo) -> bool {
        let gone = self.gone.has(child);
        if gone {
            self.held[usize::from(child.0)] -= 1;
        }
        gone
    }
}
