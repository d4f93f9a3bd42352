//! What crosses the link between a site and its home, and what does not: a village as a user's test has it.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

use std::time::Duration;
use thorp_client::{ErrorKind, JoinConfig, Member, Outcome, Reference, Session, Stats};
use thorp_testing::{HomeNode, Link, SiteNode, Village, eventually};

const PAGES: usize = 16;
/// Nearly a page.
const VALUE_BYTES: usize = 8000;

/// Two members at a site. The second one has got no page yet.
struct Scene {
    anna: Member,
    bert: Member,
    /// Each on a page of its own, which anna has.
    notes: Vec<Reference>,
    link: Link,
    _nodes: (SiteNode, HomeNode),
}

fn scene() -> Scene {
    let village = Village::new();
    let home = village.home("alps");
    let link = home.link(Duration::from_millis(10));
    // It has no memory: pages are at the home and in the caches of members.
    let parents = vec![link.as_parent()];
    let site = SiteNode::start(&village, &village.socket("valley"), parents, 0);
    let [anna, bert] = ["anna", "bert"].map(|name| {
        let config = JoinConfig::new(site.address()).identity(village.member(name));
        Member::join(config.fetch_ahead(0)).unwrap()
    });
    let segment = anna.open_or_create("thorp://alps/notes").unwrap();
    bert.open("thorp://alps/notes").unwrap();
    let make = || anna.transact(|tx| tx.create(&segment, vec![7; VALUE_BYTES]));
    let notes = Vec::from_iter((0..PAGES).map(|_| make().unwrap()));
    read_all(&anna, &notes);
    Scene {
        anna,
        bert,
        notes,
        link,
        _nodes: (site, home),
    }
}

/// What it costs the member to read all of them.
fn read_all(member: &Member, notes: &[Reference]) -> Stats {
    let before = member.stats();
    let mut tx = member.begin(Session::new());
    for note in notes {
        assert_eq!(tx.read(note).unwrap().len(), VALUE_BYTES);
    }
    tx.commit().unwrap();
    member.stats().since(&before)
}

#[test]
fn a_neighbours_page_does_not_cross_the_link() {
    let scene = scene();
    let (bert, notes, link) = (&scene.bert, &scene.notes, &scene.link);
    let before = link.carried();
    let read = read_all(bert, notes);
    assert_eq!(read.from_peers, PAGES as u64);
    let after = link.carried();
    // Heartbeats may have crossed, but not one of the pages.
    assert!(after.down - before.down < VALUE_BYTES as u64);
    assert!(after.up - before.up < VALUE_BYTES as u64);
}

#[test]
fn a_neighbours_page_does_not_wait_for_the_link() {
    let scene = scene();
    let (bert, notes, link) = (&scene.bert, &scene.notes, &scene.link);
    link.fall_silent();
    assert_eq!(read_all(bert, notes).from_peers, PAGES as u64);
}

#[test]
fn a_commit_crosses_the_link_and_is_answered_across_it() {
    let scene = scene();
    let (anna, notes, link) = (&scene.anna, &scene.notes, &scene.link);
    let write = |session, byte| {
        let value = vec![byte; VALUE_BYTES];
        anna.transact_with(session, |tx| tx.write(&notes[0], value.clone()))
    };
    let before = link.carried();
    write(Session::new(), 8).unwrap();
    let after = link.carried();
    assert!(after.up - before.up >= VALUE_BYTES as u64);
    assert!(after.down > before.down);

    link.fall_silent();
    let impatient = Session::new().commit_timeout(Duration::from_millis(100));
    let error = write(impatient, 9).unwrap_err();
    let ErrorKind::OutcomeUnknown(id) = error.kind() else {
        panic!("{error}");
    };
    eventually("the link has taken it", || {
        link.carried().up - after.up >= VALUE_BYTES as u64
    });
    // What it has lost, the nodes settle when they reach each other again.
    link.mend();
    let expected = match anna.outcome(id).unwrap() {
        Outcome::Committed(_) => 9,
        Outcome::Refused(_) => 8,
    };
    let byte = anna.transact(|tx| Ok(tx.read(&notes[0])?[0])).unwrap();
    assert_eq!(byte, expected);
}

#[test]
fn what_a_link_of_an_hour_has_taken_does_not_arrive() {
    let village = Village::new();
    let home = village.home("alps");
    let link = home.link(Duration::ZERO);
    let config = JoinConfig::new(link.address()).identity(village.member("anna"));
    let anna = Member::join(config.leave_timeout(Duration::ZERO)).unwrap();
    let notes = anna.open_or_create("thorp://alps/notes").unwrap();
    let note = anna.transact(|tx| tx.create(&notes, "here")).unwrap();

    let near = link.carried();
    link.set_delay(Duration::from_secs(60 * 60));
    let impatient = Session::new().commit_timeout(Duration::from_millis(100));
    let far = anna.transact_with(impatient, |tx| tx.write(&note, vec![7; VALUE_BYTES]));
    let error = far.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::OutcomeUnknown(_)),
        "{error}"
    );
    assert!(link.carried().up - near.up >= VALUE_BYTES as u64);
    let there = JoinConfig::new(home.address()).identity(village.member("bert"));
    let there = Member::join(there).unwrap();
    assert_eq!(
        there.transact(|tx| Ok(tx.read(&note)?.to_vec())).unwrap(),
        b"here"
    );
}

#[test]
fn one_transaction_writes_at_two_homes_each_behind_a_link_of_its_own() {
    let village = Village::new();
    let [alps, dale] = village.homes(["alps", "dale"]);
    let links = [&alps, &dale].map(|home| home.link(Duration::from_millis(5)));
    let site = village.site("valley", &[&links[0], &links[1]]);
    let config = JoinConfig::new(site.address()).identity(village.member("anna"));
    let anna = Member::join(config).unwrap();
    let segments = ["thorp://alps/shop", "thorp://dale/shop"];
    let [here, there] = segments.map(|name| anna.open_or_create(name).unwrap());
    let made = anna.transact(|tx| Ok((tx.create(&here, "one")?, tx.create(&there, "two")?)));
    let (one, two) = made.unwrap();
    let read = anna.transact(|tx| Ok((tx.read(&one)?.to_vec(), tx.read(&two)?.to_vec())));
    assert_eq!(read.unwrap(), (b"one".to_vec(), b"two".to_vec()));
}

#[test]
fn two_sites_of_one_home_see_what_the_other_commits() {
    let village = Village::new();
    let home = village.home("alps");
    let links = [5, 20].map(|delay_ms| home.link(Duration::from_millis(delay_ms)));
    let sites = [("valley", &links[0]), ("coast", &links[1])];
    let sites = sites.map(|(name, link)| village.site(name, &[link]));
    let join = |site: &SiteNode, name: &str| {
        let config = JoinConfig::new(site.address()).identity(village.member(name));
        Member::join(config).unwrap()
    };
    let (anna, bert) = (join(&sites[0], "anna"), join(&sites[1], "bert"));
    let shop = anna.open_or_create("thorp://alps/shop").unwrap();
    let stock = anna.transact(|tx| tx.create_typed(&shop, &12u32)).unwrap();
    assert_eq!(bert.transact(|tx| tx.get(&stock)).unwrap(), 12);
    bert.transact(|tx| tx.put(&stock, &11)).unwrap();
    eventually("anna sees it", || {
        anna.transact(|tx| tx.get(&stock)).unwrap() == 11
    });
}
