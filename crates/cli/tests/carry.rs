//! What a site that may not carry a segment gets of a real home and of a real site above it, also by messages that no
//! redirector sends (before, every site carried every segment; rule R4).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::one_site::OneSite;
use common::thorp;
use std::path::Path;
use thorp_client::{ErrorKind, JoinConfig, Member, Reference};
use thorp_model::{
    Attempt, Down, FetchRefusal, FetchResult, PageId, ReportNo, Reported, Subject, Up, message,
};
use thorp_testing::{Intruder, PATIENCE, Said, eventually};

const PLANS: &str = "thorp://alps/plans";

struct Scene {
    dir: tempfile::TempDir,
    village: OneSite,
}

impl Scene {
    /// The site is called valley. Anna, Ben and Mallory are members.
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let village = OneSite::start(dir.path(), &["anna", "ben", "mallory"], &[]);
        Scene { dir, village }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn invite(&self, flags: &[&str], name: &str) {
        let (authority, out) = (&self.village.home.authority, self.path(name));
        let invite = ["invite", name, "--dir", authority, "--out", &out];
        let said = thorp().run(&[&invite[..], flags].concat());
        assert_eq!(said.code, 0, "{}", said.err);
    }

    fn join(&self, name: &str, via: &str) -> Member {
        let config = JoinConfig::new(via).identity(Path::new(&self.path(name)));
        Member::join(config.join_timeout(PATIENCE)).unwrap()
    }

    /// Anna changes rights at the home itself.
    fn rights(&self, arguments: &[&str]) -> Said {
        let via = ["--via", &self.village.home.via];
        let identity = self.path("anna");
        let all = [&["rights"], arguments, &via, &["--identity", &identity]].concat();
        thorp().run(&all)
    }

    fn changes(&self, arguments: &[&str]) -> String {
        let said = self.rights(arguments);
        assert_eq!(said.code, 0, "{}", said.err);
        said.out
    }
}

fn make_plans(anna: &Member) -> Reference {
    let plans = anna.create(PLANS).unwrap();
    let made = anna.transact(|tx| tx.create(&plans, b"plan 42".to_vec()));
    made.unwrap()
}

fn read(member: &Member, object: &Reference) -> Result<Vec<u8>, (ErrorKind, String)> {
    let read = member.transact(|tx| Ok(tx.read(object)?.to_vec()));
    read.map_err(|error| (error.kind(), error.to_string()))
}

fn refusal(told: Down) -> Option<FetchRefusal> {
    match told {
        Down::Image(message::FetchResponse { result, .. }) => match result {
            FetchResult::Image(_) => None,
            FetchResult::Refused(refusal) => Some(refusal),
        },
        other => panic!("{other:?}"),
    }
}

/// The answer to what a site asked: this passes over the steps that come before it.
fn answer(site: &mut Intruder, mut told: Down) -> Down {
    while matches!(told, Down::Step(_)) {
        told = site.hear();
    }
    told
}

/// What a site hears next while it may not carry a page. Steps may come first: they bring nothing of the page.
fn answer_without(site: &mut Intruder, page: PageId, mut told: Down) -> Down {
    while let Down::Step(step) = &told {
        assert!(step.changes.iter().all(|change| change.page != page));
        told = site.hear();
    }
    told
}

fn hear_without(site: &mut Intruder, page: PageId) -> Down {
    let told = site.hear();
    answer_without(site, page, told)
}

fn fetched(site: &mut Intruder, page: PageId) -> Option<FetchRefusal> {
    let told = site.fetch(page, false);
    refusal(answer(site, told))
}

fn eventually_fetched(site: &mut Intruder, page: PageId, expected: Option<FetchRefusal>) {
    eventually("the right is known there", || {
        fetched(site, page) == expected
    });
}

/// A site asks for a page, watches the segment, and says that it has the page.
fn gets_nothing(site: &mut Intruder, page: PageId) {
    for peers in [false, true] {
        let told = site.fetch(page, peers);
        let refused = refusal(answer_without(site, page, told));
        assert_eq!(refused, Some(FetchRefusal::NotCarried));
    }
    site.send(Up::Fetch(message::Fetch {
        home: site.home,
        epoch: site.epoch,
        page,
        attempt: Attempt(2),
        peers: true,
        ahead: true,
        updates: 3,
    }));
    let refused = refusal(hear_without(site, page));
    assert_eq!(refused, Some(FetchRefusal::NotCarried));
    site.send(Up::Watch(message::Watch {
        home: site.home,
        epoch: site.epoch,
        segment: page.segment,
        on: true,
    }));
    assert!(matches!(hear_without(site, page), Down::Unwatched(_)));
    site.send(Up::Report(message::Report {
        home: site.home,
        epoch: site.epoch,
        report: ReportNo(1),
        pages: vec![Reported {
            page,
            as_of: site.position,
            complete: true,
        }],
    }));
    match hear_without(site, page) {
        Down::Resynchronised(answer) => assert_eq!(answer.changed, [page]),
        other => panic!("{other:?}"),
    }
}

/// Waits for the step that ends a page.
fn page_ends(site: &mut Intruder, page: PageId) {
    loop {
        match site.hear() {
            Down::Step(step) if step.changes.iter().any(|change| change.page == page) => return,
            Down::Step(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_site_that_may_not_carry_gets_nothing_by_any_message() {
    let scene = Scene::start();
    scene.invite(&["--role=site"], "shed");
    let village = &scene.village;
    let anna = scene.join("anna", &village.home.via);
    let object = make_plans(&anna);
    let page = object.object.page;
    scene.changes(&["grant", PLANS, "carry", "valley"]);
    // At the home, and below the site that may carry it and has the page.
    let below = scene.join("ben", &village.site_via);
    assert_eq!(read(&below, &object).unwrap(), b"plan 42");
    for via in [&village.home.via, &village.site_via] {
        let mut shed = Intruder::enter_as_site(&scene.path("shed"), via);
        eventually_fetched(&mut shed, page, Some(FetchRefusal::NotCarried));
        gets_nothing(&mut shed, page);
        scene.changes(&["grant", PLANS, "carry", "shed"]);
        eventually_fetched(&mut shed, page, None);
        scene.changes(&["revoke", PLANS, "carry", "shed"]);
        page_ends(&mut shed, page);
        gets_nothing(&mut shed, page);
    }
}

#[test]
fn a_member_below_hears_that_the_site_may_not_carry_only_if_it_may_read() {
    let scene = Scene::start();
    let village = &scene.village;
    let anna = scene.join("anna", &village.home.via);
    let object = make_plans(&anna);
    let ben = scene.join("ben", &village.site_via);
    assert_eq!(read(&ben, &object).unwrap(), b"plan 42");
    scene.changes(&["revoke", PLANS, "carry", "@sites"]);
    // The page that the site and the member have ends.
    eventually("the site carries nothing of it", || {
        read(&ben, &object).is_err()
    });
    let (kind, words) = read(&ben, &object).unwrap_err();
    assert_eq!(kind, ErrorKind::NoRight);
    assert!(words.contains("may not carry the segment"), "{words}");
    assert!(words.contains("carry SITE"), "{words}");
    let direct = scene.join("ben", &village.home.via);
    assert_eq!(read(&direct, &object).unwrap(), b"plan 42");
    // Mallory may not read it: for her, it is as if there were no such segment.
    scene.changes(&["grant", PLANS, "read", "ben"]);
    scene.changes(&["revoke", PLANS, "@members"]);
    let mut mallory = Intruder::enter(&scene.path("mallory"), &village.site_via);
    let page = object.object.page;
    eventually("the site knows that she may not", || {
        refusal(mallory.fetch(page, false)) == Some(FetchRefusal::NoSuchSegment)
    });
    let nowhere = PageId::new(9_999, page.page.0);
    let absent = refusal(mallory.fetch(nowhere, false));
    assert_eq!(absent, Some(FetchRefusal::NoSuchSegment));
}

#[test]
fn a_site_that_a_member_carries_gets_what_that_member_may_read() {
    let scene = Scene::start();
    scene.invite(&["--with-site"], "carl");
    let village = &scene.village;
    let anna = scene.join("anna", &village.home.via);
    let page = make_plans(&anna).object.page;
    let carried = scene.path("carl/site");
    for via in [&village.home.via, &village.site_via] {
        scene.changes(&["grant", PLANS, "write", "@members"]);
        let mut site = Intruder::enter_as_site(&carried, via);
        eventually_fetched(&mut site, page, None);
        // Dedicated sites carry it still.
        scene.changes(&["revoke", PLANS, "@members"]);
        page_ends(&mut site, page);
        gets_nothing(&mut site, page);
    }
}

#[test]
fn the_commands_say_who_carries_and_never_open_a_segment_by_taking_away() {
    let scene = Scene::start();
    let anna = scene.join("anna", &scene.village.home.via);
    make_plans(&anna);
    let refused = scene.rights(&["revoke", PLANS, "carry", "valley"]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.err.contains("names the only ones"),
        "{}",
        refused.err
    );
    let shown = scene.changes(&["grant", PLANS, "carry", "valley", "shed"]);
    let lines: Vec<&str> = shown
        .lines()
        .filter(|line| line.contains("carry"))
        .collect();
    assert_eq!(lines.len(), 2, "{shown}");
    scene.changes(&["revoke", PLANS, "carry", "shed", "valley"]);
    let shown = scene.rights(&["show", PLANS, "--json"]);
    let list: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    let nobody = serde_json::json!({"subject": "@nobody", "right": "carry"});
    assert!(list.as_array().unwrap().contains(&nobody), "{list}");
    // The other rights are as they were.
    let members = serde_json::json!({"subject": "@members", "right": "write"});
    assert!(list.as_array().unwrap().contains(&members), "{list}");
    for wrong in ["@staff", "Valley", "#12"] {
        let said = scene.rights(&["grant", PLANS, "carry", wrong]);
        assert!(
            said.err.contains("a carrier is a site's name"),
            "{}",
            said.err
        );
    }
    let list = anna
        .open(PLANS)
        .unwrap()
        .grant(&Subject::Members, thorp_model::Right::Read);
    let kept = list.unwrap().to_string();
    assert!(kept.contains("carry @nobody"), "{kept}");
}
