//! Which slot the next object gets (foundation 2): page and slot are chosen before the commit, so references are final.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use thorp_model::limits::{
    EXTENT_PAGES, IMAGE_HEADER_BYTES, PAGE_BYTES, SLOT_CHARGE_MIN, SLOT_ENTRY_BYTES, SLOTS_MAX,
};
use thorp_model::{PageNo, Slot};

/// A creator's pages in one segment, and which slot of them the next object gets.
#[derive(Debug, Default)]
pub struct SlotAllocator {
    /// Granted and not begun.
    fresh: VecDeque<Range<u32>>,
    /// Begun, with space left.
    open: HashMap<PageNo, Filling>,
    /// Where what is near nothing goes.
    current: Option<PageNo>,
    /// Page of an object -> the page where what is near it goes.
    near: HashMap<PageNo, Near>,
    uses: u64,
    /// How often somebody had to wait for a whole extent.
    waits: u32,
    /// The pages of the last grant.
    granted: u32,
}

/// How many times as many pages each grant has as the one before it, up to a whole extent: a creator of one object gets
/// one page, and one of many has to wait only three times more.
const GRANT_GROWTH: u32 = 4;

/// Extents asked for ahead by a creator that is faster than the round trip.
const EXTENTS_AHEAD_MAX: usize = 16;

/// Runs of pages that a creator remembers before it begins them. Of two kinds of pages that are granted together it may
/// use only one.
const FRESH_RUNS_MAX: usize = 64;

/// Pages with space that a creator remembers in one segment.
const OPEN_PAGES_MAX: usize = 1024;

/// Places that a creator remembers for what is near something, in one segment.
const NEAR_MAX: usize = 1024;

#[derive(Debug, Default)]
struct Filling {
    slots: u16,
    charge: usize,
    returned: Vec<Slot>,
    used: u64,
}

#[derive(Clone, Copy, Debug)]
struct Near {
    page: PageNo,
    used: u64,
}

/// A slot that is reserved for an object, with what it is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// The page in which the object will lie.
    pub page: PageNo,
    /// The slot in that page.
    pub slot: Slot,
    /// Whether it is the first one in its page.
    pub begins_page: bool,
    charge: usize,
}

impl SlotAllocator {
    /// Takes a slot. `None`: a fresh page is needed, and none is granted.
    pub fn take(&mut self, near: Option<PageNo>, bytes: usize) -> Option<Reservation> {
        self.uses += 1;
        let charge = (SLOT_ENTRY_BYTES + bytes).max(SLOT_CHARGE_MIN);
        match near {
            Some(near) => self.take_near(near, charge),
            None => self.take_any(charge),
        }
    }

    fn take_any(&mut self, charge: usize) -> Option<Reservation> {
        if let Some(reserved) = self.current.and_then(|page| self.take_in(page, charge)) {
            return Some(reserved);
        }
        let page = self.begin()?;
        self.make_current(page);
        self.take_in(page, charge)
    }

    /// In the page itself, else where things near it went before, else in a page of its own.
    fn take_near(&mut self, near: PageNo, charge: usize) -> Option<Reservation> {
        if let Some(reserved) = self.take_in(near, charge) {
            return Some(reserved);
        }
        if let Some(mapped) = self.near.get_mut(&near) {
            mapped.used = self.uses;
            let page = mapped.page;
            if let Some(reserved) = self.take_in(page, charge) {
                return Some(reserved);
            }
        }
        let page = self.begin()?;
        self.remember_near(near, page);
        // What is near nothing follows into the emptiest page: no page stays half empty for good.
        self.make_current(page);
        self.take_in(page, charge)
    }

    fn take_in(&mut self, page: PageNo, charge: usize) -> Option<Reservation> {
        let filling = self.open.get_mut(&page)?;
        filling.used = self.uses;
        let reserved = filling.take(page, charge);
        if filling.is_full() {
            self.open.remove(&page);
        }
        reserved
    }

    fn begin(&mut self) -> Option<PageNo> {
        let range = self.fresh.front_mut()?;
        let page = PageNo(range.next()?);
        if range.start >= range.end {
            self.fresh.pop_front();
        }
        if self.open.len() >= OPEN_PAGES_MAX {
            let oldest = self.open.iter().min_by_key(|(_, filling)| filling.used);
            if let Some(oldest) = oldest.map(|(page, _)| *page) {
                self.open.remove(&oldest);
            }
        }
        self.open.insert(
            page,
            Filling {
                used: self.uses,
                ..Filling::default()
            },
        );
        Some(page)
    }

    fn make_current(&mut self, page: PageNo) {
        let space = |page| self.open.get(&page).map_or(0, Filling::space);
        if self
            .current
            .is_none_or(|current| space(current) < space(page))
        {
            self.current = Some(page);
        }
    }

    fn remember_near(&mut self, near: PageNo, page: PageNo) {
        if self.near.len() >= NEAR_MAX && !self.near.contains_key(&near) {
            let oldest = self.near.iter().min_by_key(|(_, near)| near.used);
            if let Some(oldest) = oldest.map(|(near, _)| *near) {
                self.near.remove(&oldest);
            }
        }
        let used = self.uses;
        self.near.insert(near, Near { page, used });
    }

    /// The home granted fresh pages.
    pub fn grant(&mut self, first: PageNo, pages: u32) {
        let range = first.0..first.0.saturating_add(pages);
        if range.start >= range.end {
            return;
        }
        self.granted = pages;
        match self.fresh.back_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.fresh.push_back(range),
        }
        if self.fresh.len() > FRESH_RUNS_MAX {
            self.fresh.pop_front();
        }
    }

    /// How many pages the home should grant next.
    pub fn wanted(&self) -> u32 {
        match self.granted {
            0 => 1,
            granted => granted.saturating_mul(GRANT_GROWTH).min(EXTENT_PAGES),
        }
    }

    /// Whether there are pages that were granted and not begun.
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Somebody has to wait for the home: twice as much is to be asked ahead from now on, once extents are whole.
    pub fn hurry(&mut self) {
        if self.wanted() == EXTENT_PAGES {
            self.waits = self.waits.saturating_add(1);
        }
    }

    /// How many extents should be on their way now: none before the first is begun, nor while enough is there.
    pub fn short(&self) -> usize {
        let ahead = 1 << self.waits.saturating_sub(1).min(EXTENTS_AHEAD_MAX.ilog2());
        let left: usize = self.fresh.iter().map(ExactSizeIterator::len).sum();
        let begun = self.current.is_some() || left > 0;
        if begun && left < ahead * self.granted.min(EXTENT_PAGES) as usize / 2 {
            ahead
        } else {
            0
        }
    }

    /// Nothing was made in a slot: the next object may have it.
    pub fn give_back(&mut self, reserved: Reservation) {
        // A page that was full and forgotten stays so: rare, and only space.
        if let Some(filling) = self.open.get_mut(&reserved.page) {
            filling.charge = filling.charge.saturating_sub(reserved.charge);
            filling.returned.push(reserved.slot);
        }
    }
}

impl Filling {
    fn take(&mut self, page: PageNo, charge: usize) -> Option<Reservation> {
        // An object that no other fits beside has a page of its own (the home lets it fill the page).
        let alone = self.slots == 0;
        if charge > self.space() && !alone {
            return None;
        }
        let slot = match self.returned.pop() {
            Some(slot) => slot,
            None if self.slots < SLOTS_MAX => {
                self.slots += 1;
                Slot(self.slots - 1)
            }
            None => return None,
        };
        self.charge += charge;
        Some(Reservation {
            page,
            slot,
            begins_page: alone,
            charge,
        })
    }

    fn space(&self) -> usize {
        (PAGE_BYTES - IMAGE_HEADER_BYTES).saturating_sub(self.charge)
    }

    /// No object fits any more.
    fn is_full(&self) -> bool {
        self.space() < SLOT_CHARGE_MIN || self.slots >= SLOTS_MAX && self.returned.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted() -> SlotAllocator {
        let mut pages = SlotAllocator::default();
        pages.grant(PageNo(1), EXTENT_PAGES);
        pages
    }

    #[test]
    fn objects_fill_one_page_after_the_other() {
        let mut pages = granted();
        let reserved: Vec<Reservation> = (0..200).map_while(|_| pages.take(None, 92)).collect();
        assert_eq!(reserved.len(), 200);
        let per_page = (PAGE_BYTES - IMAGE_HEADER_BYTES) / 100;
        assert_eq!((reserved[0].page, reserved[0].slot), (PageNo(1), Slot(0)));
        assert_eq!(reserved[per_page - 1].page, PageNo(1));
        assert_eq!(
            (reserved[per_page].page, reserved[per_page].slot),
            (PageNo(2), Slot(0))
        );
        assert!(
            reserved[0].begins_page && !reserved[1].begins_page && reserved[per_page].begins_page
        );
    }

    #[test]
    fn tiny_objects_are_bounded_by_slots_and_by_the_least_charge() {
        let mut pages = granted();
        let first = (0..1000).map_while(|_| pages.take(None, 0));
        let in_first = first
            .take_while(|reserved| reserved.page == PageNo(1))
            .count();
        assert_eq!(in_first, usize::from(SLOTS_MAX));
    }

    #[test]
    fn an_object_as_large_as_a_page_has_it_alone() {
        let mut pages = granted();
        assert_eq!(pages.take(None, 8160).unwrap().page, PageNo(1));
        assert_eq!(pages.take(None, 10).unwrap().page, PageNo(2));
        assert_eq!(pages.take(None, 8160).unwrap().page, PageNo(3));
    }

    #[test]
    fn what_is_near_something_stays_together() {
        let mut pages = granted();
        let first = pages.take(None, 3000).unwrap();
        let second = pages.take(Some(first.page), 3000).unwrap();
        assert_eq!(second.page, first.page);
        // Full now: another page, the same for all that is near.
        let third = pages.take(Some(first.page), 3000).unwrap();
        assert_ne!(third.page, first.page);
        assert_eq!(pages.take(Some(first.page), 3000).unwrap().page, third.page);
        // Somebody else's page is as good a neighbour.
        let other = pages.take(Some(PageNo(77)), 3000).unwrap();
        assert_eq!(pages.take(Some(PageNo(77)), 3000).unwrap().page, other.page);
    }

    #[test]
    fn without_space_the_home_is_asked_and_it_is_asked_ahead() {
        let mut pages = SlotAllocator::default();
        assert!(pages.take(None, 10).is_none() && pages.short() == 0);
        pages.grant(PageNo(1), EXTENT_PAGES);
        pages.hurry();
        let reserved = (0..EXTENT_PAGES).filter(|_| pages.take(None, 8000).is_some());
        assert_eq!(reserved.count() as u32, EXTENT_PAGES);
        assert!(pages.short() == 1 && !pages.has_fresh());
        (0..9).for_each(|_| pages.hurry());
        assert_eq!(pages.short(), EXTENTS_AHEAD_MAX);
        assert!(pages.take(None, 8000).is_none());
    }

    #[test]
    fn a_creator_gets_more_pages_with_each_grant() {
        let mut pages = SlotAllocator::default();
        let mut next = 1;
        for wanted in [1, 4, 16, EXTENT_PAGES, EXTENT_PAGES] {
            assert_eq!(pages.wanted(), wanted);
            pages.hurry();
            pages.grant(PageNo(next), wanted);
            next += wanted;
        }
        assert_eq!(pages.waits, 2, "of whole extents");
        // With the first page nothing more is asked for before it is full.
        let mut pages = SlotAllocator::default();
        pages.grant(PageNo(1), 1);
        assert!(pages.take(None, 10).is_some() && pages.short() == 0);
    }

    #[test]
    fn a_slot_given_back_is_taken_again() {
        let mut pages = granted();
        let first = pages.take(None, 100).unwrap();
        let second = pages.take(None, 100).unwrap();
        pages.give_back(first);
        assert_eq!(pages.take(None, 50).unwrap().slot, first.slot);
        assert_eq!(pages.take(None, 50).unwrap().slot.0, second.slot.0 + 1);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut pages = SlotAllocator::default();
        pages.grant(PageNo(1), 10_000);
        for near in 0..5_000 {
            pages.take(Some(PageNo(100_000 + near)), 4000).unwrap();
        }
        assert!(pages.open.len() <= OPEN_PAGES_MAX && pages.near.len() <= NEAR_MAX);
        // Others are granted the pages between.
        for extent in 0..1_000 {
            pages.grant(PageNo(20_000 + 64 * extent), EXTENT_PAGES);
        }
        assert_eq!(pages.fresh.len(), FRESH_RUNS_MAX);
        pages.grant(PageNo(20_000 + 64 * 999 + EXTENT_PAGES), EXTENT_PAGES);
        let last = pages.fresh.back().map(ExactSizeIterator::len);
        assert_eq!(last, Some(2 * EXTENT_PAGES as usize), "one run");
    }
}
