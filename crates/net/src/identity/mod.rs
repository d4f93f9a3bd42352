//! Who a node is: its certificate, its key, and the authority of its village.
//!
//! A node's directory has `authority.pem`, `node.pem` and `node.key`. The authority has a directory of its own, with
//! `authority.pem`, `authority.key` and `issued`, the register: no running node needs it. Keys are readable by their
//! owner only. A certificate names one role and one node: the site `office` has the URI name `thorp:site/office` in it, and
//! the home `alps` also its id, `thorp:home/alps?id=0000002a` (rule R1). A name may have several labels (`alps.north`).

mod certificates;
mod certified;
mod credentials;
mod delegation;
mod error;
mod files;
mod grant;
mod issuing;
mod joining;
mod moving;
mod papers;
mod register;
mod revoked;
mod rotation;
mod tokens;
mod trust;
mod validity;

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use thorp_model::{HomeId, Peer, Signer, Verifier};
use tokio::sync::watch;

pub use certified::{CertifiedName, NodeRole};
pub use error::IdentityError;
pub use grant::{Grant, HomeIdOf, IssuedCertificate};
pub use issuing::{CertificateAuthority, issue, issue_with_site, may_hold_identity, site_dir};
pub use papers::Papers;
pub use rotation::Rotation;
pub use tokens::{JoinToken, NotAToken};
pub use validity::{OutOfTime, Validity};

use crate::{Address, Error};
use credentials::{Credentials, certified_in};
use delegation::{AuthorityVerifier, KeySigner};
use files::{AUTHORITY_CERTIFICATE, NODE_CERTIFICATE, NODE_KEY};
use issuing::subject;
use revoked::Revoked;

/// A node's identity, ready for use. Cheap to clone; clones share TLS's memory of past connections, which makes coming back
/// quicker.
///
/// The directory may get a new certificate while the node runs: [`Identity::reload`] takes it for all further handshakes.
#[derive(Clone)]
pub struct Identity {
    inner: Arc<Inner>,
}

struct Inner {
    dir: PathBuf,
    /// The same for ever: a certificate of another node is not taken.
    certified: CertifiedName,
    village: String,
    current: RwLock<Arc<Credentials>>,
    revoked: Revoked,
    /// Counts changes of what is accepted and shown.
    changes: watch::Sender<u64>,
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
        Ok(Self::new(dir, Credentials::load(dir)?, Revoked::load(dir)?))
    }

    pub(super) fn new(dir: &Path, current: Credentials, revoked: Revoked) -> Self {
        let inner = Inner {
            dir: dir.to_owned(),
            certified: current.own.certified.clone(),
            village: current.village.clone(),
            current: RwLock::new(Arc::new(current)),
            revoked,
            changes: watch::Sender::new(0),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Takes the certificate, the key and the authorities that are in the directory now, for all further handshakes.
    /// Whether they are others than before.
    ///
    /// # Errors
    ///
    /// As [`Identity::load`], and [`IdentityError::OtherNode`]. What was there before stays.
    pub fn reload(&self) -> Result<bool, IdentityError> {
        let new = Credentials::load(&self.inner.dir)?;
        let (found, wanted) = (&new.own.certified, &self.inner.certified);
        if found != wanted || new.village != self.inner.village {
            return Err(IdentityError::OtherNode {
                dir: self.inner.dir.clone(),
                wanted: wanted.clone(),
                found: found.clone(),
            });
        }
        let old = self.credentials();
        let is_new = old.own != new.own || old.trust != new.trust;
        if !self.inner.revoked.reload()? && !is_new {
            return Ok(false);
        }
        // Nothing panics half-way through a change of it.
        let mut current = self
            .inner
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(new);
        drop(current);
        self.inner.changes.send_modify(|changes| *changes += 1);
        Ok(true)
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
        self.credentials().own.validity
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

    /// Signs with the key of this node's certificate, as it is then (rule R2).
    pub fn signer(&self) -> Arc<dyn Signer> {
        Arc::new(KeySigner::of(self))
    }

    /// Checks what nodes of this village have signed (rule R2).
    pub fn verifier(&self) -> Arc<dyn Verifier> {
        Arc::new(AuthorityVerifier::of(self))
    }

    /// What a certificate says that was signed by one of the authorities, and is good at a time and not revoked.
    pub(crate) fn standing_at(
        &self,
        certificate: &CertificateDer<'static>,
        now: Duration,
    ) -> Option<Standing> {
        let standing = self.credentials().trust.standing_at(certificate, now)?;
        (!self.inner.revoked.has(&standing.serial)).then_some(standing)
    }

    /// Whether the certificate that a peer has shown is good, and what it says.
    pub(crate) fn accept(
        &self,
        shown: Option<&[CertificateDer<'static>]>,
    ) -> Result<Standing, Error> {
        let standing = self.credentials().trust.check(shown)?;
        match self.inner.revoked.has(&standing.serial) {
            true => Err(Error::Revoked),
            false => Ok(standing),
        }
    }

    /// Whose certificate a peer has shown that does not get in, if it is of this village.
    pub(crate) fn name_shown(&self, shown: Option<&[CertificateDer<'static>]>) -> Option<String> {
        self.credentials().trust.name_shown(shown)
    }

    /// Certificates that are not accepted from now on, durably. Edges that stand by them end.
    pub(crate) fn revoke(&self, revoked: Vec<Revocation>) -> Result<(), IdentityError> {
        if self.inner.revoked.add(revoked)? {
            self.inner.changes.send_modify(|changes| *changes += 1);
        }
        Ok(())
    }

    /// Why a peer that was accepted may not stay, if it may not.
    pub(crate) fn objection(&self, standing: &Standing, now: Duration) -> Option<String> {
        if self.inner.revoked.has(&standing.serial) {
            return Some("its certificate is revoked".to_owned());
        }
        let times = standing.validity.check(now).err()?;
        Some(format!(
            "its certificate {times}: it comes back with a new one"
        ))
    }

    /// What the node shows and accepts now.
    pub(crate) fn credentials(&self) -> Arc<Credentials> {
        let current = self.inner.current.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts changes of what is accepted and shown.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Where the authority's process is, if the directory says so.
    pub(crate) fn authority_address(&self) -> Result<Option<Address>, IdentityError> {
        files::read_address(&self.inner.dir)
    }

    /// Changes when a file of the directory does.
    pub(crate) fn stamp(&self) -> [Option<(SystemTime, u64)>; 4] {
        let files = [
            NODE_CERTIFICATE,
            NODE_KEY,
            AUTHORITY_CERTIFICATE,
            revoked::FILE,
        ];
        files.map(|file| {
            let found = std::fs::metadata(self.inner.dir.join(file)).ok()?;
            Some((found.modified().ok()?, found.ino()))
        })
    }

    /// How long its certificate is good, and how it gets another, for a log.
    pub(crate) fn age(&self) -> String {
        format!(
            "the certificate of {} is good until {}: {RENEWED}; this node takes it while it runs",
            self.certified(),
            self.validity()
        )
    }
}

/// What the authority's process answers with. It hears strangers.
pub(crate) fn authority_serving(
    authority: &CertificateAuthority,
) -> Result<Identity, IdentityError> {
    let dir = authority.dir();
    let revoked = Revoked::load(dir)?;
    Ok(Identity::new(
        dir,
        authority.serving_credentials()?,
        revoked,
    ))
}

/// What the authority calls a node with.
pub(crate) fn authority_identity(
    authority: &CertificateAuthority,
) -> Result<Identity, IdentityError> {
    let dir = authority.dir();
    Ok(Identity::new(
        dir,
        authority.credentials()?,
        Revoked::load(dir)?,
    ))
}

fn village_at(path: &Path) -> Result<String, IdentityError> {
    certificates::village_in(&files::read_certificates(path)?).map_err(|error| {
        IdentityError::Malformed {
            path: path.to_owned(),
            why: error.to_string(),
        }
    })
}

fn certified_at(path: &Path) -> Result<CertifiedName, IdentityError> {
    certified_in(&files::read_certificate(path)?, path)
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("node", self.certified())
            .field("village", &self.village())
            .finish_non_exhaustive()
    }
}

pub(crate) use error::{NEW_CERTIFICATE, RENEWED, WITH_HOME_ID};
pub(crate) use issuing::Answer;
pub(crate) use joining::{has_used, joining, take_first, take_renewed};
pub(crate) use revoked::Revocation;
pub(crate) use trust::{Standing, Trust};

#[cfg(test)]
pub(crate) mod tests;
