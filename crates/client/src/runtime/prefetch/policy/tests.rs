//! Programs that read pages, and what is prefetched for them.

use super::*;

fn place(page: u32) -> Place {
    Place {
        home: HomeId(1),
        page: PageId::new(1, page),
    }
}

/// A program that reads pages, and waits when one is not here: how often, and how many were prefetched.
fn waits(
    pages_max: usize,
    extent: u32,
    pages: impl Iterator<Item = u32>,
) -> (usize, PrefetchCounts) {
    let ahead = PrefetchPolicy::new(pages_max);
    let (mut here, mut read) = (HashSet::new(), HashSet::new());
    let mut waits = 0;
    for page in pages.map(place) {
        if !here.contains(&page) {
            waits += 1;
            let (is_read, is_here) = (|p| read.contains(&p), |p| here.contains(&p));
            let chosen = ahead.missed(page, Some(PageNo(extent)), is_read, is_here);
            assert!(!chosen.contains(&page) && chosen.len() <= pages_max);
            here.insert(page);
            here.extend(chosen);
            ahead.came(page, Duration::from_millis(40));
        }
        read.insert(page);
    }
    ahead.ended(read.iter().copied(), |p| read.contains(&p));
    (waits, ahead.counts())
}

/// The same numbers each time, in no order.
fn scattered(count: u64, below: u64) -> impl Iterator<Item = u32> {
    (0..count).map(move |n| 1 + (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as u32 % below as u32)
}

#[test]
fn who_goes_through_a_segment_waits_seldom() {
    let (waits, counts) = waits(64, 2001, 1..=2000);
    assert!(waits < 2000 / 20, "{waits}");
    assert!(
        counts.used > 1800 && counts.requested - counts.used <= 64,
        "{counts:?}"
    );
}

#[test]
fn who_wants_all_of_it_in_any_order_waits_seldom_too() {
    let (waits, counts) = waits(64, 501, scattered(20_000, 500));
    assert!(waits < 500 / 5, "{waits}");
    assert!(counts.used > 400, "{counts:?}");
}

#[test]
fn who_wants_a_page_here_and_there_is_not_flooded() {
    let (waits, counts) = waits(64, 10_000_001, scattered(6_000, 10_000_000));
    assert!(waits > 5_900);
    // Less than one for each wait in the long run.
    assert!(counts.requested < waits as u64 / 2, "{counts:?}");
    assert_eq!(
        counts.used + counts.wasted + WAITING_MAX as u64,
        counts.requested
    );
}

#[test]
fn none_is_fetched_ahead_if_none_may_be() {
    let (waits, counts) = waits(0, 101, 1..=100);
    assert_eq!((waits, counts), (100, PrefetchCounts::default()));
}

/// None of it stays: each page is gone before it is read.
#[test]
fn a_cache_that_is_too_small_is_not_flooded() {
    let ahead = PrefetchPolicy::new(64);
    for round in 0..20 {
        for page in 1..=200 {
            let extent = Some(PageNo(201));
            ahead.missed(place(page), extent, |_| false, |_| round % 2 == 1);
        }
    }
    let counts = ahead.counts();
    assert!(
        counts.wasted > 100 && counts.requested < 20 * 200 / 4,
        "{counts:?}"
    );
}

#[test]
fn what_the_site_says_comes_first_and_is_kept_while_there_is_no_credit() {
    let ahead = PrefetchPolicy::new(64);
    let missed = |page| {
        let chosen = ahead.missed(place(page), Some(PageNo(1000)), |_| false, |_| false);
        ahead.came(place(page), Duration::from_millis(40));
        chosen
    };
    missed(500);
    let likely: Vec<Place> = (1..=8).map(|n| place(10 * n)).collect();
    let first = ahead.hinted(&likely, |_| false);
    assert_eq!(first, likely[..4]);
    // The next one is waited for: it is no guess any more.
    let chosen = missed(50);
    assert_eq!(chosen[..3], likely[5..]);
    assert!(chosen[3..].iter().all(|near| !likely.contains(near)));
    assert_eq!(ahead.hinted(&likely, |at| at == place(50)), []);
    assert_eq!(ahead.counts().hinted, 7);
}

/// Whatever a site says, and whatever values refer to: what is of no use is hardly asked for.
#[test]
fn who_is_told_what_is_not_so_is_not_flooded() {
    let ahead = PrefetchPolicy::new(64);
    for wait in 0..6_000 {
        let guesses = (1..=16).map(|n| place(1_000_000 + 100 * wait + n));
        let guesses: Vec<Place> = guesses.collect();
        ahead.missed(place(1), Some(PageNo(2)), |_| false, |_| false);
        let here = |place: Place| place.page.page.0 < 1_000_000 + 100 * wait;
        ahead.hinted(&guesses[..8], here);
        ahead.referred(guesses[8..].iter().copied(), here);
        ahead.came(place(1), Duration::from_millis(40));
    }
    let counts = ahead.counts();
    assert!(counts.requested < 6_000 && counts.used == 0, "{counts:?}");
}

/// Requests what is near a page, and has all of it at once, as from the memory of a site. Gives how many pages that
/// were.
fn has_at_once(ahead: &PrefetchPolicy, page: u32, here: &mut HashSet<Place>) -> usize {
    let before = ahead.counts().requested;
    let extent = Some(PageNo(10_000_001));
    let mut comes =
        VecDeque::from(ahead.missed(place(page), extent, |_| false, |p| here.contains(&p)));
    here.insert(place(page));
    while let Some(page) = comes.pop_front() {
        assert!(here.insert(page), "asked for twice: {page:?}");
        comes.extend(ahead.arrived(page, |p| here.contains(&p)));
    }
    (ahead.counts().requested - before) as usize
}

/// What comes from afar takes longer than any test.
fn is_far(ahead: &PrefetchPolicy) {
    for _ in 0..10 {
        ahead.came(place(1), Duration::from_secs(1000));
    }
}

#[test]
fn what_is_nearby_costs_little() {
    let (ahead, mut here) = (PrefetchPolicy::new(64), HashSet::new());
    assert_eq!(
        has_at_once(&ahead, 500, &mut here),
        4,
        "nobody knows what is far"
    );
    is_far(&ahead);
    assert_eq!(
        has_at_once(&ahead, 2000, &mut here),
        49,
        "of four pages' credit each takes one and gives fifteen sixteenths back"
    );
}

/// Requests what is near a page. A neighbour gets all of these pages, too. Gives how many pages that were.
fn joins_all(ahead: &PrefetchPolicy, page: u32) -> usize {
    let before = ahead.counts().requested;
    let extent = Some(PageNo(10_000_001));
    let mut requested = VecDeque::from(ahead.missed(place(page), extent, |_| false, |_| false));
    while let Some(page) = requested.pop_front() {
        requested.extend(ahead.joined(page, |_| false));
        assert_eq!(ahead.joined(page, |_| false), [], "requested once");
    }
    (ahead.counts().requested - before) as usize
}

#[test]
fn what_a_neighbour_gets_too_costs_little_before_it_has_come() {
    let ahead = PrefetchPolicy::new(64);
    let room = 4 * 8;
    assert_eq!(joins_all(&ahead, 500), room, "as many as may be under way");
    assert_eq!(ahead.arrived(place(501), |_| true), [], "it was paid back");
    assert_eq!(ahead.joined(place(9), |_| true), [], "nobody asked for it");
}

#[test]
fn whose_pages_are_seldom_read_pays_a_quarter_for_what_neighbours_get() {
    let ahead = PrefetchPolicy::new(64);
    for page in 0..400 {
        joins_all(&ahead, 10_000 * (page + 1));
        lock(&ahead.state).under_way.clear();
    }
    let before = ahead.counts().requested;
    for page in 400..800 {
        joins_all(&ahead, 10_000 * (page + 1));
        lock(&ahead.state).under_way.clear();
    }
    let asked = ahead.counts().requested - before;
    // A quarter of a page for each wait buys one, and three quarters come back.
    assert!((300..=410).contains(&asked), "{asked}");
}

#[test]
fn who_wants_a_page_here_and_there_is_not_flooded_by_neighbours_either() {
    let (ahead, mut here) = (PrefetchPolicy::new(64), HashSet::new());
    is_far(&ahead);
    let pages: Vec<u32> = scattered(6_000, 10_000_000).collect();
    let asked: usize = pages
        .iter()
        .map(|page| has_at_once(&ahead, *page, &mut here))
        .sum();
    assert!(asked < 2 * pages.len(), "{asked}");
}

#[test]
fn what_the_program_names_is_counted_however_much_it_is() {
    let ahead = PrefetchPolicy::new(64);
    for page in 1..=10_000 {
        ahead.named(place(page));
    }
    let read = || (9_601..=10_000).map(place);
    ahead.ended(read(), |_| false);
    let counts = ahead.counts();
    assert_eq!((counts.requested, counts.used), (10_000, 400));
    assert_eq!(counts.wasted, 10_000 - WAITING_MAX as u64);
    let state = lock(&ahead.state);
    assert_eq!(state.waiting.len(), WAITING_MAX - 400);
    assert_eq!(state.waiting.len(), state.is_waiting.len());
    assert!(state.under_way.len() <= WAITING_MAX);
}

#[test]
fn large_objects_and_what_precedes_all_objects_are_left_out() {
    let overflow = Place {
        page: PageId {
            page: PageNo::OVERFLOW_FIRST,
            ..place(1).page
        },
        ..place(1)
    };
    let ahead = PrefetchPolicy::new(64);
    let missed = |place, extent| ahead.missed(place, extent, |_| false, |_| false);
    assert_eq!(missed(overflow, None), []);
    // Nobody knows of any other page.
    assert_eq!(missed(place(3), None), [place(2), place(1)]);
    assert_eq!(missed(place(1), None), [place(3)]);
    let chosen = missed(place(3), Some(PageNo(6)));
    assert_eq!(chosen, [place(4), place(5)]);
}
