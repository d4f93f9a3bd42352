//! HTTP on coherent routes: parts, conditions, answers that vary, answers that come slowly. The test is the source.

use crate::origin::{Site, Step, answer, with_status};
use crate::plain::at_once_for;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const RECIPE: &str = r#"
    [[routes]]
    path = "/items/{id}"
    keys = ["item:{id}"]

    [[routes]]
    path = "/greeting"
    keys = ["greeting"]
    vary = ["accept-language"]
"#;

const HIT: &str = "thorp; hit";
const STORED: &str = "thorp; fwd=miss; stored";
const MISS: &str = "thorp; fwd=miss";
const BYPASS: &str = "thorp; fwd=bypass";

#[tokio::test]
async fn a_part_is_cut_out_of_an_entry_that_passes_its_check() {
    let (site, mut source) = Site::kept(RECIPE, |head| match head.contains("range:") {
        true => vec![Step::Send(String::from(
            "HTTP/1.1 206 Part\r\nContent-Range: bytes 0-1/10\r\nContent-Length: 2\r\n\r\nab",
        ))],
        false => answer("", "0123456789"),
    })
    .await;
    let part = site.ask("GET", "/items/1", "Range: bytes=0-1").await;
    assert_eq!(
        (part.status, part.body.as_str(), part.done()),
        (206, "ab", BYPASS)
    );
    let whole = site.get("/items/1").await;
    assert_eq!(whole.done(), STORED);
    let tag = whole.field("etag");
    let part = site.ask("GET", "/items/1", "Range: bytes=2-3").await;
    assert_eq!(
        (part.status, part.body.as_str(), part.done()),
        (206, "23", HIT)
    );
    assert_eq!(part.field("content-range"), "bytes 2-3/10");
    assert_eq!(
        (part.field("etag"), part.field("cache-control")),
        (tag, "no-cache")
    );
    let more = format!("Range: bytes=4-5\nIf-Range: {tag}");
    assert_eq!(site.ask("GET", "/items/1", &more).await.body, "45");
    source.change("item:1");
    let part = site.ask("GET", "/items/1", "Range: bytes=2-3").await;
    assert_eq!((part.body.as_str(), part.done()), ("ab", BYPASS));
}

#[tokio::test]
async fn a_condition_is_held_against_what_passes_its_check() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let fields = format!("Last-Modified: {date}\nDate: {date}");
    let (site, mut source) = Site::kept(RECIPE, move |_| answer(&fields, "abc")).await;
    let tag = site.get("/items/1").await.field("etag").to_owned();
    let known = format!("If-None-Match: \"x\", {tag}");
    let unchanged = site.ask("GET", "/items/1", &known).await;
    assert_eq!((unchanged.status, unchanged.done()), (304, HIT));
    let wanted = format!("If-Match: {tag}");
    assert_eq!(site.ask("GET", "/items/1", &wanted).await.status, 200);
    // Two changes in one second have one date (trap W33).
    let since = format!("If-Modified-Since: {date}");
    assert_eq!(site.ask("GET", "/items/1", &since).await.status, 200);
    let head = site.ask("HEAD", "/items/1", "").await;
    assert_eq!(
        (head.status, head.field("content-length"), head.done()),
        (200, "3", HIT)
    );
    source.change("item:1");
    assert_eq!(site.ask("GET", "/items/1", &known).await.status, 200);
    assert_eq!(site.ask("GET", "/items/1", &wanted).await.status, 412);
    assert!(!site.last_head().contains("if-"), "{}", site.last_head());
    // With a cookie it is the client's alone, and its date goes no further.
    let own = format!("Cookie: a=b\n{since}");
    assert_eq!(site.ask("GET", "/items/1", &own).await.done(), BYPASS);
    assert!(!site.last_head().contains("if-"), "{}", site.last_head());
}

#[tokio::test]
async fn an_answer_varies_by_what_its_route_names_and_by_nothing_else() {
    let (site, mut source) = Site::kept(RECIPE, |head| {
        let language = head
            .lines()
            .find(|line| line.starts_with("accept-language"));
        let field = match head.contains("/greeting") {
            true => "Vary: Accept-Language",
            false => "Vary: Accept-Language, Accept",
        };
        answer(field, language.unwrap_or("none"))
    })
    .await;
    for (language, body) in [("Accept-Language: de", "accept-language: de"), ("", "none")] {
        assert_eq!(site.ask("GET", "/greeting", language).await.done(), STORED);
        let hit = site.ask("GET", "/greeting", language).await;
        assert_eq!((hit.body.as_str(), hit.done()), (body, HIT));
        assert_eq!(hit.field("vary"), "Accept-Language");
    }
    source.change("greeting");
    assert_eq!(
        site.ask("GET", "/greeting", "Accept-Language: de")
            .await
            .done(),
        STORED
    );
    for _ in 0..2 {
        assert_eq!(site.get("/items/1").await.done(), MISS);
    }
}

#[tokio::test]
async fn the_origin_sees_a_host_as_the_cache_does() {
    let recipe = "[[routes]]\npath = \"/items/{id}\"\nkeys = [\"item:{id}\"]\n";
    let (site, _source) = Site::kept(recipe, |head| match head.contains("host: shop\r\n") {
        true => answer("Cache-Control: max-age=60", "the shop"),
        false => answer("Cache-Control: max-age=60", "no such host"),
    })
    .await;
    for path in ["/items/1", "/without-a-route"] {
        let upper = format!("GET {path} HTTP/1.1\r\nHost: SHOP\r\nConnection: close\r\n\r\n");
        let lower = upper.replace("SHOP", "shop");
        for request in [upper, lower] {
            let got = site.exchange(&request).await;
            assert!(got.ends_with("the shop"), "{got}");
        }
    }
    assert_eq!(site.asked(), 2);
}

#[tokio::test]
async fn a_field_that_the_route_does_not_name_shapes_no_answer() {
    let (site, _source) = Site::kept(RECIPE, |head| answer("", head)).await;
    let evil = "User-Agent: <script>\nAccept: evil\nAccept-Language: evil";
    let first = site.ask("GET", "/items/1", evil).await;
    assert_eq!(first.done(), STORED);
    assert!(!first.body.contains("evil") && !first.body.contains("<script>"));
    let named = site.ask("GET", "/greeting", evil).await;
    assert!(
        named.body.contains("accept-language: evil"),
        "{}",
        named.body
    );
    let other = site.get("/greeting").await;
    assert!(!other.body.contains("evil"), "{}", other.body);
}

fn slow(first: &str, last: &str) -> Vec<Step> {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    vec![
        Step::Send(format!("{head}{}", chunk(first))),
        Step::Wait,
        Step::Send(format!("{}0\r\n\r\n", chunk(last))),
    ]
}

async fn begin(site: &Site, until: &str) -> (tokio::net::TcpStream, String) {
    let mut client = site.connect().await;
    let request = b"GET /items/1 HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n";
    client.write_all(request).await.expect("a request");
    let mut text = String::new();
    while !text.contains(until) {
        text.push(char::from(client.read_u8().await.expect("the first part")));
    }
    (client, text)
}

#[tokio::test]
async fn a_slow_answer_goes_to_its_client_while_it_becomes_an_entry() {
    let (site, _source) = Site::kept(RECIPE, |_| slow("first", "last")).await;
    let (mut client, mut text) = begin(&site, "first").await;
    let tag = text
        .lines()
        .find(|line| line.starts_with("etag: "))
        .map(str::to_owned);
    assert!(text.contains("cache-control: no-cache\r\n"), "{text}");
    site.let_go();
    client.read_to_string(&mut text).await.expect("the rest");
    assert!(text.contains("last\r\n0\r\n"), "{text}");
    let hit = site.get("/items/1").await;
    assert_eq!((hit.body.as_str(), hit.done()), ("firstlast", HIT));
    assert_eq!(
        tag.as_deref(),
        Some(format!("etag: {}", hit.field("etag")).as_str())
    );
}

#[tokio::test]
async fn a_change_while_a_slow_answer_comes_keeps_it_out() {
    let (site, mut source) = Site::kept(RECIPE, |_| slow("first", "last")).await;
    let (client, _) = begin(&site, "first").await;
    source.change("item:1");
    // Its client goes, and the fill goes on.
    drop(client);
    site.let_go();
    let second = site.get("/items/1").await;
    assert_eq!((second.body.as_str(), site.asked()), ("firstlast", 2));
}

#[tokio::test]
async fn an_origin_that_dies_inside_a_slow_answer_cuts_it_and_leaves_nothing() {
    let (site, _source) = Site::kept(RECIPE, |_| {
        let mut steps = slow("first", "last");
        steps[2] = Step::Close;
        steps
    })
    .await;
    let (mut client, mut text) = begin(&site, "first").await;
    site.let_go();
    // The connection ends without the last chunk.
    let _ = client.read_to_string(&mut text).await;
    assert!(!text.ends_with("0\r\n\r\n"), "{text}");
    site.get("/items/1").await;
    assert_eq!(site.asked(), 2);
}

#[tokio::test]
async fn a_huge_answer_passes_a_coherent_route_and_is_not_stored() {
    const HUGE: usize = 9 << 20;
    let body: &'static str = "x".repeat(HUGE).leak();
    let (site, _source) = Site::kept(RECIPE, move |_| answer("", body)).await;
    for _ in 0..2 {
        let got = site.get("/items/1").await;
        assert_eq!((got.body.len(), got.done()), (HUGE, MISS));
        assert_eq!(got.field("cache-control"), "no-cache");
    }
    assert_eq!(site.asked(), 2);
}

#[tokio::test]
async fn an_answer_without_an_end_begins_at_once() {
    let (site, _source) = Site::kept(RECIPE, |_| {
        let endless = Step::Send(String::from("HTTP/1.1 200 OK\r\n\r\nbegun"));
        vec![endless, Step::Wait, Step::Close]
    })
    .await;
    let begun = tokio::time::timeout(Duration::from_secs(10), begin(&site, "begun")).await;
    begun.expect("it goes to its client");
}

#[tokio::test]
async fn many_who_wait_share_that_the_origin_has_failed() {
    let fails = |_: &str| [vec![Step::Wait], with_status("503 No", "", "busy")].concat();
    let (site, _source) = Site::kept(RECIPE, fails).await;
    let (site, _) = at_once_for("/items/1", site, 20).await;
    assert_eq!(site.asked(), 1);
    let later = site.get("/items/1").await;
    assert_eq!(
        (later.status, later.body.as_str(), site.asked()),
        (503, "busy", 2)
    );
}
