//! What a node does with the certificates that the authority's process sends.

use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, PublicKeyData};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::certificates::village_of;
use super::certified::CertifiedName;
use super::credentials::Credentials;
use super::files::{self, AUTHORITY_CERTIFICATE, JOINED_WITH, NODE_CERTIFICATE, NODE_KEY};
use super::revoked::Revoked;
use super::tokens::{self, JoinToken};
use super::trust::{Standing, Trust, fingerprint_of};
use super::validity::Validity;
use super::{Identity, IdentityError};
use crate::tls;

/// What a node shows that has no certificate yet: one that it has signed itself, with the key in its directory. It
/// accepts only the authority of the token.
pub(crate) fn joining(token: &JoinToken, dir: &Path) -> Result<Identity, IdentityError> {
    let wrong = |error: rustls::Error| IdentityError::crypto(error);
    files::make_dir(dir)?;
    let key = files::open_or_create_key(&dir.join(NODE_KEY))?;
    let signed = CertificateParams::default().self_signed(&key);
    let certificate = signed.map_err(IdentityError::crypto)?.der().clone();
    let trust = Arc::new(Trust::pinned(token.fingerprint.clone()));
    let validity = Validity::of(&certificate).map_err(wrong)?;
    let own = Standing::new(&certificate, CertifiedName::stranger(), validity);
    let key = || PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let shown = certificate.clone();
    let credentials = Credentials {
        own: own.map_err(wrong)?,
        village: String::new(),
        client: tls::client_config(Arc::clone(&trust), shown, key()).map_err(wrong)?,
        server: tls::server_config(Arc::clone(&trust), vec![certificate], key()).map_err(wrong)?,
        trust,
    };
    Ok(Identity::new(dir, credentials, Revoked::load(dir)?))
}

/// Puts a node's first certificate into its directory, with the authorities and where the authority's process is.
pub(crate) fn take_first(dir: &Path, token: &JoinToken, text: &str) -> Result<(), IdentityError> {
    let received = Received::read(text)?;
    let is_of_token = |authority: &CertificateDer<'_>| {
        fingerprint_of(authority).is_ok_and(|found| found == token.fingerprint)
    };
    if !received.authorities.iter().any(is_of_token) {
        return Err(bad("the authority is not the one of the token"));
    }
    let key = files::read_key(&dir.join(NODE_KEY))?;
    received.check(&key.subject_public_key_info())?;
    let (pem, bundle) = (received.node_pem, received.bundle);
    files::write_address(dir, &token.address)?;
    // Before the certificate: a join that was cut short may be done again with this token, and with no other.
    let digest = tokens::digest(&token.secret)?;
    files::replace(&dir.join(JOINED_WITH), digest.as_bytes(), files::SECRET)?;
    files::publish_or_keep(
        &dir.join(AUTHORITY_CERTIFICATE),
        bundle.as_bytes(),
        files::PUBLIC,
    )?;
    files::publish_or_keep(&dir.join(NODE_CERTIFICATE), pem.as_bytes(), files::PUBLIC)
}

/// Whether the identity in a directory was got with this token.
pub(crate) fn has_used(dir: &Path, token: &JoinToken) -> Result<bool, IdentityError> {
    let path = dir.join(JOINED_WITH);
    if !files::exists(&path)? {
        return Ok(false);
    }
    Ok(files::read(&path)? == tokens::digest(&token.secret)?.as_bytes())
}

/// Puts a node's new certificate into its directory.
pub(crate) fn take_renewed(identity: &Identity, text: &str) -> Result<(), IdentityError> {
    let received = Received::read(text)?;
    let own = identity.credentials().own.clone();
    let standing = received.check(&own.public_key)?;
    let is_same = standing.certified.is_same_node(&own.certified);
    if !is_same || standing.certified.home() != own.certified.home() {
        return Err(bad("the new certificate is that of another node"));
    }
    let village = received.authorities.first().map(village_of);
    if !village.is_some_and(|village| village.is_ok_and(|village| village == identity.village())) {
        return Err(bad("the new certificate is that of another village"));
    }
    let dir = &identity.inner.dir;
    let (pem, bundle) = (received.node_pem, received.bundle);
    // Before the certificate, which one of these has signed.
    let path = dir.join(AUTHORITY_CERTIFICATE);
    if files::read(&path)? != bundle.as_bytes() {
        files::replace(&path, bundle.as_bytes(), files::PUBLIC)?;
    }
    files::replace(&dir.join(NODE_CERTIFICATE), pem.as_bytes(), files::PUBLIC)
}

/// A certificate, and the authorities to trust.
struct Received {
    node: CertificateDer<'static>,
    authorities: Vec<CertificateDer<'static>>,
    /// As files have them.
    node_pem: String,
    bundle: String,
}

impl Received {
    fn read(text: &str) -> Result<Self, IdentityError> {
        let end = text.find(PEM_END).map(|at| at + PEM_END.len());
        let (node, bundle) = text.split_at(end.ok_or_else(|| bad("its answer is empty"))?);
        let read = |text: &str| -> Result<Vec<_>, _> {
            CertificateDer::pem_slice_iter(text.as_bytes()).collect()
        };
        let wrong = |_: rustls::pki_types::pem::Error| bad("its answer is none");
        let first = read(node).map_err(wrong)?.into_iter().next();
        Ok(Self {
            node: first.ok_or_else(|| bad("its answer is empty"))?,
            authorities: read(bundle).map_err(wrong)?,
            node_pem: node.to_owned(),
            bundle: bundle.trim_start().to_owned(),
        })
    }

    /// Whether the certificate is for this key and signed by one of the authorities.
    fn check(&self, public_key: &[u8]) -> Result<Standing, IdentityError> {
        let wrong = |_| bad("the certificate that it has sent is not good");
        let trust = Trust::new(&self.authorities).map_err(wrong)?;
        let standing = trust.check(Some(std::slice::from_ref(&self.node)))?;
        match standing.public_key == public_key {
            true => Ok(standing),
            false => Err(bad("the certificate that it has sent is for another key")),
        }
    }
}

fn bad(why: &str) -> IdentityError {
    IdentityError::Authority {
        why: why.to_owned(),
    }
}

const PEM_END: &str = "-----END CERTIFICATE-----\n";
