//! The authority of a village, and the directory in which everything of it is.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use thorp_model::{MemberId, NodeKind, Peer};
use thorp_net::{Address, Identity, issue};

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
        let home = Identity::open_or_create(at("identity"), "alps").unwrap();
        let member = issue(at("identity"), at("member"), "anna").unwrap();
        let nodes = AtomicU64::default();
        Self(Arc::new(Authority {
            dir,
            home,
            member,
            nodes,
        }))
    }

    /// The authority's own identity, that of the home `alps`. It is in the directory `identity`.
    pub fn identity(&self) -> Identity {
        self.0.home.clone()
    }

    /// An identity that the authority has given to a member.
    pub fn member_identity(&self) -> Identity {
        self.0.member.clone()
    }

    /// The identity of a node with this name: the authority's own if it has the name, or else one that the authority
    /// issues.
    pub(crate) fn identity_of(&self, name: &str) -> Identity {
        let own = self.identity();
        if own.name() == name {
            return own;
        }
        let dir = self.path(&format!("node-{name}"));
        issue(self.path("identity"), dir, name).unwrap()
    }

    /// An id that no other node of the village has. A test that picks ids itself picks small numbers.
    pub(crate) fn fresh_node(&self) -> MemberId {
        let drawn = self.0.nodes.fetch_add(1, Ordering::Relaxed);
        MemberId((1 << 64) + u128::from(drawn))
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

/// What a node says of itself.
pub(crate) fn peer(kind: NodeKind, node: MemberId, name: &str) -> Peer {
    Peer {
        kind,
        node,
        name: name.to_owned(),
        is_operator: false,
    }
}
