//! The directory against a naive one.

use super::*;
use alloc::collections::BTreeSet;

fn holder(child: u16, entry: u32) -> Holder {
    Holder {
        updates: 0,
        child: ChildNo(child),
        complete: true,
        entry: EntryNo(entry),
    }
}

const PAGE: PageId = PageId::new(1, 7);

#[test]
fn a_late_notice_does_not_strike_the_new_copy() {
    let mut directory = Directory::default();
    directory.enter(PAGE, holder(1, 1));
    directory.enter(PAGE, holder(1, 2));
    assert_eq!(directory.strike(PAGE, ChildNo(1), EntryNo(1)), Notice::Late);
    assert!(directory.is_held(PAGE));
    assert_eq!(
        directory.strike(PAGE, ChildNo(1), EntryNo(2)),
        Notice::Struck
    );
    assert!(directory.is_empty());
    assert_eq!(
        directory.strike(PAGE, ChildNo(1), EntryNo(2)),
        Notice::Absent
    );
}

#[test]
fn many_holders_come_and_go() {
    let mut directory = Directory::default();
    for child in 0..20 {
        directory.enter(PAGE, holder(child, 1));
        directory.enter(PageId::new(1, 8), holder(child, 2));
    }
    assert_eq!(directory.holders(PAGE).count(), 20);
    directory.set_incomplete(PAGE, Some(ChildNo(3)));
    let complete = directory.holders(PAGE).filter(|h| h.complete);
    assert_eq!(complete.count(), 1);
    for child in 0..19 {
        directory.child_went(ChildNo(child));
        assert!(directory.sweep(2).is_empty());
    }
    directory.child_went(ChildNo(19));
    assert_eq!(directory.sweep(2).len(), 2);
    assert!(directory.is_empty());
}

#[test]
fn an_entry_above_keeps_the_record() {
    let mut directory = Directory::default();
    directory.set_above(PAGE, EntryNo(5));
    directory.enter(PAGE, holder(1, 1));
    directory.remove(PAGE, ChildNo(1));
    assert_eq!(directory.above(PAGE), Some(EntryNo(5)));
    directory.clear_above(PAGE);
    assert!(directory.is_empty());
}

#[test]
fn what_a_child_holds_is_counted() {
    let mut directory = Directory::default();
    let holds = |directory: &Directory, child| {
        let pages = (0..9).map(|page| PageId::new(1, page));
        let held = pages.filter(|page| directory.holder(*page, ChildNo(child)).is_some());
        held.count()
    };
    for step in 0..2_000u32 {
        let page = PageId::new(1, step * 7 % 9);
        let child = (step * 5 % 4) as u16;
        match step * 11 % 13 {
            0..=6 => directory.enter(page, holder(child, step)),
            7 | 8 => {
                directory.remove(page, ChildNo(child));
            }
            9 => {
                directory.strike(page, ChildNo(child), EntryNo(step / 2));
            }
            10 => directory.remove_page(page),
            11 => directory.set_above(page, EntryNo(1)),
            _ if step % 5 == 0 => {
                directory.child_went(ChildNo(child));
                directory.sweep(9);
            }
            _ => directory.clear_above(page),
        }
        for child in 0..4 {
            assert_eq!(directory.held(ChildNo(child)), holds(&directory, child));
        }
    }
}

#[test]
fn records_are_small() {
    assert!(size_of::<Record>() <= 20);
    assert!(size_of::<Holder>() <= 8);
}

/// What a directory says, without numbers given anew and without sweeping.
#[derive(Default)]
struct Naive {
    pages: BTreeMap<PageId, BTreeMap<u32, Holder>>,
    above: BTreeMap<PageId, EntryNo>,
}

impl Naive {
    fn holders(&self, page: PageId) -> Vec<Holder> {
        let holders = self.pages.get(&page).into_iter();
        holders
            .flat_map(|holders| holders.values().copied())
            .collect()
    }
}

/// Children by the numbers that they have in the directory; each has a name of its own.
struct Both {
    directory: Directory,
    naive: Naive,
    names: BTreeMap<u16, u32>,
    named: u32,
    /// Pages that a child that has gone was the last to hold, and that were not told yet.
    untold: BTreeSet<PageId>,
}

const PAGES: u32 = 40;

impl Both {
    fn new() -> Self {
        Both {
            directory: Directory::default(),
            naive: Naive::default(),
            names: BTreeMap::new(),
            named: 0,
            untold: BTreeSet::new(),
        }
    }

    fn child(&mut self, random: u32) -> Option<ChildNo> {
        let at = random as usize % self.names.len().max(1);
        self.names.keys().nth(at).map(|no| ChildNo(*no))
    }

    fn comes(&mut self) {
        let no =
            (0..).find(|no| !self.names.contains_key(no) && !self.directory.is_going(ChildNo(*no)));
        let no = no.expect("a free number");
        assert_eq!(self.directory.held(ChildNo(no)), 0);
        self.named += 1;
        self.names.insert(no, self.named);
    }

    fn goes(&mut self, no: ChildNo) {
        let name = self.names.remove(&no.0).expect("a child");
        self.directory.child_went(no);
        for (page, holders) in &mut self.naive.pages {
            if holders.remove(&name).is_some() && holders.is_empty() {
                self.untold.insert(*page);
            }
        }
    }

    fn enters(&mut self, page: PageId, no: ChildNo, entry: u32) {
        let holder = holder(no.0, entry);
        self.directory.enter(page, holder);
        self.untold.remove(&page);
        let name = self.names[&no.0];
        self.naive
            .pages
            .entry(page)
            .or_default()
            .insert(name, holder);
    }

    fn evicts(&mut self, page: PageId, no: ChildNo, entry: u32) {
        let name = self.names[&no.0];
        let notice = self.directory.strike(page, no, EntryNo(entry));
        let holders = self.naive.pages.entry(page).or_default();
        let expected = match holders.get(&name) {
            None => Notice::Absent,
            Some(holder) if holder.entry.0 > entry => Notice::Late,
            Some(_) => {
                holders.remove(&name);
                Notice::Struck
            }
        };
        assert_eq!(notice, expected);
    }

    fn step(&mut self, random: u32, entry: u32) {
        let page = PageId::new(1, random / 64 % PAGES);
        let child = self.child(random / 4096);
        match (random % 32, child) {
            (0 | 1, _) if self.names.len() < 12 => self.comes(),
            (2, Some(no)) => self.goes(no),
            (3..=6, Some(no)) => self.evicts(page, no, entry - random % 3),
            (7, _) => {
                self.directory.remove_page(page);
                self.naive.pages.remove(&page);
                self.naive.above.remove(&page);
                self.untold.remove(&page);
            }
            (8, _) => {
                self.directory.set_above(page, EntryNo(entry));
                self.naive.above.insert(page, EntryNo(entry));
            }
            (9, _) => {
                // Whoever does so has given it up.
                self.directory.clear_above(page);
                self.naive.above.remove(&page);
                self.untold.remove(&page);
            }
            (10, Some(no)) => {
                self.directory.set_incomplete(page, Some(no));
                for holder in self.naive.pages.entry(page).or_default().values_mut() {
                    holder.complete &= holder.child == no;
                }
            }
            (11, Some(no)) => {
                self.directory.set_complete(page, no, true);
                let name = self.names[&no.0];
                let holders = self.naive.pages.entry(page).or_default();
                holders
                    .entry(name)
                    .and_modify(|holder| holder.complete = true);
            }
            (12..=14, _) => self.sweeps(random as usize / 64 % 8 + 1),
            (_, Some(no)) => self.enters(page, no, entry),
            _ => {}
        }
    }

    fn sweeps(&mut self, pages: usize) {
        for page in self.directory.sweep(pages) {
            assert!(!self.directory.is_held(page));
            self.untold.remove(&page);
        }
    }

    fn check(&self) {
        for page in (0..PAGES).map(|page| PageId::new(1, page)) {
            let mut told: Vec<Holder> = self.directory.holders(page).collect();
            let mut expected = self.naive.holders(page);
            told.sort_by_key(|holder| holder.child);
            expected.sort_by_key(|holder| holder.child);
            assert_eq!(told, expected);
            assert_eq!(self.directory.is_held(page), !expected.is_empty());
            assert_eq!(
                self.directory.above(page),
                self.naive.above.get(&page).copied()
            );
        }
        for (no, name) in &self.names {
            let holders = self.naive.pages.values();
            let held = holders.filter(|holders| holders.contains_key(name)).count();
            assert_eq!(self.directory.held(ChildNo(*no)), held);
        }
    }

    /// Whoever has gone leaves nothing behind.
    fn ends(&mut self) {
        self.sweeps(2 * PAGES as usize);
        self.sweeps(2 * PAGES as usize);
        assert!((0..64).all(|no| !self.directory.is_going(ChildNo(no))));
        assert!(self.untold.is_empty());
        let pages = (0..PAGES).map(|page| PageId::new(1, page));
        let known = pages.filter(|page| {
            !self.naive.holders(*page).is_empty() || self.naive.above.contains_key(page)
        });
        assert_eq!(self.directory.len(), known.count());
    }
}

#[test]
fn a_directory_that_is_swept_bit_by_bit_says_what_a_naive_one_does() {
    for seed in 0..60u64 {
        let mut both = Both::new();
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1;
        for entry in 3..600u32 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            both.step((state >> 33) as u32, entry);
            both.check();
        }
        both.ends();
    }
}

#[test]
fn the_end_of_a_child_looks_at_no_page() {
    let mut directory = Directory::default();
    for page in 0..100 {
        directory.enter(PageId::new(1, page), holder(1, 1));
    }
    directory.child_went(ChildNo(1));
    assert!(!directory.is_held(PAGE) && directory.is_going(ChildNo(1)));
    assert_eq!(directory.len(), 100);
    for _ in 0..9 {
        assert_eq!(directory.sweep(10).len(), 10);
        assert!(directory.is_going(ChildNo(1)));
    }
    assert_eq!(directory.sweep(10).len(), 10);
    assert!(directory.is_empty() && !directory.is_going(ChildNo(1)));
}
