//! Plain caching: what the origin's own fields allow, on addresses that no route names.

use crate::origin::{Site, Step, answer, with_status};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const FRESH: &str = "Cache-Control: max-age=60";
const HIT: &str = "thorp; hit";
const STORED: &str = "thorp; fwd=uri-miss; stored";
const MISS: &str = "thorp; fwd=uri-miss";

#[tokio::test]
async fn a_fresh_answer_is_given_again_with_its_age() {
    let site = Site::open(|_| answer("Cache-Control: max-age=60\nAge: 7\nX-Own: 1", "abc")).await;
    let first = site.get("/").await;
    assert_eq!((first.body.as_str(), first.done()), ("abc", STORED));
    let second = site.get("/").await;
    assert_eq!((second.body.as_str(), second.done()), ("abc", HIT));
    assert_eq!((second.field("age"), second.field("x-own")), ("7", "1"));
    assert_ne!(second.field("date"), "");
    assert_eq!(site.get("/?other").await.done(), STORED);
    assert_eq!(site.asked(), 2);
}

#[tokio::test]
async fn an_answer_that_nobody_else_may_have_is_not_stored() {
    for (field, wish) in [
        ("Cache-Control: max-age=60, private", ""),
        ("Cache-Control: no-store, max-age=60", ""),
        ("Cache-Control: max-age=60\nSet-Cookie: a=b", ""),
        ("Cache-Control: max-age=60\nVary: *", ""),
        ("Cache-Control: max-age=60\nCDN-Cache-Control: no-store", ""),
        (FRESH, "Cookie: a=b"),
        (FRESH, "Authorization: Basic eA=="),
        (FRESH, "Cache-Control: no-store"),
        ("X-Own: 1", ""),
    ] {
        let site = Site::open(move |_| answer(field, "abc")).await;
        for _ in 0..2 {
            assert_eq!(
                site.ask("GET", "/", wish).await.done(),
                MISS,
                "{field} {wish}"
            );
        }
        assert_eq!(site.asked(), 2);
    }
}

#[tokio::test]
async fn what_is_for_all_is_stored_whoever_asks() {
    for wish in ["Cookie: a=b", "Authorization: Basic eA=="] {
        let site = Site::open(|_| answer("Cache-Control: public, max-age=60", "abc")).await;
        assert_eq!(site.ask("GET", "/", wish).await.done(), STORED, "{wish}");
        assert_eq!(site.get("/").await.done(), HIT, "{wish}");
    }
}

#[tokio::test]
async fn a_guess_is_not_for_who_has_a_cookie() {
    let changed = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
    let site = Site::open(move |_| answer(changed, "abc")).await;
    assert_eq!(site.get("/").await.done(), STORED);
    assert_eq!(site.get("/").await.done(), HIT);
    let own = site.ask("GET", "/", "Cookie: a=b").await;
    assert_eq!(own.done(), "thorp; fwd=request");
    let own = site.ask("GET", "/", "Authorization: Basic eA==").await;
    assert_eq!(own.done(), "thorp; fwd=request");
    assert_eq!(site.get("/").await.done(), HIT);
}

#[tokio::test]
async fn a_stale_answer_is_confirmed_and_takes_new_fields() {
    let site = Site::open(|head| match head.contains("if-none-match: \"a\"") {
        true => vec![Step::Send(String::from(
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nX-Own: 2\r\nCache-Control: no-cache\r\n\r\n",
        ))],
        false => answer("Cache-Control: no-cache\nETag: \"a\"\nX-Own: 1\nX-Kept: 1", "abc"),
    })
    .await;
    assert_eq!(site.get("/").await.field("x-own"), "1");
    let second = site.get("/").await;
    assert_eq!((second.status, second.body.as_str()), (200, "abc"));
    assert_eq!((second.field("x-own"), second.field("x-kept")), ("2", "1"));
    assert_eq!(second.done(), "thorp; fwd=stale; fwd-status=304; stored");
    // A client that has it already learns so, after the origin has confirmed it.
    let known = site.ask("GET", "/", "If-None-Match: \"b\", \"a\"").await;
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    assert_eq!(known.field("etag"), "\"a\"");
    let part = site.ask("GET", "/", "Range: bytes=1-").await;
    assert_eq!((part.status, part.body.as_str()), (206, "bc"));
    assert_eq!(site.asked(), 4);
}

#[tokio::test]
async fn a_304_about_another_body_is_not_believed() {
    let site = Site::open(|head| match head.contains("if-none-match") {
        true => vec![Step::Send(String::from(
            "HTTP/1.1 304 Not Modified\r\nETag: \"b\"\r\n\r\n",
        ))],
        false => answer("Cache-Control: no-cache\nETag: \"a\"", "abc"),
    })
    .await;
    site.get("/").await;
    let second = site.get("/").await;
    assert_eq!((second.status, second.body.as_str()), (200, "abc"));
    assert_eq!(site.asked(), 3);
}

#[tokio::test]
async fn parts_heads_and_conditions_are_answered_out_of_a_whole_entry() {
    let fields = "Cache-Control: max-age=60\nETag: \"a\"";
    let site = Site::open(move |_| answer(fields, "0123456789")).await;
    site.get("/").await;
    for (wish, status, body, range) in [
        ("Range: bytes=2-4", 206, "234", "bytes 2-4/10"),
        ("Range: bytes=-3", 206, "789", "bytes 7-9/10"),
        ("Range: bytes=10-", 416, "", "bytes */10"),
        ("Range: bytes=0-1,4-5", 200, "0123456789", ""),
        (
            "Range: bytes=0-1\nIf-Range: \"a\"",
            206,
            "01",
            "bytes 0-1/10",
        ),
        ("Range: bytes=0-1\nIf-Range: \"b\"", 200, "0123456789", ""),
        ("If-None-Match: W/\"a\"", 304, "", ""),
        ("If-None-Match: \"b\"", 200, "0123456789", ""),
    ] {
        let got = site.ask("GET", "/", wish).await;
        assert_eq!((got.status, got.body.as_str()), (status, body), "{wish}");
        assert_eq!(
            (got.field("content-range"), got.done()),
            (range, HIT),
            "{wish}"
        );
    }
    let head = site.ask("HEAD", "/", "").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!((head.field("content-length"), head.done()), ("10", HIT));
    assert_eq!(site.asked(), 1);
}

#[tokio::test]
async fn an_answer_goes_to_its_client_while_it_is_stored() {
    let site = Site::open(|_| {
        let begun =
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
        let first = Step::Send(format!("{begun}5\r\nfirst\r\n"));
        vec![
            first,
            Step::Wait,
            Step::Send(String::from("4\r\nlast\r\n0\r\n\r\n")),
        ]
    })
    .await;
    let mut client = site.connect().await;
    let request = b"GET / HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n";
    client.write_all(request).await.expect("a request");
    let mut text = String::new();
    while !text.contains("first") {
        text.push(char::from(client.read_u8().await.expect("the first part")));
    }
    // Until all of it is here, others ask for themselves.
    site.let_go();
    client.read_to_string(&mut text).await.expect("the rest");
    assert!(text.contains("last"), "{text}");
    let second = site.get("/").await;
    assert_eq!((second.body.as_str(), second.done()), ("firstlast", HIT));
    assert_eq!(second.field("content-length"), "9");
}

#[tokio::test]
async fn a_body_that_is_cut_or_that_ends_with_its_connection_is_not_stored() {
    let chunked = "Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n";
    for begun in [
        "Content-Length: 9\r\n\r\nfirst",
        chunked,
        "\r\nfirst",
        "Transfer-Encoding: gzip\r\n\r\nfirst",
    ] {
        let site = Site::open(move |_| {
            let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{begun}");
            vec![Step::Send(head), Step::Close]
        })
        .await;
        for _ in 0..2 {
            site.get("/").await;
        }
        assert_eq!(site.asked(), 2, "{begun}");
    }
}

#[tokio::test]
async fn a_huge_body_passes_and_is_not_stored() {
    const HUGE: usize = 9 << 20;
    let body: &'static str = "x".repeat(HUGE).leak();
    let site = Site::open(move |_| answer(FRESH, body)).await;
    for _ in 0..2 {
        assert_eq!(site.get("/").await.body.len(), HUGE);
    }
    assert_eq!(site.asked(), 2);
}

#[tokio::test]
async fn an_unsafe_request_ends_what_it_may_have_changed() {
    let site = Site::open(|head| match head.starts_with("POST /failing") {
        true => with_status("500 Oh", "", ""),
        false => answer("Cache-Control: max-age=60\nContent-Location: /list", "abc"),
    })
    .await;
    for path in ["/a", "/list", "/failing"] {
        site.get(path).await;
    }
    let posted = site.ask("POST", "/failing", "").await;
    assert_eq!((posted.status, posted.done()), (500, "thorp; fwd=method"));
    assert_eq!(site.get("/failing").await.done(), HIT);
    site.ask("POST", "/a", "").await;
    assert_eq!(site.get("/list").await.done(), STORED);
    assert_eq!(site.get("/a").await.done(), STORED);
}

#[tokio::test]
async fn an_answer_from_before_an_unsafe_request_is_not_stored_after_it() {
    let site = Site::open(|head| match head.starts_with("GET") {
        true => {
            let head =
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nbef";
            vec![
                Step::Send(String::from(head)),
                Step::Wait,
                Step::Send(String::from("ore")),
            ]
        }
        false => answer("", ""),
    })
    .await;
    let site = Arc::new(site);
    let slow = Arc::clone(&site);
    let slow = tokio::spawn(async move { slow.get("/").await });
    while site.asked() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(site.ask("POST", "/", "").await.status, 200);
    site.let_go();
    assert_eq!(slow.await.expect("an answer").body, "before");
    assert_eq!(site.get("/").await.done(), STORED);
}

#[tokio::test]
async fn an_origin_that_fails_is_stood_in_for_where_it_said_so() {
    let failing = |head: &str| match head.contains("if-none-match") {
        true => with_status("503 Later", "", ""),
        false => answer(
            "Cache-Control: max-age=0, stale-if-error=60\nETag: \"a\"",
            "abc",
        ),
    };
    let site = Site::open(failing).await;
    site.get("/").await;
    let stale = site.get("/").await;
    assert_eq!((stale.status, stale.body.as_str()), (200, "abc"));
    assert_eq!(
        stale.done(),
        "thorp; fwd=stale; fwd-status=503; detail=stale-if-error"
    );

    let gone = |head: &str| match head.contains("if-none-match") {
        true => vec![Step::Close],
        false => answer("Cache-Control: max-age=0\nETag: \"a\"", "abc"),
    };
    let site = Site::open(gone).await;
    site.get("/").await;
    assert_eq!(site.get("/").await.status, 502);
}

#[tokio::test]
async fn a_stale_answer_may_go_while_the_origin_is_asked() {
    let site = Site::open(|head| match head.contains("if-none-match") {
        true => answer("Cache-Control: max-age=60\nETag: \"b\"", "new"),
        false => {
            let control = "Cache-Control: max-age=0, stale-while-revalidate=60\nETag: \"a\"";
            answer(control, "old")
        }
    })
    .await;
    assert_eq!(site.get("/").await.body, "old");
    let stale = site.get("/").await;
    assert_eq!((stale.body.as_str(), stale.done()), ("old", HIT));
    let fresh = async {
        while site.get("/").await.body != "new" {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let fresh = tokio::time::timeout(Duration::from_secs(10), fresh).await;
    fresh.expect("the answer beside is stored");
}

#[tokio::test]
async fn nobody_chooses_what_others_see() {
    let site = Site::open(|head| {
        let host = head.lines().find(|line| line.contains("forwarded-host"));
        answer(FRESH, host.unwrap_or("own"))
    })
    .await;
    let poisoned = site.ask("GET", "/", "X-Forwarded-Host: evil.example").await;
    assert!(poisoned.body.contains("evil"), "{poisoned:?}");
    assert_eq!(site.get("/").await.body, "own");
    assert_eq!(site.get("/").await.done(), HIT);
    // A body shapes the answer, and is in no name.
    let with_body =
        "GET /b HTTP/1.1\r\nHost: site\r\nConnection: close\r\nContent-Length: 4\r\n\r\nevil";
    let fat = site.exchange(with_body).await;
    assert!(fat.contains("thorp; fwd=bypass"), "{fat}");
    assert_eq!(site.get("/b").await.done(), STORED);
}

#[tokio::test]
async fn nobody_puts_an_error_of_their_own_before_others() {
    let site = Site::open(|head| match head.contains("range: bytes=99-") {
        true => with_status("416 No", FRESH, ""),
        false if head.contains("expect: much") => with_status("417 No", FRESH, ""),
        false => answer(FRESH, "abc"),
    })
    .await;
    assert_eq!(site.ask("GET", "/", "Range: bytes=99-").await.status, 416);
    assert_eq!(site.ask("GET", "/", "Expect: much").await.status, 417);
    let got = site.get("/").await;
    assert_eq!((got.status, got.done()), (200, STORED));
}

#[tokio::test]
async fn a_confirmed_answer_is_young_again_without_a_date_too() {
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\nCache-Control: max-age=60\nETag: \"a\"";
    let site = Site::open(move |head| match head.contains("if-none-match") {
        true => vec![Step::Send(String::from(
            "HTTP/1.1 304 No\r\nETag: \"a\"\r\n\r\n",
        ))],
        false => answer(date, "abc"),
    })
    .await;
    site.get("/").await;
    let second = site.get("/").await;
    assert_eq!((second.body.as_str(), second.field("age")), ("abc", "0"));
    assert_eq!(site.get("/").await.done(), HIT);
    assert_eq!(site.asked(), 2);
}

#[tokio::test]
async fn a_client_may_want_nothing_but_what_is_stored() {
    let site = Site::open(|_| answer(FRESH, "abc")).await;
    let nothing = site.ask("GET", "/", "Cache-Control: only-if-cached").await;
    assert_eq!((nothing.status, site.asked()), (504, 0));
    site.get("/").await;
    let stored = site.ask("GET", "/", "Cache-Control: only-if-cached").await;
    assert_eq!((stored.status, site.asked()), (200, 1));
    let newer = site.ask("GET", "/", "Cache-Control: no-cache").await;
    assert_eq!(newer.done(), "thorp; fwd=request; stored");
    assert_eq!(site.asked(), 2);
}

#[tokio::test]
async fn the_origins_word_counts_nothing_on_a_coherent_route() {
    let recipe = "[[routes]]\npath = \"/items/{id}\"\nkeys = [\"item:{id}\"]\n";
    let site = Site::with(recipe, |_| {
        answer(
            "Cache-Control: max-age=60, stale-if-error=60\nCDN-Cache-Control: max-age=60",
            "abc",
        )
    })
    .await;
    // Nobody keeps the table, so nothing may be stored there.
    for _ in 0..2 {
        let got = site.get("/items/1").await;
        assert_eq!(
            (got.done(), got.field("cache-control")),
            ("thorp; fwd=miss", "no-cache")
        );
        assert_eq!(got.field("cdn-cache-control"), "");
        let own = site.ask("GET", "/items/1", "Cookie: a=b").await;
        assert_eq!(
            (own.done(), own.field("cache-control")),
            ("thorp; fwd=bypass", "no-cache")
        );
        let query = site.get("/items/1?q").await;
        assert_eq!(
            (query.done(), query.field("cache-control")),
            ("thorp; fwd=bypass", "no-cache")
        );
    }
    assert_eq!(site.asked(), 6);
    assert_eq!(site.get("/other").await.done(), STORED);
    assert_eq!(site.get("/other").await.done(), HIT);
}

#[tokio::test]
async fn a_recipe_may_let_all_others_pass() {
    let site = Site::with("others = \"pass\"", |_| answer(FRESH, "abc")).await;
    for _ in 0..2 {
        assert_eq!(site.get("/").await.done(), "thorp; fwd=bypass");
    }
    assert_eq!(site.asked(), 2);
}

async fn at_once(site: Site, clients: usize) -> (Arc<Site>, Vec<String>) {
    at_once_for("/", site, clients).await
}

/// Clients that ask for the same while the origin waits.
pub(crate) async fn at_once_for(
    path: &'static str,
    site: Site,
    clients: usize,
) -> (Arc<Site>, Vec<String>) {
    let site = Arc::new(site);
    let before = site.asked();
    let clients = (0..clients).map(|_| {
        let site = Arc::clone(&site);
        tokio::spawn(async move { site.get(path).await.done().to_owned() })
    });
    let clients: Vec<_> = clients.collect();
    while site.asked() == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    site.let_go();
    let mut done = Vec::new();
    for client in clients {
        done.push(client.await.expect("an answer"));
    }
    (site, done)
}

fn late(fields: &'static str) -> impl Fn(&str) -> Vec<Step> + Send + Sync {
    move |_| [vec![Step::Wait], answer(fields, "abc")].concat()
}

#[tokio::test]
async fn many_who_want_the_same_ask_once() {
    let (site, done) = at_once(Site::open(late(FRESH)).await, 20).await;
    let collapsed = done.iter().filter(|done| done.ends_with("; collapsed"));
    assert_eq!((site.asked(), collapsed.count()), (1, 19), "{done:?}");
}

#[tokio::test]
async fn nobody_waits_twice_for_what_is_one_clients_alone() {
    let (site, _) = at_once(Site::open(late("Cache-Control: private")).await, 5).await;
    assert_eq!(site.asked(), 5);
    let (first, second) = tokio::join!(site.get("/"), site.get("/"));
    assert_eq!((first.done(), second.done()), (MISS, MISS));
}

#[tokio::test]
async fn many_who_want_a_stale_answer_ask_once() {
    let site = Site::open(|head| match head.contains("if-none-match") {
        true => {
            let confirmed = "HTTP/1.1 304 Same\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n\r\n";
            vec![Step::Wait, Step::Send(String::from(confirmed))]
        }
        false => answer("Cache-Control: max-age=9\nAge: 9\nETag: \"a\"", "abc"),
    });
    let site = site.await;
    assert_eq!(site.get("/").await.done(), STORED);
    let (site, done) = at_once(site, 20).await;
    let collapsed = done
        .iter()
        .filter(|done| done.ends_with("fwd=stale; collapsed"));
    assert_eq!((site.asked(), collapsed.count()), (2, 19), "{done:?}");
}

#[tokio::test]
async fn many_who_wait_share_that_the_origin_has_failed() {
    let fails = |_: &str| [vec![Step::Wait], with_status("503 No", "", "busy")].concat();
    let (site, _) = at_once(Site::open(fails).await, 20).await;
    assert_eq!(site.asked(), 1);
    let later = site.get("/").await;
    assert_eq!(
        (later.status, later.body.as_str(), site.asked()),
        (503, "busy", 2)
    );
}

#[tokio::test]
async fn nobody_shares_an_error_that_a_client_can_make() {
    let fails = |_: &str| [vec![Step::Wait], with_status("500 Bug", "", "bug")].concat();
    let (site, _) = at_once(Site::open(fails).await, 5).await;
    assert_eq!(site.asked(), 5);
}

#[tokio::test]
async fn an_origin_that_turns_to_another_protocol_unasked_has_failed() {
    let turns =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let site = Site::open(move |_| vec![Step::Send(String::from(turns))]).await;
    assert_eq!(site.get("/").await.status, 502);
}

#[tokio::test]
async fn a_coding_goes_before_a_length_that_the_origin_says_beside_it() {
    let both = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let site = Site::open(move |_| vec![Step::Send(String::from(both)), Step::Close]).await;
    assert_eq!(site.get("/").await.body, "abc");
}

#[tokio::test]
async fn a_large_head_goes_no_further() {
    let site = Site::open(|_| answer("", "abc")).await;
    for kib in [32, 200] {
        let large = "x".repeat(kib << 10);
        let head =
            format!("GET / HTTP/1.1\r\nHost: site\r\nConnection: close\r\nX: {large}\r\n\r\n");
        let mut client = site.connect().await;
        // The proxy may end the connection before it has all.
        let _ = client.write_all(head.as_bytes()).await;
        let _ = client.read_to_end(&mut Vec::new()).await;
        assert_eq!(site.asked(), 1, "{kib}");
    }
}
