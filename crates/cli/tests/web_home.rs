//! `thorp web` in front of an application whose data are at Thorp homes: real homes, proxies and members. Nobody is shown less than what
//! was acknowledged, or shown, before a request began; whoever is killed, and whatever is in doubt.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::dev_village::document;
use common::doubt;
use common::thorp;
use common::two_homes::{NAMES, Village};
use common::votes::leave_a_vote;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use thorp_client::{Member, Ref, Result, Session};
use thorp_testing::{Intruder, PATIENCE, Process, eventually};

/// The counters, alternating between the homes. A page shows some of them that follow each other.
const COUNTERS: usize = 16;
/// Each counter has one writer; a writer has this many.
const OF_WRITER: usize = 4;
const READERS: usize = 4;
/// Requests of all readers together, unless `THORP_RACE_REQUESTS` says another number.
const REQUESTS: u64 = 400;
/// A race that takes longer has stopped.
const RACE_WITHIN: Duration = Duration::from_secs(600);
const RECIPE: &str = "[[routes]]\npath = \"/{counters*}\"";

/// Two homes with tables, an application at their site, and counters.
struct Shop {
    village: Village,
    counters: Arc<Vec<Ref<u64>>>,
    origin: String,
    recipe: PathBuf,
    dir: TempDir,
}

impl Shop {
    fn open() -> Shop {
        let dir = tempfile::tempdir().unwrap();
        let village = Village::start_with(dir.path(), &["--web-table"]);
        let member = village.join(3);
        let segments =
            NAMES.map(|name| member.create(&format!("thorp://{name}/counters")).unwrap());
        let made = member.transact(|tx| {
            let made = (0..COUNTERS).map(|number| tx.create_typed(&segments[number % 2], &0u64));
            made.collect::<Result<Vec<_>>>()
        });
        let counters = Arc::new(made.unwrap());
        let recipe = dir.path().join("counters.toml");
        fs::write(&recipe, RECIPE).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        // What is in doubt, or away, is answered soon, and not by what was so.
        let session = Session::new()
            .attempts_max(3)
            .fetch_timeout(Duration::from_secs(2));
        let session = session.commit_timeout(Duration::from_secs(2));
        let origin_member = village.join_with(0, |config| config.session(session));
        let shown = Arc::clone(&counters);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (member, counters) = (origin_member.clone(), Arc::clone(&shown));
                thread::spawn(move || serve(&client.unwrap(), &member, &counters));
            }
        });
        Shop {
            village,
            counters,
            origin,
            recipe,
            dir,
        }
    }

    /// Where the home of this number writes its table.
    fn table(&self, which: usize) -> String {
        let path = self.village.home_dir(which).join("web.table");
        format!("{}={}", NAMES[which], path.display())
    }

    fn proxy(&self, listen: &str) -> Proxy {
        let (recipe, tables) = (
            self.recipe.display().to_string(),
            [0, 1].map(|which| self.table(which)),
        );
        let mut command = thorp().command(&["web", "--origin", &self.origin, "--recipe", &recipe]);
        command.args([
            "--home", &tables[0], "--home", &tables[1], "--listen", listen,
        ]);
        let process = Process::start({
            command.args(["--json", "--until-stdin-closes"]);
            command
        });
        let address = document(&process)["address"].as_str().unwrap().to_owned();
        Proxy { process, address }
    }

    /// A page with one counter that is a hit from now on.
    fn eventually_hit(&self, proxy: &Proxy, path: &str) {
        eventually("a page is kept", || proxy.get(path).is_hit());
    }
}

/// The application: `/3/4` shows two counters.
fn serve(client: &TcpStream, member: &Member, counters: &[Ref<u64>]) {
    let mut reader = BufReader::new(client);
    while let Some(path) = head(&mut reader) {
        let shown: Option<Vec<Ref<u64>>> = path
            .trim_matches('/')
            .split('/')
            .map(|number| counters.get(number.parse::<usize>().ok()?).copied())
            .collect();
        let shown = shown.unwrap_or_default();
        let read = member.answer(|tx| {
            shown
                .iter()
                .map(|one| tx.get(one))
                .collect::<Result<Vec<u64>>>()
        });
        let (status, body, fields) = match read {
            Ok((values, basis)) => {
                let values: Vec<String> = values.iter().map(u64::to_string).collect();
                (200, values.join(" "), basis.fields())
            }
            Err(error) => (503, error.to_string(), None),
        };
        let fields = fields.into_iter().flatten();
        let fields: String = fields
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let answer = format!(
            "HTTP/1.1 {status} -\r\n{fields}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if (&*client).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The path of the next request.
fn head(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|bytes| *bytes > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    while reader.read_line(&mut line).ok()? > 2 {}
    Some(path)
}

struct Proxy {
    process: Process,
    address: String,
}

struct Got {
    status: u16,
    did: String,
    values: Vec<u64>,
}

impl Got {
    fn is_hit(&self) -> bool {
        self.did == "thorp; hit"
    }
}

impl Proxy {
    fn get(&self, path: &str) -> Got {
        get(&self.address, path).unwrap()
    }
}

/// One request, on a connection of its own.
fn get(address: &str, path: &str) -> Option<Got> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let did = head
        .lines()
        .find_map(|line| line.strip_prefix("cache-status: "));
    Some(Got {
        status: head.split(' ').nth(1)?.parse().ok()?,
        did: did.unwrap_or_default().to_owned(),
        values: body
            .split(' ')
            .filter_map(|value| value.parse().ok())
            .collect(),
    })
}

/// What everybody must be shown at least.
struct Ledger([AtomicU64; COUNTERS]);

impl Ledger {
    fn raise(&self, counter: usize, value: u64) {
        self.0[counter].fetch_max(value, Ordering::SeqCst);
    }

    fn least(&self, shown: &[usize]) -> Vec<u64> {
        let least = shown
            .iter()
            .map(|counter| self.0[*counter].load(Ordering::SeqCst));
        least.collect()
    }
}

/// What came of a race.
#[derive(Default, Debug)]
struct Counts {
    reads: AtomicU64,
    hits: AtomicU64,
    stale: AtomicU64,
    updates: AtomicU64,
    joint: AtomicU64,
    failures: AtomicU64,
}

struct Race<'a> {
    counters: &'a [Ref<u64>],
    ledger: Ledger,
    counts: Counts,
    requests: u64,
    over: AtomicBool,
}

impl Race<'_> {
    /// Raises its counters one after the other, every third time two of them in one transaction over both homes.
    fn write(&self, member: &Member, first: usize) {
        let mut values = [0u64; OF_WRITER];
        for round in 0.. {
            let own = [round % OF_WRITER, (round + 1) % OF_WRITER];
            let own = &own[..1 + usize::from(round % 3 == 0)];
            own.iter().for_each(|own| values[*own] += 1);
            // The same values until they are acknowledged: a home may be away.
            while !self.is_over() {
                let put = member.transact(|tx| {
                    own.iter()
                        .try_for_each(|own| tx.put(&self.counters[first + own], &values[*own]))
                });
                if put.is_ok() {
                    own.iter()
                        .for_each(|own| self.ledger.raise(first + own, values[*own]));
                    self.counts.updates.fetch_add(1, Ordering::Relaxed);
                    self.counts
                        .joint
                        .fetch_add(own.len() as u64 - 1, Ordering::Relaxed);
                    break;
                }
            }
            if self.is_over() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn read(&self, address: &str, reader: usize) {
        let mut number = reader;
        while !self.is_over() {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let random = number >> 33;
            let count = 1 << (random % 3);
            let first = (random / 3 * count) % COUNTERS;
            let shown: Vec<usize> = (first..first + count).collect();
            let path: String = shown.iter().map(|counter| format!("/{counter}")).collect();
            let least = self.ledger.least(&shown);
            let got = get(address, &path).filter(|got| got.status == 200);
            let Some(got) = got.filter(|got| got.values.len() == count) else {
                // The proxy, or a home, is away.
                self.counts.failures.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
                continue;
            };
            let is_stale = got
                .values
                .iter()
                .zip(&least)
                .any(|(value, least)| value < least);
            let counts = &self.counts;
            counts
                .stale
                .fetch_add(u64::from(is_stale), Ordering::Relaxed);
            counts
                .hits
                .fetch_add(u64::from(got.is_hit()), Ordering::Relaxed);
            if counts.reads.fetch_add(1, Ordering::Relaxed) + 1 >= self.requests {
                self.over.store(true, Ordering::SeqCst);
            }
            let seen = shown.iter().zip(&got.values);
            seen.for_each(|(counter, value)| self.ledger.raise(*counter, *value));
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

/// Writers and readers, while homes and the proxy are killed in turns: what came of it.
fn race(shop: &mut Shop, kills: usize) -> Counts {
    let mut proxy = Some(shop.proxy("127.0.0.1:0"));
    let address = proxy.as_ref().unwrap().address.clone();
    shop.eventually_hit(proxy.as_ref().unwrap(), "/0/1");
    let requests = std::env::var("THORP_RACE_REQUESTS").ok();
    let requests = requests.and_then(|number| number.parse().ok());
    let counters = Arc::clone(&shop.counters);
    let race = Race {
        counters: &counters,
        ledger: Ledger([const { AtomicU64::new(0) }; COUNTERS]),
        counts: Counts::default(),
        requests: requests.unwrap_or(REQUESTS),
        over: AtomicBool::new(false),
    };
    let members: Vec<Member> = (0..COUNTERS / OF_WRITER)
        .map(|number| shop.village.join(number))
        .collect();
    let end = Instant::now() + RACE_WITHIN;
    thread::scope(|scope| {
        for (writer, member) in members.iter().enumerate() {
            let race = &race;
            scope.spawn(move || race.write(member, writer * OF_WRITER));
        }
        for reader in 0..READERS {
            let (race, address) = (&race, &address);
            scope.spawn(move || race.read(address, reader));
        }
        for kill in 0..kills {
            let at = race.requests * (kill as u64 + 1) / (kills as u64 + 1);
            while race.counts.reads.load(Ordering::Relaxed) < at && Instant::now() < end {
                thread::sleep(Duration::from_millis(5));
            }
            match kill % 3 {
                2 => {
                    // Dropped, it is killed. The next one has its port.
                    proxy = None;
                    proxy.get_or_insert_with(|| shop.proxy(&address));
                }
                which => {
                    shop.village.kill(which);
                    shop.village.restart(which);
                }
            }
        }
        while !race.is_over() && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        race.over.store(true, Ordering::SeqCst);
    });
    println!("{:?}", race.counts);
    race.counts
}

fn count(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

#[test]
fn nobody_is_shown_less_than_before_whoever_is_killed() {
    let mut shop = Shop::open();
    let counts = race(&mut shop, 3);
    assert_eq!(count(&counts.stale), 0, "{counts:?}");
    // It is a race only if there were hits, updates, and transactions over both homes.
    assert!(
        count(&counts.hits) > 0 && count(&counts.joint) > 0,
        "{counts:?}"
    );
    assert!(count(&counts.reads) >= REQUESTS, "{counts:?}");
}

/// Traps W16 and W23: a home has voted, and does not know the outcome. Trap W10: it starts again with that vote.
#[test]
fn a_vote_ends_hits_until_its_home_knows_the_outcome() {
    let mut shop = Shop::open();
    let olga = shop.village.operator(shop.dir.path());
    let proxy = shop.proxy("127.0.0.1:0");
    // Both homes have heard from each other.
    shop.village.eventually_no_doubt();
    for path in ["/0", "/2", "/4"] {
        shop.eventually_hit(&proxy, path);
    }
    let member = shop.village.join(3);
    let mut dale = None;
    eventually("it knows both homes", || {
        let homes = member.homes();
        dale = homes
            .iter()
            .find(|home| home.name == "dale")
            .map(|home| home.id);
        dale.is_some()
    });
    let dale = dale.unwrap();
    shop.village.kill(1);
    let alps = shop.village.home(0).via.clone();
    let mut lost = Intruder::enter(shop.village.identity(), &alps);
    let [first, second] = [0, 2].map(|counter| shop.counters[counter].reference());
    let aborted = leave_a_vote(&mut lost, dale, (1, &first));
    leave_a_vote(&mut lost, dale, (2, &second));
    drop(lost);
    // Its member may have shown the new value by now. A hit would be older.
    for path in ["/0", "/2", "/0", "/2"] {
        assert_ne!(proxy.get(path).did, "thorp; hit", "{path}");
    }
    assert!(
        proxy.get("/4").is_hit(),
        "nobody has voted for a change of it"
    );
    // It was not changed: what was kept before is served again.
    let settle = ["settle", "alps", &aborted.to_string(), "--abort"];
    let settled = doubt(&alps, &olga, &settle);
    assert_eq!(settled.code, 0, "{}", settled.err);
    assert!(proxy.get("/0").is_hit());
    shop.village.kill(0);
    shop.village.restart(0);
    shop.eventually_hit(&proxy, "/4");
    for _ in 0..3 {
        let got = proxy.get("/2");
        assert!(!got.is_hit() && !got.did.contains("stored"), "{}", got.did);
    }
}

/// With a guard switched off, the race finds what it looks for. The bug is planted in all processes of the village and in the proxy.
#[cfg(feature = "planted-bugs")]
#[test]
fn the_race_is_not_blind() {
    let Ok(bug) = std::env::var("THORP_PLANTED_BUG") else {
        return thorp_testing::report_skipped(
            env!("CARGO_CRATE_NAME"),
            "THORP_PLANTED_BUG, the name of a bug",
        );
    };
    let mut shop = Shop::open();
    let counts = race(&mut shop, 0);
    assert!(count(&counts.stale) > 0, "{bug}: {counts:?}");
}

/// What an operator may do wrong is said before anything runs.
#[test]
fn what_cannot_be_right_is_said_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (good, keyed) = (recipe("good", RECIPE), recipe("keyed", "[tables]\na = []"));
    let run = |words: &[&str]| {
        let origin = ["web", "--origin", "http://127.0.0.1:1"];
        let said = thorp().run(&[&origin, words].concat());
        assert_eq!(said.code, 2, "{words:?}: {}", said.err);
        said.err
    };
    assert!(run(&["--home", "alps", "--recipe", &good]).contains("write NAME=FILE"));
    assert!(run(&["--home", "alps=x", "--recipe", &keyed]).contains("name them themselves"));
    assert!(run(&["--home", "alps=x"]).contains("--recipe"));
    let twice = ["--home", "alps=x", "--home", "alps=y", "--recipe", &good];
    assert!(run(&twice).contains("named twice"));
}

/// A home whose table is gone, or of another home, gives no hits, and the proxy says why.
#[test]
fn a_home_without_a_table_gives_no_hits_and_the_proxy_says_why() {
    let mut shop = Shop::open();
    let proxy = shop.proxy("127.0.0.1:0");
    shop.eventually_hit(&proxy, "/0");
    shop.eventually_hit(&proxy, "/1");
    let recipe = shop.recipe.display().to_string();
    let path = shop.village.home_dir(0).join("web.table");
    let wrong = format!("dale={}", path.display());
    let nowhere = format!("alps={}", shop.dir.path().join("no.table").display());
    let mut command = thorp().command(&["web", "--origin", &shop.origin, "--recipe", &recipe]);
    command.args([
        "--home",
        &wrong,
        "--home",
        &nowhere,
        "--listen",
        "127.0.0.1:0",
    ]);
    command.arg("--until-stdin-closes");
    let other = Process::start(command);
    eventually("it says why", || {
        let log = other.log().join("\n");
        log.contains("is of another home") && log.contains("start the home with --web-table")
    });
    // It ends in order: hits end at once.
    let alps = shop.village.homes[0].take().unwrap();
    assert_eq!(alps.process.terminate(), 0);
    assert!(!proxy.get("/0").is_hit());
    assert!(proxy.get("/1").is_hit(), "it rests on the other home");
    drop(proxy.process);
}
