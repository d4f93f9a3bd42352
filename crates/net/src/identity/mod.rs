//! Who a node is: its certificate, its key, and the authority of its village.
//!
//! A node's directory has `authority.pem`, `node.pem` and `node.key`. The authority has a directory of its own, with
//! `authority.pem`, `authority.key` and `issued`, the register: no running node needs it. Keys are readable by their
//! owner only. A certificate names one role and one node: the site `office` has the URI name `thorp:site/office` in it, and
//! the home `alps` also its id, `thorp:home/alps?id=0000002a` (rule R1). A name may have several labels (`alps.north`).

mod certificates;
mod certified;
mod error;
mod files;
mod issuing;
mod moving;
mod register;
mod trust;
mod validity;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ServerConfig};
use thorp_model::{HomeId, Peer};

pub use certified::{CertifiedName, NodeRole};
pub use error::IdentityError;
pub use issuing::{
    CertificateAuthority, Grant, HomeIdOf, IssuedCertificate, issue, issue_with_site,
    may_hold_identity, site_dir,
};
pub use validity::{OutOfTime, Validity};

use crate::tls;
use files::{AUTHORITY_CERTIFICATE, NODE_CERTIFICATE, NODE_KEY};
use issuing::subject;

/// A node's identity, ready for use. Cheap to clone; clones share TLS's memory of past connections, which makes coming back
/// quicker.
#[derive(Clone)]
pub struct Identity {
    inner: Arc<Inner>,
}

struct Inner {
    certified: CertifiedName,
    validity: Validity,
    village: String,
    trust: Arc<Trust>,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Identity {
    /// Loads the identity of a home in `dir`, making what is missing: the directory, the certificate of the home called
    /// `name`, with the id `home`, and an authority in `authority_dir` that issues it. Safe against another process doing the same, and
    /// against a crash on the way.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]; among others if the directory belongs to another node, or there is no node's certificate yet and
    /// an authority's certificate without its key.
    pub fn open_or_create(
        dir: impl AsRef<Path>,
        authority_dir: impl AsRef<Path>,
        (name, home): (&str, HomeId),
    ) -> Result<Self, IdentityError> {
        let dir = dir.as_ref();
        let home = subject(NodeRole::Home, name)?.with_home(Some(home));
        // A home that has its certificate needs no authority.
        if !files::exists(&dir.join(NODE_CERTIFICATE))? {
            let authority = CertificateAuthority::init(authority_dir)?;
            authority.put(&[(dir, home.clone())], (false, None))?;
        }
        Self::load_as(dir, home)
    }

    /// Loads the identity in `dir`, checking that its parts belong together.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]: a file unreadable or malformed, the key of another certificate, a certificate of another village
    /// or out of its time.
    pub fn load(dir: impl AsRef<Path>) -> Result<Self, IdentityError> {
        let dir = dir.as_ref();
        let authority_path = dir.join(AUTHORITY_CERTIFICATE);
        let authority = files::read_certificate(&authority_path)?;
        let trust = Trust::new(&[authority]).map_err(|error| IdentityError::Malformed {
            path: authority_path.clone(),
            why: error.to_string(),
        })?;
        let path = dir.join(NODE_CERTIFICATE);
        let certificate = files::read_certificate(&path)?;
        let certified = certified_in(&certificate, &path)?;
        let signed = trust.check_signed(&certificate, &[]);
        let validity = signed
            .map_err(|error| IdentityError::from_verification(&path, &authority_path, error))?;
        validity
            .check(validity::now())
            .map_err(|times| IdentityError::OutOfTime {
                certificate: path,
                times,
            })?;
        Self::join(certified, trust, certificate, dir)
    }

    /// As [`Identity::load`], of one node and no other.
    ///
    /// # Errors
    ///
    /// As [`Identity::load`]; [`IdentityError::OtherNode`].
    pub fn load_of(
        dir: impl AsRef<Path>,
        role: NodeRole,
        name: &str,
    ) -> Result<Self, IdentityError> {
        Self::load_as(dir.as_ref(), subject(role, name)?)
    }

    fn load_as(dir: &Path, wanted: CertifiedName) -> Result<Self, IdentityError> {
        let identity = Self::load(dir)?;
        if !identity.inner.certified.is_same_node(&wanted) {
            return Err(IdentityError::OtherNode {
                dir: dir.to_owned(),
                wanted,
                found: identity.inner.certified.clone(),
            });
        }
        Ok(identity)
    }

    /// The node's role and name, as in its certificate.
    pub fn certified(&self) -> &CertifiedName {
        &self.inner.certified
    }

    /// When its certificate is good.
    pub fn validity(&self) -> Validity {
        self.inner.validity
    }

    /// Whether less than a third of the certificate's life is left: then the node needs a new one.
    pub fn is_aging(&self) -> bool {
        self.validity().is_aging(validity::now())
    }

    /// The node's name, as in its certificate.
    pub fn name(&self) -> &str {
        self.inner.certified.name()
    }

    /// The node's role, as in its certificate.
    pub fn role(&self) -> NodeRole {
        self.inner.certified.role()
    }

    /// How the node greets in one process start, for which it has drawn 64 random bits.
    pub fn greeting(&self, random: u64) -> Peer {
        self.inner.certified.greeting(random)
    }

    /// The village, as 16 hexadecimal digits that come from its authority's public key.
    pub fn village(&self) -> &str {
        &self.inner.village
    }

    /// What it accepts of a peer.
    pub(crate) fn trust(&self) -> &Trust {
        &self.inner.trust
    }

    pub(crate) fn client(&self) -> &Arc<ClientConfig> {
        &self.inner.client
    }

    pub(crate) fn server(&self) -> &Arc<ServerConfig> {
        &self.inner.server
    }

    fn join(
        certified: CertifiedName,
        trust: Trust,
        certificate: CertificateDer<'static>,
        dir: &Path,
    ) -> Result<Self, IdentityError> {
        let key_path = dir.join(NODE_KEY);
        let mismatch =
            |error| IdentityError::from_key(&key_path, &dir.join(NODE_CERTIFICATE), error);
        let trust = Arc::new(trust);
        let certificate_path = dir.join(NODE_CERTIFICATE);
        let validity = Validity::of(&certificate).map_err(|error| IdentityError::Malformed {
            path: certificate_path,
            why: error.to_string(),
        })?;
        let client = tls::client_config(
            Arc::clone(&trust),
            certificate.clone(),
            files::read_private_key(&key_path)?,
        )
        .map_err(mismatch)?;
        let server = tls::server_config(
            Arc::clone(&trust),
            certificate,
            files::read_private_key(&key_path)?,
        )
        .map_err(mismatch)?;
        let village = village_at(&dir.join(AUTHORITY_CERTIFICATE))?;
        Ok(Self {
            inner: Arc::new(Inner {
                certified,
                validity,
                village,
                trust,
                client,
                server,
            }),
        })
    }
}

fn village_at(path: &Path) -> Result<String, IdentityError> {
    certificates::village_of(&files::read_certificate(path)?).map_err(|error| {
        IdentityError::Malformed {
            path: path.to_owned(),
            why: error.to_string(),
        }
    })
}

fn certified_at(path: &Path) -> Result<CertifiedName, IdentityError> {
    certified_in(&files::read_certificate(path)?, path)
}

fn certified_in(
    certificate: &CertificateDer<'_>,
    path: &Path,
) -> Result<CertifiedName, IdentityError> {
    let certified = CertifiedName::of(certificate);
    let certified = certified.map_err(|error| IdentityError::Malformed {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    let certificate = path.to_owned();
    certified.map_err(|fault| match fault {
        NameFault::NoRole => IdentityError::NoRole { certificate },
        NameFault::NoHomeId => IdentityError::NoHomeId { certificate },
    })
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("node", self.certified())
            .field("village", &self.village())
            .finish_non_exhaustive()
    }
}

pub(crate) use certified::NameFault;
pub(crate) use error::{NEW_CERTIFICATE, RENEWED, WITH_HOME_ID};
pub(crate) use trust::{Standing, Trust};

#[cfg(test)]
pub(crate) mod tests;
