//! Servers in temporary directories.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;

use tempfile::TempDir;
use thorp_model::{HomeId, Outcome};
use thorp_net::{Address, Identity, NodeRole, issue};
use thorp_server::{HomeConfigFile, HomeServer, ServerError, SiteConfigFile, SiteServer};
use thorp_testing::MemberNode;
use tokio::sync::oneshot;
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
        self.site_config_of("valley", parent)
    }

    /// Each site has its name, data and socket for itself.
    pub fn site_config_of(&self, name: &str, parent: &Address) -> SiteConfigFile {
        let parent = format!("[[parent]]\nname = \"alps\"\naddresses = [\"{parent}\"]");
        let mut config = SiteConfigFile::parse(&parent).unwrap();
        config.name = Some(name.to_owned());
        config.data_dir = Some(self.dir.path().join(name));
        config.authority_dir = Some(self.authority());
        config.listen = vec![Address::Unix(self.dir.path().join(format!("{name}.sock")))];
        config.http = Some("127.0.0.1:0".parse().unwrap());
        config
    }

    fn authority(&self) -> PathBuf {
        self.dir.path().join("home/authority")
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
        self.site_with(&self.site_config(parent)).await
    }

    pub async fn site_with(&self, config: &SiteConfigFile) -> Running<()> {
        let server = SiteServer::start(config).await.unwrap();
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

    /// A member without the client library, below a home or a site.
    pub async fn member(&self, parent: &Address, home: HomeId, id: u64) -> MemberNode {
        let identity = self.identity("anna");
        MemberNode::start_here(identity, parent, home, id).await
    }

    /// An ordinary identity of this name.
    pub fn identity(&self, name: &str) -> Identity {
        self.identity_as(NodeRole::Member, name)
    }

    /// An identity of this name and role.
    pub fn identity_as(&self, role: NodeRole, name: &str) -> Identity {
        let dir = self.dir.path().join(format!("{}-{name}", role.as_str()));
        issue(self.authority(), dir, role, name).unwrap()
    }
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
