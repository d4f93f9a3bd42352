//! The authority of a village, and the directory in which everything of the village is.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use thorp_model::HomeId;
use thorp_net::{
    Address, CertificateAuthority, Grant, HomeIdOf, Identity, NodeRole, issue, issue_with_site,
};

/// What the nodes of a village share: an authority with their certificates, and a directory with their sockets. It goes
/// when the last node has gone. Clones are the same authority.
#[derive(Clone, Debug)]
pub struct Authority(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    dir: TempDir,
    home: Identity,
    member: Identity,
    /// How many numbers were drawn, for ids and for names of sockets.
    drawn: AtomicU64,
    /// The homes but `alps`, in the order in which their ids were given.
    homes: Mutex<Vec<String>>,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new authority, in a temporary directory. Its nodes let in who has one of its identities.
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        let home =
            Identity::open_or_create(at("identity"), at("authority"), (HOME_NAME, HOME)).unwrap();
        let (member, _) = issue_with_site(at("authority"), at("member"), "anna").unwrap();
        Self(Arc::new(Shared {
            dir,
            home,
            member,
            drawn: AtomicU64::default(),
            homes: Mutex::default(),
        }))
    }

    /// The directory of a member's certificate and key, as `thorp invite NAME --with-site` makes one. Programs give it to
    /// `JoinConfig::identity`, or find it in `THORP_IDENTITY`. The same name gives the same directory.
    ///
    /// # Panics
    ///
    /// Another node of the village has the name, or it is none for a member.
    pub fn member(&self, name: &str) -> PathBuf {
        if name == self.0.member.name() {
            return self.path("member");
        }
        let dir = self.path(&format!("member-{name}"));
        issue_with_site(self.path("authority"), &dir, name).unwrap();
        dir
    }

    /// The id of a home that gets no other: the same each time that the home is started.
    pub(crate) fn home_id(&self, name: &str) -> HomeId {
        if name == self.0.home.name() {
            return HOME;
        }
        let mut homes = self.0.homes.lock().unwrap();
        let index = homes.iter().position(|home| home == name);
        let index = index.unwrap_or_else(|| {
            homes.push(name.to_owned());
            homes.len() - 1
        });
        HomeId(HOME.0 + 1 + u32::try_from(index).unwrap())
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

    /// The identity of a node, the same as by [`home_identity`](Authority::home_identity) and
    /// [`member`](Authority::member). A home without an id of its own gets the next one.
    ///
    /// # Panics
    ///
    /// A node of another role has the name, or it is none for a node.
    pub fn identity_of(&self, role: NodeRole, name: &str) -> Identity {
        match role {
            NodeRole::Home => self.home_identity(name, self.home_id(name)),
            NodeRole::Member => Identity::load(self.member(name)).unwrap(),
            NodeRole::Site | NodeRole::Operator | NodeRole::Authority => {
                let dir = self.path(&format!("{role}-{name}"));
                issue(self.path("authority"), dir, role, name).unwrap()
            }
        }
    }

    /// 64 bits for the process id of a node, which no other node of the village has. A test that picks ids itself picks
    /// small numbers.
    pub(crate) fn fresh_id(&self) -> u64 {
        (1 << 32) + self.fresh_number()
    }

    /// A number that nobody else in the village has drawn.
    pub(crate) fn fresh_number(&self) -> u64 {
        self.0.drawn.fetch_add(1, Ordering::Relaxed)
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

/// The first home's name.
pub(crate) const HOME_NAME: &str = "alps";
/// The first home's id.
pub(crate) const HOME: HomeId = HomeId(7);

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_net::site_dir;

    #[test]
    fn the_identity_of_a_node_is_that_of_its_role() {
        let village = Authority::new();
        let anna = village.identity_of(NodeRole::Member, "anna");
        let same = village.member_identity();
        assert_eq!(anna.certified(), same.certified());
        // However it is made first, a member has a second identity beside it.
        let bob = village.identity_of(NodeRole::Member, "bob");
        assert_eq!(bob.name(), "bob");
        let dir = village.member("bob");
        assert!(Identity::load(site_dir(&dir)).is_ok());
        assert_eq!(Identity::load(&dir).unwrap().certified(), bob.certified());
        let alps = village.identity_of(NodeRole::Home, "alps");
        assert_eq!(alps.certified().home(), Some(HOME));
        let dale = village.identity_of(NodeRole::Home, "dale");
        let id = village.home_id("dale");
        assert_eq!(dale.certified().home(), Some(id));
        let again = village.home_identity("dale", id);
        assert_eq!(again.certified(), dale.certified());
        let site = village.identity_of(NodeRole::Site, "valley");
        assert_eq!((site.role(), site.name()), (NodeRole::Site, "valley"));
    }
}
