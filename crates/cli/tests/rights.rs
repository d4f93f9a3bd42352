//! What a member without rights gets of a real home and a real site, also by messages that no client sends (before,
//! rights were checked nowhere; rule R4).

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
    Attempt, Blob, CallRequest, Down, EntryNo, FetchResult, Generation, InvalidCommit, NameId,
    NewValue, Outcome, PageId, PeerImage, Refusal, ReportNo, Reported, Right, Subject, Up, WriteOp,
    message,
};
use thorp_testing::{Intruder, PATIENCE, eventually};

fn start(dir: &Path) -> OneSite {
    OneSite::start(dir, &["anna", "mallory"], &[])
}

fn anna(dir: &Path, village: &OneSite) -> Member {
    let config = JoinConfig::new(&village.site_via).identity(dir.join("anna"));
    Member::join(config.join_timeout(PATIENCE)).unwrap()
}

fn intrude(dir: &Path, via: &str) -> Intruder {
    Intruder::enter(&dir.join("mallory").display().to_string(), via)
}

fn write() -> WriteOp {
    WriteOp::Write {
        generation: Generation(1),
        value: NewValue::Inline(Blob::from(&b"forged"[..])),
    }
}

/// Makes a secret that only anna may read, and reads it, so that the site has the page.
fn make_secret(anna: &Member) -> Reference {
    let plans = anna.create("thorp://alps/plans").unwrap();
    let secret = anna.transact(|tx| tx.create(&plans, b"top secret plan number 42".to_vec()));
    let secret = secret.unwrap();
    plans.revoke(&Subject::Members).unwrap();
    anna.transact(|tx| tx.read(&secret).map(|_| ())).unwrap();
    secret
}

#[test]
fn who_has_no_right_gets_nothing_by_any_message() {
    let dir = tempfile::tempdir().unwrap();
    let village = start(dir.path());
    let anna = anna(dir.path(), &village);
    let secret = make_secret(&anna);
    let object = secret.object;
    for via in [&village.home.via, &village.site_via] {
        let mut mallory = intrude(dir.path(), via);
        for peers in [false, true] {
            let told = mallory.fetch(object.page, peers);
            let Down::Image(message::FetchResponse { result, .. }) = told else {
                panic!("{told:?}");
            };
            assert!(matches!(result, FetchResult::Refused(_)), "{result:?}");
        }
        let nowhere = PageId::new(9_999, object.page.page.0);
        let (hidden, absent) = (
            mallory.fetch(object.page, false),
            mallory.fetch(nowhere, false),
        );
        let refusal = |told: Down| match told {
            Down::Image(message::FetchResponse { result, entry, .. }) => (result, entry),
            other => panic!("{other:?}"),
        };
        let (hidden, absent) = (refusal(hidden), refusal(absent));
        assert_eq!(hidden, absent, "hidden and absent are the same");

        mallory.send(Up::Watch(message::Watch {
            home: mallory.home,
            epoch: mallory.epoch,
            segment: object.page.segment,
            on: true,
        }));
        assert!(matches!(mallory.hear(), Down::Unwatched(_)));

        // It says that it has the page, so that the parent would send changes, and requests of others.
        mallory.send(Up::Report(message::Report {
            home: mallory.home,
            epoch: mallory.epoch,
            report: ReportNo(1),
            pages: vec![Reported {
                page: object.page,
                as_of: mallory.position,
                complete: true,
            }],
        }));
        match mallory.hear() {
            Down::Resynchronised(answer) => assert_eq!(answer.changed, [object.page]),
            other => panic!("{other:?}"),
        }

        let listed = mallory.call(CallRequest::List {
            prefix: String::new(),
            after: String::new(),
        });
        let Down::CallResult(message::CallResult { result, .. }) = listed else {
            panic!("{listed:?}");
        };
        assert!(!format!("{result:?}").contains("plans"), "{result:?}");
        for (sequence, op) in [(1, Some(write())), (2, None)] {
            let outcome = mallory.commit(sequence, object, op);
            let reason = InvalidCommit::NoSuchSegment;
            assert_eq!(outcome, Outcome::Refused(Refusal::Invalid { reason }));
        }
        let removed = mallory.call(CallRequest::Remove {
            segment: object.page.segment,
        });
        assert!(matches!(removed, Down::CallResult(_)), "{removed:?}");
    }
    let read = anna.transact(|tx| Ok(tx.read(&secret)?.to_vec())).unwrap();
    assert_eq!(read, b"top secret plan number 42");
}

/// An image that nobody asked for changes nothing: the site knows whom it has asked.
#[test]
fn a_page_that_nobody_asked_for_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let village = start(dir.path());
    let anna = anna(dir.path(), &village);
    let secret = make_secret(&anna);
    let mut mallory = intrude(dir.path(), &village.site_via);
    mallory.send(Up::Peer(PeerImage {
        home: mallory.home,
        page: secret.object.page,
        requester: mallory.member,
        epoch: mallory.epoch,
        attempt: Attempt(1),
        entry: EntryNo(1),
        position: mallory.position,
        image: None,
    }));
    // What comes next is answered as ever.
    assert!(matches!(
        mallory.call(CallRequest::Register(None)),
        Down::CallResult(_)
    ));
    let read = anna.transact(|tx| Ok(tx.read(&secret)?.to_vec())).unwrap();
    assert_eq!(read, b"top secret plan number 42");
}

/// Whoever may read gets what others commit, and nothing from the position on at which it may no longer.
#[test]
fn a_right_that_is_granted_and_revoked_counts_from_its_position_on() {
    let dir = tempfile::tempdir().unwrap();
    let village = start(dir.path());
    let anna = anna(dir.path(), &village);
    let secret = make_secret(&anna);
    let plans = anna.open("thorp://alps/plans").unwrap();
    let name = "mallory".parse::<Subject>().unwrap();
    plans.grant(&name, Right::Read).unwrap();
    let mut mallory = intrude(dir.path(), &village.site_via);
    let page = secret.object.page;
    let told = mallory.fetch(page, false);
    let is_image = |told: &Down| {
        matches!(
            told,
            Down::Image(message::FetchResponse {
                result: FetchResult::Image(_),
                ..
            })
        )
    };
    assert!(is_image(&told), "{told:?}");
    anna.transact(|tx| {
        let mut list = tx.rights(&plans)?.unwrap_or_default();
        list.revoke(&name);
        tx.set_rights(&plans, &list)?;
        tx.write(&secret, b"newer".to_vec())
    })
    .unwrap();
    anna.transact(|tx| tx.write(&secret, b"newest".to_vec()))
        .unwrap();
    // The page ends, with nothing of that commit in it, and nothing comes after that.
    loop {
        match mallory.hear() {
            Down::Step(step) => {
                let text = format!("{step:?}");
                assert!(!text.contains("newe"), "{text}");
                if step.changes.iter().any(|change| change.page == page) {
                    break;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(!is_image(&mallory.fetch(page, false)));
}

/// A group is in lists of other segments: who leaves it gets nothing newer of them, at the home and at a site.
#[test]
fn who_leaves_a_group_loses_what_the_group_may_read() {
    let dir = tempfile::tempdir().unwrap();
    let village = start(dir.path());
    let olga = operator(dir.path(), &village);
    let anna = anna(dir.path(), &village);
    let secret = make_secret(&anna);
    let plans = anna.open("thorp://alps/plans").unwrap();
    let staff = "@staff".parse::<Subject>().unwrap();
    plans.grant(&staff, Right::Read).unwrap();
    let page = secret.object.page;
    let hidden = |told: &Down| match told {
        Down::Image(response) => matches!(response.result, FetchResult::Refused(_)),
        other => panic!("{other:?}"),
    };
    let group = |action: &str, identity: &str| {
        let arguments = ["group", action, "thorp://alps/@staff", "mallory"];
        thorp().run(
            &[
                &arguments[..],
                &["--via", &village.home.via, "--identity", identity],
            ]
            .concat(),
        )
    };
    let mine = dir.path().join("mallory").display().to_string();
    let refused = group("add", &mine);
    assert!(
        refused.code != 0 && refused.err.contains("only an operator"),
        "{}",
        refused.err
    );
    for via in [&village.home.via, &village.site_via] {
        let mut mallory = intrude(dir.path(), via);
        assert!(hidden(&mallory.fetch(page, false)), "not in the group yet");
        let added = group("add", &olga);
        assert_eq!(
            (added.code, added.out.trim()),
            (0, "mallory"),
            "{}",
            added.err
        );
        eventually("the group is known there", || {
            !hidden(&mallory.fetch(page, false))
        });
        assert_ne!(
            group("remove", &mine).code,
            0,
            "who is in it does not change it"
        );
        let removed = group("remove", &olga);
        assert_eq!(removed.code, 0, "{}", removed.err);
        // The page ends by itself.
        loop {
            match mallory.hear() {
                Down::Step(step) if step.changes.iter().any(|change| change.page == page) => break,
                Down::Step(_) => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(hidden(&mallory.fetch(page, false)), "not any more");
    }
}

/// A village may begin closed: only operators make segments, and those whom they name.
#[test]
fn in_a_village_that_begins_closed_only_named_nodes_make_segments() {
    let dir = tempfile::tempdir().unwrap();
    let village = OneSite::start_with(dir.path(), &["anna", "mallory"], &["--closed"], &[]);
    let olga = operator(dir.path(), &village);
    let anna = anna(dir.path(), &village);
    let kind = |error: thorp_client::Error| error.kind();
    assert_eq!(
        anna.create("thorp://alps/plans").map_err(kind).err(),
        Some(ErrorKind::NoRight)
    );
    let grant = ["rights", "grant", "thorp://alps/.create", "write", "anna"];
    let said = thorp().run(
        &[
            &grant[..],
            &["--via", &village.home.via, "--identity", &olga],
        ]
        .concat(),
    );
    assert_eq!(said.code, 0, "{}", said.err);
    let plans = anna.create("thorp://alps/plans").unwrap();
    let list = plans.rights().unwrap().unwrap();
    let entries = list.entries().map(|(subject, right)| (subject.id(), right));
    let only = [(Some(NameId::of("anna")), Right::Admin)];
    assert!(entries.eq(only), "{list}");
    for path in [".group/staff", ".new", ".secret"] {
        assert!(
            anna.create(&format!("thorp://alps/{path}")).is_err(),
            "{path}"
        );
    }
}

fn operator(dir: &Path, village: &OneSite) -> String {
    let out = dir.join("olga").display().to_string();
    let authority = &village.home.authority;
    let invite = [
        "invite", "olga", "--role", "operator", "--dir", authority, "--out", &out,
    ];
    assert_eq!(thorp().run(&invite).code, 0);
    out
}

/// The demonstration for people checks itself: processes, two sites, an operator and the audit.
#[test]
fn the_demo_of_rights_holds() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().display().to_string();
    let said = thorp().run(&["demo", "--rights", "--out", &out]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("All checks hold"), "{}", said.out);
}
