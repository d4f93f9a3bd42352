//! A home, a site and members over sockets.

use thorp_model::{
    Blob, CallRequest, CallResponse, Content, Generation, NewValue, Note, Outcome, PageId,
    PageWrites, Part, Place, Position, SegmentId, Slot, WriteOp,
};
use thorp_protocol::{Request, Response};

use crate::common::Village;
use crate::memory::{HOME, Program, home, member, site};

async fn call(program: &Program, request: CallRequest) -> CallResponse {
    match program
        .ask(Request::Call {
            home: HOME,
            request,
        })
        .await
    {
        Response::Called(Ok(response)) => response,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn open(program: &Program, path: &str) -> SegmentId {
    let path = path.to_owned();
    let request = CallRequest::Open { path, create: true };
    match call(program, request).await {
        CallResponse::Segment(info) => info.id,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn fresh_page(program: &Program, segment: SegmentId) -> PageId {
    match call(program, CallRequest::Reserve { segment }).await {
        CallResponse::Extent { first, .. } => PageId {
            segment,
            page: first,
        },
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn fetch(program: &Program, page: PageId) {
    let place = Place { home: HOME, page };
    assert_eq!(program.ask(Request::Fetch(place)).await, Response::Fetched);
}

pub(crate) async fn commit(program: &Program, page: PageId, op: WriteOp) -> Position {
    let writes = PageWrites {
        page,
        slots: vec![(Slot(0), op)],
    };
    let part = Part {
        home: HOME,
        evidence: Position(program.position()),
        reads: vec![],
        writes: vec![writes],
    };
    let ask = Request::Commit {
        parts: vec![part],
        depends_on: vec![],
        after: thorp_model::Stamp::default(),
        early: false,
    };
    match program.ask(ask).await {
        Response::Outcome(_, Outcome::Committed { position, .. }, _) => position,
        other => panic!("{other:?}"),
    }
}

fn value(text: &str) -> NewValue {
    NewValue::Inline(Blob::from(text.as_bytes()))
}

fn create(text: &str) -> WriteOp {
    WriteOp::Create {
        generation: Generation(1),
        value: value(text),
    }
}

fn write(text: &str) -> WriteOp {
    WriteOp::Write {
        generation: Generation(1),
        value: value(text),
    }
}

fn holds(image: &thorp_model::Image, text: &str) -> bool {
    matches!(image.content(Slot(0)), Content::Value(bytes) if bytes == text.as_bytes())
}

#[tokio::test]
async fn what_one_commits_another_reads_and_hears_of() {
    let village = Village::new();
    let (_home, address) = home(&village).await;
    let anna = member(&village, &address, 10).await;
    let bert = member(&village, &address, 11).await;
    let segment = open(&anna, "letters").await;
    let page = fresh_page(&anna, segment).await;
    fetch(&anna, page).await;
    commit(&anna, page, create("dear bert")).await;
    anna.page(page, |image| holds(image, "dear bert")).await;

    fetch(&bert, page).await;
    assert!(holds(&bert.cached(page).unwrap(), "dear bert"));
    commit(&bert, page, write("dear anna")).await;
    // At the home there is no peer update: others get invalidations (rule 8).
    let hole = anna.page(page, |image| !image.is_complete()).await;
    assert_eq!(hole.content(Slot(0)), Content::Hole);
    fetch(&anna, page).await;
    assert!(holds(&anna.cached(page).unwrap(), "dear anna"));
}

#[tokio::test]
async fn at_a_site_pages_come_from_its_memory_and_updates_fill_the_neighbours() {
    let village = Village::new();
    let (_home, address) = home(&village).await;
    let (site, address) = site(&village, &address, 1 << 20).await;
    let anna = member(&village, &address, 10).await;
    let bert = member(&village, &address, 11).await;
    let segment = open(&anna, "letters").await;
    let page = fresh_page(&anna, segment).await;
    fetch(&anna, page).await;
    fetch(&bert, page).await;
    commit(&anna, page, create("dear bert")).await;
    let filled = bert.page(page, |image| holds(image, "dear bert")).await;
    assert!(filled.is_complete());
    assert!(
        site.notes().get(Note::UpdateDelivered) > 0,
        "{:?}",
        site.notes()
    );

    bert.evict(page);
    while bert.cached(page).is_some() {
        tokio::task::yield_now().await;
    }
    let before = site.totals().up;
    fetch(&bert, page).await;
    assert!(holds(&bert.cached(page).unwrap(), "dear bert"));
    assert!(site.notes().get(Note::ServedFromMemory) > 0);
    assert_eq!(site.totals().up.frames_sent, before.frames_sent);
}

#[tokio::test]
async fn a_site_without_memory_redirects_to_the_neighbour() {
    let village = Village::new();
    let (_home, address) = home(&village).await;
    let (site, address) = site(&village, &address, 0).await;
    let anna = member(&village, &address, 10).await;
    let bert = member(&village, &address, 11).await;
    let segment = open(&anna, "letters").await;
    let page = fresh_page(&anna, segment).await;
    commit(&anna, page, create("dear bert")).await;
    fetch(&anna, page).await;
    fetch(&bert, page).await;
    assert!(holds(&bert.cached(page).unwrap(), "dear bert"));
    assert_eq!(site.notes().get(Note::Redirected), 1);
    let looked = site.inspect(|core| core.sizes()).await.unwrap();
    assert!(looked.contains(&("children", 2)), "{looked:?}");
}
