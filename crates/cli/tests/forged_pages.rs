//! A member that is asked to help its neighbours sends pages that it made up (before, a neighbour read them; rule R6).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::one_site::OneSite;
use std::path::Path;
use std::thread;
use std::time::Duration;
use thorp_client::{JoinConfig, Member, Reference};
use thorp_model::{
    CallRequest, Content, Down, Draft, FetchResult, Image, ImageEdit, ObjectId, PageId, PeerImage,
    ReportNo, Reported, Up, message,
};
use thorp_testing::{Intruder, PATIENCE};

/// A site without memory asks neighbours for whatever they have.
fn start(dir: &Path) -> OneSite {
    OneSite::start(dir, &["anna", "ben", "mallory"], &["--cache-bytes", "0"])
}

fn member(dir: &Path, name: &str, via: &str) -> Member {
    let config = JoinConfig::new(via).identity(dir.join(name));
    Member::join(config.join_timeout(PATIENCE)).unwrap()
}

/// Anna, at the home, writes what nobody else may change unnoticed.
fn make_order(dir: &Path, village: &OneSite) -> Reference {
    let anna = member(dir, "anna", &village.home.via);
    let orders = anna.create("thorp://alps/orders").unwrap();
    anna.transact(|tx| tx.create(&orders, b"pay 100 to anna".to_vec()))
        .unwrap()
}

fn read(member: &Member, order: &Reference) -> String {
    let bytes = member.transact(|tx| Ok(tx.read(order)?.to_vec()));
    String::from_utf8(bytes.unwrap()).unwrap()
}

fn forged(image: &Image, object: ObjectId) -> Image {
    assert_eq!(
        image.content(object.slot),
        Content::Value(b"pay 100 to anna")
    );
    let mut edit = ImageEdit::of(image);
    let (generation, _) = image.slot(object.slot);
    let value = Draft::Value(b"pay 100 to evil".to_vec());
    edit.set(object.slot, generation, value);
    edit.finish(image.version(), image.stamp())
}

fn image_of(told: Down) -> Image {
    match told {
        Down::Image(message::FetchResponse {
            result: FetchResult::Image(image),
            ..
        }) => image,
        other => panic!("{other:?} is no image"),
    }
}

#[test]
fn a_helper_that_forges_a_page_is_not_believed_and_asked_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let village = start(dir.path());
    let order = make_order(dir.path(), &village);
    let mut mallory = intrude(dir.path(), &village.site_via);
    let image = image_of(mallory.fetch(order.object.page, false));
    let ben = member(dir.path(), "ben", &village.site_via);
    let reading = thread::spawn(move || read(&ben, &order));
    help(&mut mallory, &image, order.object);
    assert_eq!(reading.join().unwrap(), "pay 100 to anna");
    let another = member(dir.path(), "anna", &village.site_via);
    assert_eq!(read(&another, &order), "pay 100 to anna");
    assert!(is_asked_for_nothing(&mut mallory));
}

/// It only says that it holds the page. It has it from elsewhere.
#[test]
fn who_only_reports_a_page_is_not_believed_either() {
    let dir = tempfile::tempdir().unwrap();
    let village = start(dir.path());
    let order = make_order(dir.path(), &village);
    let mut at_home = intrude(dir.path(), &village.home.via);
    let image = image_of(at_home.fetch(order.object.page, false));
    let mut mallory = intrude(dir.path(), &village.site_via);
    while !reported(&mut mallory, order.object.page).is_empty() {
        // It does not stand yet where the page was written.
        thread::sleep(Duration::from_millis(20));
    }
    let ben = member(dir.path(), "ben", &village.site_via);
    let reading = thread::spawn(move || read(&ben, &order));
    help(&mut mallory, &image, order.object);
    assert_eq!(reading.join().unwrap(), "pay 100 to anna");
}

/// Waits until it is asked for help, and sends a forged page.
fn help(mallory: &mut Intruder, image: &Image, object: ObjectId) {
    let redirect = loop {
        match mallory.hear() {
            Down::Redirect(redirect) => break redirect,
            Down::Step(_) => {}
            other => panic!("{other:?} is no request for help"),
        }
    };
    mallory.send(Up::Peer(PeerImage {
        home: redirect.home,
        page: redirect.page,
        requester: redirect.requester,
        epoch: redirect.epoch,
        attempt: redirect.attempt,
        entry: redirect.entry,
        position: mallory.position,
        image: Some(forged(image, object)),
    }));
}

/// Says that it holds a page as of where it stands. What has changed since.
fn reported(mallory: &mut Intruder, page: PageId) -> Vec<PageId> {
    mallory.send(Up::Report(message::Report {
        home: mallory.home,
        epoch: mallory.epoch,
        report: ReportNo(1),
        pages: vec![Reported {
            page,
            as_of: mallory.position,
            complete: true,
        }],
    }));
    match mallory.hear() {
        Down::Resynchronised(answer) => answer.changed,
        other => panic!("{other:?}"),
    }
}

fn intrude(dir: &Path, via: &str) -> Intruder {
    Intruder::enter(&dir.join("mallory").display().to_string(), via)
}

/// No request for help comes before the answer to a call.
fn is_asked_for_nothing(mallory: &mut Intruder) -> bool {
    let mut told = mallory.call(CallRequest::List {
        prefix: String::new(),
        after: String::new(),
    });
    loop {
        match told {
            Down::CallResult(_) => return true,
            Down::Redirect(_) => return false,
            _ => told = mallory.hear(),
        }
    }
}
