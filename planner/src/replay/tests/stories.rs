//! Requests whose answers are worked out by hand.

use super::*;

/// Where requests are answered, as `client` `page` pairs: l, r and the node, h, d.
fn story(kind: Kind, village: &Village, requests: &[(usize, u32)]) -> String {
    let mut policy = kind.policy(village, &Knobs::default()).expect("it can be");
    let told = requests
        .iter()
        .map(|&(client, page)| match policy.request(client, page) {
            Place::Local => "l".to_owned(),
            Place::Remote(node) => format!("r{node}"),
            Place::Home => "h".to_owned(),
            Place::Disk => "d".to_owned(),
        });
    told.collect::<Vec<_>>().join(" ")
}

#[test]
fn alone_nobody_knows_what_others_have() {
    let told = story(
        Kind::Alone,
        &village(2, 2, &[], 1),
        &[(0, 1), (0, 1), (1, 1), (0, 2), (1, 1), (1, 2), (0, 1)],
    );
    assert_eq!(told, "d l h d l h l");
}

#[test]
fn direct_memory_is_for_one_client() {
    // Client 0 keeps 1 at the server, which is node 2, and gets it back; client 1 does not.
    let told = story(
        Kind::Direct,
        &village(2, 1, &[4], 0),
        &[(0, 1), (0, 2), (0, 1), (1, 2), (1, 1), (1, 2), (0, 2)],
    );
    assert_eq!(told, "d d r2 d d r2 r2");
}

#[test]
fn greedy_clients_answer_with_what_they_have() {
    let told = story(
        Kind::Greedy,
        &village(2, 1, &[9], 0),
        &[(0, 1), (1, 1), (1, 2), (0, 2), (0, 1)],
    );
    // Nobody has 1 any more at the end; the server has never had anything.
    assert_eq!(told, "d r0 d r1 d");
}

#[test]
fn central_memory_takes_what_goes_from_the_home() {
    // Each client has one page of its own and four for all; the home has one.
    let village = village(2, 5, &[], 1);
    let told = story(
        Kind::Central,
        &village,
        &[(0, 1), (0, 2), (0, 1), (1, 2), (1, 3), (1, 1), (0, 2)],
    );
    // 1 went from the home when 2 came, and was put on the node with most room, the last of the same; 2 is still the home's
    // until 3 comes, and goes to the other.
    assert_eq!(told, "d d r1 h d r1 r0");
}

#[test]
fn the_last_copy_is_sent_around() {
    // Page 1 has to go from client 0 and is sent to the server, the only other node; then page 2, and both come back.
    let told = story(
        Kind::NChance,
        &village(1, 1, &[5], 0),
        &[(0, 1), (0, 2), (0, 3), (0, 1), (0, 2), (0, 2)],
    );
    assert_eq!(told, "d d d r1 r1 l");
    // A page with another copy is not: 1 goes from client 0, and client 1 has it. When it has to go from there, it is the last,
    // and client 0 takes it in for 2, which both have; and then the same the other way round.
    let two = village(2, 1, &[], 0);
    let told = story(
        Kind::NChance,
        &two,
        &[(0, 1), (1, 1), (0, 2), (1, 2), (1, 1), (0, 2)],
    );
    assert_eq!(told, "d r0 d r0 r0 l");
}

#[test]
fn hashed_pages_are_where_their_number_says() {
    let village = village(1, 1, &[8], 0);
    let knobs = Knobs {
        shared: 0.0,
        ..Knobs::default()
    };
    let mut policy = Kind::Hashed.policy(&village, &knobs).expect("it can be");
    let told: Vec<Place> = [1, 2, 1, 2, 2].map(|page| policy.request(0, page)).to_vec();
    // A home without memory sends on at once what it has read.
    assert_eq!(
        told,
        [
            Place::Disk,
            Place::Disk,
            Place::Remote(1),
            Place::Remote(1),
            Place::Local
        ]
    );
    assert_eq!(
        (policy.traffic().home_asked, policy.traffic().forwarded),
        (2, 2)
    );
}

#[test]
fn weighted_prefers_to_lose_what_others_have() {
    // Client 1 has 1 and 2; 1 is older, but client 0 has it, too. For 3 it loses 1, although all else is younger. Then 2 is the
    // oldest and the last copy: it goes where client 0 has nothing yet.
    let told = story(
        Kind::Weighted,
        &village(2, 2, &[], 0),
        &[
            (0, 1),
            (1, 2),
            (1, 1),
            (1, 3),
            (1, 2),
            (1, 4),
            (1, 2),
            (1, 3),
        ],
    );
    assert_eq!(told, "d d r0 d l d l r0");
}

#[test]
fn global_memory_goes_by_age() {
    for kind in [Kind::GlobalLru, Kind::Gms, Kind::Balanced] {
        // The server has room: what goes from the client is kept there, and moves back.
        let told = story(
            kind,
            &village(1, 1, &[2], 0),
            &[(0, 1), (0, 2), (0, 3), (0, 1), (0, 2), (0, 2)],
        );
        assert_eq!(told, "d d d r1 r1 l", "{kind}");
    }
    // Three pages fit; the fourth pushes out the oldest of all.
    let told = story(
        Kind::GlobalLru,
        &village(1, 1, &[1, 1], 0),
        &[(0, 1), (0, 2), (0, 3), (0, 4), (0, 2), (0, 1)],
    );
    assert_eq!(told, "d d d d r2 d");
}

#[test]
fn an_empty_memory_fills_evenly_from_the_start() {
    for kind in [Kind::Gms, Kind::Balanced] {
        let village = village(1, 10, &[90, 30], 60);
        let knobs = Knobs {
            balance: 0.0,
            ..Knobs::default()
        };
        let mut policy = kind.policy(&village, &knobs).expect("it can be");
        let pages: Vec<u32> = (0..100).collect();
        replay(&village, &mut *policy, &pages, &[0; 100], &mut |_| {});
        // Ninety pages had to go from the client, to frames of which 90, 30 and 60 are empty.
        let held = policy.held();
        assert_eq!(held.iter().sum::<usize>(), 100, "{kind}: {held:?}");
        for (held, fair) in held[1..].iter().zip([45.0, 15.0, 30.0]) {
            assert!((*held as f64 - fair).abs() < 8.0, "{kind}: {held}, {fair}");
        }
    }
}

#[test]
fn pages_go_to_who_has_grown_old() {
    // All memories are full: client 1's with pages of which it uses half again and again, client 2's with such that nobody does.
    // What client 0 reads round and round, twice what it can hold, is then kept by client 2.
    let village = village(3, 20, &[], 0);
    let filled = (0..20).flat_map(|at| [(1, 100 + at), (2, 200 + at)]);
    let used = (0..4000).flat_map(|at| [(0, at % 40), (1, 100 + at % 20)]);
    let (clients, pages): (Vec<u16>, Vec<u32>) = filled.chain(used).unzip();
    for kind in [Kind::Gms, Kind::Balanced, Kind::GlobalLru] {
        let knobs = Knobs {
            epoch_ms: 30.0,
            balance: 0.0,
            ..Knobs::default()
        };
        let outcome = told(kind, &village, &knobs, &pages, &clients);
        let loads = &outcome.traffic.loads;
        assert!(loads[2] > 6000 && loads[1] < 100, "{kind}: {loads:?}");
        assert!(outcome.disk < 200, "{kind}: {outcome:?}");
    }
}

#[test]
fn the_clients_evictor_names_which_of_its_own_pages_goes() {
    // When 3 comes, 2 was used longest ago, but 1 has been there for longest: that is what FIFO sends to the server.
    let requests = [(0, 1), (0, 2), (0, 1), (0, 3), (0, 1)];
    for kind in [Kind::Gms, Kind::Balanced] {
        let mut village = village(1, 2, &[9], 0);
        let lru = story(kind, &village, &requests);
        village.local = evict::Kind::Fifo;
        let fifo = story(kind, &village, &requests);
        assert_eq!((&*lru, &*fifo), ("d d l d l", "d d l d r1"), "{kind}");
    }
}

#[test]
fn by_age_is_one_lru_where_nothing_is_shared() {
    for seed in 0..10 {
        let pages = some_trace(seed, 3000, 200);
        let village = village(1, 20, &[30, 40], 0);
        let outcome = replayed(Kind::GlobalLru, &village, &pages, &vec![0; pages.len()]);
        let one = evict::StackDistances::of(&pages, 200);
        assert_eq!(outcome.local, one.hits(20), "seed {seed}");
        assert_eq!(
            outcome.local + outcome.remote(),
            one.hits(90),
            "seed {seed}"
        );
    }
}
