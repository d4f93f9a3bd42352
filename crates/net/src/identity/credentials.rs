//! What a node shows and accepts at a handshake, as its directory has it.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, ServerConfig};

use super::certified::{CertifiedName, NameFault};
use super::files::{self, AUTHORITY_CERTIFICATE, NODE_CERTIFICATE, NODE_KEY};
use super::trust::{Standing, Trust};
use super::validity;
use super::{IdentityError, certificates};
use crate::tls;

/// The certificate, the key and the trusted authorities of a node.
pub(crate) struct Credentials {
    /// What the node's own certificate says.
    pub(crate) own: Standing,
    pub(crate) village: String,
    pub(crate) trust: Arc<Trust>,
    pub(crate) client: Arc<ClientConfig>,
    pub(crate) server: Arc<ServerConfig>,
}

impl Credentials {
    /// Of a directory whose parts belong together, with a certificate that is good now.
    pub(crate) fn load(dir: &Path) -> Result<Self, IdentityError> {
        let path = dir.join(NODE_CERTIFICATE);
        let loaded = Self::load_at_any_time(dir)?;
        let checked = loaded.own.validity.check(validity::now());
        checked.map_err(|times| IdentityError::OutOfTime {
            certificate: path,
            times,
        })?;
        Ok(loaded)
    }

    /// Of the authority, in memory. Its process also hears strangers, and shows them its own certificate, too.
    pub(crate) fn of_authority(
        authorities: &[CertificateDer<'static>],
        pem: &str,
        (key, hears_strangers): (&[u8], bool),
    ) -> Result<Self, IdentityError> {
        let wrong = |error: rustls::Error| IdentityError::crypto(error);
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes());
        let certificate = certificate.map_err(IdentityError::crypto)?;
        let trust = Trust::new(authorities).map_err(wrong)?;
        let validity = trust.check_signed(&certificate, &[]).map_err(wrong)?;
        let own = Standing::new(&certificate, CertifiedName::authority(), validity);
        let trust = Arc::new(match hears_strangers {
            true => trust.and_strangers(),
            false => trust,
        });
        let chain = std::iter::once(certificate.clone()).chain(authorities.iter().cloned());
        let chain = chain.collect();
        let key = || PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.to_vec()));
        let shown = certificate.clone();
        Ok(Self {
            own: own.map_err(wrong)?,
            village: certificates::village_in(authorities).map_err(wrong)?,
            client: tls::client_config(Arc::clone(&trust), shown, key()).map_err(wrong)?,
            server: tls::server_config(Arc::clone(&trust), chain, key()).map_err(wrong)?,
            trust,
        })
    }

    fn load_at_any_time(dir: &Path) -> Result<Self, IdentityError> {
        let authority_path = dir.join(AUTHORITY_CERTIFICATE);
        let authorities = files::read_certificates(&authority_path)?;
        let malformed = |error: rustls::Error| IdentityError::Malformed {
            path: authority_path.clone(),
            why: error.to_string(),
        };
        let village = certificates::village_in(&authorities).map_err(malformed)?;
        let trust = Arc::new(Trust::new(&authorities).map_err(malformed)?);
        let path = dir.join(NODE_CERTIFICATE);
        let certificate = files::read_certificate(&path)?;
        let certified = certified_in(&certificate, &path)?;
        let signed = trust.check_signed(&certificate, &[]);
        let failed = |error| IdentityError::from_verification(&path, &authority_path, error);
        let validity = signed.map_err(failed)?;
        let own = Standing::new(&certificate, certified, validity).map_err(failed)?;
        let key_path = dir.join(NODE_KEY);
        let mismatch = |error| IdentityError::from_key(&key_path, &path, error);
        let key = || files::read_private_key(&key_path);
        let shown = certificate.clone();
        let client = tls::client_config(Arc::clone(&trust), shown, key()?).map_err(mismatch)?;
        let server =
            tls::server_config(Arc::clone(&trust), vec![certificate], key()?).map_err(mismatch)?;
        Ok(Self {
            own,
            village,
            trust,
            client,
            server,
        })
    }
}

/// The node that a certificate names.
pub(super) fn certified_in(
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

#[cfg(test)]
impl Credentials {
    /// Past the checks of name and time: of a node of an earlier build, or with a clock that is wrong.
    pub(crate) fn load_as(dir: &Path, certified: CertifiedName) -> Self {
        let certificate = files::read_certificate(&dir.join(NODE_CERTIFICATE)).unwrap();
        let authority = files::read_certificate(&dir.join(AUTHORITY_CERTIFICATE)).unwrap();
        let trust = Arc::new(Trust::new(std::slice::from_ref(&authority)).unwrap());
        let key = || files::read_private_key(&dir.join(NODE_KEY)).unwrap();
        let validity = validity::Validity::of(&certificate).unwrap();
        Self {
            own: Standing::new(&certificate, certified, validity).unwrap(),
            village: certificates::village_of(&authority).unwrap(),
            client: tls::client_config(Arc::clone(&trust), certificate.clone(), key()).unwrap(),
            server: tls::server_config(Arc::clone(&trust), vec![certificate], key()).unwrap(),
            trust,
        }
    }
}
