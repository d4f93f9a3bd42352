//! A site without a server of its own: one of its members carries the redirector, and when that one is gone, the next does.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use joins::Joins;
use thorp_client::{JoinConfig, JoinError, Member, NodeRole, Ref, Reference, SiteOfMembers};
use thorp_testing::{HomeNode, Link, eventually};

/// What ten seconds are to people, this is to a test.
const SOON: Duration = Duration::from_millis(50);
const PAGES: u64 = 5;

/// The address of a neighbour of this name.
fn address(village: &HomeNode, name: &str) -> String {
    format!("unix:{}", village.path(&format!("{name}.sock")).display())
}

/// A site at the home of a village, as one member knows it: the others perhaps by ways that can be cut.
fn site(village: &HomeNode, own: &str, neighbours: &[String]) -> SiteOfMembers {
    SiteOfMembers::new(address(village, own))
        .neighbours(neighbours)
        .home("alps", village.address().to_string())
        .heal_every(SOON)
}

fn config(village: &HomeNode, own: &str, neighbours: &[String]) -> JoinConfig {
    JoinConfig::among(site(village, own, neighbours))
        .identity(village.village().member(own))
        .name(own)
        // Pages are counted.
        .fetch_ahead(0)
}

fn join(village: &HomeNode, own: &str, names: &[&str]) -> Member {
    let neighbours = names.iter().map(|name| address(village, name));
    Member::join(config(village, own, &neighbours.collect::<Vec<_>>())).unwrap()
}

/// Waits until these members are one site, carried by the first of them.
fn are_one_site(members: &[&Member]) {
    eventually("they are one site", || {
        let carrier = members[0].site();
        let name = carrier.name.clone();
        let others = members.iter().map(|member| member.site());
        let mut others = others.filter(|site| name.is_some() && site.name == name);
        carrier.is_own
            && carrier.carried == members.len()
            && others.by_ref().count() == members.len()
    });
    eventually("their home is there", || {
        let mut homes = members.iter().map(|member| member.homes());
        homes.all(|homes| homes.iter().any(|home| home.reachable))
    });
}

/// Waits until nobody is at the redirectors that these carry.
fn rest(members: &[&Member]) {
    eventually("they carry nothing", || {
        members.iter().all(|member| member.site().carried == 0)
    });
}

/// Notes that lie on pages of their own, written by somebody who is no neighbour.
fn notes(village: &HomeNode) -> Vec<Reference> {
    let (stranger, notes) = village.member_at("notes");
    let made = (0..PAGES).map(|n| {
        let note = [n as u8; 6000];
        stranger.transact(|tx| tx.create(&notes, note)).unwrap()
    });
    let made: Vec<Reference> = made.collect();
    let pages: std::collections::BTreeSet<_> = made.iter().map(|note| note.object.page).collect();
    assert_eq!(pages.len(), made.len());
    made
}

fn read_all(member: &Member, notes: &[Reference]) {
    let sum = member.transact(|tx| {
        let mut sum = 0;
        for note in notes {
            sum += u64::from(tx.read(note)?[0]);
        }
        Ok(sum)
    });
    assert_eq!(sum.unwrap(), (0..PAGES).sum::<u64>());
}

/// Reads everything, and says how many pages were asked for.
fn asked_for(member: &Member, notes: &[Reference]) -> u64 {
    let before = member.stats();
    read_all(member, notes);
    member.stats().since(&before).fetches
}

fn counter(member: &Member) -> Ref<u64> {
    let segment = member.open_or_create("thorp://alps/counter").unwrap();
    member
        .transact(|tx| match tx.root(&segment, "count")? {
            Some(counter) => Ok(counter.into()),
            None => {
                let counter = tx.create_typed(&segment, &0u64)?;
                tx.set_root(&segment, "count", Some(counter.reference()))?;
                Ok(counter)
            }
        })
        .unwrap()
}

fn increment(member: &Member, counter: &Ref<u64>) {
    let added = member.transact(|tx| {
        let count = tx.get(counter)?;
        tx.put(counter, &(count + 1))
    });
    added.unwrap();
}

fn count(member: &Member, counter: &Ref<u64>) -> u64 {
    let strict = thorp_client::Session::new().strict(true);
    member.transact_with(strict, |tx| tx.get(counter)).unwrap()
}

/// Members go on incrementing while something happens; everything counts once, and nobody is left in doubt.
fn while_they_work(members: &[&Member], counter: &Ref<u64>, happens: impl FnOnce()) {
    let before = count(members[0], counter);
    let ended = AtomicBool::new(false);
    let added: u64 = thread::scope(|scope| {
        let work = |member: &Member| {
            let mut added = 0;
            while !ended.load(Ordering::SeqCst) {
                increment(member, counter);
                added += 1;
            }
            // Also after it.
            increment(member, counter);
            added + 1
        };
        let workers: Vec<_> = members
            .iter()
            .map(|member| scope.spawn(move || work(member)))
            .collect();
        happens();
        ended.store(true, Ordering::SeqCst);
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum()
    });
    for member in members {
        assert_eq!(count(member, counter), before + added);
        assert_eq!(member.stats().unknown_outcomes, 0);
    }
}

#[test]
fn what_one_fetched_its_neighbours_get_from_it() {
    let village = HomeNode::new();
    let notes = notes(&village);
    let names = ["anna", "bert", "carl"];
    let [anna, bert, carl] = names.map(|name| join(&village, name, &names));
    are_one_site(&[&anna, &bert, &carl]);
    read_all(&anna, &notes);
    assert!(anna.site().asked_homes >= PAGES);

    let before = anna.site().asked_homes;
    for neighbour in [&bert, &carl] {
        assert_eq!(asked_for(neighbour, &notes), PAGES);
        let stats = neighbour.stats();
        assert_eq!((stats.from_peers, stats.through_site), (PAGES, 0));
    }
    // To the home nothing was sent.
    assert_eq!(anna.site().asked_homes, before);
    rest(&[&bert, &carl]);
}

#[test]
fn the_next_takes_over_and_caches_stay_warm() {
    let village = HomeNode::new();
    let notes = notes(&village);
    let names = ["anna", "bert", "carl"];
    let [anna, bert, carl] = names.map(|name| join(&village, name, &names));
    are_one_site(&[&anna, &bert, &carl]);
    let counter = counter(&carl);
    for member in [&anna, &bert, &carl] {
        read_all(member, &notes);
    }
    let mut running = carl.begin(thorp_client::Session::new());
    running.read(&notes[0]).unwrap();

    while_they_work(&[&bert, &carl], &counter, || {
        drop(anna);
        are_one_site(&[&bert, &carl]);
    });
    assert_eq!((asked_for(&bert, &notes), asked_for(&carl, &notes)), (0, 0));
    // What was begun before goes on.
    running.write(&notes[1], [1; 6000]).unwrap();
    running.commit().unwrap();

    // The next one is alone, and the first, when it is there again, is the site again.
    while_they_work(&[&carl], &counter, || {
        drop(bert);
        are_one_site(&[&carl]);
    });
    let anna = while_they_work_and(
        &carl,
        &counter,
        || join(&village, "anna", &names),
        |anna| {
            are_one_site(&[anna, &carl]);
        },
    );
    assert_eq!(asked_for(&carl, &notes), 0);
    let before = anna.site().asked_homes;
    read_all(&anna, &notes);
    assert_eq!(anna.stats().from_peers, PAGES);
    assert_eq!(anna.site().asked_homes, before);
}

fn while_they_work_and(
    member: &Member,
    counter: &Ref<u64>,
    comes: impl FnOnce() -> Member,
    then: impl FnOnce(&Member),
) -> Member {
    let mut came = None;
    while_they_work(&[member], counter, || then(came.insert(comes())));
    came.unwrap()
}

#[test]
fn a_split_makes_two_sites_and_they_heal() {
    let village = HomeNode::new();
    let notes = notes(&village);
    let [anna, bert, carl, dora] = ["anna", "bert", "carl", "dora"];
    let to = |name: &str| address(&village, name);
    let way = |from: &str, to: &str| {
        let socket = |name: &str| village.village().socket(name);
        Link::new(&socket(&format!("{from}-{to}")), &socket(to))
    };
    let between = [
        way(carl, anna),
        way(carl, bert),
        way(dora, anna),
        way(dora, bert),
    ];
    let here = [to(anna), to(bert), to(carl), to(dora)];
    let there = |first: usize| {
        let through = between[first..first + 2].iter();
        let through = through.map(|way| way.address().into());
        let list: Vec<String> = through.chain([to(carl), to(dora)]).collect();
        list
    };
    let join = |name: &str, list: &[String]| Member::join(config(&village, name, list)).unwrap();
    let (anna, bert) = (join(anna, &here), join(bert, &here));
    let (carl, dora) = (join(carl, &there(0)), join(dora, &there(2)));
    let all = [&anna, &bert, &carl, &dora];
    are_one_site(&all);
    let counter = counter(&dora);
    all.iter().for_each(|member| read_all(member, &notes));

    while_they_work(&all, &counter, || {
        between.iter().for_each(Link::cut);
        are_one_site(&[&anna, &bert]);
        are_one_site(&[&carl, &dora]);
    });
    for member in all {
        assert_eq!(asked_for(member, &notes), 0);
    }
    while_they_work(&all, &counter, || {
        between.iter().for_each(Link::mend);
        are_one_site(&all);
    });
    for member in all {
        assert_eq!(asked_for(member, &notes), 0);
    }
    rest(&[&carl, &dora]);
}

#[test]
fn who_says_nothing_is_left_and_turned_back_to() {
    let village = HomeNode::new();
    let notes = notes(&village);
    let socket = |name: &str| village.village().socket(name);
    let way = Link::new(&socket("bert-anna"), &socket("anna"));
    let (to_anna, to_bert) = (address(&village, "anna"), address(&village, "bert"));
    let join = |name: &str, first: String| {
        let config = config(&village, name, &[first, to_bert.clone()]);
        Member::join(config.alive(SOON, 60)).unwrap()
    };
    let (anna, bert) = (join("anna", to_anna), join("bert", way.address().into()));
    are_one_site(&[&anna, &bert]);
    let counter = counter(&bert);
    read_all(&bert, &notes);
    // A bystander that may not carry anything.
    let third = JoinConfig::new(way.address()).or_at(to_bert.clone());
    let third = third.identity_of(village.identity()).alive(SOON, 60);
    let third = Member::join(third).unwrap();
    are_one_site(&[&anna, &bert, &third]);

    while_they_work(&[&anna, &bert, &third], &counter, || {
        way.fall_silent();
        are_one_site(&[&bert, &third]);
    });
    eventually("anna has struck them", || anna.site().carried == 1);
    while_they_work(&[&anna, &bert], &counter, || {
        way.mend();
        // Who has no rank stays with whom it has found, for as long as that one is there.
        eventually("bert is back", || bert.site().name == anna.site().name);
    });
    assert_eq!(asked_for(&bert, &notes), 0);
    eventually("bert carries the third only", || bert.site().carried == 1);
    assert_eq!(third.site().address, Some(to_bert));
}

#[test]
fn a_dedicated_site_comes_first() {
    let village = HomeNode::new();
    let notes = notes(&village);
    let _site = village.site(1 << 20);
    let socket = |name: &str| village.village().socket(name);
    let way = Link::new(&socket("way"), &socket("site"));
    let names = ["anna", "bert"];
    let neighbours = names.map(|name| address(&village, name));
    let [anna, bert] = names.map(|name| {
        let config = JoinConfig::new(way.address()).or_among(site(&village, name, &neighbours));
        let identity = village.village().member(name);
        Member::join(config.identity(identity).name(name)).unwrap()
    });
    let are_at_the_site = || {
        eventually("they are at the site", || {
            let sites = [&anna, &bert].map(|member| (member.site(), member.homes()));
            sites.iter().all(|(site, homes)| {
                let is_live = homes.iter().any(|home| home.reachable);
                site.name.as_deref() == Some("valley") && site.carried == 0 && is_live
            })
        });
    };
    are_at_the_site();
    read_all(&anna, &notes);
    read_all(&bert, &notes);
    let counter = counter(&anna);
    while_they_work(&[&anna, &bert], &counter, || {
        way.cut();
        are_one_site(&[&anna, &bert]);
        way.mend();
        are_at_the_site();
    });
    assert_eq!((asked_for(&anna, &notes), asked_for(&bert, &notes)), (0, 0));
}

#[test]
fn what_cannot_be_is_told_with_what_to_do() {
    let village = HomeNode::new();
    let names = ["anna", "bert"];
    let _anna = join(&village, "anna", &names);
    let neighbours = names.map(|name| address(&village, name));
    let refused = |config: JoinConfig| match Member::join(config) {
        Ok(_) => panic!("it has joined"),
        Err(error) => (error.to_string(), error),
    };
    let (words, error) = refused(config(&village, "anna", &neighbours));
    assert!(matches!(error, JoinError::Listen { .. }), "{words}");
    assert!(
        words.contains("anna.sock") && words.contains("free that address"),
        "{words}"
    );

    let (words, error) = refused(config(&village, "carl", &neighbours));
    assert!(matches!(error, JoinError::Address(_)), "{words}");
    assert!(words.contains("name this member, too"), "{words}");

    let twice =
        JoinConfig::new(village.address().to_string()).and_home(village.address().to_string());
    let twice = twice.or_among(site(&village, "bert", &neighbours));
    let (words, _) = refused(twice.identity(village.village().member("bert")));
    assert!(words.contains("none with and_home"), "{words}");
}

#[test]
fn a_member_carries_a_site_only_with_a_second_identity_of_its_own_name() {
    let village = HomeNode::new();
    let neighbours = [address(&village, "anna")];
    let refused = |site: SiteOfMembers| match Member::join(
        JoinConfig::among(site).identity_of(village.identity()),
    ) {
        Ok(_) => panic!("it has joined"),
        Err(error @ JoinError::NoSite { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
    };
    let own = || site(&village, "anna", &neighbours);
    let words = refused(own());
    assert!(words.contains("thorp invite NAME --with-site"), "{words}");
    let other = village.village().identity_of(NodeRole::Site, "valley");
    let words = refused(own().identity_of(other));
    assert!(words.contains("that of site valley"), "{words}");
    let words = refused(own().identity_of(village.identity()));
    assert!(words.contains("that of member anna"), "{words}");
    let nowhere = village.path("nowhere");
    let words = refused(own().identity(nowhere));
    assert!(words.contains("nowhere is no directory"), "{words}");
}

#[test]
fn a_program_joins_as_a_member_and_as_nothing_else() {
    let village = HomeNode::new();
    for (identity, what) in [
        (village.village().identity(), "home alps"),
        (
            village.village().identity_of(NodeRole::Site, "valley"),
            "site valley",
        ),
    ] {
        let config = JoinConfig::new(village.address().to_string()).identity_of(identity);
        match Member::join(config).map(|_| ()) {
            Err(error @ JoinError::NoMember(_)) => {
                let words = error.to_string();
                assert!(
                    words.contains(what) && words.contains("thorp invite"),
                    "{words}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    let olga = village.village().identity_of(NodeRole::Operator, "olga");
    let config = JoinConfig::new(village.address().to_string()).identity_of(olga);
    let olga = Member::join(config).unwrap();
    olga.create("thorp://alps/orders").unwrap();
}
