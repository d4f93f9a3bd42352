//! The whole path: clients, the proxy, an application, PostgreSQL and its keeper.

use crate::kept::{Kept, RECIPE, run};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;
use thorp_web::{Proxy, Recipe, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const CACHE_BYTES: u64 = 16 << 20;

/// How long the application works on an answer.
const WORKS: Duration = Duration::from_millis(4);

/// An application: `/items/1` shows a price, and POST raises it.
struct Application {
    database: tokio_postgres::Client,
    asked: AtomicUsize,
}

impl Application {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let statement = match *request.method() {
            Method::POST => "UPDATE item SET price = price + 1 WHERE id = $1 RETURNING price",
            _ => "SELECT price FROM item WHERE id = $1",
        };
        let id = request
            .uri()
            .path()
            .rsplit('/')
            .next()
            .and_then(|id| id.parse::<i32>().ok());
        let row = self
            .database
            .query_opt(statement, &[&id.unwrap_or(0)])
            .await
            .expect("a question");
        // Between what it has read and its answer, others change the row.
        tokio::time::sleep(WORKS).await;
        let body = row.map(|row| row.get::<_, i32>(0).to_string());
        let status = match body {
            Some(_) => StatusCode::OK,
            None => StatusCode::NOT_FOUND,
        };
        let cookie = request.headers().get("cookie").cloned();
        let mut answer = Response::new(Full::from(body.unwrap_or_default()));
        *answer.status_mut() = status;
        if let Some(cookie) = cookie {
            answer.headers_mut().insert("x-cookie", cookie);
        }
        answer
    }
}

/// What a client gets.
struct Got {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Got {
    fn field(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }
}

/// A proxy in front of an application.
struct Shop {
    kept: Kept,
    application: Arc<Application>,
    address: String,
    client: HttpClient<HttpConnector, Empty<Bytes>>,
    _stop: watch::Sender<bool>,
}

impl Shop {
    async fn open() -> Option<Shop> {
        let kept = Kept::start().await?;
        let application = Arc::new(Application {
            database: kept.database.connect().await,
            asked: AtomicUsize::new(0),
        });
        let origin = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin_address = format!("http://{}", origin.local_addr().expect("an address"));
        tokio::spawn(run_application(origin, Arc::clone(&application)));
        let recipe = Arc::new(Recipe::parse(RECIPE).expect("a recipe"));
        let proxy = Proxy::new(&origin_address, recipe, kept.reader.clone(), CACHE_BYTES);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(serve(
            listener,
            Arc::new(proxy.expect("an origin")),
            stopped,
        ));
        Some(Shop {
            kept,
            application,
            address,
            client: HttpClient::builder(TokioExecutor::new()).build_http(),
            _stop: stop,
        })
    }

    async fn ask(&self, method: Method, path: &str, fields: &[(&str, &str)]) -> Got {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.address));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(Empty::new()).expect("a request");
        let (head, body) = self
            .client
            .request(request)
            .await
            .expect("an answer")
            .into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        Got {
            status: head.status,
            headers: head.headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    async fn get(&self, path: &str) -> Got {
        self.ask(Method::GET, path, &[]).await
    }

    fn asked(&self) -> usize {
        self.application.asked.load(Ordering::SeqCst)
    }
}

async fn run_application(listener: TcpListener, application: Arc<Application>) {
    while let Ok((stream, _)) = listener.accept().await {
        let application = Arc::clone(&application);
        let answers = service_fn(move |request| {
            let application = Arc::clone(&application);
            async move { Ok::<_, Infallible>(application.answer(request).await) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answers));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_kept_until_its_row_changes() {
    let Some(shop) = Shop::open().await else {
        return;
    };
    let first = shop.get("/items/1").await;
    assert_eq!((first.status, first.body.as_str()), (StatusCode::OK, "100"));
    assert_eq!(first.field("cache-status"), "thorp; fwd=miss; stored");
    assert_eq!(first.field("cache-control"), "no-cache");
    let second = shop.get("/items/1").await;
    assert_eq!(
        (second.body.as_str(), second.field("cache-status")),
        ("100", "thorp; hit")
    );
    let etag = first.field("etag");
    assert_eq!(second.field("etag"), etag);
    let known = shop
        .ask(Method::GET, "/items/1", &[("if-none-match", etag)])
        .await;
    assert_eq!(
        (known.status, known.body.as_str()),
        (StatusCode::NOT_MODIFIED, "")
    );
    let head = shop.ask(Method::HEAD, "/items/1", &[]).await;
    assert_eq!(
        (head.field("content-length"), head.body.as_str()),
        ("3", "")
    );
    assert_eq!(shop.asked(), 1);

    let raised = shop.ask(Method::POST, "/items/1", &[]).await;
    assert_eq!(
        (raised.body.as_str(), raised.field("cache-status")),
        ("101", "thorp; fwd=bypass")
    );
    let after = shop
        .ask(Method::GET, "/items/1", &[("if-none-match", etag)])
        .await;
    assert_eq!((after.status, after.body.as_str()), (StatusCode::OK, "101"));
    assert_ne!(after.field("etag"), etag);
    // Somebody else changes the row, and no request tells of it.
    let client = shop.kept.database.connect().await;
    run(&client, "UPDATE item SET price = 7 WHERE id = 1").await;
    assert_eq!(shop.get("/items/1").await.body, "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_of_one_client_reaches_no_other() {
    let Some(shop) = Shop::open().await else {
        return;
    };
    let own = shop
        .ask(Method::GET, "/items/1", &[("cookie", "session=1")])
        .await;
    assert_eq!(
        (own.field("x-cookie"), own.field("cache-status")),
        ("session=1", "thorp; fwd=bypass")
    );
    let themed = shop
        .ask(Method::GET, "/items/1", &[("cookie", "theme=dark")])
        .await;
    assert_eq!(
        (themed.field("x-cookie"), themed.field("cache-status")),
        ("", "thorp; fwd=miss; stored")
    );
    let other = shop.get("/items/1").await;
    assert_eq!(other.field("cache-status"), "thorp; hit");
    let with_query = shop.get("/items/1?with=2").await;
    assert_eq!(with_query.field("cache-status"), "thorp; fwd=bypass");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_two_could_read_in_two_ways_reaches_nobody() {
    let Some(shop) = Shop::open().await else {
        return;
    };
    let asked = shop.asked();
    for (request, status) in [
        ("GET /items/1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
        (
            "POST /items/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
            "400",
        ),
        ("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", "405"),
        ("GET /items/1\r\n\r\n", "400"),
    ] {
        let address = shop.address.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("a request");
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.expect("an answer");
        let head = String::from_utf8_lossy(&head);
        assert!(head.ends_with(status), "{request:?}: {head}");
    }
    assert_eq!(shop.asked(), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_is_older_than_what_was_acknowledged_before_its_request() {
    const RAISES: i32 = 300;
    const WRITES_EVERY: Duration = Duration::from_millis(9);
    const READERS: u32 = 12;
    const THINKS: Duration = Duration::from_micros(400);
    let Some(shop) = Shop::open().await else {
        return;
    };
    let shop = Arc::new(shop);
    let acknowledged = Arc::new(AtomicI32::new(100));
    let writer = {
        let (shop, acknowledged) = (Arc::clone(&shop), Arc::clone(&acknowledged));
        tokio::spawn(async move {
            let client = shop.kept.database.connect().await;
            for price in 101..=100 + RAISES {
                client
                    .execute("UPDATE item SET price = $1 WHERE id = 1", &[&price])
                    .await
                    .expect("an update");
                acknowledged.store(price, Ordering::SeqCst);
                tokio::time::sleep(WRITES_EVERY).await;
            }
        })
    };
    let readers = (1..=READERS).map(|reader| {
        let (shop, acknowledged) = (Arc::clone(&shop), Arc::clone(&acknowledged));
        tokio::spawn(async move {
            let (mut reads, mut hits) = (0, 0);
            let mut shown = 0;
            while shown < 100 + RAISES {
                let least = shown.max(acknowledged.load(Ordering::SeqCst));
                let got = shop.get("/items/1").await;
                shown = got.body.parse().expect("a price");
                assert!(shown >= least, "{shown} is shown after {least}");
                // Others arrive while it fills.
                tokio::time::sleep(THINKS * reader).await;
                reads += 1;
                hits += usize::from(got.field("cache-status") == "thorp; hit");
            }
            (reads, hits)
        })
    });
    let (mut reads, mut hits) = (0, 0);
    for reader in readers.collect::<Vec<_>>() {
        let (of_one, hits_of_one) = reader.await.expect("no stale answer");
        reads += of_one;
        hits += hits_of_one;
    }
    writer.await.expect("the writer");
    println!(
        "{reads} reads, {hits} hits, {} answers of the origin",
        shop.asked()
    );
    assert!(hits > 0);
}
