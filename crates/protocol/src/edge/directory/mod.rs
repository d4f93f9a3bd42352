//! Which child may hold which page: always a superset of the truth (rule 2).
//!
//! Compact: at a million pages a holder costs at most 64, 32 and 24 bytes with
//! 1, 4 and 16 holders a page. A page with one holder keeps it in its record;
//! with more, the record names a list.

mod gone;
#[cfg(test)]
mod tests;

use crate::edge::directory::gone::{Gone, Lists};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;
use thorp_model::{EntryNo, PageId, SegmentId};

/// A child's number in a directory, given anew when the child has gone and
/// has no entry left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ChildNo(pub u16);

/// A child that may hold a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    /// Which child.
    pub child: ChildNo,
    /// Whether its copy probably has no holes: it can help others.
    pub complete: bool,
    /// Of how many more changes it is to be told the values.
    pub updates: u8,
    /// The number of its last entering.
    pub entry: EntryNo,
}

/// What became of an eviction notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The child was struck from the page.
    Struck,
    /// A later entering was given: the notice is late.
    Late,
    /// The child was not entered.
    Absent,
}

/// The directory of one home's pages at one parent.
///
/// Invariant: `held` counts each child's entries, also of those that have gone. A page without holders and without an
/// entry above has no record.
#[derive(Debug, Default)]
pub struct Directory {
    pages: BTreeMap<Key, Record>,
    lists: Vec<Vec<Holder>>,
    free: Vec<u32>,
    /// For how many pages each child is entered, by its number.
    held: Vec<usize>,
    gone: Gone,
}

/// A page as two words, so that a record needs no padding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key(u32, u32);

#[derive(Debug)]
struct Record {
    holders: Holders,
    /// The entry number received from above for the whole subtree; zero if none.
    above: EntryNo,
}

#[derive(Clone, Copy, Debug)]
enum Holders {
    None,
    One(Holder),
    List(u32),
}

impl Directory {
    /// Enters a child for a page, or enters it again.
    pub fn enter(&mut self, page: PageId, holder: Holder) {
        let record = self.pages.entry(key(page)).or_insert(Record::EMPTY);
        let is_new = match record.holders {
            Holders::None => {
                record.holders = Holders::One(holder);
                true
            }
            Holders::One(one) if one.child == holder.child => {
                record.holders = Holders::One(holder);
                false
            }
            Holders::One(one) => {
                let list = new_list(&mut self.lists, &mut self.free, one, holder);
                record.holders = Holders::List(list);
                true
            }
            Holders::List(list) => enter_list(&mut self.lists[list as usize], holder),
        };
        if is_new {
            *self.held_by(holder.child) += 1;
        }
    }

    /// For how many pages a child is entered.
    pub fn held(&self, child: ChildNo) -> usize {
        let held = self.held.get(usize::from(child.0));
        held.copied().unwrap_or_default()
    }

    fn held_by(&mut self, child: ChildNo) -> &mut usize {
        let index = usize::from(child.0);
        if self.held.len() <= index {
            self.held.resize(index + 1, 0);
        }
        &mut self.held[index]
    }

    /// Takes an eviction notice that carries an entry number.
    pub fn strike(&mut self, page: PageId, child: ChildNo, entry: EntryNo) -> Notice {
        match self.holder(page, child) {
            None => Notice::Absent,
            Some(holder) if holder.entry > entry => Notice::Late,
            Some(_) => {
                self.remove(page, child);
                Notice::Struck
            }
        }
    }

    /// Strikes a child from a page, whatever its entry. False if it was not entered.
    pub fn remove(&mut self, page: PageId, child: ChildNo) -> bool {
        let Some(record) = self.pages.get_mut(&key(page)) else {
            return false;
        };
        let removed = match record.holders {
            Holders::One(one) if one.child == child => {
                record.holders = Holders::None;
                1
            }
            Holders::List(list) => {
                let holders = &mut self.lists[list as usize];
                let before = holders.len();
                holders.retain(|holder| holder.child != child);
                let removed = before - holders.len();
                if let [one] = holders[..] {
                    *holders = Vec::new();
                    self.free.push(list);
                    record.holders = Holders::One(one);
                }
                removed
            }
            _ => 0,
        };
        *self.held_by(child) -= removed;
        self.forget_if_empty(page);
        removed > 0
    }

    /// Strikes all children from a page, and its entry above.
    pub fn remove_page(&mut self, page: PageId) {
        if let Some(record) = self.pages.remove(&key(page)) {
            self.release(record.holders);
        }
    }

    /// The children that may hold a page.
    pub fn holders(&self, page: PageId) -> impl Iterator<Item = Holder> + '_ {
        let entered = self.entered(page).iter().copied();
        entered.filter(|holder| !self.gone.has(holder.child))
    }

    /// Also those that have gone.
    fn entered(&self, page: PageId) -> &[Holder] {
        match self.pages.get(&key(page)).map(|record| &record.holders) {
            Some(Holders::One(one)) => core::slice::from_ref(one),
            Some(Holders::List(list)) => &self.lists[*list as usize],
            Some(Holders::None) | None => &[],
        }
    }

    /// A child's entry for a page.
    pub fn holder(&self, page: PageId, child: ChildNo) -> Option<Holder> {
        self.holders(page).find(|holder| holder.child == child)
    }

    /// Whether any child may hold the page.
    pub fn is_held(&self, page: PageId) -> bool {
        self.holders(page).next().is_some()
    }

    /// Notes whether a child's copy is complete.
    pub fn set_complete(&mut self, page: PageId, child: ChildNo, complete: bool) {
        if let Some(holder) = self.holder(page, child) {
            self.enter(page, Holder { complete, ..holder });
        }
    }

    /// Notes of how many more changes a child is to be told the values.
    pub fn set_updates(&mut self, page: PageId, child: ChildNo, updates: u8) {
        if let Some(holder) = self.holder(page, child) {
            self.enter(page, Holder { updates, ..holder });
        }
    }

    /// Notes that no copy but that of `except` is complete any more.
    pub fn set_incomplete(&mut self, page: PageId, except: Option<ChildNo>) {
        let Some(record) = self.pages.get_mut(&key(page)) else {
            return;
        };
        let clear = |holder: &mut Holder| {
            if Some(holder.child) != except {
                holder.complete = false;
            }
        };
        match &mut record.holders {
            Holders::None => {}
            Holders::One(one) => clear(one),
            Holders::List(list) => self.lists[*list as usize].iter_mut().for_each(clear),
        }
    }

    /// The entry number received from above for a page, if the subtree is entered there.
    pub fn above(&self, page: PageId) -> Option<EntryNo> {
        let entry = self.pages.get(&key(page))?.above;
        (entry != EntryNo(0)).then_some(entry)
    }

    /// Notes the entry number received from above.
    pub fn set_above(&mut self, page: PageId, entry: EntryNo) {
        self.pages.entry(key(page)).or_insert(Record::EMPTY).above = entry;
    }

    /// Notes that the subtree is no longer entered above.
    pub fn clear_above(&mut self, page: PageId) {
        if let Some(record) = self.pages.get_mut(&key(page)) {
            record.above = EntryNo(0);
        }
        self.forget_if_empty(page);
    }

    /// The pages of a segment in the directory.
    pub fn pages_of(&self, segment: SegmentId) -> Vec<PageId> {
        let range = Key(segment.0, 0)..=Key(segment.0, u32::MAX);
        let keys = self.pages.range(range).map(|(key, _)| key);
        keys.map(|key| PageId::new(key.0, key.1)).collect()
    }

    /// Pages in the directory.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether no page is in the directory.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

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

    /// Looks at so many pages for children that have gone. Returns the pages that
    /// nobody holds any more.
    pub fn sweep(&mut self, pages: usize) -> Vec<PageId> {
        if self.gone.is_empty() {
            return Vec::new();
        }
        let (mut unheld, mut seen, mut last) = (Vec::new(), 0, None);
        let records = self.pages.range_mut((self.gone.from(), Bound::Unbounded));
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
        self.gone.swept(last.filter(|_| seen == pages));
        for page in &unheld {
            self.forget_if_empty(*page);
        }
        let held = &self.held;
        self.gone.retain(|child| held[usize::from(child.0)] > 0);
        unheld
    }

    fn forget_if_empty(&mut self, page: PageId) {
        if let Some(record) = self.pages.get(&key(page))
            && record.above == EntryNo(0)
            && !self.is_held(page)
        {
            self.remove_page(page);
        }
    }

    fn release(&mut self, holders: Holders) {
        match holders {
            Holders::None => {}
            Holders::One(one) => *self.held_by(one.child) -= 1,
            Holders::List(list) => {
                for holder in core::mem::take(&mut self.lists[list as usize]) {
                    *self.held_by(holder.child) -= 1;
                }
                self.free.push(list);
            }
        }
    }
}

impl Record {
    const EMPTY: Record = Record {
        holders: Holders::None,
        above: EntryNo(0),
    };
}

fn key(page: PageId) -> Key {
    Key(page.segment.0, page.page.0)
}

fn new_list(lists: &mut Vec<Vec<Holder>>, free: &mut Vec<u32>, a: Holder, b: Holder) -> u32 {
    let mut list = Vec::with_capacity(4);
    list.extend([a, b]);
    match free.pop() {
        Some(index) => {
            lists[index as usize] = list;
            index
        }
        None => {
            lists.push(list);
            (lists.len() - 1) as u32
        }
    }
}

/// True if the child was not in the list.
fn enter_list(list: &mut Vec<Holder>, holder: Holder) -> bool {
    match list.iter_mut().find(|h| h.child == holder.child) {
        Some(known) => {
            *known = holder;
            false
        }
        None => {
            if list.len() == list.capacity() {
                // Small steps: what is not used is paid for at every page.
                list.reserve_exact(4);
            }
            list.push(holder);
            true
        }
    }
}
