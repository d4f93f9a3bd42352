//! Another proxy takes the place of one that runs.

use crate::origin::{CACHE_BYTES, OwnDoor, Site, Step, answer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use thorp_versions::{Memory, Reader};
use thorp_web::{Door, Recipe, WatchedProxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const RECIPE: &str = r#"
    [[routes]]
    path = "/items/{id}"
    keys = ["item:{id}"]
"#;

/// Puts a proxy in front of another origin, with another recipe.
fn renew(door: &OwnDoor, origin: &str, recipe: &str) {
    let recipe = Arc::new(Recipe::parse(recipe).expect("a recipe"));
    let reader = Reader::new(Arc::new(Memory::new()));
    let next = door.proxy().successor(origin, recipe, reader, CACHE_BYTES);
    door.renew(Arc::new(next.expect("an origin")));
}

async fn read_one(stream: &mut tokio::net::TcpStream, until: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(until) {
        text.push(char::from(
            stream.read_u8().await.expect("more of an answer"),
        ));
    }
    text
}

#[tokio::test]
async fn the_next_request_of_a_connection_gets_the_new_proxy() {
    let old = Site::with("", |_| answer("Cache-Control: max-age=60", "old!")).await;
    let new = Site::with("", |_| answer("", "new!")).await;
    let mut client = old.connect().await;
    let request = b"GET /a HTTP/1.1\r\nHost: site\r\n\r\n";
    client.write_all(request).await.expect("a request");
    read_one(&mut client, "old!").await;
    renew(&old.door(), new.origin_address(), "");
    client.write_all(request).await.expect("a request");
    let answer = read_one(&mut client, "!").await;
    // Nothing that the one before has stored is left.
    assert!(answer.ends_with("new!"), "{answer}");
}

#[tokio::test]
async fn an_answer_that_has_begun_goes_on_and_its_proxy_ends_then() {
    let (site, _source) = Site::kept(RECIPE, |_| {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfirst";
        let steps = [
            Step::Send(head.to_owned()),
            Step::Wait,
            Step::Send(String::from("last")),
        ];
        steps.to_vec()
    })
    .await;
    let before = Arc::downgrade(&site.door().proxy());
    let mut client = site.connect().await;
    let request = b"GET /items/1 HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n";
    client.write_all(request).await.expect("a request");
    read_one(&mut client, "first").await;
    renew(&site.door(), "http://127.0.0.1:1", "");
    site.let_go();
    let mut rest = String::new();
    client.read_to_string(&mut rest).await.expect("the rest");
    assert_eq!(rest, "last");
    for _ in 0..1_000 {
        if before.upgrade().is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the proxy of before is still there");
}

#[tokio::test]
async fn a_proxy_gives_its_memory_back_also_while_somebody_has_it() {
    let (site, _source) = Site::kept(RECIPE, |_| answer("Cache-Control: max-age=60", "a")).await;
    site.get("/items/1").await;
    site.get("/other").await;
    // As a request has it that does not end.
    let before = site.door().proxy();
    let stored = || {
        let door = Arc::new(Door::new(Arc::clone(&before), None));
        let status = WatchedProxy::new(door, None).status();
        (status.entries.count, status.others.count)
    };
    assert_eq!(stored(), (1, 1));
    renew(&site.door(), site.origin_address(), RECIPE);
    assert_eq!(stored(), (0, 0));
}

/// Requests come all the time while proxies take each other's place: each is answered, and by a recipe of its moment.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_lost_while_proxies_change() {
    let (site, _source) = Site::kept(RECIPE, |_| answer("", "a")).await;
    let (door, origin) = (site.door(), site.origin_address().to_owned());
    let site = Arc::new(site);
    let (answered, stop) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let clients = (0..4).map(|_| {
        let (site, answered, stop) = (Arc::clone(&site), Arc::clone(&answered), Arc::clone(&stop));
        tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let got = site.get("/items/1").await;
                assert_eq!((got.status, got.body.as_str()), (200, "a"));
                answered.fetch_add(1, Ordering::SeqCst);
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    for change in 0..20 {
        let before = answered.load(Ordering::SeqCst);
        renew(&door, &origin, if change % 2 == 0 { "" } else { RECIPE });
        // More requests than were under way.
        while answered.load(Ordering::SeqCst) < before + 8 {
            assert!(
                !clients.iter().any(|client| client.is_finished()),
                "a request was lost"
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.expect("each request is answered");
    }
}
