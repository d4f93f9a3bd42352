//! What operators learn of attacks (rule R8).

use crate::common::thorp;
use crate::scene::{Writer, home_with, intrude, invite, join, open, site};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use thorp_client::{AuditEvent, JoinConfig, Member};
use thorp_model::limits::DENIALS_MAX;
use thorp_model::{
    AUDIT_RECORDS_MAX, Attempt, CallRequest, Down, SegmentId, Subject, Up, message, rights_page,
};
use thorp_testing::{HomeProcess, Intruder, PATIENCE, eventually};

/// What an operator reads in a terminal.
fn printed(home: &HomeProcess, olga: &str) -> String {
    let said = thorp().run(&["audit", "alps", "--via", &home.via, "--identity", olga]);
    said.out
}

/// The same, a line for each record, however many there are.
fn audit(home: &HomeProcess, olga: &str) -> String {
    let config = JoinConfig::new(&home.via).identity(olga);
    let olga = Member::join(config.join_timeout(PATIENCE)).unwrap();
    let entries = olga.audit("alps").unwrap_or_default();
    let lines = entries.iter().map(|entry| {
        let what = match entry.event {
            AuditEvent::Denied { .. } => "wanted",
            _ => "changed",
        };
        format!("{} {} {what} {} .\n", entry.number, entry.who, entry.path)
    });
    lines.collect()
}

fn has_line(text: &str, words: &[&str]) -> bool {
    let mut lines = text.lines();
    lines.any(|line| words.iter().all(|word| line.contains(word)))
}

/// Rule R8: the ring keeps what others did. A site could fill a quarter of it, and a member could fill all of it.
#[test]
fn a_member_cannot_write_over_what_the_audit_has_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(
        dir.path(),
        &[
            ("anna", "member"),
            ("mallory", "member"),
            ("olga", "operator"),
        ],
    );
    let olga = dir.path().join("olga").display().to_string();
    let anna = join(dir.path(), "anna", &home.via);
    let plans = anna.create("thorp://alps/plans").unwrap();
    let secret = anna
        .transact(|tx| tx.create(&plans, b"plan 42".to_vec()))
        .unwrap();
    plans.revoke(&Subject::Members).unwrap();

    let mut mallory = intrude(dir.path(), "mallory", &home.via);
    mallory.fetch(secret.object.page, false);
    let wanted = ["mallory", "wanted", "plans"];
    eventually("the audit has what mallory wanted", || {
        has_line(&audit(&home, &olga), &wanted)
    });
    let mut mallory = Writer::new(mallory);
    for number in 0..1_200 {
        let segment = open(&mut mallory.intruder, &format!("m{number}"));
        mallory.restrict(segment, "admin mallory\n").unwrap();
    }
    thread::sleep(Duration::from_secs(2));
    let now = audit(&home, &olga);
    let is_mallorys = |line: &&str| line.contains("mallory changed");
    let mallorys = now.lines().filter(is_mallorys).count();
    assert_eq!(mallorys, AUDIT_RECORDS_MAX as usize / 8, "{now}");
    assert!(
        has_line(&now, &wanted) && has_line(&now, &["anna", "changed", "plans"]),
        "the audit has nothing but mallory's own lists: {}",
        now.lines().take(4).collect::<Vec<_>>().join("\n")
    );
}

/// Rule R8: every use of power leaves a record. So many kinds of events wait to be written, and a member could be all of them.
#[test]
fn a_member_cannot_keep_what_others_do_out_of_the_audit() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(dir.path(), &[("mallory", "member"), ("olga", "operator")]);
    let olga_dir = dir.path().join("olga").display().to_string();
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    let mut segments = Vec::new();
    for number in 0..300 {
        let segment = open(&mut mallory.intruder, &format!("m{number}"));
        mallory
            .restrict(segment, "read mallory\nadmin nobody-else\n")
            .unwrap();
        segments.push(segment);
    }
    let ends = Arc::new(AtomicBool::new(false));
    let (until, mut flooding) = (Arc::clone(&ends), mallory.intruder);
    let flood = thread::spawn(move || {
        while !until.load(Ordering::Relaxed) {
            for segment in &segments {
                let denied = flooding.call(CallRequest::Remove { segment: *segment });
                assert!(matches!(denied, Down::CallResult(_)), "{denied:?}");
            }
        }
    });
    thread::sleep(Duration::from_secs(1));
    let mut olga = Writer::new(intrude(dir.path(), "olga", &home.via));
    for number in 0..20 {
        let segment = open(&mut olga.intruder, &format!("olgas{number}"));
        olga.restrict(segment, "read anna\n").unwrap();
        thread::sleep(Duration::from_millis(130));
    }
    ends.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    thread::sleep(Duration::from_secs(2));
    let now = audit(&home, &olga_dir);
    let recorded = (0..20).filter(|number| {
        let path = format!(" olgas{number} ");
        has_line(&now, &["olga", "changed", &path])
    });
    let recorded = recorded.count();
    assert_eq!(recorded, 20, "of 20 changes of lists by an operator");
}

/// Rule R8: every refusal leaves a record. A member was all of the 64 pairs of name and segment that a parent counts between two
/// reports: with segments that it had closed to itself it hid what it really wanted.
#[test]
fn a_member_cannot_hide_what_it_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(
        dir.path(),
        &[
            ("anna", "member"),
            ("mallory", "member"),
            ("olga", "operator"),
        ],
    );
    let anna = join(dir.path(), "anna", &home.via);
    let plans = anna.create("thorp://alps/plans").unwrap();
    let secret = anna.transact(|tx| tx.create(&plans, b"plan 42".to_vec()));
    let secret = secret.unwrap().object.page;
    plans.revoke(&Subject::Members).unwrap();
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    let mut pages = Vec::new();
    for number in 0..=DENIALS_MAX {
        let segment = open(&mut mallory.intruder, &format!("m{number}"));
        mallory.restrict(segment, "admin nobody-else\n").unwrap();
        pages.push(rights_page(segment));
    }
    pages.push(secret);
    thread::sleep(Duration::from_secs(1));
    for page in &pages {
        mallory.intruder.send(Up::Fetch(message::Fetch {
            home: mallory.intruder.home,
            epoch: mallory.intruder.epoch,
            page: *page,
            attempt: Attempt(1),
            peers: false,
            ahead: false,
            updates: 0,
        }));
    }
    for _ in &pages {
        assert!(matches!(mallory.intruder.hear(), Down::Image(_)));
    }
    thread::sleep(Duration::from_secs(2));
    let now = audit(&home, &dir.path().join("olga").display().to_string());
    assert!(has_line(&now, &["mallory", "wanted", " m7 "]), "{now}");
    assert!(has_line(&now, &["mallory", "wanted", "plans"]), "{now}");
}

/// Rule R8: a record names the site that says so, and on whose word. A site passes on what a site below it says: the record has
/// both names.
#[test]
fn a_site_makes_up_no_denials_in_the_name_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let home = thorp().home(dir);
    for (name, role) in [("evil", "site"), ("olga", "operator")] {
        invite(dir, &home, name, role);
    }
    let above = ("alps", &*home.via);
    let (_valley, via) = site(dir, &home, "valley", above, &[]);
    let olga = dir.join("olga").display().to_string();
    let evil = Intruder::enter_as_site(&dir.join("evil").display().to_string(), &via);
    evil.send(Up::Denied(message::Denied {
        home: evil.home,
        name: String::from("anna"),
        segment: SegmentId(1),
        count: 1_000,
        site: None,
    }));
    eventually("it is in the audit", || {
        printed(&home, &olga).contains("anna")
    });
    let text = printed(&home, &olga);
    assert!(has_line(&text, &["anna", "evil, below valley"]), "{text}");
}

/// A site says whom it has denied something: any text. An operator reads it in a terminal, line by line.
#[test]
fn a_site_makes_up_no_lines_of_the_audit() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(dir.path(), &[("evil", "site"), ("olga", "operator")]);
    let olga = dir.path().join("olga").display().to_string();
    let identity = dir.path().join("evil").display().to_string();
    for name in ["x\n7  olga  changed the rights", "\u{1b}[2J\u{1b}[8mnobody"] {
        let mut evil = Intruder::enter_as_site(&identity, &home.via);
        evil.send(Up::Denied(message::Denied {
            home: evil.home,
            name: name.to_owned(),
            segment: SegmentId(1),
            count: 1,
            site: None,
        }));
        evil.edge.eventually_ends();
    }
    // What it said before that is written by now.
    thread::sleep(Duration::from_secs(1));
    let text = printed(&home, &olga);
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(
        !text.lines().any(|line| line.starts_with("7  olga")),
        "{text}"
    );
}
