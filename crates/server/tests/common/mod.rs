//! Servers in temporary directories, and members that speak the protocol without the client library.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

use std::collections::HashMap;
use std::future::pending;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use thorp_protocol::{MemberAction, MemberCommand};

use tempfile::TempDir;
use thorp_model::{
    Blob, CallError, CallRequest, CallResponse, CommitId, Content, Generation, HomeId, Image,
    MemberId, NewValue, NodeKind, Note, Outbox, Outcome, PageId, PageWrites, Part, Peer, Place,
    Position, Publish, RequestId, SegmentId, Slot, WriteOp,
};
use thorp_net::driver::{Driver, DriverConfig, Handle, ParentConfig, World};
use thorp_net::{Address, Identity, issue};
use thorp_protocol::{Member, MemberConfig, Request, Response};
use thorp_server::{HomeConfigFile, HomeServer, ServerError, SiteConfigFile, SiteServer};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// A directory with a home's things, and what was started from it.
pub struct Village {
    pub dir: TempDir,
}

/// A server that runs.
pub struct Running<T> {
    pub control: T,
    pub address: Address,
    pub http: Option<SocketAddr>,
    pub home: HomeId,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl<T> Running<T> {
    /// Shuts it down, as a signal would.
    pub async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap();
    }
}

impl Village {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir }
    }

    pub fn home_config(&self) -> HomeConfigFile {
        let mut config = HomeConfigFile {
            name: Some("alps".to_owned()),
            data_dir: Some(self.dir.path().join("home")),
            listen: vec!["127.0.0.1:0".parse().unwrap()],
            http: Some("127.0.0.1:0".parse().unwrap()),
            ..HomeConfigFile::default()
        };
        config.store.room_probe_ms = 20;
        config.store.disk_reserve = Some(thorp_server::Bytes(0));
        config
    }

    pub fn site_config(&self, parent: &Address) -> SiteConfigFile {
        let parent = format!("[[parent]]\nname = \"alps\"\naddresses = [\"{parent}\"]");
        let mut config = SiteConfigFile::parse(&parent).unwrap();
        config.name = Some("valley".to_owned());
        config.data_dir = Some(self.dir.path().join("site"));
        config.authority_dir = Some(self.authority());
        config.listen = vec![Address::Unix(self.dir.path().join("site.sock"))];
        config.http = Some("127.0.0.1:0".parse().unwrap());
        config
    }

    fn authority(&self) -> PathBuf {
        self.dir.path().join("home/identity")
    }

    pub async fn home(&self) -> Running<thorp_server::HomeControl> {
        self.home_with(self.home_config()).await.unwrap()
    }

    pub async fn home_with(
        &self,
        config: HomeConfigFile,
    ) -> Result<Running<thorp_server::HomeControl>, ServerError> {
        let server = HomeServer::start(config).await?;
        let (control, home, http) = (server.control(), server.home(), server.http_address());
        let address = server.addresses()[0].clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run(async { drop(stopped.await) }));
        Ok(Running {
            control,
            address,
            http,
            home,
            stop,
            task,
        })
    }

    pub async fn site(&self, parent: &Address) -> Running<()> {
        let server = SiteServer::start(&self.site_config(parent)).await.unwrap();
        let http = server.http_address();
        let address = server.addresses()[0].clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run(async { drop(stopped.await) }));
        Running {
            control: (),
            address,
            http,
            home: HomeId(0),
            stop,
            task,
        }
    }

    pub async fn member(&self, parent: &Address, home: HomeId, id: u128) -> Program {
        let dir = self.dir.path().join("member");
        let identity: Identity = issue(self.authority(), dir, "anna").unwrap();
        let name = format!("member-{id}");
        let hello = Peer {
            kind: NodeKind::Member,
            node: MemberId(id),
            name: name.clone(),
        };
        let mut config = DriverConfig::new(identity, hello);
        config.parents.push(ParentConfig::new(vec![parent.clone()]));
        let (mut driver, handle) = Driver::new(config);
        let seen = Arc::<Seen>::default();
        let mut core = Member::new(MemberConfig::new(MemberId(id), name));
        let mut world = MemberWorld(Arc::clone(&seen));
        tokio::spawn(async move {
            let first = Outbox::new();
            driver.run(&mut core, &mut world, first, pending()).await
        });
        let program = Program { home, handle, seen };
        program.until(|state| state.streams > 0).await;
        program
    }
}

/// What a program has of its member.
#[derive(Clone)]
pub struct Program {
    pub home: HomeId,
    pub handle: Handle<Member>,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
pub struct State {
    last: u64,
    waiting: HashMap<RequestId, oneshot::Sender<Response>>,
    pages: HashMap<PageId, Image>,
    pub streams: u64,
    position: u64,
}

struct MemberWorld(Arc<Seen>);

impl World<MemberAction> for MemberWorld {
    fn act(&mut self, action: MemberAction) {
        let mut state = self.0.state.lock().unwrap();
        match action {
            // A commit's id comes before its outcome.
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

impl Program {
    pub async fn ask(&self, request: Request) -> Response {
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
        let answer = tokio::time::timeout(Duration::from_secs(20), answer);
        answer.await.expect("an answer in 20 s").unwrap()
    }

    pub async fn until(&self, is_so: impl Fn(&State) -> bool) {
        let waiting = async {
            loop {
                let changed = self.seen.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if is_so(&self.seen.state.lock().unwrap()) {
                    return;
                }
                changed.await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), waiting);
        waited.await.expect("it is so within 20 s");
    }

    pub fn streams(&self) -> u64 {
        self.seen.state.lock().unwrap().streams
    }

    pub async fn call(&self, request: CallRequest) -> Result<CallResponse, CallError> {
        let home = self.home;
        match self.ask(Request::Call { home, request }).await {
            Response::Called(result) => result,
            other => panic!("{other:?}"),
        }
    }

    pub async fn open(&self, path: &str) -> SegmentId {
        let path = path.to_owned();
        let request = CallRequest::Open { path, create: true };
        match self.call(request).await {
            Ok(CallResponse::Segment(info)) => info.id,
            other => panic!("{other:?}"),
        }
    }

    pub async fn fresh_page(&self, segment: SegmentId) -> PageId {
        match self.call(CallRequest::Reserve { segment }).await {
            Ok(CallResponse::Extent { first, .. }) => PageId {
                segment,
                page: first,
            },
            other => panic!("{other:?}"),
        }
    }

    pub async fn fetch(&self, page: PageId) -> Image {
        let home = self.home;
        let place = Place { home, page };
        assert_eq!(self.ask(Request::Fetch(place)).await, Response::Fetched);
        self.cached(page).unwrap()
    }

    pub async fn commit(&self, page: PageId, slot: u16, op: WriteOp) -> (CommitId, Outcome) {
        self.commit_all(page, vec![(Slot(slot), op)]).await
    }

    pub async fn commit_all(
        &self,
        page: PageId,
        slots: Vec<(Slot, WriteOp)>,
    ) -> (CommitId, Outcome) {
        let writes = PageWrites { page, slots };
        let evidence = Position(self.seen.state.lock().unwrap().position);
        let part = Part {
            home: self.home,
            evidence,
            reads: vec![],
            writes: vec![writes],
        };
        let ask = Request::Commit {
            parts: vec![part],
            depends_on: vec![],
            after: thorp_model::Stamp::default(),
            early: false,
        };
        match self.ask(ask).await {
            Response::Outcome(id, outcome, _) => (id, outcome),
            other => panic!("{other:?}"),
        }
    }

    pub fn cached(&self, page: PageId) -> Option<Image> {
        self.seen.state.lock().unwrap().pages.get(&page).cloned()
    }

    /// Waits until the page in the cache holds this.
    pub async fn sees(&self, page: PageId, slot: u16, text: &str) {
        self.until(|state| {
            let image = state.pages.get(&page);
            image.is_some_and(|image| holds(image, slot, text.as_bytes()))
        })
        .await;
    }

    pub async fn evict(&self, page: PageId) {
        let home = self.home;
        let places = vec![Place { home, page }];
        self.handle.command(MemberCommand::Evict(places)).unwrap();
        self.until(|state| !state.pages.contains_key(&page)).await;
    }
}

pub fn create(bytes: &[u8]) -> WriteOp {
    WriteOp::Create {
        generation: Generation(1),
        value: NewValue::Inline(Blob::from(bytes)),
    }
}

pub fn holds(image: &Image, slot: u16, expected: &[u8]) -> bool {
    matches!(image.content(Slot(slot)), Content::Value(bytes) if bytes == expected)
}

pub fn is_committed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Committed { .. })
}

/// Status code and body.
pub async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let asking = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, body.to_owned())
    };
    tokio::task::spawn_blocking(asking).await.unwrap()
}
