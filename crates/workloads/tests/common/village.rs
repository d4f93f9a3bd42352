//! A village in one process: a home called `alps` that keeps everything in memory, and sites below it.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use tempfile::TempDir;
use thorp_client::{JoinConfig, Member, Session};
use thorp_core::door::{Effect, Input, LoadResult, Out};
use thorp_core::home::{Home, HomeConfig, decode_page, page_key};
use thorp_core::ids::{HomeId, MemberId, NodeKind, PageId, Peer};
use thorp_core::redirector::{Redirector, RedirectorConfig};
use thorp_core::storage::{Batch, Op, Reader, Scan, StorageError, Table};
use thorp_net::driver::{
    Driver, DriverConfig, Handle, ParentConfig, World, net_config, now, runtime,
};
use thorp_net::{Address, Identity, Listener};
use thorp_workloads::objects::MemberStore;

/// A village, gone with the test.
pub(crate) struct Village {
    dir: TempDir,
    identity: Identity,
    home: Address,
    sites: AtomicU32,
}

impl Village {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().expect("a folder");
        let identity = dir.path().join("identity");
        let identity = Identity::open_or_create(identity, "alps").expect("an identity");
        let home = Address::Unix(dir.path().join("home.sock"));
        let (tell, told) = mpsc::channel();
        let (address, whose) = (home.clone(), identity.clone());
        thread::spawn(move || in_runtime(keep_home(whose, address, tell)));
        told.recv().expect("the home starts");
        Village {
            dir,
            identity,
            home,
            sites: AtomicU32::new(0),
        }
    }

    /// A new site below the home.
    pub(crate) fn site(&self) -> Address {
        let number = self.sites.fetch_add(1, Ordering::SeqCst) + 1;
        let address = Address::Unix(self.dir.path().join(format!("site-{number}.sock")));
        let (tell, told) = mpsc::channel();
        let (identity, parent) = (self.identity.clone(), self.home.clone());
        let own = address.clone();
        thread::spawn(move || in_runtime(keep_site(identity, parent, own, number, tell)));
        told.recv().expect("the site starts");
        address
    }

    /// A member right at the home, and a segment.
    pub(crate) fn at_home(&self, name: &str, segment: &str) -> MemberStore {
        self.at(&self.home, name, segment)
    }

    /// A member at a site, and a segment.
    pub(crate) fn at(&self, parent: &Address, name: &str, segment: &str) -> MemberStore {
        let config = JoinConfig::new(parent.to_string());
        let config = config.identity_of(self.identity.clone()).name(name);
        let member = Member::join(config).expect("the village takes members");
        let segment = member.open_or_create(&format!("thorp://alps/{segment}"));
        let session = Session::new().attempts_max(1_000);
        MemberStore::new(member, segment.expect("a segment"), session)
    }
}

fn in_runtime(work: impl Future<Output = ()>) {
    runtime().expect("a runtime").block_on(work);
}

async fn keep_home(identity: Identity, address: Address, tell: mpsc::Sender<()>) {
    let hello = peer(NodeKind::Home, 1, "alps");
    let listener = Listener::bind(&address, &identity, net_config(hello.kind));
    let mut config = DriverConfig::new(identity.clone(), hello);
    config.listeners.push(listener.await.expect("a socket"));
    let (mut driver, handle) = Driver::new(config);
    let memory = Memory::default();
    let mut world = HomeWorld {
        memory: memory.clone(),
        handle,
    };
    let mut first = Out::new();
    let config = HomeConfig::new(HomeId(0x5eed_cafe), "alps".to_owned(), MemberId(1));
    let mut home = Home::open(config, &memory, now(), &mut first).expect("an empty home");
    // Who is gone meanwhile does not need the home.
    let _ = tell.send(());
    driver.run(&mut home, &mut world, first, pending()).await;
}

async fn keep_site(
    identity: Identity,
    parent: Address,
    address: Address,
    number: u32,
    tell: mpsc::Sender<()>,
) {
    let name = format!("site-{number}");
    let node = 100 + u128::from(number);
    let hello = peer(NodeKind::Redirector, node, &name);
    let listener = Listener::bind(&address, &identity, net_config(hello.kind));
    let mut config = DriverConfig::new(identity.clone(), hello);
    config.listeners.push(listener.await.expect("a socket"));
    config.parents.push(ParentConfig::new(vec![parent]));
    let (mut driver, _handle) = Driver::new(config);
    let mut site = Redirector::new(RedirectorConfig::new(MemberId(node), name));
    let _ = tell.send(());
    driver
        .run(&mut site, &mut NoWorld, Out::new(), pending())
        .await;
}

fn peer(kind: NodeKind, node: u128, name: &str) -> Peer {
    Peer {
        kind,
        node: MemberId(node),
        name: name.to_owned(),
    }
}

struct HomeWorld {
    memory: Memory,
    handle: Handle<Home>,
}

impl World for HomeWorld {
    fn effect(&mut self, effect: Effect) {
        let input = match effect {
            Effect::Append(batch) => {
                let mark = batch.mark;
                self.memory.apply(batch);
                Input::Durable(mark)
            }
            Effect::Load(page) => self.memory.load(page),
            other => panic!("a home has no use for {other:?}"),
        };
        // A home that stops takes no more.
        let _ = self.handle.input(input);
    }
}

/// A redirector needs nothing but its edges.
struct NoWorld;

impl World for NoWorld {
    fn effect(&mut self, effect: Effect) {
        panic!("a redirector has no use for {effect:?}");
    }
}

/// An engine that keeps everything in memory.
#[derive(Default, Clone)]
struct Memory(Arc<Mutex<Records>>);

type Records = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

impl Memory {
    fn apply(&self, batch: Batch) {
        let mut records = self.0.lock().expect("nobody panicked here");
        for op in batch.ops {
            match op {
                Op::Put { table, key, value } => records.insert((table, key), value),
                Op::Delete { table, key } => records.remove(&(table, key)),
            };
        }
    }

    fn load(&self, page: PageId) -> Input {
        let key = page_key(page);
        let stored = self.get(Table::Pages, &key).expect("memory can be read");
        let image =
            stored.map(|stored| decode_page(&key, &stored).expect("a page as it was written"));
        Input::Loaded {
            page,
            result: LoadResult::Found(image),
        }
    }
}

impl Reader for Memory {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let records = self.0.lock().expect("nobody panicked here");
        Ok(records.get(&(table, key.to_vec())).cloned())
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError> {
        let records = self.0.lock().expect("nobody panicked here");
        for ((_, key), value) in records.range((table, from.to_vec())..) {
            let within = to.is_empty() || &key[..] < to;
            if !within || visit(key, value) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }
}
