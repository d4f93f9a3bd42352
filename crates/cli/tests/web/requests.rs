//! `thorp web --requests` as an operator runs it: no database, a keeper beside the proxy, calls, and updates that stay open.

use crate::common::dev_village::{User, document};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use thorp_testing::{Process, Said, eventually, finish, signal};

const RECIPE: &str = r#"
    [[routes]]
    path = "/items/{id}"
    keys = ["item:{id}"]
    changes = ["item:{id}"]
"#;

const SECRET: &str = "0123456789abcdef";

/// An operator, and an application with one value: it answers a POST when it is let go.
struct Shop {
    user: User,
    origin: String,
    application: Arc<Application>,
}

#[derive(Default)]
struct Application {
    value: AtomicU32,
    posts: AtomicU32,
    may_answer: Mutex<bool>,
    is_let_go: Condvar,
}

impl Application {
    fn answer(&self, mut client: TcpStream) {
        let mut head = [0; 4096];
        let read = client.read(&mut head).unwrap_or_default();
        if head[..read].starts_with(b"POST") {
            self.posts.fetch_add(1, Ordering::SeqCst);
            let mut may_answer = self.may_answer.lock().unwrap();
            while !*may_answer {
                may_answer = self.is_let_go.wait(may_answer).unwrap();
            }
            self.value.fetch_add(1, Ordering::SeqCst);
        }
        let value = self.value.load(Ordering::SeqCst).to_string();
        let length = value.len();
        let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}");
        // The proxy may be gone.
        let _ = client.write_all(format!("{head}\r\n\r\n{value}").as_bytes());
    }

    fn let_go(&self, may_answer: bool) {
        *self.may_answer.lock().unwrap() = may_answer;
        self.is_let_go.notify_all();
    }
}

impl Shop {
    fn open() -> Self {
        let user = User::new();
        fs::write(user.path("shop.toml"), RECIPE).unwrap();
        fs::write(user.path("secret"), SECRET).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let application = Arc::new(Application::default());
        let answers = Arc::clone(&application);
        thread::spawn(move || {
            for client in listener.incoming() {
                let answers = Arc::clone(&answers);
                thread::spawn(move || answers.answer(client.unwrap()));
            }
        });
        Shop {
            user,
            origin,
            application,
        }
    }

    /// No request is at work for longer than ten minutes: what a test sees end has not ended by time.
    fn proxy(&self, more: &str) -> Proxy {
        let flags = "--requests --recipe shop.toml --request-seconds 600 --listen 127.0.0.1:0 --json --until-stdin-closes";
        let line = format!("exec thorp web --origin {} {flags} {more}", self.origin);
        self.start(&line)
    }

    fn start(&self, line: &str) -> Proxy {
        let process = Process::start(self.user.shell(line));
        let ready = document(&process);
        let text = |of: &str| ready[of].as_str().unwrap_or_default().to_owned();
        Proxy {
            address: text("address"),
            status: text("status"),
            process,
        }
    }

    fn web(&self, words: &str) -> Said {
        finish(self.user.shell(&format!("thorp web {words}")))
    }

    /// What is open, once a keeper answers.
    fn updates(&self) -> Value {
        let mut shown = Value::Null;
        eventually("a keeper says what is open", || {
            let said = self.web("updates --json");
            shown = serde_json::from_str(&said.out).unwrap_or_default();
            said.code == 0
        });
        shown
    }

    /// Ends all that proxies of before may have open, as nothing is: a test knows.
    fn ends_before(&self) {
        let shown = self.updates();
        assert_eq!(shown["updates"][0]["id"], 0, "{shown}");
        let said = self.web("updates --end 0");
        assert!(said.out.starts_with("ended 0"), "{}{}", said.out, said.err);
    }
}

struct Proxy {
    process: Process,
    address: String,
    /// Where its operator looks.
    status: String,
}

impl Proxy {
    fn begin(&self, method: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request =
            format!("{method} /items/1 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// The head and the body of an answer.
    fn ask(&self, method: &str) -> (String, String) {
        let mut answer = String::new();
        self.begin(method).read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    /// The value in an entry.
    fn until_hit(&self) -> String {
        let mut value = String::new();
        eventually("a hit", || {
            let (head, body) = self.ask("GET");
            value = body;
            head.contains("thorp; hit")
        });
        value
    }

    /// Sends a POST that the application does not answer yet.
    fn post(&self, shop: &Shop) -> TcpStream {
        let before = shop.application.posts.load(Ordering::SeqCst);
        let mut client = None;
        eventually("a POST is at the application", || {
            // Without a keeper it is refused.
            client.get_or_insert_with(|| self.begin("POST"));
            shop.application.posts.load(Ordering::SeqCst) > before
        });
        client.unwrap()
    }
}

#[test]
fn requests_are_the_source_and_what_stays_open_is_ended_by_hand() {
    let shop = Shop::open();
    let said = shop.web("updates");
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("no keeper answers"), "{}", said.err);
    let proxy = shop.proxy("");
    // Nobody knows which proxies there were before.
    let status = shop.web("status --requests");
    assert_ne!(status.code, 0);
    shop.ends_before();
    assert_eq!(proxy.until_hit(), "0");
    let client = proxy.post(&shop);
    let shown = shop.updates();
    let update = &shown["updates"][0];
    assert_eq!(
        (&shown["open"], &update["keys"]),
        (&json!(1), &json!(["item:1"]))
    );
    assert_eq!(update["left_ms"], Value::Null, "its proxy follows it");
    let id = update["id"].as_u64().unwrap();
    let refused = shop.web(&format!("updates --end {id}"));
    assert_eq!(refused.code, 1, "{}{}", refused.out, refused.err);
    assert_eq!(shop.web("updates --end 77").code, 5);
    assert_eq!(shop.web("updates --end x").code, 2);
    assert!(!proxy.ask("GET").0.contains("thorp; hit"));
    shop.application.let_go(true);
    let mut answer = String::new();
    let mut client = client;
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with('1'), "{answer}");
    assert_eq!(proxy.until_hit(), "1");
    // It writes its status twice a second.
    eventually("the status is of now", || {
        let status = shop.web("status --requests --json");
        let status: Value = serde_json::from_str(&status.out).unwrap_or_default();
        (&status["live"], &status["commits"]) == (&json!(true), &json!(1))
    });
    // The proxy is killed while a request is at work. The keeper beside it ends, and the next one does not know what was open.
    shop.application.let_go(false);
    let client = proxy.post(&shop);
    signal("KILL", proxy.process.id());
    drop(client);
    let next = shop.proxy("");
    shop.updates();
    for _ in 0..5 {
        assert!(!next.ask("GET").0.contains("stored"));
    }
    shop.application.let_go(true);
    eventually("it has changed", || {
        shop.application.value.load(Ordering::SeqCst) == 2
    });
    shop.ends_before();
    assert_eq!(next.until_hit(), "2");
}

/// Proxy and keeper end together, as one service that is restarted. Nothing was open, so nobody waits ten minutes.
#[test]
fn a_proxy_that_ends_in_order_leaves_nothing_open() {
    let shop = Shop::open();
    let first = shop.proxy("");
    shop.ends_before();
    first.until_hit();
    let client = first.post(&shop);
    let application = Arc::clone(&shop.application);
    let ends = thread::spawn(move || first.process.terminate());
    // It waits for the request that is under way.
    eventually("it takes no client any more", || {
        shop.web("updates").code == 0
    });
    application.let_go(true);
    let mut answer = String::new();
    let mut client = client;
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with('1'), "{answer}");
    assert_eq!(ends.join().unwrap(), 0);
    let second = shop.proxy("");
    assert_eq!(second.until_hit(), "1");
}

#[test]
fn an_application_calls_the_proxy() {
    let shop = Shop::open();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let calls = listener.local_addr().unwrap();
    drop(listener);
    let proxy = shop.proxy(&format!("--calls {calls} --calls-secret secret"));
    shop.ends_before();
    proxy.until_hit();
    let call = |path: &str, body: &str| {
        let mut stream = TcpStream::connect(calls).unwrap();
        let length = body.len();
        let fields = format!("Authorization: Bearer {SECRET}\r\nContent-Length: {length}");
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()
    };
    let begun = call("/begin", "{\"keys\":[\"item:1\"]}");
    assert_eq!(begun["seconds"], 600, "{begun}");
    assert!(!proxy.ask("GET").0.contains("thorp; hit"));
    shop.application.value.store(7, Ordering::SeqCst);
    assert_eq!(
        call("/end", &json!({ "update": begun["update"] }).to_string()),
        json!({})
    );
    assert_eq!(proxy.until_hit(), "7");
    // One that its application forgets is ended by hand.
    call("/begin", "{\"keys\":[\"item:1\"]}");
    let said = shop.web("updates --end all --json");
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&told["open"], told["ended"].as_array().unwrap().len()),
        (&json!(0), 1)
    );
    assert_eq!(proxy.until_hit(), "7");
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let shop = Shop::open();
    let web = format!("--origin {}", shop.origin);
    for (words, said) in [
        ("--requests", "--recipe"),
        (
            "--requests --recipe shop.toml --postgres postgresql:///shop",
            "--postgres",
        ),
        (
            "--requests --recipe shop.toml --calls 127.0.0.1:0",
            "--calls-secret",
        ),
        ("--recipe shop.toml --request-seconds 10", "--requests"),
        (
            "--requests --recipe shop.toml --request-seconds 0",
            "1..=86400",
        ),
        (
            "--recipe shop.toml --postgres postgresql:///shop",
            "what requests change",
        ),
    ] {
        let refused = shop.web(&format!("{web} {words}"));
        assert_eq!(refused.code, 2, "{words}: {}", refused.err);
        assert!(refused.err.contains(said), "{words}: {}", refused.err);
    }
    fs::write(shop.user.path("secret"), "short").unwrap();
    let words = "--requests --recipe shop.toml --calls 127.0.0.1:0 --calls-secret secret";
    let refused = shop.web(&format!("{web} {words}"));
    assert!(refused.err.contains("at least 16"), "{}", refused.err);
}

impl Proxy {
    /// What the operator's port says.
    fn says(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.status).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.status);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    }

    fn figures(&self) -> Value {
        serde_json::from_str(&self.says("/status")).unwrap()
    }

    /// Reads its configuration again, and what became of that.
    fn reload(&self, of: &str) {
        let before = self.figures()["reloads"][of].as_u64().unwrap();
        signal("HUP", self.process.id());
        eventually("the configuration is read again", || {
            self.figures()["reloads"][of].as_u64().unwrap() > before
        });
    }
}

/// A configuration file says what the flags say. Another recipe comes into force while a request is under way: its update stays open, at one
/// connection to the keeper, and what it changes is not served as the new recipe has it.
#[test]
fn a_configuration_is_read_again_while_requests_are_noted() {
    let shop = Shop::open();
    let config = format!(
        "origins = [\"{}\"]\nrecipe = \"shop.toml\"\nlisten = \"127.0.0.1:0\"\nstatus = \"127.0.0.1:0\"\n\
         [requests]\non = true\nseconds = 600\n",
        shop.origin
    );
    fs::write(shop.user.path("web.toml"), config).unwrap();
    let printed = shop.web("--config web.toml --no-keeper --print-config");
    assert!(
        printed.out.contains("on = true\nseconds = 600"),
        "{}",
        printed.out
    );
    assert!(printed.out.contains("start = false"), "{}", printed.out);
    let proxy = shop.start("exec thorp web --config web.toml --json --until-stdin-closes");
    shop.ends_before();
    proxy.until_hit();
    let mut client = proxy.post(&shop);
    let whose = shop.updates()["updates"][0]["process"].clone();
    // The keys of the answers are others now.
    fs::write(
        shop.user.path("shop.toml"),
        RECIPE.replace("item:", "thing:"),
    )
    .unwrap();
    proxy.reload("taken");
    let shown = shop.updates();
    let open = shown["updates"].as_array().unwrap();
    assert!(
        open.iter().all(|update| update["process"] == whose),
        "{shown}"
    );
    for _ in 0..5 {
        let (head, _) = proxy.ask("GET");
        assert!(!head.contains("hit") && !head.contains("stored"), "{head}");
    }
    shop.application.let_go(true);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with('1'), "{answer}");
    assert_eq!(proxy.until_hit(), "1");
    assert_eq!(shop.updates()["open"], 0);
    // What cannot be right changes nothing.
    fs::write(shop.user.path("shop.toml"), "[tables]\na = [\"a:{id}\"]").unwrap();
    proxy.reload("refused");
    let error = proxy.figures()["reloads"]["error"].clone();
    assert!(error.as_str().unwrap().contains("names tables"), "{error}");
    assert_eq!(proxy.until_hit(), "1");
    let fixed = shop.web("--config web.toml --postgres postgresql:///shop");
    assert_eq!(fixed.code, 2);
    assert!(fixed.err.contains("two sources"), "{}", fixed.err);
}

/// Which request has ended which answer: on the command line, on the page, and in the metrics.
#[test]
fn an_operator_sees_which_request_has_changed_what() {
    let shop = Shop::open();
    shop.application.let_go(true);
    let proxy = shop.proxy("--status 127.0.0.1:0");
    // The keeper beats, but waits for proxies of before.
    shop.updates();
    eventually("its status is of now", || {
        proxy.figures()["keeper"] != Value::Null
    });
    assert_eq!(proxy.figures()["live"], false);
    shop.ends_before();
    proxy.until_hit();
    eventually("it is live", || proxy.figures()["live"] == true);
    proxy.ask("POST");
    proxy.until_hit();
    let why = |words: &str| shop.web(&format!("why /items/1 --status {} {words}", proxy.status));
    let mut found = Value::Null;
    eventually("the keeper has said what it has noted", || {
        found = serde_json::from_str(&why("--json").out).unwrap();
        found["dropped"][0]["update"] != Value::Null
    });
    let (dropped, entry) = (&found["dropped"][0], &found["entries"][0]);
    assert_eq!(
        (&dropped["reason"], &dropped["key"]),
        (&json!("changed"), &json!("item:1"))
    );
    assert_eq!(dropped["update"]["keys"], json!(["item:1"]));
    let request = dropped["update"]["request"].as_u64().unwrap();
    assert_eq!(entry["dependencies"], json!(["item:1"]));
    let told = why("").out;
    assert!(
        told.contains(&format!("changed item:1, by request {request}, ")),
        "{told}"
    );
    assert!(
        proxy
            .says("/")
            .contains(&format!(" by request {request}, "))
    );
    let status = proxy.figures();
    assert_eq!(
        (&status["source"], &status["updated"]["answered"]),
        (&json!("requests"), &json!(1))
    );
    assert_eq!(status["bypassed"]["method"], 1);
    let metrics = proxy.says("/metrics");
    for line in [
        "thorp_web_updated_total{result=\"answered\"} 1",
        "thorp_web_keeper_commits_total 1",
        "thorp_web_keeper_waits_total 1",
        "thorp_web_keeper_changes_of_key_total{key=\"item:1\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let said = shop.web(&format!("status --proxy {}", proxy.status));
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("unsafe requests: answered 1"),
        "{}",
        said.out
    );
}
