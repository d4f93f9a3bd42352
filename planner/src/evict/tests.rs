//! Sequences worked out by hand, and what has to hold for any sequence.

use super::*;
use fastrand::Rng;

/// What goes, request by request: a page, `.` if nothing does, `+` for a hit.
fn story(memory: &mut dyn Evictor, pages: &[u32]) -> String {
    let step = |&page: &u32| match memory.touch(page) {
        true => "+".to_owned(),
        false => memory
            .admit(page)
            .map_or(".".to_owned(), |gone| gone.to_string()),
    };
    pages.iter().map(step).collect::<Vec<_>>().join(" ")
}

#[test]
fn lru_lets_go_of_the_least_recently_used() {
    let told = story(&mut Lru::new(3, 9), &[1, 2, 3, 1, 4, 2, 1, 5]);
    assert_eq!(told, ". . . + 2 3 + 4");
}

#[test]
fn fifo_lets_go_of_the_first_in() {
    let told = story(&mut Fifo::new(3, 9), &[1, 2, 3, 1, 4, 1, 2, 5]);
    assert_eq!(told, ". . . + 1 2 3 4");
}

#[test]
fn clock_gives_a_second_chance() {
    // 1 was used, so it goes to the front unused, and 2 goes; then 3, which was not used; then 1.
    let told = story(&mut Clock::new(3, 9), &[1, 2, 3, 1, 4, 5, 6]);
    assert_eq!(told, ". . . + 2 3 1");
}

/// A member's page cache in short: the clock that runs there, with the mark beside each page.
struct Running {
    clock: thorp_policy::Clock<u32>,
    pages: std::collections::BTreeMap<u32, (thorp_policy::Seat, bool)>,
}

impl Running {
    fn admit(&mut self, page: u32, capacity: usize) -> Option<u32> {
        let is_full = self.pages.len() >= capacity;
        let gone = if is_full { self.evict() } else { None };
        self.pages.insert(page, (self.clock.sit(page), false));
        gone
    }

    fn evict(&mut self) -> Option<u32> {
        let pages = &mut self.pages;
        let victims = self.clock.choose(1, |page| match pages.get_mut(&page) {
            None => thorp_policy::Candidate::Absent,
            Some((_, is_used)) if *is_used => {
                *is_used = false;
                thorp_policy::Candidate::Used
            }
            Some(_) => thorp_policy::Candidate::Idle { bytes: 1 },
        });
        let page = victims.pages.first().copied()?;
        let (seat, _) = self.pages.remove(&page)?;
        self.clock.leave(seat);
        Some(page)
    }
}

#[test]
fn the_clock_that_runs_takes_the_same_pages() {
    for seed in 0..20 {
        let capacity = [1, 2, 7, 40][seed as usize % 4];
        let mut planned = Clock::new(capacity, 100);
        let mut running = Running {
            clock: thorp_policy::Clock::default(),
            pages: std::collections::BTreeMap::new(),
        };
        for page in some_trace(seed, 3000, 100) {
            let is_hit = planned.touch(page);
            if let Some((_, is_used)) = running.pages.get_mut(&page) {
                *is_used = true;
                assert!(is_hit, "capacity {capacity}, seed {seed}");
            } else {
                let gone = running.admit(page, capacity);
                assert_eq!(
                    planned.admit(page),
                    gone,
                    "capacity {capacity}, seed {seed}"
                );
            }
        }
    }
}

#[test]
fn sieve_sifts_from_where_its_hand_stands() {
    // 1 is used and stays at its place; the hand takes 2 and stands at 3. 3 goes for 5, then the hand is at 4, which was
    // used, passes 5, which goes for 6; the newest is behind it, so that the next round starts at 1.
    let told = story(&mut Sieve::new(3, 9), &[1, 2, 3, 1, 4, 5, 4, 6, 7]);
    assert_eq!(told, ". . . + 2 3 + 5 1");
}

#[test]
fn s3fifo_lets_go_of_what_is_asked_for_once() {
    // Small 1, main 9, ghost 9. Page 0 fills the small queue; 1 to 9 go to the main one, since nothing has gone yet.
    let mut memory = S3Fifo::new(10, 40);
    assert_eq!(
        story(&mut memory, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ". . . . . . . . . ."
    );
    // 10 pushes 0 out of the small queue into the ghost list; so does 11 with 10; then 0 comes back, into the main one,
    // and 11 goes for it. Main has 10 now, one too many, so the next loss is there: 1.
    assert_eq!(story(&mut memory, &[10, 11, 0, 12]), "0 10 11 1");
    // Asked for twice in the small queue, 12 moves on and main is full: 2 was used and gets another chance, 3 goes.
    assert_eq!(story(&mut memory, &[2, 12, 12, 13]), "+ + + 3");
    assert!(memory.holds(12) && memory.holds(2) && memory.len() == 10);
}

#[test]
fn tinylfu_keeps_what_is_asked_for_more_often() {
    // Window 1, main 3 of which 2 protected.
    let mut memory = WTinyLfu::new(4, 40);
    assert_eq!(story(&mut memory, &[1, 2, 3, 4]), ". . . .");
    // Pages that come once are not better than 1, which came once, too: they leave from the window.
    assert_eq!(story(&mut memory, &[5, 6, 7]), "4 5 6");
    // 4 comes for the second time, and has come more often than 1 when it leaves the window.
    assert_eq!(story(&mut memory, &[4, 8]), "7 1");
    assert!(memory.holds(4) && memory.holds(8));
}

#[test]
fn lru_at_a_position_spares_what_is_older() {
    // Of 1, 2, 3 (oldest first) with one spared, 2 goes for 4; then 3; a hit brings 1 up, and 4 becomes the oldest.
    let told = story(&mut LruAt::new(3, 1, 9), &[1, 2, 3, 4, 5, 1, 6, 7]);
    assert_eq!(told, ". . . 2 3 + 5 1");
    // Nothing but the page that came last can go.
    let told = story(&mut LruAt::new(3, 99, 9), &[1, 2, 3, 4, 5, 1]);
    assert_eq!(told, ". . . 3 4 +");
}

#[test]
fn belady_by_hand() {
    // The text-book's sequence with three frames: nine faults if each page had to be taken in, eight if it need not be.
    let pages = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1];
    assert_eq!(belady_hits(&pages, 3, 8), 12);
    assert_eq!(belady_hits(&[1, 2, 1, 2, 1, 2], 1, 3), 2);
    assert_eq!(belady_hits(&[1, 1, 1], 0, 3), 0);
}

/// The most hits, by trying all that can be held after each request.
fn most_hits(pages: &[u32], capacity: u32) -> u64 {
    let mut best = std::collections::HashMap::from([(0u32, 0u64)]);
    for page in pages.iter().map(|page| 1u32 << page) {
        let mut after = std::collections::HashMap::new();
        for (held, hits) in best {
            let hits = hits + u64::from(held & page != 0);
            let all = held | page;
            let less = (0..32).map(|gone| all & !(1 << gone));
            for held in less
                .chain([all])
                .filter(|held| held.count_ones() <= capacity)
            {
                let most = after.entry(held).or_insert(0);
                *most = hits.max(*most);
            }
        }
        best = after;
    }
    best.into_values().max().unwrap_or(0)
}

#[test]
fn belady_is_the_best_of_all_that_can_be_done() {
    for seed in 0..60 {
        let pages = some_trace(seed, 40, 7);
        for capacity in 1..5 {
            assert_eq!(
                belady_hits(&pages, capacity, 7),
                most_hits(&pages, capacity as u32),
                "{capacity}, seed {seed}"
            );
        }
    }
}

/// Requests with some pages dearer than others, runs, and a drift: what traces have.
pub(crate) fn some_trace(seed: u64, len: usize, footprint: u32) -> Vec<u32> {
    let mut random = Rng::with_seed(seed);
    let mut at = 0;
    let next = |request| match random.u8(..10) {
        0..4 => (f64::from(footprint) * random.f64().powi(4)) as u32,
        4..7 => (request as u32 / 7 + random.u32(..20)) % footprint,
        7..9 => {
            at = (at + 1) % footprint;
            at
        }
        _ => random.u32(..footprint),
    };
    (0..len).map(next).collect()
}

#[test]
fn no_policy_beats_belady_and_none_holds_too_much() {
    for seed in 0..30 {
        let footprint = 20 + (seed as usize % 5) * 60;
        let pages = some_trace(seed, 4000, footprint as u32);
        for capacity in [1, 2, 3, 7, 10, 25, 100, footprint, footprint + 9] {
            let best = belady_hits(&pages, capacity, footprint);
            for kind in Kind::ALL {
                let mut memory = kind.memory(capacity, footprint);
                let hits: u64 = pages
                    .iter()
                    .map(|&page| u64::from(memory.request(page)))
                    .sum();
                assert!(
                    hits <= best,
                    "{kind} of {capacity}: {hits} above {best}, seed {seed}"
                );
                assert_eq!(hits, kind.hits(&pages, capacity, footprint), "{kind}");
                assert!(memory.len() <= capacity, "{kind}");
            }
        }
    }
}

#[test]
fn whatever_fits_whole_misses_each_page_once() {
    let pages = some_trace(3, 5000, 150);
    let firsts = StackDistances::of(&pages, 150).firsts();
    for kind in Kind::ALL {
        assert_eq!(kind.hits(&pages, 150, 150), 5000 - firsts, "{kind}");
    }
    assert_eq!(belady_hits(&pages, 150, 150), 5000 - firsts);
}

#[test]
fn what_is_here_is_what_was_taken_in_and_did_not_go() {
    for (seed, kind) in (0..).zip(Kind::ALL) {
        let mut random = Rng::with_seed(seed);
        let mut memory = kind.memory(20, 60);
        let mut here = std::collections::HashSet::new();
        for page in some_trace(seed, 5000, 60) {
            assert_eq!(memory.touch(page), here.contains(&page), "{kind}");
            if random.u8(..10) == 0 {
                assert_eq!(memory.remove(page), here.remove(&page), "{kind}");
            } else if here.insert(page)
                && let Some(gone) = memory.admit(page)
            {
                assert!(here.remove(&gone), "{kind}: {gone} was not here");
            }
            assert_eq!(memory.len(), here.len(), "{kind}");
            assert!(
                (0..60).all(|page| memory.holds(page) == here.contains(&page)),
                "{kind}"
            );
        }
    }
}

#[test]
fn making_room_first_is_the_same() {
    for (seed, kind) in (0..30).flat_map(|seed| Kind::ALL.map(|kind| (seed, kind))) {
        let capacity = [1, 2, 9, 30][seed as usize % 4];
        let mut at_once = kind.memory(capacity, 80);
        let mut before = kind.memory(capacity, 80);
        for page in some_trace(seed, 3000, 80) {
            let is_hit = at_once.touch(page);
            assert_eq!(before.touch(page), is_hit, "{kind} of {capacity}");
            if is_hit {
                continue;
            }
            let is_full = before.len() == capacity;
            let gone = if is_full { before.evict() } else { None };
            assert_eq!(before.admit(page), None, "{kind}: there is room");
            assert_eq!(
                at_once.admit(page),
                gone,
                "{kind} of {capacity}, seed {seed}"
            );
        }
    }
}

#[test]
fn all_that_is_here_can_go() {
    for (seed, kind) in (0..).zip(Kind::ALL) {
        let mut memory = kind.memory(20, 60);
        let mut here = std::collections::HashSet::new();
        for page in some_trace(seed, 500, 60) {
            if !memory.touch(page) {
                here.insert(page);
                if let Some(gone) = memory.admit(page) {
                    here.remove(&gone);
                }
            }
        }
        while let Some(gone) = memory.evict() {
            assert!(here.remove(&gone), "{kind}: {gone} was not here");
        }
        assert!(here.is_empty() && memory.is_empty(), "{kind}: {here:?}");
        memory.touch(7);
        assert_eq!(memory.admit(7), None, "{kind}");
    }
}

#[test]
fn larger_lru_memories_hold_what_smaller_ones_do() {
    for seed in 0..20 {
        let pages = some_trace(seed, 3000, 200);
        let told = StackDistances::of(&pages, 200);
        assert_eq!(told.requests(), 3000);
        let mut before = 0;
        for capacity in [1, 2, 5, 10, 50, 120, 199, 200, 300] {
            let hits = Kind::Lru.hits(&pages, capacity, 200);
            assert_eq!(
                hits,
                told.hits(capacity),
                "capacity {capacity}, seed {seed}"
            );
            assert!(hits >= before);
            before = hits;
        }
    }
}

#[test]
fn sparing_nothing_is_lru() {
    for seed in 0..10 {
        let pages = some_trace(seed, 3000, 200);
        assert_eq!(
            hits(&mut LruAt::new(50, 0, 200), &pages),
            Kind::Lru.hits(&pages, 50, 200)
        );
    }
}

#[test]
fn nothing_is_held_where_there_is_no_room() {
    for kind in Kind::ALL {
        assert_eq!(kind.hits(&[1, 1, 1], 0, 2), 0);
        assert_eq!(story(&mut *kind.memory(0, 2), &[1, 1]), "1 1");
        assert_eq!(kind.to_string().to_lowercase().parse(), Ok(kind));
    }
    assert_eq!("s3fifo".parse(), Ok(Kind::S3Fifo));
    assert!(
        "mru"
            .parse::<Kind>()
            .expect_err("none")
            .contains("w-tinylfu")
    );
}
