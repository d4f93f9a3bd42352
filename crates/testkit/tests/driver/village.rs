//! A home, a site and members over sockets.

use thorp_model::{Blob, Content, Generation, NewValue, Note, Slot, WriteOp};
use thorp_testing::{Village, create, holds};

use crate::nodes::{commit, home, member, site};

fn write(text: &str) -> WriteOp {
    WriteOp::Write {
        generation: Generation(1),
        value: NewValue::Inline(Blob::from(text.as_bytes())),
    }
}

#[tokio::test]
async fn what_one_commits_another_reads_and_hears_of() {
    let village = Village::new();
    let home = home(&village).await;
    let anna = member(&village, home.address(), 10).await;
    let bert = member(&village, home.address(), 11).await;
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    anna.fetch(page).await;
    commit(&anna, page, create("dear bert")).await;
    anna.page(page, |image| holds(image, Slot(0), "dear bert"))
        .await;

    bert.fetch(page).await;
    assert!(holds(&bert.cached(page).unwrap(), Slot(0), "dear bert"));
    commit(&bert, page, write("dear anna")).await;
    // At the home there is no peer update: others get invalidations (rule 8).
    let hole = anna.page(page, |image| !image.is_complete()).await;
    assert_eq!(hole.content(Slot(0)), Content::Hole);
    anna.fetch(page).await;
    assert!(holds(&anna.cached(page).unwrap(), Slot(0), "dear anna"));
}

#[tokio::test]
async fn at_a_site_pages_come_from_its_memory_and_updates_fill_the_neighbours() {
    let village = Village::new();
    let home = home(&village).await;
    let site = site(&village, &home, 1 << 20).await;
    let anna = member(&village, site.address(), 10).await;
    let bert = member(&village, site.address(), 11).await;
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    anna.fetch(page).await;
    bert.fetch(page).await;
    commit(&anna, page, create("dear bert")).await;
    let filled = bert
        .page(page, |image| holds(image, Slot(0), "dear bert"))
        .await;
    assert!(filled.is_complete());
    assert!(
        site.handle().notes().get(Note::UpdateDelivered) > 0,
        "{:?}",
        site.handle().notes()
    );

    bert.evict(page).await;
    let before = site.handle().totals().up;
    bert.fetch(page).await;
    assert!(holds(&bert.cached(page).unwrap(), Slot(0), "dear bert"));
    assert!(site.handle().notes().get(Note::ServedFromMemory) > 0);
    assert_eq!(site.handle().totals().up.frames_sent, before.frames_sent);
}

#[tokio::test]
async fn two_sites_below_one_home_leave_each_other_alone() {
    let village = Village::new();
    let home = home(&village).await;
    let first = site(&village, &home, 1 << 20).await;
    let anna = member(&village, first.address(), 10).await;
    let second = site(&village, &home, 1 << 20).await;
    let bert = member(&village, second.address(), 11).await;
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    anna.fetch(page).await;
    commit(&anna, page, create("dear bert")).await;
    assert!(holds(&bert.fetch(page).await, Slot(0), "dear bert"));
    commit(&bert, page, write("dear anna")).await;
    anna.page(page, |image| !image.is_complete()).await;
    assert!(holds(&anna.fetch(page).await, Slot(0), "dear anna"));
    assert_eq!(home.handle().notes().get(Note::CameAgain), 0);
    assert_eq!((anna.streams(), bert.streams()), (1, 1));
}

#[tokio::test]
async fn a_site_without_memory_redirects_to_the_neighbour() {
    let village = Village::new();
    let home = home(&village).await;
    let site = site(&village, &home, 0).await;
    let anna = member(&village, site.address(), 10).await;
    let bert = member(&village, site.address(), 11).await;
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    commit(&anna, page, create("dear bert")).await;
    anna.fetch(page).await;
    bert.fetch(page).await;
    assert!(holds(&bert.cached(page).unwrap(), Slot(0), "dear bert"));
    assert_eq!(site.handle().notes().get(Note::Redirected), 1);
    let looked = site.handle().inspect(|core| core.sizes()).await.unwrap();
    assert!(looked.contains(&("children", 2)), "{looked:?}");
}
