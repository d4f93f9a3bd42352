//! What a test does to the disk of a home, in memory and in a store.

use std::time::Duration;

use thorp_model::{Outcome, Slot, Table};
use thorp_testing::{HomeNode, HomeOptions, SOON, Village, create, holds};
use tokio::time::{sleep, timeout};

use crate::nodes::{commit, home_options, member};

/// A home with its records in memory, and one with a store, each in a village of its own.
fn homes() -> [HomeNode; 2] {
    let (one, other) = (Village::new(), Village::new());
    let options = HomeOptions {
        store: Some(other.path("store")),
        ..home_options()
    };
    [
        HomeNode::start(&one, home_options()),
        HomeNode::start(&other, options),
    ]
}

async fn something_waits(home: &HomeNode) {
    let waiting = async {
        while !home.has_waiting() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(SOON, waiting).await.expect("the home appends soon");
}

#[tokio::test]
async fn a_commit_is_answered_when_the_disk_is_released() {
    for home in homes() {
        let anna = member(home.village(), home.address(), 10).await;
        let segment = anna.open_or_create("letters").await;
        let page = anna.fresh_page(segment).await;
        home.hold_disk();
        let held = anna.commit(page, Slot(0), create("dear bert"));
        tokio::pin!(held);
        tokio::select! {
            outcome = &mut held => panic!("it is not durable: {outcome:?}"),
            () = something_waits(&home) => {}
        }
        home.release_disk();
        let (_, outcome) = held.await;
        assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
        assert!(!home.has_waiting());
    }
}

#[tokio::test]
async fn a_home_comes_back_with_what_was_durable() {
    for home in homes() {
        let anna = member(home.village(), home.address(), 10).await;
        let segment = anna.open_or_create("letters").await;
        let page = anna.fresh_page(segment).await;
        commit(&anna, page, create("kept")).await;
        home.lose_disk();
        let records = home.records(Table::Log);
        tokio::select! {
            outcome = anna.commit(page, Slot(1), create("lost")) => panic!("{outcome:?}"),
            () = something_waits(&home) => {}
        }
        assert_eq!(home.records(Table::Log), records);
        // She would send it again.
        drop(anna);
        home.stop();
        home.restart();
        let bert = member(home.village(), home.address(), 11).await;
        let image = bert.fetch(page).await;
        assert!(holds(&image, Slot(0), "kept") && !holds(&image, Slot(1), "lost"));
        assert!(!home.has_waiting());
    }
}
