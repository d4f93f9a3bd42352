//! A shop behind `thorp web`: a database, an application in front of it, and an operator with an empty directory.

use super::database::{self, Database};
use super::dev_village::{User, document};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use thorp_testing::{Process, Said, eventually, finish, report_skipped};

const RECIPE: &str = r#"
    [tables]
    item = ["item:{id}"]

    [[routes]]
    path = "/items/{id}"
    keys = ["item:{id}"]
"#;

/// An operator, a database, and an application in front of it.
pub(crate) struct Shop {
    pub(crate) user: User,
    pub(crate) database: Arc<Database>,
    pub(crate) origin: String,
}

impl Shop {
    pub(crate) fn open() -> Option<Self> {
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
    pub(crate) fn web(&self, words: &str) -> Said {
        let at = self.database.address();
        finish(
            self.user
                .shell(&format!("thorp web {words} --postgres {at}")),
        )
    }

    pub(crate) fn proxy(&self) -> Proxy {
        let (at, origin) = (self.database.address(), &self.origin);
        self.proxy_by(&format!(
            "--origin {origin} --postgres {at} --recipe shop.toml"
        ))
    }

    /// A proxy with these flags.
    pub(crate) fn proxy_by(&self, flags: &str) -> Proxy {
        let line =
            format!("exec thorp web {flags} --listen 127.0.0.1:0 --json --until-stdin-closes");
        let process = Process::start(self.user.shell(&line));
        let document = document(&process);
        let address = document["address"].as_str().unwrap().to_owned();
        let status = document["status"].as_str().map(str::to_owned);
        Proxy {
            process,
            address,
            status,
        }
    }

    /// The keeper that lives.
    pub(crate) fn keeper(&self) -> u32 {
        let mut process = 0;
        eventually("a keeper is live", || {
            let said = self.web("status --json");
            let status: serde_json::Value = serde_json::from_str(&said.out).unwrap_or_default();
            process = status["process"].as_u64().unwrap_or_default() as u32;
            said.code == 0
        });
        process
    }

    pub(crate) fn names(&self) -> String {
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

/// A proxy that runs.
pub(crate) struct Proxy {
    pub(crate) process: Process,
    pub(crate) address: String,
    /// Where its operator sees it.
    pub(crate) status: Option<String>,
}

impl Proxy {
    /// The body of an answer, and whether it came from the cache.
    pub(crate) fn get(&self) -> (String, bool) {
        get(&self.address, "shop")
    }

    pub(crate) fn until_hit(&self) {
        eventually("a hit", || self.get().1);
    }
}

/// The body of `/items/1` of a host at a proxy, and whether it came from the cache.
pub(crate) fn get(address: &str, host: &str) -> (String, bool) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /items/1 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (body.to_owned(), head.contains("thorp; hit"))
}

/// An origin that always says the same, with this field. It runs until the test ends.
pub(crate) fn origin(field: &'static str, says: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let _ = client.read(&mut [0; 4096]);
            let length = says.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\n{field}\r\nContent-Length: {length}\r\n\r\n"
            );
            // The proxy may be gone.
            let _ = client.write_all(format!("{head}{says}").as_bytes());
        }
    });
    format!("http://{address}")
}
