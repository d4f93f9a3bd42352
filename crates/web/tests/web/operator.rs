//! What the operator of a proxy sees at a port of its own, and what nobody else sees.

use crate::origin::{Site, answer};
use serde_json::Value;
use std::sync::Arc;
use thorp_web::{Door, OperatorPort, Source, WatchedProxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const RECIPE: &str = r#"
    [[routes]]
    path = "/items/{id}"
    keys = ["item:{id}"]
    also = [{ contains = "sold out", keys = ["stock"] }]

    [[routes]]
    path = "/greeting"
    keys = ["greeting"]
    vary = ["accept-language"]

    [[routes]]
    path = "/report"
"#;

/// An operator's port of a proxy.
pub(crate) struct Operator(String);

impl Operator {
    pub(crate) async fn of<S: Source + Send + Sync + 'static>(door: Arc<Door<S>>) -> Operator {
        let any = "127.0.0.1:0".parse().expect("an address");
        let port = OperatorPort::bind(any).await.expect("a port");
        let address = port.address().to_string();
        let watched = Arc::new(WatchedProxy::new(door, None));
        tokio::spawn(port.serve(watched));
        Operator(address)
    }

    /// The head and the body of an answer.
    async fn ask(&self, method: &str, path: &str, host: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.0).await.expect("a connection");
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
        (head.to_owned(), body.to_owned())
    }

    pub(crate) async fn get(&self, path: &str) -> String {
        let (head, body) = self.ask("GET", path, &self.0).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
        body
    }

    pub(crate) async fn document(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path).await).expect("a document")
    }
}

#[tokio::test]
async fn each_request_is_counted_once_by_what_became_of_it() {
    let (site, mut source) = Site::kept(RECIPE, |head| match head.contains("/items/2") {
        true => answer("Cache-Control: no-store", "b"),
        false => answer("", "a"),
    })
    .await;
    let operator = Operator::of(site.door()).await;
    site.get("/items/1").await;
    site.get("/items/1").await;
    source.change("item:1");
    site.get("/items/1").await;
    site.get("/items/2").await;
    site.get("/items/1?with=1").await;
    site.ask("POST", "/items/1", "Content-Length: 0").await;
    site.ask("GET", "/items/1", "Cookie: a=b").await;
    site.get("/other").await;
    let status = operator.document("/status").await;
    let count = |of: &str, reason: &str| status[of][reason].as_u64();
    assert_eq!(status["hits"], 1);
    assert_eq!(count("missed", "absent"), Some(2));
    assert_eq!(count("missed", "changed"), Some(1));
    assert_eq!(count("refused", "no_store"), Some(1));
    for reason in ["query", "method", "cookie"] {
        assert_eq!(count("bypassed", reason), Some(1), "{reason}");
    }
    for of in ["missed", "bypassed", "refused"] {
        let all: u64 = status[of]
            .as_object()
            .expect("counts")
            .values()
            .flat_map(Value::as_u64)
            .sum();
        assert_eq!(all, if of == "refused" { 1 } else { 3 }, "{of}");
    }
    assert_eq!(
        (&status["dropped"], &status["entries"]["count"]),
        (&1.into(), &1.into())
    );
    assert_eq!(status["live"], true);
    let metrics = operator.get("/metrics").await;
    for line in [
        "thorp_web_hits_total 1",
        "thorp_web_missed_total{reason=\"changed\"} 1",
        "thorp_web_refused_total{reason=\"no_store\"} 1",
        "thorp_web_bypassed_total{reason=\"cookie\"} 1",
        "thorp_web_dropped_total 1",
        "thorp_web_stored{of=\"routes\"} 1.0",
        "thorp_web_live 1.0",
        "# EOF",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}\n{metrics}"
        );
    }
}

#[tokio::test]
async fn an_address_says_what_it_rests_on_and_why_it_was_dropped() {
    let (site, mut source) = Site::kept(RECIPE, |_| answer("", "it is sold out")).await;
    let operator = Operator::of(site.door()).await;
    let why = "/why?url=http%3A//site/items/1";
    let nothing = operator.document(why).await;
    assert_eq!(
        (&nothing["has_route"], &nothing["entries"]),
        (&true.into(), &Value::Array(vec![]))
    );
    site.get("/items/1").await;
    site.get("/items/1").await;
    site.get("/report").await;
    let known = operator.document(why).await;
    let entry = &known["entries"][0];
    assert_eq!(
        entry["dependencies"],
        serde_json::json!(["item:1", "stock"])
    );
    assert_eq!(
        (&entry["hits"], &entry["is_served"]),
        (&1.into(), &true.into())
    );
    assert!(entry["bytes"].as_u64().is_some_and(|bytes| bytes > 14));
    // The key that the answer itself showed.
    source.change("stock");
    let known = operator.document(why).await;
    let entry = &known["entries"][0];
    assert_eq!(
        (&entry["reason"], &entry["key"]),
        (&"changed".into(), &"stock".into())
    );
    site.get("/items/1").await;
    let known = operator.document(why).await;
    assert_eq!(known["entries"][0]["is_served"], true);
    let dropped = &known["dropped"][0];
    assert_eq!(
        (&dropped["reason"], &dropped["hits"]),
        (&"changed".into(), &1.into())
    );
    // At another host it is another answer.
    let other = operator.document("/why?url=http%3A//other/items/1").await;
    assert_eq!(other["other_hosts"], serde_json::json!(["site"]));
    assert_eq!(other["entries"], serde_json::json!([]));
    let any = operator.document("/why?url=/report").await;
    assert_eq!(
        any["entries"][0]["dependencies"],
        serde_json::json!(["everything"])
    );
}

#[tokio::test]
async fn what_a_client_sends_is_text_on_the_page() {
    let (site, _source) = Site::kept(RECIPE, |_| answer("Vary: Accept-Language", "a")).await;
    let operator = Operator::of(site.door()).await;
    let hostile = "\"'><script>alert(1)</script><img src=x>";
    site.ask("GET", "/greeting", &format!("Accept-Language: {hostile}"))
        .await;
    for path in ["/", "/?find=greeting"] {
        let page = operator.get(path).await;
        assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
        assert!(
            !page.contains("<script") && !page.contains("<img"),
            "{page}"
        );
    }
    let page = operator.get("/?find=%22%3E%3Cscript%3E").await;
    assert!(
        page.contains("value=\"&quot;&gt;&lt;script&gt;\""),
        "{page}"
    );
    assert!(
        !page.contains("/greeting"),
        "it shows only what is looked for"
    );
}

#[tokio::test]
async fn a_browser_is_told_to_run_nothing_and_to_show_it_to_nobody() {
    let site = Site::with(RECIPE, |_| answer("", "the origin's")).await;
    let operator = Operator::of(site.door()).await;
    for path in [
        "/",
        "/status",
        "/metrics",
        "/style.css",
        "/nowhere",
        "/why",
        "/health",
    ] {
        let (head, _) = operator.ask("GET", path, "localhost").await;
        let head = head.to_ascii_lowercase();
        for field in [
            "content-security-policy: default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(head.contains(field), "{path}: {field}\n{head}");
        }
    }
    // A page of another name, which its owner has turned to this machine.
    let (head, body) = operator.ask("GET", "/", "evil.example").await;
    assert!(head.starts_with("HTTP/1.1 421 "), "{head}");
    assert!(!body.contains("<table"), "{body}");
    let (head, _) = operator.ask("POST", "/", "localhost").await;
    assert!(head.starts_with("HTTP/1.1 405 "), "{head}");
    // Clients reach nothing of it.
    for path in ["/status", "/metrics", "/why?url=/items/1"] {
        assert_eq!(site.get(path).await.body, "the origin's", "{path}");
    }
}

#[tokio::test]
async fn many_connections_that_say_nothing_do_not_keep_the_operator_out() {
    let site = Site::with(RECIPE, |_| answer("", "a")).await;
    let operator = Operator::of(site.door()).await;
    let mut silent = Vec::new();
    for _ in 0..64 {
        silent.push(TcpStream::connect(&operator.0).await.expect("a connection"));
    }
    // Each of them loses its place when it has sent no head for a time.
    let asked = operator.get("/status");
    let asked = tokio::time::timeout(std::time::Duration::from_secs(30), asked).await;
    asked.expect("it is answered");
}
