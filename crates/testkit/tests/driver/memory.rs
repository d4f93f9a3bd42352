//! A home, a site and members, with storage in memory.

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::sync::{Arc, Mutex};
use thorp_net::driver::NoWorld;
use thorp_protocol::{HomeAction, HomeCommand, MemberAction, MemberCommand};

use thorp_model::records::{decode_page, page_key};
use thorp_model::{
    HomeId, Image, MemberId, NodeKind, Note, Op, Outbox, PageId, Peer, Publish, Reader, RequestId,
    Scan, StorageError, Table,
};
use thorp_net::driver::{Driver, DriverConfig, Handle, ParentConfig, World, net_config, now};
use thorp_net::{Address, Listener};
use thorp_protocol::{
    Home, HomeConfig, LoadResult, Member, MemberConfig, Redirector, RedirectorConfig, Request,
    Response,
};
use tokio::sync::{Notify, oneshot};

use crate::common::{Village, any};

pub(crate) const HOME: HomeId = HomeId(77);

/// An engine that keeps everything in memory and is durable at once.
#[derive(Default, Clone)]
struct Memory(Arc<Mutex<Records>>);

type Records = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

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

struct HomeWorld {
    memory: Memory,
    handle: Handle<Home>,
}

impl World<HomeAction> for HomeWorld {
    fn act(&mut self, action: HomeAction) {
        let command = match action {
            HomeAction::Append(batch) => {
                let mut records = self.memory.0.lock().unwrap();
                for op in batch.ops {
                    match op {
                        Op::Put { table, key, value } => records.insert((table, key), value),
                        Op::Delete { table, key } => records.remove(&(table, key)),
                    };
                }
                HomeCommand::Durable(batch.mark)
            }
            HomeAction::Load(page) => {
                let key = page_key(page);
                let stored = self.memory.get(Table::Pages, &key).unwrap();
                let image = stored.map(|stored| decode_page(&key, &stored).unwrap());
                let result = LoadResult::Found(image);
                HomeCommand::Loaded { page, result }
            }
        };
        self.handle.command(command).unwrap();
    }
}

/// Starts a home; gives its address.
pub(crate) async fn home(village: &Village) -> (Handle<Home>, Address) {
    let hello = Peer {
        kind: NodeKind::Home,
        node: MemberId(1),
        name: "alps".to_owned(),
    };
    let listener = Listener::bind(&any(), &village.home, net_config(hello.kind)).await;
    let listener = listener.unwrap();
    let address = listener.address().clone();
    let mut config = DriverConfig::new(village.home.clone(), hello);
    config.listeners.push(listener);
    let (mut driver, handle) = Driver::new(config);
    let memory = Memory::default();
    let mut first = Outbox::new();
    let config = HomeConfig::new(HOME, "alps".to_owned(), MemberId(1));
    let mut core = Home::open(config, &memory, now(), &mut first).unwrap();
    let mut world = HomeWorld {
        memory,
        handle: handle.clone(),
    };
    tokio::spawn(async move { driver.run(&mut core, &mut world, first, pending()).await });
    (handle, address)
}

/// Starts a site below a parent; gives its address.
pub(crate) async fn site(
    village: &Village,
    parent: &Address,
    cache_bytes: usize,
) -> (Handle<Redirector>, Address) {
    let hello = Peer {
        kind: NodeKind::Redirector,
        node: MemberId(2),
        name: "valley".to_owned(),
    };
    let listener = Listener::bind(&any(), &village.home, net_config(hello.kind)).await;
    let listener = listener.unwrap();
    let address = listener.address().clone();
    let mut config = DriverConfig::new(village.member.clone(), hello);
    config.listeners.push(listener);
    let parent = ParentConfig::new(vec![parent.clone()]).named("alps");
    config.parents.push(parent);
    let (mut driver, handle) = Driver::new(config);
    let mut config = RedirectorConfig::new(MemberId(2), "valley".to_owned());
    config.cache_bytes = cache_bytes;
    let mut core = Redirector::new(config);
    tokio::spawn(async move {
        driver
            .run(&mut core, &mut NoWorld, Outbox::new(), pending())
            .await
    });
    (handle, address)
}

/// What a program has of its member.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) handle: Handle<Member>,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    last: u64,
    waiting: HashMap<RequestId, oneshot::Sender<Response>>,
    pages: HashMap<PageId, Image>,
    streams: u64,
    position: u64,
}

struct MemberWorld(Arc<Seen>);

impl World<MemberAction> for MemberWorld {
    fn act(&mut self, action: MemberAction) {
        let mut state = self.0.state.lock().unwrap();
        match action {
            MemberAction::Respond(ticket, answer) => {
                if let Some(waiting) = state.waiting.remove(&ticket) {
                    let _ = waiting.send(answer);
                }
            }
            MemberAction::Publish(publish) => state.publish(publish),
            // It asks for nothing ahead.
            MemberAction::Hint(_) | MemberAction::Joined(_) => {}
        }
        self.0.changed.notify_waiters();
    }

    fn note(&mut self, note: Note) {
        if note == Note::StreamBegan {
            self.0.state.lock().unwrap().streams += 1;
            self.0.changed.notify_waiters();
        }
    }
}

impl State {
    fn publish(&mut self, publish: Publish) {
        for (page, image) in publish.images {
            match image {
                Some(image) => self.pages.insert(page, image),
                None => self.pages.remove(&page),
            };
        }
        self.position = publish.position.0;
    }
}

/// Starts a member below a parent, and waits until its stream has begun.
pub(crate) async fn member(village: &Village, parent: &Address, id: u128) -> Program {
    let hello = Peer {
        kind: NodeKind::Member,
        node: MemberId(id),
        name: format!("member-{id}"),
    };
    let mut config = DriverConfig::new(village.member.clone(), hello);
    config.parents.push(ParentConfig::new(vec![parent.clone()]));
    let (mut driver, handle) = Driver::new(config);
    let seen = Arc::<Seen>::default();
    let mut core = Member::new(MemberConfig::new(MemberId(id), format!("member-{id}")));
    let mut world = MemberWorld(Arc::clone(&seen));
    tokio::spawn(async move {
        driver
            .run(&mut core, &mut world, Outbox::new(), pending())
            .await
    });
    let program = Program { handle, seen };
    program.until(|state| state.streams > 0).await;
    program
}

impl Program {
    pub(crate) async fn ask(&self, request: Request) -> Response {
        let (answered, answer) = oneshot::channel();
        let id = {
            let mut state = self.seen.state.lock().unwrap();
            state.last += 1;
            let id = RequestId(state.last);
            state.waiting.insert(id, answered);
            id
        };
        self.handle
            .command(MemberCommand::Request { id, request })
            .unwrap();
        answer.await.unwrap()
    }

    async fn until(&self, is_so: impl Fn(&State) -> bool) {
        loop {
            let changed = self.seen.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if is_so(&self.seen.state.lock().unwrap()) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until the page in the cache is so.
    pub(crate) async fn page(&self, page: PageId, is_so: impl Fn(&Image) -> bool) -> Image {
        self.until(|state| state.pages.get(&page).is_some_and(&is_so))
            .await;
        self.cached(page).unwrap()
    }

    pub(crate) fn cached(&self, page: PageId) -> Option<Image> {
        self.seen.state.lock().unwrap().pages.get(&page).cloned()
    }

    pub(crate) fn position(&self) -> u64 {
        self.seen.state.lock().unwrap().position
    }

    /// Gives up everything that is cached.
    pub(crate) fn evict(&self, page: PageId) {
        let place = thorp_model::Place { home: HOME, page };
        self.handle
            .command(MemberCommand::Evict(vec![place]))
            .unwrap();
    }
}
