//! What the operator of `thorp web` sees and changes: which update dropped an answer, metrics, a reload, the page in a browser.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::dev_village::document;
use common::schema::Schema;
use common::shop::{self, Proxy, Shop};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use thorp_testing::{Process, eventually, finish, signal};

/// A shop whose database is ready.
fn ready() -> Option<Shop> {
    let shop = Shop::open()?;
    let set_up = shop.web("setup --recipe shop.toml --apply");
    assert_eq!(set_up.code, 0, "{}{}", set_up.out, set_up.err);
    Some(shop)
}

/// What a command of this proxy's operator prints, with its exit code.
fn ask(shop: &Shop, words: &str) -> (i32, Value) {
    let said = finish(shop.user.shell(&format!("thorp web {words} --json")));
    (
        said.code,
        serde_json::from_str(&said.out).unwrap_or(Value::Null),
    )
}

fn checked(schema: &str, document: &Value) {
    let good = Schema::named(schema).check(document);
    assert_eq!(good, Ok(()), "{document:#}");
}

/// An answer at the operator's port.
fn seen(proxy: &Proxy, path: &str) -> String {
    let status = proxy.status.as_ref().unwrap();
    let mut stream = TcpStream::connect(status).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {status}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_operator_learns_which_update_dropped_an_answer() {
    let Some(shop) = ready() else {
        return;
    };
    let (at, origin) = (shop.database.address(), &shop.origin);
    let proxy = shop.proxy_by(&format!(
        "--origin {origin} --postgres {at} --recipe shop.toml --status 127.0.0.1:0 --audit 100%"
    ));
    let status = proxy.status.clone().unwrap();
    proxy.until_hit();
    let why = |url: &str| ask(&shop, &format!("why {url} --status {status}"));
    let (code, known) = why("http://shop/items/1");
    assert_eq!(code, 0);
    checked("web-why", &known);
    assert_eq!(
        known["entries"][0]["dependencies"],
        serde_json::json!(["item:1"])
    );
    let update = "UPDATE item SET price = 101 WHERE id = 1 RETURNING txid_current()";
    let xid: u64 = shop.database.sql(update).parse().unwrap();
    // It is stored still, and nobody gets it any more.
    let mut known = Value::Null;
    eventually("the update is known before the answer is dropped", || {
        known = why("http://shop/items/1").1;
        known["entries"][0]["update"]["xid"] == xid
    });
    assert_eq!(known["entries"][0]["is_served"], false);
    assert_eq!(proxy.get().0, "101");
    eventually("the update is known that dropped it", || {
        known = why("http://shop/items/1").1;
        known["dropped"][0]["update"]["xid"] == xid
    });
    checked("web-why", &known);
    let dropped = &known["dropped"][0];
    assert_eq!(
        (&dropped["reason"], &dropped["key"]),
        (&"changed".into(), &"item:1".into())
    );
    assert_eq!(dropped["update"]["keys"], serde_json::json!(["item:1"]));
    let position = dropped["update"]["position"].as_str().unwrap();
    let is_before = format!("SELECT '{position}'::pg_lsn <= pg_current_wal_lsn()");
    assert_eq!(shop.database.sql(&is_before), "t", "{position}");
    let words = finish(shop.user.shell(&format!(
        "thorp web why http://shop/items/1 --status {status}"
    )));
    assert!(
        words
            .out
            .contains(&format!("transaction {xid} at {position}")),
        "{}",
        words.out
    );
    let page = seen(&proxy, "/");
    assert!(
        page.contains(&format!("transaction {xid} at {position}")),
        "{page}"
    );
    // Nothing is known of other addresses.
    let (code, unknown) = why("http://shop/items/2");
    assert_eq!((code, &unknown["entries"]), (5, &serde_json::json!([])));
    assert_eq!(why("ftp://shop/").0, 2);

    proxy.until_hit();
    eventually("a hit was compared", || {
        let (_, status) = ask(&shop, &format!("status --proxy {status}"));
        checked("web-status", &status);
        status["audit"]["same"]
            .as_u64()
            .is_some_and(|same| same > 0)
    });
    let metrics = seen(&proxy, "/metrics");
    for line in [
        "thorp_web_keeper_live 1.0",
        "thorp_web_keeper_coherent 1.0",
        "thorp_web_keeper_not_waited_total 0",
        "thorp_web_keeper_changes_of_key_total{key=\"item:1\"} 1",
        "thorp_web_keeper_key_changes_total 1",
        "thorp_web_dropped_total 1",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}\n{metrics}"
        );
    }
    let waits = metrics
        .lines()
        .find_map(|line| line.strip_prefix("thorp_web_keeper_waits_total "));
    assert!(waits.is_some_and(|waits| waits != "0"), "{metrics}");
}

#[test]
fn commits_that_did_not_wait_are_in_the_metrics() {
    let Some(shop) = ready() else {
        return;
    };
    let (at, origin) = (shop.database.address(), &shop.origin);
    let proxy = shop.proxy_by(&format!(
        "--origin {origin} --postgres {at} --recipe shop.toml --status 127.0.0.1:0"
    ));
    proxy.until_hit();
    let did_not_wait = || {
        let metrics = seen(&proxy, "/metrics");
        let mut lines = metrics.lines();
        let found = lines.find_map(|line| line.strip_prefix("thorp_web_keeper_not_waited_total "));
        found.unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(did_not_wait(), 0);
    let local = "SET synchronous_commit = local; UPDATE item SET price = price + 1";
    eventually("a commit that did not wait is counted", || {
        shop.database.sql(local);
        did_not_wait() > 0
    });
}

const RECIPE: &str = r#"
    [tables]
    item = ["item:{id}"]
    stock = ["stock:{id}"]

    [[routes]]
    path = "/items/{id}"
    keys = ["item:{id}", "stock:{id}"]
"#;

#[test]
fn a_reload_takes_what_is_good_and_drops_no_request() {
    let Some(shop) = ready() else {
        return;
    };
    shop.database
        .sql("CREATE TABLE stock (id int PRIMARY KEY, left_over int NOT NULL)");
    shop.database.sql("INSERT INTO stock VALUES (1, 7)");
    let at = shop.database.address();
    let url = at.trim_matches('\'');
    let write = |origin: &str, more: &str| {
        let text = format!(
            "origins = [\"{origin}\"]\nrecipe = \"shop.toml\"\nstatus = \"127.0.0.1:0\"\n{more}\n[postgres]\nurl = \"{url}\"\n"
        );
        fs::write(shop.user.path("web.toml"), text).unwrap();
    };
    write(&shop.origin, "");
    let proxy = shop.proxy_by("--config web.toml");
    let status = proxy.status.clone().unwrap();
    proxy.until_hit();
    let reloads = || ask(&shop, &format!("status --proxy {status}"));
    let (stop, address) = (AtomicBool::new(false), proxy.address.clone());
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    // It fails unless the answer is whole.
                    assert!(["100", "second"].contains(&&*shop::get(&address, "shop").0));
                }
            });
        }
        let reload = |taken: u64, refused: u64| {
            signal("HUP", proxy.process.id());
            eventually("it has read its configuration", || {
                let of = &reloads().1["reloads"];
                (&of["taken"], &of["refused"]) == (&taken.into(), &refused.into())
            });
        };
        // What is wrong is refused, and the reason is there until a reload is taken.
        fs::write(
            shop.user.path("web.toml"),
            "origin = \"http://127.0.0.1:1\"",
        )
        .unwrap();
        reload(0, 1);
        let (code, document) = reloads();
        assert_eq!(code, 3);
        checked("web-status", &document);
        let error = document["reloads"]["error"].as_str().unwrap();
        assert!(error.contains("unknown field"), "{error}");
        write(&shop.origin, "cache = \"1 MiB\"");
        fs::write(shop.user.path("shop.toml"), "[tables]\nitem = 1").unwrap();
        reload(0, 2);
        assert!(
            proxy
                .process
                .log()
                .iter()
                .any(|line| line.contains("stays in force"))
        );
        proxy.until_hit();
        // Another origin, another budget, and a recipe with another table, which needs another keeper.
        let keeper = shop.keeper();
        write(&shop::origin("Vary: Cookie", "second"), "cache = \"1 MiB\"");
        fs::write(shop.user.path("shop.toml"), RECIPE).unwrap();
        reload(1, 2);
        assert_eq!(proxy.get().0, "second");
        eventually("answers are kept by the new recipe", || proxy.get().1);
        assert_ne!(shop.keeper(), keeper);
        let (code, document) = reloads();
        assert_eq!(
            (code, &document["entries"]["bytes_max"]),
            (0, &(768 << 10).into())
        );
        stop.store(true, Ordering::SeqCst);
    });
    proxy.until_hit();
    shop.database.sql("UPDATE stock SET left_over = 6");
    assert_eq!(proxy.get(), (String::from("second"), false));
    assert_eq!(proxy.process.terminate(), 0);
    assert_eq!(shop.names(), "");
}

#[test]
fn a_new_certificate_counts_after_a_reload() {
    if Command::new("openssl").arg("version").output().is_err() {
        return common::skip("openssl");
    }
    let user = common::dev_village::User::new();
    let run = |script: &str| {
        let said = finish(user.shell(script));
        assert_eq!(said.code, 0, "{script}: {}", said.err);
        said.out
    };
    run(
        "thorp ca init village; for name in a b; do thorp invite $name --dir village --out $name; done",
    );
    run("cp a/node.pem tls.crt; cp a/node.key tls.key");
    let origin = shop::origin("Vary: Cookie", "an item");
    let flags =
        "--tls-certificate tls.crt --tls-key tls.key --status 127.0.0.1:0 --listen 127.0.0.1:0";
    let line = format!("exec thorp web --origin {origin} {flags} --json --until-stdin-closes");
    let process = Process::start(user.shell(&line));
    let document = document(&process);
    let at = |part: &str| document[part].as_str().unwrap().to_owned();
    let (address, status) = (at("address"), at("status"));
    let serves = |name: &str| {
        let shown =
            format!("openssl s_client -connect {address} </dev/null 2>/dev/null | openssl x509");
        run(&shown) == run(&format!("openssl x509 -in {name}/node.pem"))
    };
    let reload = |taken: u64, refused: u64| {
        signal("HUP", process.id());
        eventually("it has read its files", || {
            let said = finish(user.shell(&format!("thorp web status --proxy {status} --json")));
            let document: Value = serde_json::from_str(&said.out).unwrap_or_default();
            let of = &document["reloads"];
            (&of["taken"], &of["refused"]) == (&taken.into(), &refused.into())
        });
    };
    assert!(serves("a"));
    // A certificate without its key is refused, and the one of before stays.
    run("cp b/node.pem tls.crt");
    reload(0, 1);
    assert!(serves("a"));
    run("cp b/node.key tls.key");
    reload(1, 1);
    assert!(serves("b"));
    assert_eq!(process.terminate(), 0);
}

#[test]
fn what_is_printed_as_the_configuration_is_read_as_the_same() {
    let user = common::dev_village::User::new();
    let print = "thorp web --origin http://a,http://b --audit 0.5% --cache-bytes 1MiB --print-config > web.toml";
    assert_eq!(finish(user.shell(print)).code, 0);
    let again = "thorp web --config web.toml --print-config | diff - web.toml";
    let said = finish(user.shell(again));
    assert_eq!(said.code, 0, "{}", said.out);
    let over = finish(user.shell("thorp web --config web.toml --audit 1% --print-config"));
    assert!(
        over.out.contains("audit = \"1%\"") && over.out.contains("\"http://b\""),
        "{}",
        over.out
    );
    for (words, says) in [
        ("--print-config --audit 5", "no share"),
        ("--origin http://a --status 0.0.0.0:7432", "127.0.0.1:7432"),
        ("--config nowhere.toml", "nowhere.toml"),
        ("--audit 1%", "--origin"),
    ] {
        let said = finish(user.shell(&format!("thorp web {words}")));
        assert!(
            said.code != 0 && said.err.contains(says),
            "{words}: {}",
            said.err
        );
    }
}

/// The page of the operator as Chromium shows it. It makes no request to another place, and runs nothing of what clients have sent.
#[test]
fn a_browser_shows_the_page() {
    let Some(chromium) = chromium() else {
        return common::skip("Chromium");
    };
    let Some(shop) = ready() else {
        return;
    };
    let recipe = "[tables]\nitem = [\"item:{id}\"]\n[[routes]]\npath = \"/items/{id}\"\nkeys = [\"item:{id}\"]\nvary = [\"accept-language\"]\n";
    fs::write(shop.user.path("shop.toml"), recipe).unwrap();
    let (at, origin) = (shop.database.address(), &shop.origin);
    let proxy = shop.proxy_by(&format!(
        "--origin {origin} --postgres {at} --recipe shop.toml --status 127.0.0.1:0"
    ));
    proxy.until_hit();
    let mut stream = TcpStream::connect(&proxy.address).unwrap();
    let hostile =
        "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";
    let request = format!(
        "GET /items/1 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nAccept-Language: {hostile}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_string(&mut String::new()).unwrap();
    let xid = shop
        .database
        .sql("UPDATE item SET price = 101 RETURNING txid_current()");
    assert_eq!(proxy.get().0, "101");
    eventually("the update is on the page", || {
        seen(&proxy, "/").contains(&format!("transaction {xid}"))
    });
    let url = format!("http://{}/?find=shop", proxy.status.as_ref().unwrap());
    let profile = tempfile::tempdir().unwrap();
    let shown = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--enable-logging=stderr",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", &url])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (page, log) = (
        String::from_utf8_lossy(&shown.stdout),
        String::from_utf8_lossy(&shown.stderr),
    );
    for part in [
        "<title>thorp web</title>",
        "<table id=\"entries\">",
        "<bdi>shop/items/1</bdi>",
        "item:1",
        &format!("by transaction {xid} at "),
        "document.title='owned'",
    ] {
        assert!(page.contains(part), "{part}\n{page}\n{log}");
    }
    assert!(
        !page.contains("<script") && !page.contains("<img"),
        "{page}"
    );
    assert!(!log.contains("Content Security Policy"), "{log}");
}

/// The program, under one of its names.
fn chromium() -> Option<&'static str> {
    let mut names = ["chromium", "chromium-browser", "google-chrome"].into_iter();
    names.find(|name| {
        let asked = Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        asked.is_ok_and(|ended| ended.success())
    })
}
