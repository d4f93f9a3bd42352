//! An origin whose answers a test writes byte by byte, and a proxy in front of it. No database.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use thorp_versions::{Action, Event, Keeper, Memory, Place, Reader, UpdateId, Writer};
use thorp_web::{Door, Proxy, Recipe, Source as Versioned, serve, serve_door};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(crate) const CACHE_BYTES: u64 = 16 << 20;

/// How long anything may take that does come.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the origin does with a request: its head, and the connection.
type Answers = dyn Fn(&str) -> Vec<Step> + Send + Sync;

/// One thing that the origin does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// It sends these bytes.
    Send(String),
    /// It waits until the test lets it go on.
    Wait,
    /// It ends the connection.
    Close,
}

/// A whole answer with such fields.
pub(crate) fn answer(fields: &str, body: &str) -> Vec<Step> {
    with_status("200 OK", fields, body)
}

/// A whole answer with such a status and such fields.
pub(crate) fn with_status(status: &str, fields: &str, body: &str) -> Vec<Step> {
    let lines: String = fields
        .split('\n')
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| format!("{line}\r\n"))
        .collect();
    let length = body.len();
    vec![Step::Send(format!(
        "HTTP/1.1 {status}\r\n{lines}Content-Length: {length}\r\n\r\n{body}"
    ))]
}

pub(crate) type OwnDoor = Door<Reader<Arc<Memory>>>;

/// The origin and the proxy in front of it.
#[derive(Clone)]
pub(crate) struct Site {
    address: String,
    origin_address: String,
    asked: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
    lets_go: watch::Sender<usize>,
    door: Option<Arc<OwnDoor>>,
    unreadable: Arc<dyn Fn() -> u64 + Send + Sync>,
    _stop: watch::Sender<bool>,
}

/// What a client gets.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn field(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.trim())
    }

    /// What the cache did, without numbers.
    pub(crate) fn done(&self) -> &str {
        let status = self.field("cache-status");
        status.split("; ttl").next().unwrap_or(status)
    }
}

impl Site {
    /// No answer is coherent.
    pub(crate) async fn open(answers: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static) -> Site {
        Site::with("", answers).await
    }

    /// With a recipe, and a table that nobody keeps.
    pub(crate) async fn with(
        recipe: &str,
        answers: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static,
    ) -> Site {
        Site::over(Arc::new(Memory::new()), recipe, answers).await
    }

    /// With a recipe, and a table that is kept.
    pub(crate) async fn kept(
        recipe: &str,
        answers: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static,
    ) -> (Site, Source) {
        let table = Arc::new(Memory::new());
        let source = Source::new(Arc::clone(&table));
        (Site::over(table, recipe, answers).await, source)
    }

    async fn over(
        table: Arc<Memory>,
        recipe: &str,
        answers: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static,
    ) -> Site {
        let (mut site, door) = Site::behind(Reader::new(table), recipe, answers).await;
        site.door = Some(door);
        site
    }

    /// With a recipe, and a source of its own.
    pub(crate) async fn before<S: Versioned + Send + Sync + 'static>(
        source: S,
        recipe: &str,
        answers: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static,
    ) -> Site {
        Site::behind(source, recipe, answers).await.0
    }

    /// The same, and what stands behind the port of its clients.
    pub(crate) async fn behind<S: Versioned + Send + Sync + 'static>(
        source: S,
        recipe: &str,
        answers: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static,
    ) -> (Site, Arc<Door<S>>) {
        let origin = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin_address = format!("http://{}", origin.local_addr().expect("an address"));
        let asked = Arc::new(AtomicUsize::new(0));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (lets_go, may_go) = watch::channel(0);
        let script = Script {
            answers: Arc::new(answers),
            asked: Arc::clone(&asked),
            heads: Arc::clone(&heads),
            may_go,
        };
        tokio::spawn(script.run(origin));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (stop, stopped) = watch::channel(false);
        let door = Arc::new(Door::new(proxy(&origin_address, recipe, source), None));
        let counts = Arc::clone(&door);
        tokio::spawn(serve_door(listener, Arc::clone(&door), stopped));
        let site = Site {
            address,
            origin_address,
            asked,
            heads,
            lets_go,
            door: None,
            unreadable: Arc::new(move || counts.proxy().unreadable()),
            _stop: stop,
        };
        (site, door)
    }

    /// How many answers were not kept because their fields could not be read.
    pub(crate) fn unreadable(&self) -> u64 {
        (self.unreadable)()
    }

    /// Another proxy in front of these addresses.
    pub(crate) fn proxy(
        &self,
        addresses: &str,
        recipe: &str,
        table: Arc<Memory>,
    ) -> Arc<Proxy<Reader<Arc<Memory>>>> {
        proxy(addresses, recipe, Reader::new(table))
    }

    /// The same origin behind another proxy, which has other addresses beside it.
    pub(crate) async fn beside(mut self, addresses: &str) -> Site {
        let addresses = format!("{addresses},{}", self.origin_address);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        self.address = listener.local_addr().expect("an address").to_string();
        let proxy = self.proxy(&addresses, "", Arc::new(Memory::new()));
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(serve(listener, proxy, stopped));
        self._stop = stop;
        self
    }

    /// The same origin behind a proxy at this address.
    pub(crate) fn at(&self, address: &str) -> Site {
        Site {
            address: address.to_owned(),
            ..self.clone()
        }
    }

    /// What stands behind the port of its clients.
    pub(crate) fn door(&self) -> Arc<OwnDoor> {
        Arc::clone(self.door.as_ref().expect("it is set when a site opens"))
    }

    /// Where its origin is.
    pub(crate) fn origin_address(&self) -> &str {
        &self.origin_address
    }

    /// How often the origin was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// The head of the last request that the origin got.
    pub(crate) fn last_head(&self) -> String {
        let heads = self.heads.lock().expect("no test has failed");
        heads.last().cloned().unwrap_or_default()
    }

    /// The origin goes on at one more of its waits.
    pub(crate) fn let_go(&self) {
        self.lets_go.send_modify(|steps| *steps += 1);
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address)
            .await
            .expect("a connection")
    }

    /// Sends these bytes, and reads until the proxy ends the connection.
    pub(crate) async fn exchange(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        stream
            .write_all(request.as_bytes())
            .await
            .expect("a request");
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let read = tokio::time::timeout(PATIENCE, read).await;
        // A connection that is reset has no answer.
        let _ = read.expect("an end");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// A request without a body.
    pub(crate) async fn ask(&self, method: &str, path: &str, fields: &str) -> Got {
        let lines: String = fields
            .lines()
            .map(|line| format!("{}\r\n", line.trim()))
            .collect();
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: site\r\nConnection: close\r\n{lines}\r\n");
        let answer = self.exchange(&request).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Got {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            body: unchunked(head, body),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.ask("GET", path, "").await
    }
}

/// A proxy in front of these addresses.
fn proxy<S: Versioned + Send + Sync + 'static>(
    addresses: &str,
    recipe: &str,
    source: S,
) -> Arc<Proxy<S>> {
    let recipe = Arc::new(Recipe::parse(recipe).expect("a recipe"));
    let proxy = Proxy::new(addresses, recipe, source, CACHE_BYTES);
    Arc::new(proxy.expect("an origin"))
}

/// A source that changes when the test says so.
pub(crate) struct Source {
    keeper: Keeper,
    writer: Arc<Mutex<Writer<Arc<Memory>>>>,
    updates: u64,
}

impl Source {
    fn new(table: Arc<Memory>) -> Self {
        let mut writer = Writer::new(table);
        let mut keeper = Keeper::new();
        keeper.handle(Event::Restarted(writer.restart(0x5eed, &[])));
        writer.beat(now_ms());
        let writer = Arc::new(Mutex::new(writer));
        let beats = Arc::downgrade(&writer);
        tokio::spawn(async move {
            while let Some(writer) = beats.upgrade() {
                writer.lock().expect("no test has failed").beat(now_ms());
                drop(writer);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        Source {
            keeper,
            writer,
            updates: 0,
        }
    }

    /// An update of a key begins, is acknowledged, and is visible.
    pub(crate) fn change(&mut self, key: &str) {
        self.updates += 1;
        let update = UpdateId(self.updates);
        let begin = Event::Begin(update, Some(vec![Place::of(key)]));
        for event in [begin, Event::End(update)] {
            for action in self.keeper.handle(event) {
                if let Action::Store(store) = action {
                    let mut writer = self.writer.lock().expect("no test has failed");
                    writer.store(&store);
                }
            }
        }
    }
}

fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

fn unchunked(head: &str, body: &str) -> String {
    if !head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        return body.to_owned();
    }
    let mut lines = body.split("\r\n");
    let mut text = String::new();
    while let (Some(_), Some(data)) = (lines.next(), lines.next()) {
        text.push_str(data);
    }
    text
}

#[derive(Clone)]
struct Script {
    answers: Arc<Answers>,
    asked: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
    may_go: watch::Receiver<usize>,
}

impl Script {
    async fn run(self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(self.clone().serve(stream));
        }
    }

    async fn serve(mut self, mut stream: TcpStream) {
        while let Some(head) = read_head(&mut stream).await {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.heads
                .lock()
                .expect("no test has failed")
                .push(head.clone());
            let mut waits = 0;
            for step in (self.answers)(&head) {
                match step {
                    Step::Send(bytes) => {
                        if stream.write_all(bytes.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                    Step::Wait => {
                        waits += 1;
                        let _ = self.may_go.wait_for(|steps| *steps >= waits).await;
                    }
                    Step::Close => return,
                }
            }
        }
    }
}

/// A head, and a body of the length that it says.
async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, length)| length.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some(head)
}
