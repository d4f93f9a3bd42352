//! The auction house behind `thorp web`, and behind a cache that keeps each page for a second: how many answers of each are stale?
//!
//! The books are at a Thorp home. Each lot has one bidder, who bids at the application itself. An answer is stale if it shows a lower price
//! than one that was acknowledged, or shown to anybody, before its request began. The other cache is `thorp web` too, without a recipe: it
//! does what the application's `Cache-Control: max-age=1` says (RFC 9111), and nobody purges it.
//!
//! It fails if an answer of the coherent proxy was stale, or if that proxy had no hits.

use clap::Parser;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use thorp_testing::{HomeProcess, PATIENCE, Process, Thorp};

/// Lots of the house, and lots on a shelf.
const LOTS: usize = 100;
const LOTS_OF_SHELF: usize = 10;

/// Bidders, with as many lots each.
const BIDDERS: usize = 4;

/// Readers of each cache.
const READERS: usize = 4;

const RECIPE: &str =
    "[[routes]]\npath = \"/shelves/{number}\"\n\n[[routes]]\npath = \"/lots/{number}\"\n";

#[derive(Parser)]
struct Options {
    /// The thorp command
    thorp: PathBuf,
    /// The example `auction`
    auction: PathBuf,
    /// How long they read and bid
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// The pause of a bidder after each bid, in milliseconds
    #[arg(long, default_value_t = 20)]
    pause_ms: u64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let place = tempfile::tempdir().expect("a directory");
    let house = House::open(&options, place.path());
    let counts = house.at.race(&options);
    print(&options, &counts);
    let [coherent, _] = &counts.caches;
    match (coherent.stale(), coherent.hits()) {
        (0, 1..) => ExitCode::SUCCESS,
        (0, 0) => failed("the coherent proxy had no hits"),
        _ => failed("answers of the coherent proxy were stale"),
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}

/// All processes. Dropped, they are killed.
struct House {
    at: Addresses,
    _processes: Vec<Process>,
    _home: HomeProcess,
}

/// Where the application and the two caches answer.
struct Addresses {
    origin: String,
    proxies: [String; 2],
}

impl House {
    fn open(options: &Options, place: &Path) -> House {
        let thorp = Thorp::at(path(&options.thorp));
        let home = thorp.home_as("alps", place, &["--web-table"]);
        let mut command = Command::new(&options.auction);
        command.args(["127.0.0.1:0", "thorp", &home.via, &home.identity]);
        command.arg("thorp://alps/auction");
        let auction = Process::start(command);
        let ready = auction.line();
        let origin = ready.trim_start_matches("ready: http://").to_owned();
        let recipe = place.join("auction.toml");
        std::fs::write(&recipe, RECIPE).expect("a file");
        let (recipe, url) = (path(&recipe), format!("http://{origin}"));
        let table = format!("alps={}", path(&place.join("home/web.table")));
        let web = [
            "web",
            "--origin",
            &url,
            "--listen",
            "127.0.0.1:0",
            "--until-stdin-closes",
        ];
        let of_homes = ["--home", &table, "--recipe", &recipe];
        let coherent = Process::start(thorp.command(&[&web[..], &of_homes].concat()));
        let timed = Process::start(thorp.command(&web));
        let address = |proxy: &Process| {
            let ready = proxy.line();
            let address = ready.trim_start_matches("ready: http://");
            address.split(',').next().unwrap_or_default().to_owned()
        };
        let proxies = [address(&coherent), address(&timed)];
        let at = Addresses { origin, proxies };
        at.eventually_keeps();
        House {
            at,
            _processes: vec![auction, coherent, timed],
            _home: home,
        }
    }
}

impl Addresses {
    fn eventually_keeps(&self) {
        let end = Instant::now() + PATIENCE;
        let mut client = Client::new(&self.proxies[0]);
        while !client.get("/lots/0").is_some_and(|got| got.is_hit) {
            assert!(Instant::now() < end, "the proxy keeps nothing");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn race(&self, options: &Options) -> Counts {
        let counts = Counts::new();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for bidder in 0..BIDDERS {
                let (counts, over) = (&counts, &over);
                scope.spawn(move || self.bid(options, bidder, counts, over));
            }
            for cache in 0..2 {
                for reader in 0..READERS {
                    let (counts, over) = (&counts, &over);
                    scope.spawn(move || self.read(cache, reader, counts, over));
                }
            }
            thread::sleep(Duration::from_secs(options.seconds));
            over.store(true, Ordering::Relaxed);
        });
        counts
    }

    /// Bids on its lots in turns.
    fn bid(&self, options: &Options, bidder: usize, counts: &Counts, over: &AtomicBool) {
        let mut client = Client::new(&self.origin);
        for cents in 1.. {
            for lot in (bidder..LOTS).step_by(BIDDERS) {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let bid = format!("bidder=bidder{bidder}&cents={cents}");
                let got = client.ask("POST", &format!("/lots/{lot}/bid"), &bid);
                if got.is_some_and(|got| got.status == 201) {
                    counts.raise(lot, cents);
                    counts.bids.fetch_add(1, Ordering::Relaxed);
                }
                thread::sleep(Duration::from_millis(options.pause_ms));
            }
        }
    }

    fn read(&self, cache: usize, reader: usize, counts: &Counts, over: &AtomicBool) {
        let mut client = Client::new(&self.proxies[cache]);
        let mut random = (reader as u64 + 1) << 32 | cache as u64;
        while !over.load(Ordering::Relaxed) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let page = (random % (LOTS + LOTS / LOTS_OF_SHELF) as u64) as usize;
            let (path, lots) = match page.checked_sub(LOTS) {
                Some(shelf) => {
                    let first = shelf * LOTS_OF_SHELF;
                    (format!("/shelves/{shelf}"), first..first + LOTS_OF_SHELF)
                }
                None => (format!("/lots/{page}"), page..page + 1),
            };
            let least: Vec<u64> = lots.clone().map(|lot| counts.least(lot)).collect();
            match client.get(&path).filter(|got| got.status == 200) {
                Some(got) => counts.caches[cache].count(&got, lots, &least, counts),
                None => thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

/// What everybody must be shown at least, and what came of it.
struct Counts {
    prices: Vec<AtomicU64>,
    bids: AtomicU64,
    caches: [OfCache; 2],
}

#[derive(Default)]
struct OfCache {
    reads: AtomicU64,
    hits: AtomicU64,
    stale: AtomicU64,
}

impl Counts {
    fn new() -> Self {
        Counts {
            prices: (0..LOTS).map(|_| AtomicU64::new(0)).collect(),
            bids: AtomicU64::new(0),
            caches: Default::default(),
        }
    }

    fn raise(&self, lot: usize, cents: u64) {
        self.prices[lot].fetch_max(cents, Ordering::SeqCst);
    }

    fn least(&self, lot: usize) -> u64 {
        self.prices[lot].load(Ordering::SeqCst)
    }
}

impl OfCache {
    fn count(&self, got: &Got, lots: std::ops::Range<usize>, least: &[u64], counts: &Counts) {
        let prices: Vec<u64> = lots.clone().filter_map(|lot| got.price(lot)).collect();
        assert_eq!(prices.len(), least.len(), "a page shows all of its lots");
        let is_stale = prices.iter().zip(least).any(|(price, least)| price < least);
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.hits
            .fetch_add(u64::from(got.is_hit), Ordering::Relaxed);
        self.stale.fetch_add(u64::from(is_stale), Ordering::Relaxed);
        lots.zip(prices)
            .for_each(|(lot, price)| counts.raise(lot, price));
    }

    fn stale(&self) -> u64 {
        self.stale.load(Ordering::Relaxed)
    }

    fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}

fn print(options: &Options, counts: &Counts) {
    let (bids, seconds) = (counts.bids.load(Ordering::Relaxed), options.seconds);
    println!("{bids} bids in {seconds} seconds, and {READERS} readers of each cache:\n");
    println!(
        "{:<28}{:>10}{:>10}{:>8}{:>10}",
        "cache", "answers", "hits", "%", "stale"
    );
    let names = ["thorp web", "a lifetime of one second"];
    for (name, cache) in names.iter().zip(&counts.caches) {
        let reads = cache.reads.load(Ordering::Relaxed);
        let (hits, stale) = (cache.hits(), cache.stale());
        let part = hits * 100 / reads.max(1);
        println!("{name:<28}{reads:>10}{hits:>10}{part:>8}{stale:>10}");
    }
}

/// A client with one connection, which it makes again after a failure.
struct Client {
    address: String,
    stream: Option<TcpStream>,
}

struct Got {
    status: u16,
    is_hit: bool,
    body: String,
}

impl Got {
    /// The price of a lot, as the page shows it.
    fn price(&self, lot: usize) -> Option<u64> {
        let (_, behind) = self.body.split_once(&format!("data-lot=\"{lot}\">"))?;
        behind.split('<').next()?.parse().ok()
    }
}

impl Client {
    fn new(address: &str) -> Self {
        Client {
            address: address.to_owned(),
            stream: None,
        }
    }

    fn get(&mut self, path: &str) -> Option<Got> {
        self.ask("GET", path, "")
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Option<Got> {
        let got = self.try_ask(method, path, body);
        if got.is_none() {
            self.stream = None;
        }
        got
    }

    fn try_ask(&mut self, method: &str, path: &str, body: &str) -> Option<Got> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(&self.address).ok()?;
            stream.set_nodelay(true).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut()?;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: auction\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut bytes = Vec::new();
        let head_end = loop {
            if let Some(end) = find(&bytes, b"\r\n\r\n") {
                break end;
            }
            more(stream, &mut bytes)?;
        };
        let head = String::from_utf8_lossy(&bytes[..head_end]).to_ascii_lowercase();
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let length: usize = field("content-length: ")?.trim().parse().ok()?;
        while bytes.len() < head_end + 4 + length {
            more(stream, &mut bytes)?;
        }
        Some(Got {
            status: head.split(' ').nth(1)?.parse().ok()?,
            is_hit: field("cache-status: ").is_some_and(|did| did.starts_with("thorp; hit")),
            body: String::from_utf8_lossy(&bytes[head_end + 4..]).into_owned(),
        })
    }
}

fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut part = [0; 4096];
    let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
    bytes.extend_from_slice(&part[..read]);
    Some(())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

fn path(path: &Path) -> String {
    path.display().to_string()
}
