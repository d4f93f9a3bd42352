//! The authority of a village, and the directory in which everything of it is.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use thorp_model::HomeId;
use thorp_net::{
    Address, CertificateAuthority, Grant, HomeIdOf, Identity, NodeRole, issue, issue_with_site,
};

/// Nodes under one authority: their certificates and a directory, which goes when the last node has gone.
#[derive(Clone, Debug)]
pub struct Village(Arc<Authority>);

#[derive(Debug)]
struct Authority {
    dir: TempDir,
    home: Identity,
    member: Identity,
    /// How many nodes have drawn an id.
    nodes: AtomicU64,
}

impl Default for Village {
    fn default() -> Self {
        Self::new()
    }
}

impl Village {
    /// A village with a new authority, which lets in who has one of its identities.
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        let home =
            Identity::open_or_create(at("identity"), at("authority"), ("alps", HOME)).unwrap();
        let (member, _) = issue_with_site(at("authority"), at("member"), "anna").unwrap();
        let nodes = AtomicU64::default();
        Self(Arc::new(Authority {
            dir,
            home,
            member,
            nodes,
        }))
    }

    /// The identity of the home `alps`, with the id 7. It is in the directory `identity`.
    pub fn identity(&self) -> Identity {
        self.0.home.clone()
    }

    /// The identity of the member `anna`, who may carry a redirector. It is in the directory `member`.
    pub fn member_identity(&self) -> Identity {
        self.0.member.clone()
    }

    /// The identity of a home, whose certificate names its id (rule R1). The home `alps` has the id 7 until a test wants
    /// another one.
    pub fn home_identity(&self, name: &str, id: HomeId) -> Identity {
        let own = self.identity();
        if (own.name(), own.certified().home()) == (name, Some(id)) {
            return own;
        }
        let grant = Grant {
            home_id: HomeIdOf::Store(id),
            ..Grant::new(NodeRole::Home, name)
        };
        // A home's name belongs to its key, and the key to its directory.
        let dir = match own.name() == name {
            true => self.path("identity"),
            false => self.path(&format!("home-{name}")),
        };
        let authority = CertificateAuthority::open(self.path("authority")).unwrap();
        authority.issue(&grant, dir).unwrap()
    }

    /// The identity of a node: the first home's if it is `alps`, or else one that the authority issues.
    pub fn identity_of(&self, role: NodeRole, name: &str) -> Identity {
        let own = self.identity();
        if (own.role(), own.name()) == (role, name) {
            return own;
        }
        let dir = self.path(&format!("{role}-{name}"));
        issue(self.path("authority"), dir, role, name).unwrap()
    }

    /// The directory of both identities of a member that carries a redirector.
    pub fn carrier(&self, name: &str) -> PathBuf {
        let dir = self.path(&format!("carrier-{name}"));
        issue_with_site(self.path("authority"), &dir, name).unwrap();
        dir
    }

    /// 64 bits for the process id of a node, which no other node of the village has. A test that picks ids itself picks
    /// small numbers.
    pub(crate) fn fresh_id(&self) -> u64 {
        let drawn = self.0.nodes.fetch_add(1, Ordering::Relaxed);
        (1 << 32) + drawn
    }

    /// A path in the village's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.dir.path().join(name)
    }

    /// The address of a socket in the village's directory.
    pub fn socket(&self, name: &str) -> Address {
        Address::Unix(self.path(&format!("{name}.sock")))
    }
}

/// Any free port of this machine.
pub fn loopback() -> Address {
    Address::Tcp {
        host: "127.0.0.1".to_owned(),
        port: 0,
    }
}

/// The first home's id.
const HOME: HomeId = HomeId(7);
