//! The race probe with requests as the source: real keepers, proxies and clients, which are killed and stopped meanwhile.
//!
//! Each counter has one writer. A page shows 1 to 16 of them. An answer is stale if it shows less than a value that was acknowledged, or shown
//! to anybody, before its request began. `make web-race` runs it for longer, and with rules that are switched off.

use crate::application::{Application, COUNTERS, Random};
use crate::servants::Servant;
use rustix::process::Signal;
use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How many reads: `THORP_RACE_READS` says another number.
const READS: u64 = 20_000;

/// Not before so many hits it is over: a probe whose keeper is always away shows nothing ...
const HITS_MIN: u64 = 1_000;

/// ... and after so many times the reads it gives up.
const ROUNDS_MAX: u64 = 50;

/// Faults that happen meanwhile, at the same distance from each other: `THORP_RACE_FAULTS` says another number.
const FAULTS: u64 = 4;

const READERS: u64 = 24;
const WRITERS: usize = 8;

/// A writer pauses for so long at most.
const PAUSE_MS_MAX: u64 = 40;

/// No request is at work for longer.
const LIFE: Duration = Duration::from_secs(2);

/// A keeper is stopped for so long: its readers notice it meanwhile.
const STOPPED_FOR: Duration = Duration::from_secs(3);

/// If there is no read for so long, something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The counters of a page: its path names them, and its recipe has each of these forms.
const SIZES: [usize; 5] = [1, 2, 4, 8, 16];

/// What everybody knows, and what was counted.
struct Probe {
    /// The least value that a read which begins now must show.
    least: Vec<AtomicU64>,
    proxies: Mutex<Vec<String>>,
    is_over: AtomicBool,
    reads: AtomicU64,
    hits: AtomicU64,
    stale: AtomicU64,
    updates: AtomicU64,
    refused: AtomicU64,
}

impl Probe {
    fn new() -> Arc<Probe> {
        Arc::new(Probe {
            least: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
            proxies: Mutex::default(),
            is_over: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            updates: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    fn count(&self, of: &AtomicU64) {
        of.fetch_add(1, Ordering::SeqCst);
    }

    /// Writes the counters that are this writer's alone, one value after the other.
    async fn write(self: Arc<Self>, writer: usize) {
        let mut random = Random::of(writer as u64 + 1);
        let mut client = Client::default();
        let mut values = vec![0; COUNTERS];
        while !self.is_over.load(Ordering::SeqCst) {
            let own = COUNTERS / WRITERS;
            let counter = random.below(own as u64) as usize * WRITERS + writer;
            values[counter] += 1;
            let value: u64 = values[counter];
            let path = format!("/set/{counter}/{value}");
            match client.ask(&self, &mut random, "POST", &path).await {
                Some((200, ..)) => {
                    self.least[counter].fetch_max(value, Ordering::SeqCst);
                    self.count(&self.updates);
                }
                Some((503, ..)) => self.count(&self.refused),
                // It may be done some time.
                _ => {}
            }
            let pause = Duration::from_millis(random.below(PAUSE_MS_MAX));
            tokio::time::sleep(pause).await;
        }
    }

    async fn read(self: Arc<Self>, reader: u64) {
        let mut random = Random::of(1_000 + reader);
        let mut client = Client::default();
        while !self.is_over.load(Ordering::SeqCst) {
            let size = SIZES[random.below(SIZES.len() as u64) as usize];
            let first = random.below((COUNTERS / size) as u64) as usize * size;
            let shown = first..first + size;
            let least: Vec<u64> = shown
                .clone()
                .map(|counter| self.least[counter].load(Ordering::SeqCst))
                .collect();
            let names: Vec<String> = shown.clone().map(|counter| counter.to_string()).collect();
            let path = format!("/{size}/{}", names.join("/"));
            let Some((200, is_hit, body)) = client.ask(&self, &mut random, "GET", &path).await
            else {
                continue;
            };
            let values: Vec<u64> = body
                .split(' ')
                .map(|value| value.parse().expect("a number"))
                .collect();
            assert_eq!(values.len(), size, "{path}: {body}");
            self.count(&self.reads);
            self.hits.fetch_add(u64::from(is_hit), Ordering::SeqCst);
            let is_stale = values
                .iter()
                .zip(&least)
                .any(|(value, least)| value < least);
            if is_stale && self.stale.fetch_add(1, Ordering::SeqCst) == 0 {
                eprintln!("{path}: {values:?} is shown after {least:?}, a hit: {is_hit}");
            }
            for (counter, value) in shown.zip(values) {
                self.least[counter].fetch_max(value, Ordering::SeqCst);
            }
        }
    }

    fn proxy(&self, random: &mut Random) -> String {
        let proxies = self.proxies.lock().expect("nobody panics");
        proxies[random.below(proxies.len() as u64) as usize].clone()
    }
}

/// A client's connection to one of the proxies. After a failure it takes another one.
#[derive(Default)]
struct Client(Option<TcpStream>);

impl Client {
    /// The status, whether it was a hit, and the body. None: there is no answer.
    async fn ask(
        &mut self,
        probe: &Probe,
        random: &mut Random,
        method: &str,
        path: &str,
    ) -> Option<(u16, bool, String)> {
        // Sometimes it goes to the other proxy.
        if random.below(50) == 0 {
            self.0 = None;
        }
        let mut stream = match self.0.take() {
            Some(stream) => stream,
            None => {
                let connected = TcpStream::connect(probe.proxy(random)).await;
                if connected.is_err() {
                    // It is killed, and the next one has not come yet.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                connected.ok()?
            }
        };
        let answered = tokio::time::timeout(PATIENCE, exchange(&mut stream, method, path)).await;
        let answered = answered.expect("an answer comes").ok()?;
        self.0 = Some(stream);
        Some(answered)
    }
}

async fn exchange(
    stream: &mut TcpStream,
    method: &str,
    path: &str,
) -> std::io::Result<(u16, bool, String)> {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: race\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut got = Vec::new();
    let cut = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let head = loop {
        if let Some(end) = got.windows(4).position(|part| part == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut got).await? == 0 {
            return Err(cut());
        }
    };
    let text = String::from_utf8_lossy(&got[..head]).to_lowercase();
    let length = text
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    while got.len() < head + length {
        if stream.read_buf(&mut got).await? == 0 {
            return Err(cut());
        }
    }
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = String::from_utf8_lossy(&got[head..]).into_owned();
    Ok((status.unwrap_or(0), text.contains("thorp; hit"), body))
}

/// The processes: one keeper, and two proxies.
struct Scene {
    probe: Arc<Probe>,
    table: PathBuf,
    origin: String,
    keeper: Option<Servant>,
    proxies: Vec<Option<Servant>>,
    bug: Option<&'static str>,
    _directory: tempfile::TempDir,
}

impl Scene {
    async fn open(bug: Option<&'static str>) -> Scene {
        let directory = tempfile::tempdir().expect("a directory");
        let table = directory.path().join("race.table");
        let mut scene = Scene {
            probe: Probe::new(),
            origin: Application::start().await,
            keeper: None,
            proxies: vec![None, None],
            bug,
            table,
            _directory: directory,
        };
        scene.start_keeper();
        scene.start_proxy(0).await;
        scene.start_proxy(1).await;
        scene
    }

    fn start_keeper(&mut self) {
        self.keeper = Some(Servant::keeper_with(&self.table, LIFE, self.bug));
    }

    async fn start_proxy(&mut self, which: usize) {
        let recipe = recipe();
        let started = Servant::proxy_with(&self.table, &self.origin, &recipe, self.bug).await;
        let (servant, address) = started;
        self.proxies[which] = Some(servant);
        let mut addresses = self.probe.proxies.lock().expect("nobody panics");
        match addresses.get_mut(which) {
            Some(before) => *before = address,
            None => addresses.push(address),
        }
    }

    /// One of the faults.
    async fn fails(&mut self, which: u64) {
        match which % 4 {
            0 => {
                drop(self.keeper.take());
                self.start_keeper();
            }
            1 => {
                drop(self.proxies[0].take());
                self.start_proxy(0).await;
            }
            2 => {
                let keeper = self.keeper.as_ref().expect("a keeper");
                keeper.signal(Signal::STOP);
                tokio::time::sleep(STOPPED_FOR).await;
                keeper.signal(Signal::CONT);
            }
            // Both at once: the next keeper waits for a proxy that does not come.
            _ => {
                drop(self.proxies[1].take());
                drop(self.keeper.take());
                self.start_keeper();
                self.start_proxy(1).await;
            }
        }
    }

    /// Reads so often, with so many faults, or until something is stale.
    async fn race(mut self, reads: u64, faults: u64) -> Arc<Probe> {
        let probe = Arc::clone(&self.probe);
        let writers = (0..WRITERS).map(|writer| tokio::spawn(Arc::clone(&probe).write(writer)));
        let readers = (0..READERS).map(|reader| tokio::spawn(Arc::clone(&probe).read(reader)));
        let clients: Vec<_> = writers.chain(readers).collect();
        let mut next = 0;
        let mut last = (0, Instant::now());
        loop {
            let done = probe.reads.load(Ordering::SeqCst);
            let is_stale = probe.stale.load(Ordering::SeqCst) > 0;
            let hits = probe.hits.load(Ordering::SeqCst);
            let gives_up = done >= reads * ROUNDS_MAX;
            if is_stale || gives_up || done >= reads && hits >= HITS_MIN && next >= faults {
                break;
            }
            // There are hits between two faults.
            let is_due = |of: u64, all: u64| of >= all / (faults + 1) * (next + 1);
            if next < faults && is_due(done, reads) && is_due(hits, HITS_MIN) {
                self.fails(next).await;
                next += 1;
            }
            if done > last.0 {
                last = (done, Instant::now());
            }
            assert!(last.1.elapsed() < PATIENCE, "no read is answered");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        probe.is_over.store(true, Ordering::SeqCst);
        for client in clients {
            client.await.expect("it ends");
        }
        probe
    }
}

/// A page of each size rests on the counters that its path names, and a write changes one.
fn recipe() -> String {
    let mut recipe =
        String::from("[[routes]]\npath = \"/set/{a}/{value}\"\nchanges = [\"counter:{a}\"]\n");
    for size in SIZES {
        let holes: Vec<String> = (0..size).map(|hole| format!("{{h{hole}}}")).collect();
        let keys: Vec<String> = holes
            .iter()
            .map(|hole| format!("\"counter:{hole}\""))
            .collect();
        let (holes, keys) = (holes.join("/"), keys.join(", "));
        recipe.push_str(&format!(
            "[[routes]]\npath = \"/{size}/{holes}\"\nkeys = [{keys}]\n"
        ));
    }
    recipe
}

fn number(name: &str, default: u64) -> u64 {
    let said = env::var(name).ok();
    said.map_or(default, |said| said.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_is_older_than_what_was_acknowledged_or_shown() {
    let reads = number("THORP_RACE_READS", READS);
    let faults = number("THORP_RACE_FAULTS", FAULTS);
    let probe = Scene::open(None).await.race(reads, faults).await;
    let count = |of: &AtomicU64| of.load(Ordering::SeqCst);
    println!(
        "{{\"bench\":\"web_race\",\"source\":\"requests\",\"reads\":{},\"hits\":{},\"stale\":{},\"updates\":{},\"refused\":{},\"faults\":{faults}}}",
        count(&probe.reads),
        count(&probe.hits),
        count(&probe.stale),
        count(&probe.updates),
        count(&probe.refused)
    );
    assert_eq!(count(&probe.stale), 0);
    assert!(count(&probe.hits) >= HITS_MIN, "the cache was in use");
    assert!(count(&probe.updates) > 0);
}

/// The probe is not blind: the same processes with a rule switched off.
#[cfg(feature = "planted-bugs")]
mod planted {
    use super::*;

    /// In so many reads it is found.
    const READS_MAX: u64 = 200_000;

    async fn finds(bug: &'static str, faults: u64) {
        let probe = Scene::open(Some(bug)).await.race(READS_MAX, faults).await;
        assert!(probe.stale.load(Ordering::SeqCst) > 0, "{bug}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn with_words_that_are_even_while_an_update_is_open_it_finds_stale_answers() {
        finds("EvenAtBegin", 0).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn with_evidence_of_after_the_answer_it_finds_stale_answers() {
        finds("EvidenceAfterAnswer", 0).await;
    }
}
