//! Random publications and transactions against a model of the home: whatever
//! happens, a transaction sees one state, and its evidence is true.

mod common;

use common::*;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use thorp_cache::{Cache, Doomed, ReadError, ReadSet};
use thorp_model::{Image, Place, Position, Publish, Slot, SlotSet, Xoshiro256};

const PAGES: usize = 6;
const SLOTS: usize = 5;
const READERS: usize = 4;
const SEEDS: u64 = 400;
const STEPS: usize = 500;

/// A page at the home.
#[derive(Clone, Copy, Default)]
struct HomePage {
    version: u64,
    values: [u64; SLOTS],
}

/// The home's whole past, and what the member holds of it.
struct Village {
    dice: Xoshiro256,
    /// By position.
    past: Vec<[HomePage; PAGES]>,
    /// Cached pages, with their holes.
    cached: [Option<[bool; SLOTS]>; PAGES],
    /// When each page was last invalidated as a whole.
    dropped: [u64; PAGES],
    cache: Cache,
    written: u64,
}

/// A transaction and what it was told.
#[derive(Default)]
struct Reader {
    set: ReadSet,
    only_reads: bool,
    seen: Vec<(usize, usize, u64)>,
}

/// How transactions ended, so that the test shows that all happens.
#[derive(Default, Debug)]
struct Ends {
    current: u64,
    frozen: u64,
    changed: u64,
    newer: u64,
    outrun: u64,
    behind: u64,
    old_images: u64,
    refused: u64,
}

impl Village {
    fn new(seed: u64) -> Self {
        let mut dice = Xoshiro256::new(seed);
        // Sometimes so few changes are remembered that readers are outrun.
        let remembered = [7, 63, 1023][dice.below(3) as usize];
        let mut first = [HomePage::default(); PAGES];
        for (n, page) in first.iter_mut().enumerate() {
            page.values = std::array::from_fn(|slot| (n * SLOTS + slot + 1) as u64);
        }
        let village = Village {
            dice,
            past: vec![first],
            cached: [None; PAGES],
            dropped: [0; PAGES],
            cache: Cache::remembering(1 << 20, remembered),
            written: 1000,
        };
        village.cache.publish(&at(0));
        village
    }

    fn position(&self) -> u64 {
        (self.past.len() - 1) as u64
    }

    fn now(&self) -> &[HomePage; PAGES] {
        self.past.last().expect("there is a first")
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0..8 => self.commit(),
            8..14 => self.fetch(),
            14..18 => self.evict(),
            18 => self.cache.publish(&at(self.position())),
            _ if self.dice.below(8) == 0 => self.break_stream(),
            _ => {}
        }
    }

    /// A commit at the home; the member hears of the pages it holds.
    fn commit(&mut self) {
        let mut state = *self.now();
        let position = self.position() + 1;
        let mut touched = [SlotSet::default(); PAGES];
        for _ in 0..=self.dice.below(4) {
            let (page, slot) = (self.page(), self.dice.below(SLOTS as u64) as usize);
            self.written += 1;
            state[page].values[slot] = self.written;
            state[page].version = position;
            touched[page].insert(Slot(slot as u16));
        }
        self.past.push(state);
        let mut publish = at(position);
        for (number, slots) in touched.into_iter().enumerate() {
            if !slots.is_empty() && self.cached[number].is_some() {
                self.deliver(&mut publish, number, slots);
            }
        }
        self.cache.publish(&publish);
    }

    /// A changed page comes as new values, as holes, or is dropped.
    fn deliver(&mut self, publish: &mut Publish, number: usize, slots: SlotSet) {
        let how = self.dice.below(10);
        if how == 0 {
            self.cached[number] = None;
            self.dropped[number] = publish.position.0;
            publish.touched.push((page(number as u32), SlotSet::ALL));
            publish.images.push((page(number as u32), None));
            return;
        }
        let holes = self.cached[number].as_mut().expect("cached");
        for slot in slots.iter() {
            holes[usize::from(slot.0)] = how < 4;
        }
        publish.touched.push((page(number as u32), slots));
        let image = self.image(number);
        publish.images.push((page(number as u32), Some(image)));
    }

    fn image(&self, number: usize) -> Image {
        let home = self.now()[number];
        let holes = self.cached[number].expect("cached");
        let values: Vec<u64> = (0..SLOTS)
            .map(|slot| if holes[slot] { 0 } else { home.values[slot] })
            .collect();
        image(home.version, &values)
    }

    fn fetch(&mut self) {
        let number = self.page();
        self.cached[number] = Some([false; SLOTS]);
        let come = arrives(self.position(), number as u32, self.image(number));
        self.cache.publish(&come);
    }

    fn evict(&mut self) {
        let number = self.page();
        if self.cached[number].take().is_some() {
            self.cache.publish(&evicts(self.position(), number as u32));
        }
    }

    /// The member was away: the home went on meanwhile. What has changed is gone, and nobody
    /// heard how (rule 13); the rest stays.
    fn break_stream(&mut self) {
        let mut missed = BTreeSet::new();
        for _ in 0..self.dice.below(3) {
            let mut state = *self.now();
            let (page, position) = (self.page(), self.position() + 1);
            self.written += 1;
            state[page].values[0] = self.written;
            state[page].version = position;
            self.past.push(state);
            if self.cached[page].is_some() {
                missed.insert(page);
            }
        }
        let mut publish = at(self.position());
        for number in &missed {
            self.cached[*number] = None;
            self.dropped[*number] = self.position();
            publish.images.push((page(*number as u32), None));
        }
        let missed = missed.into_iter().map(|number| page(number as u32));
        publish.missed = Some(missed.collect());
        self.cache.publish(&publish);
    }

    fn page(&mut self) -> usize {
        self.dice.below(PAGES as u64) as usize
    }

    /// The positions at which a slot held this value. Values are written once.
    fn span(&self, (page, slot, value): (usize, usize, u64)) -> RangeInclusive<u64> {
        let held = |state: &[HomePage; PAGES]| state[page].values[slot] == value;
        let first = self.past.iter().position(held).expect("it was written");
        let last = self.past.iter().rposition(held).expect("it was written");
        first as u64..=last as u64
    }

    /// Opacity: there is a position at which all of it is the home's state.
    fn assert_one_state(&self, seen: &[(usize, usize, u64)]) {
        let spans = seen.iter().map(|read| self.span(*read));
        let (first, last) = spans.fold((0, u64::MAX), |(first, last), span| {
            (first.max(*span.start()), last.min(*span.end()))
        });
        assert!(first <= last, "{seen:?} are of no one state");
    }

    /// What nobody can ask for goes with the next publications.
    fn assert_nothing_old_is_left(&self, readers: &mut [Reader]) {
        readers.iter_mut().for_each(|reader| reader.again(self));
        self.cache.publish(&at(self.position()));
        assert_eq!(self.cache.old_bytes(), 0);
    }

    fn assert_changed(&self, reader: &Reader, place: Place) {
        let changed = |read: &(usize, usize, u64)| {
            let (page, span) = (read.0, self.span(*read));
            let overwritten = *span.end() < self.position();
            page == place.page.page.0 as usize
                && (overwritten || self.dropped[page] > *span.start())
        };
        assert!(reader.seen.iter().any(changed), "doomed without a reason");
    }
}

impl Reader {
    fn step(&mut self, village: &mut Village, ends: &mut Ends) {
        if village.dice.below(8) == 0 {
            return self.end(village, ends);
        }
        if self.seen.is_empty() && village.dice.below(2) == 0 {
            self.set.only_reads();
            self.only_reads = true;
        }
        if self.only_reads && village.dice.below(30) == 0 {
            self.only_reads = false;
            let behind = self.set.behind();
            match self.set.writes() {
                Ok(()) => assert_eq!(behind, None, "it has read behind a change"),
                Err(doomed) => return self.doom(doomed, village, ends),
            }
        }
        let (page, slot) = (village.page(), village.dice.below(SLOTS as u64) as usize);
        match read(&mut self.set, &village.cache, page as u32, slot as u16) {
            Ok(value) => {
                self.seen.push((page, slot, value));
                village.assert_one_state(&self.seen);
            }
            Err(ReadError::Doomed(doomed)) => self.doom(doomed, village, ends),
            Err(ReadError::Miss(_)) => {
                let holes = village.cached[page];
                let frozen_or_hole = holes.is_none_or(|holes| holes[slot]);
                assert!(frozen_or_hole, "a miss without a reason");
            }
        }
    }

    fn end(&mut self, village: &Village, ends: &mut Ends) {
        match self.set.evidence(&village.cache, HOME) {
            Ok(Position(evidence)) => {
                for (page, slot, value) in &self.seen {
                    let then = village.past[evidence as usize][*page].values[*slot];
                    assert_eq!(then, *value, "page {page} slot {slot} at {evidence}");
                }
                if self.set.behind().is_some() {
                    assert!(evidence < village.position(), "behind, and at the newest");
                    ends.behind += 1;
                } else if evidence == village.position() {
                    ends.current += 1;
                } else {
                    ends.frozen += 1;
                }
                self.again(village);
            }
            Err(doomed) => self.doom(doomed, village, ends),
        }
    }

    fn doom(&mut self, doomed: Doomed, village: &Village, ends: &mut Ends) {
        match doomed {
            Doomed::Changed(place) => {
                assert!(!self.only_reads, "who only reads stays behind");
                village.assert_changed(self, place);
                ends.changed += 1;
            }
            Doomed::Newer(_) => ends.newer += 1,
            Doomed::Outrun(_) => {
                assert!(!self.only_reads, "who only reads stays behind");
                ends.outrun += 1;
            }
            Doomed::WentBack(home) => panic!("home {home} never goes back here"),
            Doomed::Behind(_) => {
                assert!(!self.only_reads, "it does not write");
                ends.refused += 1;
            }
        }
        self.again(village);
    }

    fn again(&mut self, village: &Village) {
        self.set.finish(&village.cache);
        self.only_reads = false;
        self.seen.clear();
    }
}

#[test]
fn every_transaction_sees_one_state_and_its_evidence_is_true() {
    let mut ends = Ends::default();
    for seed in 0..SEEDS {
        let mut village = Village::new(seed);
        let mut readers: [Reader; READERS] = Default::default();
        // What fails names its seed.
        let _named = Named(seed);
        for _ in 0..STEPS {
            if village.dice.below(3) == 0 {
                village.step();
            }
            let reader = village.dice.below(READERS as u64) as usize;
            readers[reader].step(&mut village, &mut ends);
        }
        ends.old_images += village.cache.totals().old_images;
        village.assert_nothing_old_is_left(&mut readers);
    }
    println!("{ends:?}");
    let rare = [
        ends.current,
        ends.frozen,
        ends.changed,
        ends.newer,
        ends.outrun,
        ends.behind,
        ends.old_images,
        ends.refused,
    ];
    assert!(rare.iter().all(|count| *count > 20), "{ends:?}");
}

/// Prints the seed if the test fails under it.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed was {}", self.0);
        }
    }
}
