//! A village in one process: a home that can be stopped and started, whose disk can be held back, and perhaps a site.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(
    clippy::unwrap_used,
    reason = "this is a test, although not by attribute"
)]

mod way;

#[allow(unused_imports, reason = "each test program uses a part of it")]
pub(crate) use way::Way;

use std::collections::BTreeMap;
use std::future::pending;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use thorp_net::driver::NoWorld;
use thorp_protocol::{HomeAction, HomeCommand};

use tempfile::TempDir;
use thorp_client::{Identity, JoinConfig, Member, Segment};
use thorp_model::limits::REGISTRATIONS_MAX;
use thorp_model::{
    Batch, HomeId, MemberId, Millis, NodeKind, Note, Op, Outbox, PageId, Peer, Reader, Scan, Stamp,
    StorageError, Table,
};
use thorp_net::driver::{Driver, DriverConfig, Handle, ParentConfig, World, net_config, now};
use thorp_net::{Address, LinkDelay, Listener};
use thorp_protocol::{Home, HomeConfig, LoadResult, Redirector, RedirectorConfig};

use thorp_model::records::{decode_page, page_key};

/// A village, gone with the test.
pub(crate) struct Village {
    dir: TempDir,
    name: String,
    identity: Identity,
    address: Address,
    home: Handle<Home>,
    memory: Memory,
    control: Arc<Control>,
    start: tokio::sync::mpsc::UnboundedSender<()>,
}

/// What a test can do to the home.
#[derive(Default)]
struct Control {
    /// Batches are written and nobody is told that they are durable.
    held: AtomicBool,
    /// Batches are held back and not even written: lost when the home stops.
    losing: AtomicBool,
    waiting: Mutex<Vec<HomeCommand>>,
    lives: AtomicU32,
}

impl Village {
    /// A home called `alps`.
    pub(crate) fn new() -> Self {
        Self::with_delay(Duration::ZERO)
    }

    /// A home called `alps`, this far away (what comes down; members delay what goes up).
    pub(crate) fn with_delay(one_way: Duration) -> Self {
        Self::with(one_way, REGISTRATIONS_MAX)
    }

    /// A home called `alps` that remembers so many members.
    pub(crate) fn remembering(members: usize) -> Self {
        Self::with(Duration::ZERO, members)
    }

    /// One more home of the same village, which knows the way to this one (rule 10).
    pub(crate) fn beside(&self, name: &str, id: u32) -> Self {
        let dir = TempDir::new().unwrap();
        let identity = self.identity.clone();
        let others = vec![self.address.clone()];
        Self::at(
            dir,
            identity,
            (name, id),
            others,
            (Duration::ZERO, REGISTRATIONS_MAX),
        )
    }

    fn with(one_way: Duration, registrations_max: usize) -> Self {
        let dir = TempDir::new().unwrap();
        let identity = Identity::open_or_create(dir.path().join("identity"), "alps").unwrap();
        let limits = (one_way, registrations_max);
        Self::at(dir, identity, ("alps", 7), Vec::new(), limits)
    }

    fn at(
        dir: TempDir,
        identity: Identity,
        (name, id): (&str, u32),
        others: Vec<Address>,
        (one_way, registrations_max): (Duration, usize),
    ) -> Self {
        let (memory, control) = (Memory::default(), Arc::<Control>::default());
        let (start, started) = tokio::sync::mpsc::unbounded_channel();
        let (tell, told) = mpsc::channel();
        let keeper = Keeper {
            identity: identity.clone(),
            socket: dir.path().join("home.sock"),
            memory: memory.clone(),
            control: Arc::clone(&control),
            one_way,
            registrations_max,
            name: name.to_owned(),
            id: HomeId(id),
            others,
        };
        thread::spawn(move || in_runtime(keeper.keep(started, tell)));
        let (home, address) = told.recv().unwrap();
        Village {
            dir,
            name: name.to_owned(),
            identity,
            address,
            home,
            memory,
            control,
            start,
        }
    }

    pub(crate) fn config(&self) -> JoinConfig {
        JoinConfig::new(self.address.to_string())
            .identity_of(self.identity.clone())
            .name("anna")
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity.clone()
    }

    /// A directory that goes with the village.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn member(&self) -> Member {
        Member::join(self.config()).unwrap()
    }

    /// A member and a segment.
    pub(crate) fn member_at(&self, path: &str) -> (Member, Segment) {
        let member = self.member();
        let segment = member
            .open_or_create(&format!("thorp://{}/{path}", self.name))
            .unwrap();
        (member, segment)
    }

    /// The home is gone, with all connections, until [`Village::start`].
    pub(crate) fn stop(&self) {
        let edges = self.home.edges().len();
        self.home.halt();
        eventually("the home stops", || {
            edges == 0 || self.home.edges().is_empty()
        });
    }

    /// The home's loop stands still for so long.
    pub(crate) fn stall(&self, time: Duration) {
        drop(self.home.inspect(move |_: &Home| thread::sleep(time)));
    }

    /// The home comes back with what was durable.
    pub(crate) fn start(&self) {
        let lives = self.control.lives.load(Ordering::SeqCst);
        self.start.send(()).unwrap();
        eventually("the home starts", || {
            self.control.lives.load(Ordering::SeqCst) > lives
        });
    }

    /// In its next life the home's clock is this far ahead: it starts at what it has reserved.
    pub(crate) fn put_clock_ahead(&self, time: Duration) {
        let wall = Millis(now().wall.0 + u64::try_from(time.as_millis()).unwrap());
        let mut ceiling = Stamp::clock_of(wall);
        // As the home writes numbers: seven bits a byte.
        let mut value = Vec::new();
        while ceiling > 0x7f {
            value.push(ceiling as u8 | 0x80);
            ceiling >>= 7;
        }
        value.push(ceiling as u8);
        let mut records = self.memory.0.lock().unwrap();
        let old = records.insert((Table::Meta, b"clock".to_vec()), value);
        assert!(old.is_some(), "the home reserves its clock under this key");
    }

    /// What is written from now on is not told to be durable, until [`Village::release_disk`].
    pub(crate) fn hold_disk(&self) {
        self.control.held.store(true, Ordering::SeqCst);
    }

    /// What is written from now on is neither written nor told: it is lost when the home stops.
    pub(crate) fn lose_disk(&self) {
        self.control.losing.store(true, Ordering::SeqCst);
        self.hold_disk();
    }

    pub(crate) fn release_disk(&self) {
        self.control.held.store(false, Ordering::SeqCst);
        for command in self.control.waiting.lock().unwrap().drain(..) {
            self.home.command(command).unwrap();
        }
    }

    /// Bytes written so far and not told.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.control.waiting.lock().unwrap().is_empty()
    }

    /// Records of a kind that the home has stored.
    pub(crate) fn records(&self, table: Table) -> usize {
        let records = self.memory.0.lock().unwrap();
        records.keys().filter(|(of, _)| *of == table).count()
    }

    /// Waits until the home has nothing under way.
    pub(crate) fn eventually_quiet(&self) {
        eventually("the home is quiet", || self.home_size("pending") == 0);
    }

    /// A size of one of the home's tables.
    pub(crate) fn home_size(&self, name: &'static str) -> usize {
        let sizes = self
            .home
            .inspect(|home: &Home| home.sizes())
            .wait()
            .unwrap();
        sizes.into_iter().find(|(of, _)| *of == name).unwrap().1
    }

    /// Says that the home's store has room, or none.
    pub(crate) fn set_room(&self, room: bool) {
        self.home.command(HomeCommand::HasSpace(room)).unwrap();
    }

    /// A site below the home; its address.
    pub(crate) fn site(&self, cache_bytes: usize) -> String {
        self.site_below(&[], cache_bytes)
    }

    /// A site below this home and others of its village.
    pub(crate) fn site_below(&self, others: &[&Village], cache_bytes: usize) -> String {
        let (tell, told) = mpsc::channel();
        let mut parents = vec![self.address.clone()];
        parents.extend(others.iter().map(|home| home.address.clone()));
        let (identity, socket) = (self.identity.clone(), self.path("site.sock"));
        thread::spawn(move || in_runtime(keep_site(identity, parents, socket, cache_bytes, tell)));
        told.recv().unwrap()
    }
}

/// Waits until something is so, or fails.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let due = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < due, "it did not come to be: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn in_runtime(work: impl Future<Output = ()>) {
    thorp_net::driver::runtime().unwrap().block_on(work);
}

/// Runs the home's lives.
struct Keeper {
    identity: Identity,
    socket: PathBuf,
    memory: Memory,
    control: Arc<Control>,
    one_way: Duration,
    registrations_max: usize,
    name: String,
    id: HomeId,
    others: Vec<Address>,
}

impl Keeper {
    async fn keep(
        self,
        mut started: tokio::sync::mpsc::UnboundedReceiver<()>,
        tell: mpsc::Sender<(Handle<Home>, Address)>,
    ) {
        let node = MemberId(u128::from(self.id.0));
        let hello = peer(NodeKind::Home, node.0, &self.name);
        let mut net = net_config(NodeKind::Home);
        net.delay = LinkDelay::new(self.one_way);
        let address = Address::Unix(self.socket.clone());
        let listener = Listener::bind(&address, &self.identity, net).await.unwrap();
        let mut config = DriverConfig::new(self.identity.clone(), hello);
        config.listeners.push(listener);
        let others = self.others.iter().map(|other| vec![other.clone()]);
        config.parents = others
            .map(|other| ParentConfig::new(other).on_demand())
            .collect();
        let (mut driver, handle) = Driver::new(config);
        tell.send((handle.clone(), address)).unwrap();
        let mut world = HomeWorld {
            memory: self.memory.clone(),
            control: Arc::clone(&self.control),
            handle,
        };
        loop {
            let mut first = Outbox::new();
            let mut config = HomeConfig::new(self.id, self.name.clone(), node);
            config.registrations_max = self.registrations_max;
            let mut home = Home::open(config, &self.memory, now(), &mut first).unwrap();
            self.control.lives.fetch_add(1, Ordering::SeqCst);
            driver.run(&mut home, &mut world, first, pending()).await;
            self.control.waiting.lock().unwrap().clear();
            self.control.held.store(false, Ordering::SeqCst);
            self.control.losing.store(false, Ordering::SeqCst);
            // The village is gone.
            if started.recv().await.is_none() {
                return;
            }
            driver.forget_inputs();
        }
    }
}

struct HomeWorld {
    memory: Memory,
    control: Arc<Control>,
    handle: Handle<Home>,
}

impl World<HomeAction> for HomeWorld {
    fn note(&mut self, note: Note) {
        if note == Note::OtherHomeWanted {
            self.handle.want_parents();
        }
    }

    fn act(&mut self, action: HomeAction) {
        let command = match action {
            HomeAction::Append(batch) => {
                let input = HomeCommand::Durable(batch.mark);
                if self.control.held.load(Ordering::SeqCst) {
                    return self.control.waiting.lock().unwrap().push(self.later(batch));
                }
                self.memory.apply(batch);
                input
            }
            HomeAction::Load(page) => self.memory.load(page),
        };
        self.handle.command(command).unwrap();
    }
}

impl HomeWorld {
    fn later(&self, batch: Batch) -> HomeCommand {
        let input = HomeCommand::Durable(batch.mark);
        if !self.control.losing.load(Ordering::SeqCst) {
            self.memory.apply(batch);
        }
        input
    }
}

async fn keep_site(
    identity: Identity,
    parents: Vec<Address>,
    socket: PathBuf,
    cache_bytes: usize,
    tell: mpsc::Sender<String>,
) {
    let hello = peer(NodeKind::Redirector, 2, "valley");
    let address = Address::Unix(socket);
    let listener = Listener::bind(&address, &identity, net_config(hello.kind));
    let mut config = DriverConfig::new(identity.clone(), hello);
    config.listeners.push(listener.await.unwrap());
    let parents = parents.into_iter().map(|parent| vec![parent]);
    config.parents = parents.map(ParentConfig::new).collect();
    let (mut driver, _handle) = Driver::new(config);
    let mut config = RedirectorConfig::new(MemberId(2), "valley".to_owned());
    config.cache_bytes = cache_bytes;
    let mut site = Redirector::new(config);
    tell.send(address.to_string()).unwrap();
    driver
        .run(&mut site, &mut NoWorld, Outbox::new(), pending())
        .await;
}

fn peer(kind: NodeKind, node: u128, name: &str) -> Peer {
    Peer {
        kind,
        node: MemberId(node),
        name: name.to_owned(),
    }
}

/// An engine that keeps everything in memory.
#[derive(Default, Clone)]
struct Memory(Arc<Mutex<Records>>);

type Records = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

impl Memory {
    fn apply(&self, batch: Batch) {
        let mut records = self.0.lock().unwrap();
        for op in batch.ops {
            match op {
                Op::Put { table, key, value } => records.insert((table, key), value),
                Op::Delete { table, key } => records.remove(&(table, key)),
            };
        }
    }

    fn load(&self, page: PageId) -> HomeCommand {
        let key = page_key(page);
        let stored = self.get(Table::Pages, &key).unwrap();
        let image = stored.map(|stored| decode_page(&key, &stored).unwrap());
        let result = LoadResult::Found(image);
        HomeCommand::Loaded { page, result }
    }
}

impl Reader for Memory {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let records = self.0.lock().unwrap();
        Ok(records.get(&(table, key.to_vec())).cloned())
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError> {
        for ((of, key), value) in self.0.lock().unwrap().iter() {
            let within = &key[..] >= from && (to.is_empty() || &key[..] < to);
            if *of == table && within && visit(key, value) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }
}
