//! Who a node is: its certificate, its key, and the authority of its village.
//!
//! In a directory: `authority.pem` and `authority.key` (the latter only where new nodes are let in), `node.pem` and
//! `node.key`. Keys are readable by their owner only. A node called `alps` has `alps.thorp` in its certificate. A name may have
//! several labels, so a home and a site of one name can be told apart (`alps.home`, `alps.site`).

mod certificates;
mod error;
mod files;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

pub use error::IdentityError;

use crate::tls;
use certificates::{Authority, Validity};
use files::{AUTHORITY_CERTIFICATE, NODE_CERTIFICATE, NODE_KEY};

/// A node's identity, ready for use. Cheap to clone; clones share TLS's memory of past connections, which makes coming back
/// quicker.
#[derive(Clone)]
pub struct Identity {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    village: String,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Identity {
    /// Loads the identity in `dir`, making what is missing: the directory, an authority (if there is none) and the
    /// certificate of a node called `name`. Safe against another process doing the same, and against a crash on the way.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]; among others if the directory belongs to a node of another name, or has an authority's
    /// certificate without its key and no node's certificate yet.
    pub fn open_or_create(dir: impl AsRef<Path>, name: &str) -> Result<Self, IdentityError> {
        let dir = dir.as_ref();
        let name = certificates::check_name(name)?;
        files::make_dir(dir)?;
        // A node that was let in has no authority's key and needs none.
        if !files::exists(&dir.join(NODE_CERTIFICATE))? {
            let authority = Authority::open_or_create(dir)?;
            make_node(&authority, dir, &name)?;
        }
        load_named(dir, name)
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
        let roots = tls::roots(&authority).map_err(|error| IdentityError::Malformed {
            path: authority_path.clone(),
            why: error.to_string(),
        })?;
        let path = dir.join(NODE_CERTIFICATE);
        let certificate = files::read_certificate(&path)?;
        let names =
            certificates::node_names(&certificate).map_err(|error| IdentityError::Malformed {
                path: path.clone(),
                why: error.to_string(),
            })?;
        let Some(name) = names.into_iter().next() else {
            return Err(IdentityError::Malformed {
                path,
                why: "it names no node".to_owned(),
            });
        };
        tls::verify(
            &certificate,
            &[],
            &roots,
            rustls::pki_types::UnixTime::now(),
        )
        .map_err(|error| IdentityError::from_verification(&path, &authority_path, error))?;
        Self::join(name, roots, certificate, dir)
    }

    /// Whether others can be let in from `dir`: it has the key of the village's authority.
    pub fn may_invite(dir: impl AsRef<Path>) -> bool {
        dir.as_ref().join(files::AUTHORITY_KEY).exists()
    }

    /// The node's name, as in its certificate.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The village, as 16 hexadecimal digits that come from its authority's public key.
    pub fn village(&self) -> &str {
        &self.inner.village
    }

    pub(crate) fn client(&self) -> &Arc<ClientConfig> {
        &self.inner.client
    }

    pub(crate) fn server(&self) -> &Arc<ServerConfig> {
        &self.inner.server
    }

    fn join(
        name: String,
        roots: Arc<RootCertStore>,
        certificate: CertificateDer<'static>,
        dir: &Path,
    ) -> Result<Self, IdentityError> {
        let key_path = dir.join(NODE_KEY);
        let mismatch =
            |error| IdentityError::from_key(&key_path, &dir.join(NODE_CERTIFICATE), error);
        let client = tls::client_config(
            Arc::clone(&roots),
            certificate.clone(),
            files::read_private_key(&key_path)?,
        )
        .map_err(mismatch)?;
        let server = tls::server_config(roots, certificate, files::read_private_key(&key_path)?)
            .map_err(mismatch)?;
        let village = village_at(&dir.join(AUTHORITY_CERTIFICATE))?;
        Ok(Self {
            inner: Arc::new(Inner {
                name,
                village,
                client,
                server,
            }),
        })
    }
}

/// Makes an identity for another node of the village: `out_dir` gets `authority.pem`, `node.pem` and `node.key`, to be
/// carried to the node's machine and opened there with [`Identity::load`]. `authority_dir` must hold the authority's
/// certificate and key. Doing it again for the same name changes nothing.
///
/// # Errors
///
/// [`IdentityError`]; among others if `out_dir` already belongs to another name or village.
pub fn issue(
    authority_dir: impl AsRef<Path>,
    out_dir: impl AsRef<Path>,
    name: &str,
) -> Result<Identity, IdentityError> {
    let (authority_dir, out_dir) = (authority_dir.as_ref(), out_dir.as_ref());
    let name = certificates::check_name(name)?;
    let authority = Authority::load(authority_dir)?;
    files::make_dir(out_dir)?;
    let out_authority = out_dir.join(AUTHORITY_CERTIFICATE);
    files::publish_or_keep(&out_authority, authority.pem().as_bytes(), files::PUBLIC)?;
    // Before anything of ours lands next to what may be another village's.
    if village_at(&out_authority)? != authority.village() {
        let authority = authority_dir.join(AUTHORITY_CERTIFICATE);
        return Err(IdentityError::OtherVillage {
            certificate: out_authority,
            authority,
        });
    }
    make_node(&authority, out_dir, &name)?;
    load_named(out_dir, name)
}

/// Whether an identity may be put into a directory by hand: it is empty, not there yet, or somebody has begun to make one there.
/// A key among other files would be carried to wherever these go.
pub fn may_hold_identity(dir: impl AsRef<Path>) -> bool {
    let held = dir.as_ref().read_dir();
    let names = held.into_iter().flatten().flatten();
    let mut names = names
        .map(|held| held.file_name().to_string_lossy().into_owned())
        .peekable();
    names.peek().is_none() || names.any(|name| name.starts_with(AUTHORITY_CERTIFICATE))
}

fn load_named(dir: &Path, wanted: String) -> Result<Identity, IdentityError> {
    let identity = Identity::load(dir)?;
    if identity.name() != wanted {
        let found = identity.name().to_owned();
        return Err(IdentityError::OtherName {
            dir: dir.to_owned(),
            wanted,
            found,
        });
    }
    Ok(identity)
}

fn village_at(path: &Path) -> Result<String, IdentityError> {
    certificates::village_of(&files::read_certificate(path)?).map_err(|error| {
        IdentityError::Malformed {
            path: path.to_owned(),
            why: error.to_string(),
        }
    })
}

fn make_node(authority: &Authority, dir: &Path, name: &str) -> Result<(), IdentityError> {
    // The key first: a crash leaves a key without a certificate, and the next start makes the certificate for it.
    let key = files::open_or_create_key(&dir.join(NODE_KEY))?;
    let pem = authority.sign_node(&key, name, Validity::from_now())?;
    files::publish_or_keep(&dir.join(NODE_CERTIFICATE), pem.as_bytes(), files::PUBLIC)
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("name", &self.name())
            .field("village", &self.village())
            .finish_non_exhaustive()
    }
}

pub(crate) use certificates::node_names;

#[cfg(test)]
pub(crate) mod tests;
