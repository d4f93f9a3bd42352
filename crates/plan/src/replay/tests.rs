//! Villages worked out by hand, and what has to hold in any.

use super::*;
use crate::evict::tests::some_trace;
use crate::trace::{Dealing, Trace, dealt};
use fastrand::Rng;

fn village(clients: usize, client_pages: usize, servers: &[usize], home_pages: usize) -> Village {
    Village {
        clients,
        client_pages,
        servers: servers
            .iter()
            .map(|&pages| Server {
                pages,
                busy_most: 1.0,
            })
            .collect(),
        home_pages,
        footprint: 400,
        local: evict::Kind::Lru,
        times: Times::default(),
        seed: 7,
    }
}

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

fn replayed(kind: Kind, village: &Village, pages: &[u32], clients: &[u16]) -> Outcome {
    told(kind, village, &Knobs::default(), pages, clients)
}

fn told(kind: Kind, village: &Village, knobs: &Knobs, pages: &[u32], clients: &[u16]) -> Outcome {
    let mut policy = kind.policy(village, knobs).expect("it can be");
    replay(village, &mut *policy, pages, clients, &mut |_| {})
}

fn drawn(random: &mut Rng) -> (Village, Vec<u32>, Vec<u16>) {
    let clients = random.usize(1..6);
    let servers: Vec<usize> = (0..random.usize(..4))
        .map(|_| random.usize(1..60))
        .collect();
    let mut village = village(clients, random.usize(1..50), &servers, random.usize(..40));
    village.seed = random.u64(..);
    village.local = evict::Kind::ALL[random.usize(..evict::Kind::ALL.len())];
    let footprint = random.u32(20..400);
    let trace = Trace::of(
        "drawn",
        some_trace(random.u64(..), 3000, footprint)
            .into_iter()
            .map(u64::from),
    );
    let rules = [
        Dealing::RoundRobin,
        Dealing::Random,
        Dealing::ByObject,
        Dealing::Runs { mean: 30.0 },
    ];
    let dealt =
        dealt(&trace, rules[random.usize(..4)], clients, village.seed).expect("it can be dealt");
    (village, trace.pages, dealt)
}

#[test]
fn requests_are_conserved_and_no_memory_has_too_much() {
    let mut random = Rng::with_seed(11);
    for _ in 0..40 {
        let (village, pages, clients) = drawn(&mut random);
        for kind in Kind::ALL {
            let mut policy = kind.policy(&village, &Knobs::default()).expect("it can be");
            let outcome = replay(&village, &mut *policy, &pages, &clients, &mut |_| {});
            assert_eq!(outcome.requests(), pages.len() as u64, "{kind} {village:?}");
            let firsts = pages.iter().collect::<std::collections::HashSet<_>>().len() as u64;
            assert!(
                outcome.disk >= firsts,
                "{kind}: each page comes from disk once"
            );
            let held = policy.held();
            let room = village.pages_with_home();
            let all = room.iter().sum();
            assert!(held.iter().sum::<usize>() <= all, "{kind}");
            if !matches!(kind, Kind::Direct | Kind::Central | Kind::Ideal) {
                assert!(
                    held.iter().zip(&room).all(|(held, room)| held <= room),
                    "{kind} {held:?} {room:?}"
                );
            }
            let most = evict::belady_hits(&pages, all, village.footprint);
            assert!(
                outcome.disk >= pages.len() as u64 - most,
                "{kind}: nobody is better than the best"
            );
            check_loads(kind, &village, &outcome);
        }
    }
}

/// Who sends or takes a page has something to do; what the home does is not among it.
fn check_loads(kind: Kind, village: &Village, outcome: &Outcome) {
    let loads = outcome.traffic.loads.iter().sum::<u64>();
    let sent = outcome.remote() + outcome.traffic.forwarded;
    let is_with_home = matches!(
        kind,
        Kind::Weighted | Kind::Gms | Kind::Balanced | Kind::GlobalLru
    );
    match kind {
        Kind::Ideal => assert_eq!(loads, 0),
        _ if is_with_home && village.home_pages > 0 => assert!(loads <= sent, "{kind}"),
        _ => assert_eq!(loads, sent, "{kind}"),
    }
}

#[test]
fn everything_fits_everywhere() {
    let pages = some_trace(5, 4000, 300);
    let clients: Vec<u16> = (0..4000).map(|at| (at % 3) as u16).collect();
    let village = village(3, 400, &[400], 400);
    for kind in Kind::ALL {
        let outcome = replayed(kind, &village, &pages, &clients);
        let firsts = pages.iter().collect::<std::collections::HashSet<_>>().len() as u64;
        assert_eq!(outcome.disk, firsts, "{kind}");
    }
}

#[test]
fn one_client_without_servers_has_only_its_own() {
    let mut random = Rng::with_seed(3);
    for _ in 0..10 {
        let (mut village, pages, _) = drawn(&mut random);
        (village.clients, village.servers) = (1, Vec::new());
        let clients = vec![0; pages.len()];
        let alone = replayed(Kind::Alone, &village, &pages, &clients);
        for kind in [Kind::Direct, Kind::Greedy, Kind::NChance] {
            let outcome = replayed(kind, &village, &pages, &clients);
            assert_eq!(
                (outcome.local, outcome.home, outcome.disk),
                (alone.local, alone.home, alone.disk),
                "{kind}"
            );
        }
        village.home_pages = 0;
        let alone = replayed(Kind::Alone, &village, &pages, &clients);
        for kind in [Kind::Gms, Kind::Balanced] {
            let outcome = replayed(kind, &village, &pages, &clients);
            let found = (outcome.local, outcome.disk);
            assert_eq!(found, (alone.local, alone.disk), "{kind} {village:?}");
        }
        village.local = evict::Kind::Lru;
        let alone = replayed(Kind::Alone, &village, &pages, &clients);
        for kind in [
            Kind::Weighted,
            Kind::Gms,
            Kind::Balanced,
            Kind::GlobalLru,
            Kind::Ideal,
        ] {
            let outcome = replayed(kind, &village, &pages, &clients);
            assert_eq!(
                (outcome.local, outcome.home, outcome.disk),
                (alone.local, alone.home, alone.disk),
                "{kind}"
            );
        }
        for kind in [Kind::Central, Kind::Hashed] {
            let knobs = Knobs {
                shared: 0.0,
                ..Knobs::default()
            };
            let outcome = told(kind, &village, &knobs, &pages, &clients);
            assert_eq!(
                (outcome.local, outcome.home, outcome.disk),
                (alone.local, alone.home, alone.disk),
                "{kind}"
            );
        }
    }
}

#[test]
fn the_ideal_is_better_than_one_alone_and_than_global_lru() {
    let mut random = Rng::with_seed(13);
    for _ in 0..10 {
        let (mut village, pages, clients) = drawn(&mut random);
        village.local = evict::Kind::Lru;
        let ideal = replayed(Kind::Ideal, &village, &pages, &clients);
        let alone = replayed(Kind::Alone, &village, &pages, &clients);
        let global = replayed(Kind::GlobalLru, &village, &pages, &clients);
        assert_eq!(ideal.local, alone.local);
        assert!(
            ideal.disk <= alone.disk && ideal.disk <= global.disk,
            "{village:?}"
        );
    }
}

#[test]
fn without_a_chance_forwarding_is_greedy() {
    let mut random = Rng::with_seed(5);
    for _ in 0..20 {
        let (village, pages, clients) = drawn(&mut random);
        let knobs = Knobs {
            chances: 0,
            ..Knobs::default()
        };
        let none = told(Kind::NChance, &village, &knobs, &pages, &clients);
        assert_eq!(
            none,
            replayed(Kind::Greedy, &village, &pages, &clients),
            "{village:?}"
        );
    }
}

#[test]
fn without_balance_and_bounds_the_family_is_gms() {
    let mut random = Rng::with_seed(6);
    for _ in 0..20 {
        let (mut village, pages, clients) = drawn(&mut random);
        village.times.service_ms = 1e-9;
        let knobs = Knobs {
            balance: 0.0,
            epoch_ms: 50.0,
            ..Knobs::default()
        };
        let gms = told(Kind::Gms, &village, &knobs, &pages, &clients);
        assert_eq!(
            told(Kind::Balanced, &village, &knobs, &pages, &clients),
            gms,
            "{village:?}"
        );
    }
}

#[test]
fn greedy_answers_locally_what_each_does_alone() {
    let mut random = Rng::with_seed(8);
    for _ in 0..20 {
        let (village, pages, clients) = drawn(&mut random);
        let alone = replayed(Kind::Alone, &village, &pages, &clients);
        let greedy = replayed(Kind::Greedy, &village, &pages, &clients);
        let direct = replayed(Kind::Direct, &village, &pages, &clients);
        assert_eq!((alone.local, alone.local), (greedy.local, direct.local));
        village.check().expect("it can be");
    }
}

#[test]
fn full_balance_spreads_the_load_as_memory_is_spread() {
    let pages = some_trace(9, 60_000, 400);
    let clients: Vec<u16> = pages.iter().map(|page| (page % 4) as u16).collect();
    let village = village(4, 20, &[40, 80, 120], 0);
    let knobs = Knobs {
        balance: 1.0,
        ..Knobs::default()
    };
    let outcome = told(Kind::Balanced, &village, &knobs, &pages, &clients);
    let loads = &outcome.traffic.loads[4..];
    let sum: u64 = loads.iter().sum();
    // What the client's own fetch has freed takes its next page: loads are not only chosen.
    for (load, share) in loads.iter().zip([1.0 / 6.0, 1.0 / 3.0, 0.5]) {
        assert!(
            (*load as f64 / sum as f64 - share).abs() < 0.05,
            "{loads:?}"
        );
    }
}

#[test]
fn a_node_with_work_of_its_own_is_spared() {
    let pages = some_trace(10, 60_000, 400);
    let clients: Vec<u16> = pages.iter().map(|page| (page % 4) as u16).collect();
    let mut village = village(4, 20, &[100, 100], 0);
    let knobs = Knobs {
        epoch_ms: 300.0,
        ..Knobs::default()
    };
    let busy = |village: &Village| {
        let outcome = told(Kind::Balanced, village, &knobs, &pages, &clients);
        let times = &village.times;
        let passed_ms = 15_000.0 * (times.think_ms + outcome.mean_ms(times));
        [4, 5].map(|node: usize| outcome.traffic.loads[node] as f64 * times.service_ms / passed_ms)
    };
    let free = busy(&village);
    village.servers[0].busy_most = 0.05;
    let spared = busy(&village);
    assert!(free[0] > 0.1 && spared[1] > free[1], "{free:?} {spared:?}");
    // Not below the bound: it is on the share of pages sent there, which are then kept for longer than elsewhere and asked for
    // more often (at most as often as they are sent: a factor of 1.3 here), and what is borrowed lags behind.
    assert!(spared[0] < 0.08, "{free:?} {spared:?}");
}

#[test]
fn who_asks_more_borrows_what_others_leave() {
    // Client 0 reads twice what it can hold, round and round; the others what they hold, and now and then something else. The
    // server may spend a fifth of its time, of which a quarter is each client's fair part.
    let mut village = village(4, 20, &[300], 0);
    village.servers[0].busy_most = 0.2;
    let others = |client: u32, at: u32| match at % 100 {
        0 => 100 * client + at / 100 % 60,
        _ => 100 * client + at % 15,
    };
    let request = |at: u32| match at % 4 {
        0 => (0, at / 4 % 40),
        client => (client as u16, others(client, at / 4)),
    };
    let (clients, pages): (Vec<u16>, Vec<u32>) = (0..80_000).map(request).unzip();
    let knobs = Knobs {
        epoch_ms: 100.0,
        balance: 1.0,
        ..Knobs::default()
    };
    let outcome = told(Kind::Balanced, &village, &knobs, &pages, &clients);
    let passed_ms = 20_000.0 * (village.times.think_ms + outcome.mean_ms(&village.times));
    let busy = outcome.traffic.loads[4] as f64 * village.times.service_ms / passed_ms;
    // Without borrowing 0.10, and 6289 from disk.
    assert!((0.12..0.2).contains(&busy), "{busy}");
    assert!(outcome.disk < 5500, "{outcome:?}");
}

#[test]
fn what_policies_note_counts_where_memory_is_bounded() {
    let told = |kind: Kind, local| {
        let village = Village {
            clients: 1000,
            footprint: 1_000_000,
            local,
            ..village(1, 10, &[], 10)
        };
        kind.check(&village, &Knobs::default())
            .map_err(|invalid| invalid.to_string())
    };
    use evict::Kind::{Lru, WTinyLfu};
    for kind in [Kind::Alone, Kind::Gms] {
        assert_eq!(told(kind, Lru), Ok(()));
        let why = told(kind, WTinyLfu).expect_err("five times as much");
        assert!(
            why.starts_with("clients must be at most 4") && why.contains(" takes 18."),
            "{why}"
        );
    }
    assert_eq!(told(Kind::Weighted, WTinyLfu), Ok(()), "it has no evictors");
}

#[test]
fn what_cannot_be_is_refused() {
    let fine = village(2, 10, &[5], 0);
    let none = Village {
        clients: 0,
        ..fine.clone()
    };
    let empty = Village {
        client_pages: 0,
        ..fine.clone()
    };
    let vast = Village {
        clients: 60_000,
        footprint: 1_000_000,
        ..fine.clone()
    };
    let slow = Village {
        times: Times {
            remote_ms: 9.0,
            ..Times::default()
        },
        ..fine.clone()
    };
    let crowded = Village {
        servers: vec![fine.servers[0]; 65_534],
        ..fine.clone()
    };
    let endless = Village {
        times: Times {
            think_ms: 2e9,
            ..Times::default()
        },
        ..fine.clone()
    };
    for (village, knobs, told) in [
        (
            &crowded,
            Knobs::default(),
            "servers must be at most 65533 beside the clients, not 65534",
        ),
        (
            &endless,
            Knobs::default(),
            "think ms must be a number from 0 to 1e9, not 2000000000",
        ),
        (
            &none,
            Knobs::default(),
            "clients must be from 1 to 65535, not 0",
        ),
        (
            &empty,
            Knobs::default(),
            "client pages must be a number not below 1, not 0",
        ),
        (
            &vast,
            Knobs::default(),
            "clients must be at most 2133 here, not 60000: balanced takes 223.6 GiB with 1000000 pages asked for and LRU for what members let go of, and 8 GiB are the most",
        ),
        (
            &slow,
            Knobs::default(),
            "disk ms must be a number not below 9, not 3.6",
        ),
        (
            &fine,
            Knobs {
                shared: 1.5,
                ..Knobs::default()
            },
            "shared must be between 0 and 1, not 1.5",
        ),
        (
            &fine,
            Knobs {
                balance: -1.0,
                ..Knobs::default()
            },
            "balance must be between 0 and 1, not -1",
        ),
        (
            &fine,
            Knobs {
                oldest: 0.0,
                ..Knobs::default()
            },
            "oldest must be a number above 0, not 0",
        ),
    ] {
        let refused = Kind::Balanced
            .policy(village, &knobs)
            .err()
            .expect("refused");
        assert_eq!(refused.to_string(), told);
    }
    assert!(
        Kind::ALL
            .iter()
            .all(|kind| kind.to_string().parse() == Ok(*kind))
    );
    assert!(
        "best"
            .parse::<Kind>()
            .expect_err("none")
            .contains("n-chance")
    );
}
