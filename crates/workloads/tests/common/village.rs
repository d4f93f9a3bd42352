//! A village in one process: a home called `alps` with a store on disk, and sites below it.

use std::path::PathBuf;
use std::sync::{Mutex, mpsc};
use std::thread::{self, JoinHandle};

use tempfile::TempDir;
use thorp_client::{JoinConfig, Member, Session};
use thorp_net::{Address, Identity};
use thorp_server::{HomeConfigFile, HomeServer, ParentEntry, SiteConfigFile, SiteServer, runtime};
use thorp_workloads::objects::MemberStore;
use tokio::sync::oneshot;

/// A village, gone with the test.
pub(crate) struct Village {
    dir: TempDir,
    identity: Identity,
    home: Address,
    /// The home first.
    servers: Mutex<Vec<Server>>,
}

/// A server that runs in a thread of its own until it is told to stop.
struct Server {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Village {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().expect("a folder");
        let config = HomeConfigFile {
            name: Some("alps".to_owned()),
            data_dir: Some(dir.path().join("home")),
            listen: vec![socket(&dir, "home")],
            http: None,
            ..HomeConfigFile::default()
        };
        let (server, home) = start(async move |tell: Tell, stop| {
            let server = HomeServer::start(config).await.expect("the home starts");
            tell.send(server.addresses()[0].clone())
                .expect("the test waits");
            server.run(stop).await;
        });
        let identity = Identity::open_or_create(authority(&dir), "alps");
        Village {
            identity: identity.expect("the home has made one"),
            dir,
            home,
            servers: Mutex::new(vec![server]),
        }
    }

    /// A new site below the home.
    pub(crate) fn site(&self) -> Address {
        let mut servers = self.servers.lock().expect("nobody panicked here");
        let name = format!("site-{}", servers.len());
        let parent = ParentEntry {
            name: Some("alps".to_owned()),
            addresses: vec![self.home.clone()],
            one_way_ms: 0,
        };
        let config = SiteConfigFile {
            data_dir: Some(self.dir.path().join(&name)),
            authority_dir: Some(authority(&self.dir)),
            listen: vec![socket(&self.dir, &name)],
            http: None,
            name: Some(name),
            parent: vec![parent],
            ..SiteConfigFile::default()
        };
        let (server, address) = start(async move |tell: Tell, stop| {
            let server = SiteServer::start(&config).await.expect("the site starts");
            tell.send(server.addresses()[0].clone())
                .expect("the test waits");
            server.run(stop).await;
        });
        servers.push(server);
        address
    }

    /// A member right at the home, and a segment.
    pub(crate) fn at_home(&self, name: &str, segment: &str) -> MemberStore {
        self.at(&self.home, name, segment)
    }

    /// A member at a site, and a segment.
    pub(crate) fn at(&self, parent: &Address, name: &str, segment: &str) -> MemberStore {
        self.joined(JoinConfig::new(parent.to_string()), name, segment)
    }

    /// A member right at the home that fetches nothing ahead.
    pub(crate) fn page_by_page(&self, name: &str, segment: &str) -> MemberStore {
        let config = JoinConfig::new(self.home.to_string()).fetch_ahead(0);
        self.joined(config, name, segment)
    }

    fn joined(&self, config: JoinConfig, name: &str, segment: &str) -> MemberStore {
        let config = config.identity_of(self.identity.clone()).name(name);
        let member = Member::join(config).expect("the village takes members");
        let segment = member.open_or_create(&format!("thorp://alps/{segment}"));
        let session = Session::new().attempts_max(1_000);
        MemberStore::new(member, segment.expect("a segment"), session)
    }
}

impl Drop for Village {
    /// The folder must not go before those who write into it.
    fn drop(&mut self) {
        let servers = self
            .servers
            .get_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        for server in servers.into_iter().rev() {
            let _ = server.stop.send(());
            let _ = server.thread.join();
        }
    }
}

type Tell = mpsc::Sender<Address>;

/// Starts a server in a thread, and waits for its address.
fn start<F>(serve: F) -> (Server, Address)
where
    F: AsyncFnOnce(Tell, Stop) + Send + 'static,
{
    let (tell, told) = mpsc::channel();
    let (stop, stopped) = oneshot::channel();
    let thread = thread::spawn(move || {
        let stop: Stop = Box::pin(async { drop(stopped.await) });
        runtime().expect("a runtime").block_on(serve(tell, stop));
    });
    let address = told.recv().expect("the server starts");
    (Server { stop, thread }, address)
}

type Stop = std::pin::Pin<Box<dyn Future<Output = ()>>>;

fn authority(dir: &TempDir) -> PathBuf {
    dir.path().join("home/identity")
}

fn socket(dir: &TempDir, name: &str) -> Address {
    Address::Unix(dir.path().join(format!("{name}.sock")))
}
