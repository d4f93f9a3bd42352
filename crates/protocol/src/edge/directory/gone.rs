//! Children that have gone. Their entries are taken out bit by bit: the end of
//! a child costs no walk over all pages, and many that end together do not hold
//! up those that go on (rule 15). Meanwhile nobody sees them.

use crate::edge::directory::{ChildNo, Holder, Holders, Key, Record};
use alloc::vec::Vec;
use core::ops::Bound;

/// Which children have gone and still have entries.
///
/// Invariant: `children` and `by_no` say the same.
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

    pub(super) fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// Where the sweep goes on.
    pub(super) fn from(&self) -> Bound<Key> {
        self.swept.map_or(Bound::Unbounded, Bound::Excluded)
    }

    /// The sweep was at this page last, or at the end of all.
    pub(super) fn swept(&mut self, last: Option<Key>) {
        self.swept = last;
    }

    pub(super) fn add(&mut self, child: ChildNo) {
        let index = usize::from(child.0);
        if self.by_no.len() <= index {
            self.by_no.resize(index + 1, false);
        }
        if !self.by_no[index] {
            self.by_no[index] = true;
            self.children.push(child);
        }
    }

    /// Forgets the children that have no entry left.
    pub(super) fn retain(&mut self, mut has_entries: impl FnMut(ChildNo) -> bool) {
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

/// What a directory has beside its records.
pub(super) struct Lists<'a> {
    pub(super) lists: &'a mut [Vec<Holder>],
    pub(super) free: &'a mut Vec<u32>,
    pub(super) held: &'a mut [usize],
    pub(super) gone: &'a Gone,
}

impl Lists<'_> {
    /// Strikes those who have gone from a page. True if one had, and nobody holds it now.
    pub(super) fn strike_gone(&mut self, record: &mut Record) -> bool {
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
