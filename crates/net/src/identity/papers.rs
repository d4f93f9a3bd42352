//! What the certificates in an identity's directory say, whether or not a node could start with them.

use std::path::Path;

use super::credentials::certified_in;
use super::files::{self, AUTHORITY_CERTIFICATE, NODE_CERTIFICATE};
use super::trust::Trust;
use super::validity::Validity;
use super::{CertifiedName, IdentityError, certificates};

/// The certificates of a node and of its village's authority, for people who look for what is wrong. The key is not
/// read, and no time is compared: [`Identity::load`](super::Identity::load) does both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Papers {
    /// The role and the name in the node's certificate.
    pub certified: CertifiedName,
    /// The village, as 16 hexadecimal digits.
    pub village: String,
    /// When the node's certificate is good.
    pub validity: Validity,
    /// When the certificates of the authorities are good. There are two while a new key takes over
    /// ([`Rotation`](super::Rotation)). Nodes do not look at these times.
    pub authorities: Vec<Validity>,
    /// Which of the authorities has signed the node's certificate.
    pub signed_by: usize,
}

impl Papers {
    /// Reads what is in a directory.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]: a file is unreadable or malformed, or no authority there has signed the node's certificate.
    pub fn read(dir: impl AsRef<Path>) -> Result<Self, IdentityError> {
        let dir = dir.as_ref();
        let (own_path, path) = (dir.join(NODE_CERTIFICATE), dir.join(AUTHORITY_CERTIFICATE));
        let certificate = files::read_certificate(&own_path)?;
        let certified = certified_in(&certificate, &own_path)?;
        let authorities = files::read_certificates(&path)?;
        let malformed = |error: rustls::Error| IdentityError::Malformed {
            path: path.clone(),
            why: error.to_string(),
        };
        let village = certificates::village_in(&authorities).map_err(malformed)?;
        let failed = |error| IdentityError::from_verification(&own_path, &path, error);
        let mut signed = Err(rustls::Error::InvalidCertificate(
            rustls::CertificateError::UnknownIssuer,
        ));
        let mut signed_by = 0;
        for (at, authority) in authorities.iter().enumerate() {
            let trust = Trust::new(std::slice::from_ref(authority)).map_err(malformed)?;
            signed = trust.check_signed(&certificate, &[]);
            signed_by = at;
            if signed.is_ok() {
                break;
            }
        }
        let lives: Result<_, _> = authorities.iter().map(Validity::of).collect();
        Ok(Self {
            certified,
            village,
            validity: signed.map_err(failed)?,
            authorities: lives.map_err(malformed)?,
            signed_by,
        })
    }
}
