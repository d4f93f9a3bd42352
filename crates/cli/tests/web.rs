//! `thorp web` as an operator runs it: set-up, two proxies, keepers that are killed.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;
#[path = "web/requests.rs"]
mod requests;

use common::database::{self, Database};
use common::dev_village::{User, document};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use thorp_testing::{Process, Said, eventually, finish, report_skipped, signal};

const RECIPE: &str = r#"
    [tables]
    item = ["item:{id}"]

    [[routes]]
    path = "/items/{id}"
    keys = ["item:{id}"]
"#;

/// An operator, a database, and an application in front of it.
struct Shop {
    user: User,
    database: Arc<Database>,
    origin: String,
}

impl Shop {
    fn open() -> Option<Self> {
        if !database::is_there() {
            report_skipped(env!("CARGO_CRATE_NAME"), "a PostgreSQL server");
            return None;
        }
        let database = Arc::new(Database::start());
        database.sql("CREATE TABLE item (id int PRIMARY KEY, price int NOT NULL)");
        database.sql("INSERT INTO item VALUES (1, 100)");
        let user = User::new();
        fs::write(user.path("shop.toml"), RECIPE).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let of = Arc::clone(&database);
        thread::spawn(move || {
            listener
                .incoming()
                .for_each(|client| answer(client.unwrap(), &of))
        });
        Some(Shop {
            user,
            database,
            origin,
        })
    }

    /// Runs `thorp web` with these words, and where the database is.
    fn web(&self, words: &str) -> Said {
        let at = self.database.address();
        finish(
            self.user
                .shell(&format!("thorp web {words} --postgres {at}")),
        )
    }

    fn proxy(&self) -> Proxy {
        let (at, origin) = (self.database.address(), &self.origin);
        let flags = "--recipe shop.toml --listen 127.0.0.1:0 --json --until-stdin-closes";
        let line = format!("exec thorp web --origin {origin} --postgres {at} {flags}");
        let process = Process::start(self.user.shell(&line));
        let address = document(&process)["address"].as_str().unwrap().to_owned();
        Proxy { process, address }
    }

    /// The keeper that lives.
    fn keeper(&self) -> u32 {
        let mut process = 0;
        eventually("a keeper is live", || {
            let said = self.web("status --json");
            let status: serde_json::Value = serde_json::from_str(&said.out).unwrap_or_default();
            process = status["process"].as_u64().unwrap_or_default() as u32;
            said.code == 0
        });
        process
    }

    fn names(&self) -> String {
        self.database.sql("SHOW synchronous_standby_names")
    }
}

/// The price of an item, on a connection of its own.
fn answer(mut client: TcpStream, database: &Database) {
    let mut head = [0; 4096];
    let read = client.read(&mut head).unwrap_or_default();
    assert!(read > 0);
    let price = database.sql("SELECT price FROM item WHERE id = 1");
    let length = price.len();
    let answer =
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{price}");
    // The proxy may be gone.
    let _ = client.write_all(answer.as_bytes());
}

struct Proxy {
    process: Process,
    address: String,
}

impl Proxy {
    /// The body of an answer, and whether it came from the cache.
    fn get(&self) -> (String, bool) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = "GET /items/1 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (body.to_owned(), head.contains("thorp; hit"))
    }

    fn until_hit(&self) {
        eventually("a hit", || self.get().1);
    }
}

#[test]
fn keepers_and_proxies_come_and_go_and_no_answer_is_old() {
    let Some(shop) = Shop::open() else {
        return;
    };
    let check = shop.web("check --recipe shop.toml");
    assert_eq!(check.code, 3, "{}{}", check.out, check.err);
    assert!(check.out.contains("problem publication"), "{}", check.out);
    let set_up = shop.web("setup --recipe shop.toml --apply");
    assert_eq!(set_up.code, 0, "{}{}", set_up.out, set_up.err);
    let first = shop.proxy();
    first.until_hit();
    let keeper = shop.keeper();
    // A second proxy reads the same table.
    let second = shop.proxy();
    second.until_hit();
    assert_eq!(shop.keeper(), keeper);
    shop.database.sql("UPDATE item SET price = 101");
    for proxy in [&first, &second] {
        assert_eq!(proxy.get(), (String::from("101"), false));
        proxy.until_hit();
    }
    // The keeper is killed. One of the proxies starts the next one, and the update is seen.
    signal("KILL", keeper);
    shop.database.sql("UPDATE item SET price = 102");
    for proxy in [&first, &second] {
        assert_eq!(proxy.get().0, "102");
        proxy.until_hit();
    }
    assert_ne!(shop.keeper(), keeper);
    // Both proxies are killed: the keeper beside one of them ends in order, and nobody is waited for.
    for proxy in [&first, &second] {
        signal("KILL", proxy.process.id());
    }
    eventually("no commit waits", || shop.names().is_empty());
    shop.database.sql("UPDATE item SET price = 103");
    let third = shop.proxy();
    third.until_hit();
    assert_eq!(third.get().0, "103");
    assert_eq!(shop.names(), "FIRST 1 (thorp)");
    shop.keeper();
    let status = shop.web("status");
    assert!(status.out.contains("live, coherent"), "{}", status.out);
    let refused = shop.web("setup --undo --apply");
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("Stop all proxies first"),
        "{}",
        refused.err
    );
    assert_eq!(third.process.terminate(), 0);
    assert_eq!(shop.names(), "");
    let undone = shop.web("setup --undo --apply");
    assert_eq!(undone.code, 0, "{}{}", undone.out, undone.err);
    assert_eq!(
        shop.database
            .sql("SELECT count(*) FROM pg_replication_slots"),
        "0"
    );
}

#[test]
fn who_cannot_be_a_keeper_is_told_why() {
    let Some(shop) = Shop::open() else {
        return;
    };
    fs::write(shop.user.path("shop.table"), "somebody's notes").unwrap();
    let said = shop.web("keeper --recipe shop.toml --table shop.table");
    assert_eq!(said.code, 2);
    assert!(said.err.contains("delete the file"), "{}", said.err);
    let said = shop.web("status");
    assert_eq!(said.code, 5);
    assert!(
        said.err
            .contains("the same --postgres or --requests as the keeper"),
        "{}",
        said.err
    );
    let nowhere = "thorp web check --recipe shop.toml --postgres 'host=/nowhere user=a'";
    let said = finish(shop.user.shell(nowhere));
    assert_eq!(said.code, 4, "{}", said.err);
    let line = "setup --name thorp --role 'a\"b'";
    assert_eq!(shop.web(line).code, 2);
}
