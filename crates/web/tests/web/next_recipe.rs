//! Another recipe comes into force while unsafe requests are under way, which the one before has noted by its own keys.

use crate::origin::{Site, Step, answer};
use crate::servants::{RECIPE, Servant};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use thorp_versions::Followed;
use thorp_web::{Door, Health, Proxy, Recipe, Requests, follow, serve_door, terms_of_requests};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const HIT: &str = "thorp; hit";
const MISS: &str = "thorp; fwd=miss";
const CACHE_BYTES: u64 = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(30);

/// The same answers rest on other keys.
const NEXT: &str = r#"
    [[routes]]
    path = "/items/{id}"
    keys = ["thing:{id}"]
    changes = ["thing:{id}"]
"#;

/// A keeper, an origin with one value, which answers a POST in two parts, and what stands behind the port of clients.
struct Scene {
    site: Site,
    value: Arc<AtomicU32>,
    door: Arc<Door<Arc<Followed>>>,
    reader: Arc<Followed>,
    keeper: Option<Servant>,
    stop: watch::Sender<bool>,
    _directory: tempfile::TempDir,
}

fn recipe(text: &str) -> Arc<Recipe> {
    Arc::new(Recipe::parse(text).expect("a recipe"))
}

impl Scene {
    async fn open() -> Scene {
        let directory = tempfile::tempdir().expect("a directory");
        let table: PathBuf = directory.path().join("shop.table");
        // The keeper before has left that there was nobody.
        let book = directory.path().join("shop.table.proxies");
        std::fs::write(book, "{\"are_all\":true,\"lives\":{}}").expect("a file");
        let value = Arc::new(AtomicU32::new(1));
        let shown = Arc::clone(&value);
        let site = Site::open(move |head| match head.starts_with("GET") {
            true => answer("", &shown.load(Ordering::SeqCst).to_string()),
            false => vec![
                Step::Send(String::from(
                    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab",
                )),
                Step::Wait,
                Step::Send(String::from("cd")),
            ],
        })
        .await;
        let keeper = Some(Servant::keeper(&table, Duration::from_secs(600)));
        let reader = Arc::new(Followed::new(table.clone(), terms_of_requests("shop")));
        let requests = Requests::beside(Arc::clone(&reader));
        let origin = site.origin_address();
        let proxy = Proxy::new(origin, recipe(RECIPE), Arc::clone(&reader), CACHE_BYTES);
        let proxy = proxy.expect("an origin").with_requests(requests.clone());
        let door = Arc::new(Door::new(Arc::new(proxy), None));
        let (stop, stopped) = watch::channel(false);
        let (says, _) = watch::channel(Health::Live);
        tokio::spawn(follow(Arc::clone(&reader), None, says, stopped.clone()));
        let stops = stopped.clone();
        tokio::spawn(async move { requests.run(&table, stops).await });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        tokio::spawn(serve_door(listener, Arc::clone(&door), stopped));
        let scene = Scene {
            site: site.at(&address),
            value,
            door,
            reader,
            keeper,
            stop,
            _directory: directory,
        };
        scene.until_hit().await;
        scene
    }

    /// As a reload does it.
    async fn renew(&self, next: &str) {
        let (before, reader) = (self.door.proxy(), Arc::clone(&self.reader));
        let origin = self.site.origin_address();
        let next = before.successor(origin, recipe(next), reader, CACHE_BYTES);
        let next = Arc::new(next.expect("an origin"));
        before.yields().await.expect("a keeper notes it");
        self.door.renew(next);
    }

    async fn until_hit(&self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let least = self.value.load(Ordering::SeqCst);
            let got = self.site.get("/items/1").await;
            let shown: u32 = got.body.parse().unwrap_or_else(|_| panic!("{got:?}"));
            assert!(shown >= least, "{shown} is shown after {least}");
            if got.done() == HIT {
                return;
            }
            assert!(Instant::now() < end, "{got:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Nothing is stored, however often it is asked for.
    async fn is_odd(&self) {
        for _ in 0..8 {
            assert_eq!(self.site.get("/items/1").await.done(), MISS);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The rest of a POST's answer comes, and shows what has changed.
    async fn ends(&self, mut client: TcpStream) {
        self.value.store(2, Ordering::SeqCst);
        self.site.let_go();
        read_until(&mut client, "cd").await;
        self.until_hit().await;
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

async fn send(client: &mut TcpStream, bytes: &str) {
    let sent = client.write_all(bytes.as_bytes()).await;
    sent.expect("the proxy takes it");
}

async fn read_until(client: &mut TcpStream, end: &str) {
    let mut text = String::new();
    while !text.ends_with(end) {
        text.push(char::from(client.read_u8().await.expect("more")));
    }
}

const POST: &str = "POST /items/1 HTTP/1.1\r\nHost: site\r\nContent-Length: 6\r\n\r\n";

#[tokio::test]
async fn what_is_at_work_may_change_any_key_of_the_next_recipe() {
    let scene = Scene::open().await;
    let mut client = scene.site.connect().await;
    send(&mut client, &format!("{POST}abcdef")).await;
    read_until(&mut client, "ab").await;
    scene.renew(NEXT).await;
    scene.is_odd().await;
    scene.ends(client).await;
}

/// A request that the old recipe has seen, and whose update begins under the next one.
#[tokio::test]
async fn a_request_whose_body_comes_late_may_change_anything() {
    let scene = Scene::open().await;
    let mut client = scene.site.connect().await;
    send(&mut client, &format!("{POST}abc")).await;
    // The proxy of before has it: an answer on the same connection would come from that one.
    tokio::time::sleep(Duration::from_millis(100)).await;
    scene.renew(NEXT).await;
    scene.until_hit().await;
    send(&mut client, "def").await;
    read_until(&mut client, "ab").await;
    scene.is_odd().await;
    scene.ends(client).await;
}

#[tokio::test]
async fn without_a_keeper_the_recipe_stays() {
    let mut scene = Scene::open().await;
    scene.keeper.take().expect("a keeper").kill();
    let refused = scene.door.proxy().yields().await;
    assert!(refused.is_err());
    let next = scene
        .site
        .ask("POST", "/items/1", "Content-Length: 0")
        .await;
    assert_eq!(next.status, 503);
}
