//! Requests as the source: real keepers, real proxies, and an origin whose answers a test writes byte by byte.

use crate::origin::{Got, Site, Step, answer, with_status};
use crate::servants::{Beside, Servant};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use thorp_versions::{Kept, Writer};
use thorp_web::{Calls, terms_of_requests};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::watch;

const HIT: &str = "thorp; hit";
const STORED: &str = "thorp; fwd=miss; stored";
const MISS: &str = "thorp; fwd=miss";

/// No request of these tests is at work for longer, but where a test says so.
const LIFE: Duration = Duration::from_secs(600);

/// One that a test waits for.
const SHORT_LIFE: Duration = Duration::from_secs(4);

/// How long anything may take that does come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A keeper, an origin with one value, and a proxy between them.
struct Scene {
    site: Site,
    value: Arc<AtomicU32>,
    keeper: Option<Servant>,
    proxy: Beside,
    table: PathBuf,
    _directory: tempfile::TempDir,
}

impl Scene {
    /// GET shows the value. Each other request is answered like this.
    async fn open(
        life: Duration,
        changes: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static,
    ) -> Scene {
        let directory = tempfile::tempdir().expect("a directory");
        let table = directory.path().join("shop.table");
        // The keeper before has left that there was nobody.
        let book = directory.path().join("shop.table.proxies");
        std::fs::write(book, "{\"are_all\":true,\"lives\":{}}").expect("a file");
        let value = Arc::new(AtomicU32::new(1));
        let shown = Arc::clone(&value);
        let site = Site::open(move |head| match head.starts_with("GET") {
            true => answer("", &shown.load(Ordering::SeqCst).to_string()),
            false => changes(head),
        })
        .await;
        let keeper = Some(Servant::keeper(&table, life));
        let proxy = Beside::start(&table, site.origin_address()).await;
        let site = site.at(&proxy.address);
        let scene = Scene {
            site,
            value,
            keeper,
            proxy,
            table,
            _directory: directory,
        };
        scene.until_hit("/items/1").await;
        scene
    }

    /// Asks until the answer is an entry. What is shown from now on is the value of now, or newer.
    async fn until_hit(&self, path: &str) {
        self.until_hit_at(&self.site, path).await;
    }

    async fn until_hit_at(&self, site: &Site, path: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let least = self.value.load(Ordering::SeqCst);
            let got = site.get(path).await;
            let shown: u32 = got.body.parse().unwrap_or_else(|_| panic!("{got:?}"));
            assert!(shown >= least, "{shown} is shown after {least}");
            if got.done() == HIT {
                return;
            }
            assert!(Instant::now() < end, "{got:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Nothing that rests on the item is stored, however often it is asked for.
    async fn is_odd(&self, path: &str) {
        // The keeper beats four times a second, and ends by time what it ends then.
        for _ in 0..12 {
            assert_eq!(self.site.get(path).await.done(), MISS, "{path}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The application changes the value, and everybody who reads the database sees that.
    fn becomes(&self, value: u32) {
        self.value.store(value, Ordering::SeqCst);
    }

    /// Sends an unsafe request, and reads until a text comes.
    async fn begin(&self, path: &str, until: &str) -> TcpStream {
        let mut client = self.site.connect().await;
        let request = format!("POST {path} HTTP/1.1\r\nHost: site\r\nContent-Length: 3\r\n\r\nabc");
        client
            .write_all(request.as_bytes())
            .await
            .expect("a request");
        let mut text = Vec::new();
        while !String::from_utf8_lossy(&text).contains(until) {
            text.push(client.read_u8().await.expect("more of the answer"));
        }
        client
    }

    async fn until_asked(&self, asked: usize) {
        let end = Instant::now() + PATIENCE;
        while self.site.asked() < asked {
            assert!(Instant::now() < end, "the origin was not asked");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn in_two(first: &str, last: &str) -> Vec<Step> {
    vec![
        Step::Send(first.to_owned()),
        Step::Wait,
        Step::Send(last.to_owned()),
    ]
}

const CHUNKS: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n";
const LAST_CHUNK: &str = "0\r\n\r\n";

/// Rule W2: it fails if the update ends with the head of the answer, or with its first byte.
#[tokio::test]
async fn an_update_ends_with_the_last_byte_of_its_answer() {
    let scene = Scene::open(LIFE, |_| in_two(CHUNKS, LAST_CHUNK)).await;
    scene.until_hit("/items/2").await;
    let mut client = scene.begin("/items/1", "begun").await;
    scene.is_odd("/items/1").await;
    assert_eq!(scene.site.get("/items/2").await.done(), HIT, "another key");
    scene.becomes(2);
    scene.site.let_go();
    let mut rest = [0; 5];
    client.read_exact(&mut rest).await.expect("the last chunk");
    assert_eq!(scene.site.get("/items/1").await.body, "2");
    scene.until_hit("/items/1").await;
}

#[tokio::test]
async fn an_update_goes_on_when_its_client_has_gone() {
    let scene = Scene::open(LIFE, |head| match head.contains("/items/1") {
        true => in_two(CHUNKS, LAST_CHUNK),
        // Nothing at all comes before.
        false => in_two("", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    })
    .await;
    scene.until_hit("/items/2").await;
    let asked = scene.site.asked();
    let clients = [
        scene.begin("/items/1", "begun").await,
        scene.begin("/items/2", "").await,
    ];
    scene.until_asked(asked + 2).await;
    drop(clients);
    scene.is_odd("/items/1").await;
    scene.is_odd("/items/2").await;
    scene.becomes(2);
    scene.site.let_go();
    scene.until_hit("/items/1").await;
    scene.until_hit("/items/2").await;
}

#[tokio::test]
async fn an_answer_that_is_not_final_ends_nothing() {
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let scene = Scene::open(LIFE, move |_| {
        in_two(early, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    })
    .await;
    let asked = scene.site.asked();
    let mut client = scene.begin("/items/1", "").await;
    scene.until_asked(asked + 1).await;
    scene.is_odd("/items/1").await;
    scene.becomes(2);
    scene.site.let_go();
    let mut begin = [0; 15];
    client.read_exact(&mut begin).await.expect("an answer");
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    scene.until_hit("/items/1").await;
}

/// Trap W31: the application works on after such an answer, or it may.
#[tokio::test]
async fn after_an_answer_that_says_too_little_the_update_ends_by_time() {
    let kinds: [(u32, &str, Vec<Step>); 8] = [
        (202, "accepted", with_status("202 Accepted", "", "")),
        (408, "late", with_status("408 Request Timeout", "", "")),
        (502, "gateway", with_status("502 Bad Gateway", "", "")),
        (503, "busy", with_status("503 Service Unavailable", "", "")),
        (504, "gateway", with_status("504 Gateway Timeout", "", "")),
        (1, "nothing", vec![Step::Close]),
        (
            2,
            "cut",
            vec![
                Step::Send(String::from(
                    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
                )),
                Step::Close,
            ],
        ),
        (
            3,
            "an end that looks like a cut",
            vec![
                Step::Send(String::from("HTTP/1.1 200 OK\r\n\r\nabc")),
                Step::Close,
            ],
        ),
    ];
    let steps = kinds.clone();
    let scene = Scene::open(SHORT_LIFE, move |head| {
        let found = steps
            .iter()
            .find(|(id, ..)| head.contains(&format!("/items/{id} ")));
        found.map_or_else(|| answer("", ""), |(.., steps)| steps.clone())
    })
    .await;
    scene.until_hit("/items/9").await;
    for (id, what, _) in &kinds {
        let path = format!("/items/{id}");
        scene.site.ask("POST", &path, "").await;
        for _ in 0..4 {
            let got = scene.site.get(&path).await;
            assert_eq!(got.done(), MISS, "{what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    assert_eq!(scene.site.get("/items/9").await.done(), HIT);
    scene.becomes(2);
    for (id, ..) in &kinds {
        scene.until_hit(&format!("/items/{id}")).await;
    }
}

/// A request that has not left for the origin changes nothing, and holds nobody's hits.
#[tokio::test]
async fn a_body_that_does_not_come_opens_no_update() {
    let scene = Scene::open(LIFE, |_| answer("", "")).await;
    let asked = scene.site.asked();
    let mut client = scene.site.connect().await;
    let head = b"POST /items/1 HTTP/1.1\r\nHost: site\r\nContent-Length: 9\r\n\r\nabc";
    client.write_all(head).await.expect("a request");
    for _ in 0..4 {
        assert_eq!(scene.site.get("/items/1").await.done(), HIT);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(client);
    assert_eq!(scene.site.get("/items/1").await.done(), HIT);
    assert_eq!(scene.site.asked(), asked);
}

/// An origin that cannot be reached works on nothing.
#[tokio::test]
async fn a_request_that_reaches_no_origin_ends_at_once() {
    let scene = Scene::open(LIFE, |_| answer("", "")).await;
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", gone.local_addr().expect("an address"));
    drop(gone);
    let other = Beside::start(&scene.table, &address).await;
    let other = scene.site.at(&other.address);
    // Its proxy has no keeper before it has connected.
    let status = loop {
        let status = other.ask("POST", "/items/1", "").await.status;
        if status != 503 {
            break status;
        }
    };
    assert_eq!(status, 502);
    scene.until_hit("/items/1").await;
}

#[tokio::test]
async fn an_unsafe_request_at_one_proxy_ends_the_hits_of_another() {
    let scene = Scene::open(LIFE, |_| in_two(CHUNKS, LAST_CHUNK)).await;
    let other = Beside::start(&scene.table, scene.site.origin_address()).await;
    let site = scene.site.at(&other.address);
    scene.until_hit_at(&site, "/items/1").await;
    let client = scene.begin("/items/1", "begun").await;
    scene.becomes(2);
    for _ in 0..4 {
        let got = site.get("/items/1").await;
        assert_eq!((got.body.as_str(), got.done()), ("2", MISS));
    }
    scene.site.let_go();
    scene.until_hit_at(&site, "/items/1").await;
    drop(client);
}

#[tokio::test]
async fn what_no_route_names_changes_everything() {
    let scene = Scene::open(LIFE, |_| in_two(CHUNKS, LAST_CHUNK)).await;
    let client = scene.begin("/elsewhere", "begun").await;
    scene.is_odd("/items/1").await;
    scene.becomes(2);
    scene.site.let_go();
    scene.until_hit("/items/1").await;
    drop(client);
}

/// Trap W32: the first half. A request that no keeper has noted does not leave.
#[tokio::test]
async fn without_a_keeper_an_unsafe_request_is_refused_and_not_sent_on() {
    let mut scene = Scene::open(LIFE, |_| answer("", "")).await;
    scene.keeper.take().expect("a keeper").kill();
    let asked = scene.site.asked();
    let refused = scene.site.ask("POST", "/items/1", "").await;
    assert_eq!((refused.status, refused.field("retry-after")), (503, "1"));
    assert_eq!(scene.site.asked(), asked);
    assert_eq!(scene.site.get("/items/7").await.status, 200);
    // The next keeper knows this proxy, so it waits for nobody else.
    scene.keeper = Some(Servant::keeper(&scene.table, LIFE));
    scene.until_hit("/items/1").await;
    assert_eq!(scene.site.ask("POST", "/items/1", "").await.status, 200);
}

/// Trap W32: an acknowledgement of a keeper whose table nobody reads any more counts nothing.
#[tokio::test]
async fn the_acknowledgement_of_another_generation_sends_nothing_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let table = directory.path().join("shop.table");
    let kept = Kept::make(&table, terms_of_requests("shop"), 7).expect("a table");
    let mut writer = Writer::new(kept);
    writer.restart(9, &[]);
    let (acknowledges, generation) = watch::channel(8_u64);
    let socket = UnixListener::bind(directory.path().join("shop.table.socket")).expect("a socket");
    tokio::spawn(async move {
        let (stream, _) = socket.accept().await.expect("a proxy");
        let (reads, mut writes) = stream.into_split();
        let mut lines = BufReader::new(reads).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let said: Value = serde_json::from_str(&line).expect("a message");
            if let Some(begin) = said.get("begin") {
                let generation = *generation.borrow();
                let begun =
                    json!({ "begun": { "update": begin["update"], "generation": generation } });
                writes
                    .write_all(format!("{begun}\n").as_bytes())
                    .await
                    .expect("it is read");
            }
        }
    });
    let site = Site::open(|_| answer("", "")).await;
    let proxy = Beside::start(&table, site.origin_address()).await;
    let site = site.at(&proxy.address);
    assert_eq!(site.ask("POST", "/items/1", "").await.status, 503);
    assert_eq!(site.asked(), 0);
    acknowledges.send_replace(9);
    assert_eq!(site.ask("POST", "/items/1", "").await.status, 200);
    assert_eq!(site.asked(), 1);
}

/// Rule W2 across a restart of the keeper: the proxy lists what is open.
#[tokio::test]
async fn an_update_stays_open_when_the_keeper_is_killed_and_another_one_starts() {
    let mut scene = Scene::open(LIFE, |_| in_two(CHUNKS, LAST_CHUNK)).await;
    let client = scene.begin("/items/1", "begun").await;
    scene.keeper.take().expect("a keeper").kill();
    scene.keeper = Some(Servant::keeper(&scene.table, LIFE));
    // It is live again: another key is stored.
    scene.until_hit("/items/2").await;
    scene.is_odd("/items/1").await;
    scene.becomes(2);
    scene.site.let_go();
    scene.until_hit("/items/1").await;
    drop(client);
}

/// Trap W7: a proxy dies between begin and end.
#[tokio::test]
async fn the_update_of_a_proxy_that_is_killed_ends_by_time() {
    let scene = Scene::open(SHORT_LIFE, |_| in_two(CHUNKS, LAST_CHUNK)).await;
    let (killed, address) = Servant::proxy(&scene.table, scene.site.origin_address()).await;
    let site = scene.site.at(&address);
    scene.until_hit_at(&site, "/items/1").await;
    let mut client = site.connect().await;
    let request = b"POST /items/1 HTTP/1.1\r\nHost: site\r\n\r\n";
    let asked = scene.site.asked();
    client.write_all(request).await.expect("a request");
    scene.until_asked(asked + 1).await;
    killed.kill();
    scene.is_odd("/items/1").await;
    scene.becomes(2);
    scene.until_hit("/items/1").await;
}

/// A proxy and the keeper die together: the next keeper does not know what the proxy had open.
#[tokio::test]
async fn a_keeper_that_starts_waits_for_a_proxy_that_does_not_come() {
    let mut scene = Scene::open(SHORT_LIFE, |_| in_two(CHUNKS, LAST_CHUNK)).await;
    let (killed, address) = Servant::proxy(&scene.table, scene.site.origin_address()).await;
    let site = scene.site.at(&address);
    scene.until_hit_at(&site, "/items/1").await;
    let mut client = site.connect().await;
    let request = b"POST /items/1 HTTP/1.1\r\nHost: site\r\n\r\n";
    let asked = scene.site.asked();
    client.write_all(request).await.expect("a request");
    scene.until_asked(asked + 1).await;
    scene.keeper.take().expect("a keeper").kill();
    killed.kill();
    scene.keeper = Some(Servant::keeper(&scene.table, SHORT_LIFE));
    // The keeper takes unsafe requests before it knows: nothing is stored.
    let first = async { while scene.site.ask("POST", "/elsewhere", "").await.status == 503 {} };
    scene.site.let_go();
    first.await;
    scene.is_odd("/items/2").await;
    scene.becomes(2);
    scene.until_hit("/items/2").await;
}

/// An application that cooperates, and one that does not know the secret.
struct Caller(String);

impl Caller {
    async fn start(scene: &Scene) -> Caller {
        let calls = Calls::new(scene.proxy.requests.clone(), SECRET).expect("a secret");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(async move {
            let _stop = stop;
            calls.serve(listener, stopped).await;
        });
        Caller(address)
    }

    async fn call(&self, site: &Site, path: &str, secret: &str, body: &str) -> (u16, Value) {
        let site = site.at(&self.0);
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {secret}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let said = site.exchange(&request).await;
        let status = said
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let (_, body) = said.split_once("\r\n\r\n").expect("an answer");
        let body = serde_json::from_str(body).unwrap_or_else(|_| panic!("{said}"));
        (status.unwrap_or(0), body)
    }
}

const SECRET: &str = "0123456789abcdef";

#[tokio::test]
async fn an_application_that_cooperates_begins_and_ends_by_calls() {
    let scene = Scene::open(LIFE, |_| answer("", "")).await;
    scene.until_hit("/items/2").await;
    let caller = Caller::start(&scene).await;
    let call = |path: &'static str, body: String| {
        caller.call(&scene.site, path, SECRET, Box::leak(body.into()))
    };
    let (status, begun) = call("/begin", json!({ "keys": ["item:1"] }).to_string()).await;
    assert_eq!((status, &begun["seconds"]), (200, &json!(600)));
    scene.is_odd("/items/1").await;
    assert_eq!(scene.site.get("/items/2").await.done(), HIT);
    scene.becomes(2);
    let end = json!({ "update": begun["update"] }).to_string();
    assert_eq!(call("/end", end.clone()).await.0, 200);
    scene.until_hit("/items/1").await;
    assert_eq!(call("/end", end).await.0, 404);
    // Without keys, anything may change.
    let (status, begun) = call("/begin", String::new()).await;
    assert_eq!(status, 200);
    scene.is_odd("/items/2").await;
    let end = json!({ "update": begun["update"] }).to_string();
    assert_eq!(call("/end", end).await.0, 200);
    scene.until_hit("/items/2").await;
    for (path, body, status) in [
        ("/begin", "{\"keys\":1}", 400),
        ("/begin", "{\"key\":[]}", 400),
        ("/end", "", 400),
        ("/end", "{\"update\":\"x\"}", 404),
        ("/other", "", 404),
    ] {
        assert_eq!(call(path, body.to_owned()).await.0, status, "{path} {body}");
    }
}

#[tokio::test]
async fn nobody_without_the_secret_opens_or_ends_an_update() {
    let scene = Scene::open(LIFE, |_| in_two(CHUNKS, LAST_CHUNK)).await;
    let caller = Caller::start(&scene).await;
    for secret in ["", "0123456789abcdeg", "0123456789abcdef0", "0123"] {
        let (status, _) = caller.call(&scene.site, "/begin", secret, "").await;
        assert_eq!(status, 401);
    }
    assert_eq!(scene.site.get("/items/1").await.done(), HIT);
    // The paths mean nothing where clients connect.
    let client = scene.begin("/items/1", "begun").await;
    for update in 0..9 {
        let end = json!({ "update": update.to_string() }).to_string();
        let (status, _) = caller.call(&scene.site, "/end", SECRET, &end).await;
        assert_eq!(status, 404, "a call ends the update of a request");
    }
    scene.is_odd("/items/1").await;
    scene.site.let_go();
    drop(client);
    assert!(Calls::new(scene.proxy.requests.clone(), "short").is_err());
}

/// An application that dies between its calls holds nobody's hits for ever, and many calls are refused.
#[tokio::test]
async fn calls_are_bounded_in_time_and_number() {
    let scene = Scene::open(SHORT_LIFE, |_| answer("", "")).await;
    let caller = Caller::start(&scene).await;
    let (status, begun) = caller
        .call(&scene.site, "/begin", SECRET, "{\"keys\":[\"item:1\"]}")
        .await;
    assert_eq!(status, 200);
    scene.is_odd("/items/1").await;
    scene.until_hit("/items/1").await;
    let end = json!({ "update": begun["update"] }).to_string();
    assert_eq!(caller.call(&scene.site, "/end", SECRET, &end).await.0, 404);
    let large = json!({ "keys": vec!["a"; 1_025] }).to_string();
    assert_eq!(
        caller.call(&scene.site, "/begin", SECRET, &large).await.0,
        400
    );
    let huge = json!({ "keys": ["a".repeat(70_000)] }).to_string();
    assert_eq!(
        caller.call(&scene.site, "/begin", SECRET, &huge).await.0,
        400
    );
    let got: Got = scene.site.get("/items/1").await;
    assert!([HIT, STORED].contains(&got.done()));
}
