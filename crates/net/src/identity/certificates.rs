//! Making certificates, and reading names out of them.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;

use super::IdentityError;
use super::files::{self, AUTHORITY_CERTIFICATE, AUTHORITY_KEY};
use crate::tls;

/// Ends every node's name in a certificate, so that no certificate of a village is ever good for a web site.
const SUFFIX: &str = ".thorp";
const LABEL_BYTES_MAX: usize = 63;
const NAME_BYTES_MAX: usize = 200;
/// Bytes of the digest that names a village.
const VILLAGE_BYTES: usize = 8;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Clocks of a village may differ by this much on the day a node is let in.
const BACKDATED: Duration = DAY;
/// Ten years: rotation comes later.
const VALID: Duration = Duration::from_secs(3653 * 24 * 60 * 60);

/// The time in which a certificate is good, from the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validity {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
}

/// What lets nodes into a village.
pub(crate) struct Authority {
    key: KeyPair,
    pem: String,
    village: String,
}

impl Validity {
    pub(crate) fn from_now() -> Self {
        // A clock before 1970 makes a certificate that is refused as expired, which is clear enough.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            from: now.saturating_sub(BACKDATED),
            to: now + VALID,
        }
    }

    fn put_into(self, params: &mut CertificateParams) {
        let epoch = date_time_ymd(1970, 1, 1);
        params.not_before = epoch + self.from;
        params.not_after = epoch + self.to;
    }
}

impl Authority {
    /// Loads the authority in `dir`, or makes one if there is neither certificate nor key.
    pub(crate) fn open_or_create(dir: &Path) -> Result<Self, IdentityError> {
        let (key_path, path) = (dir.join(AUTHORITY_KEY), dir.join(AUTHORITY_CERTIFICATE));
        // A certificate without its key must not be paired with a new one: loading says that the key is missing.
        if !files::exists(&path)? {
            let key = files::open_or_create_key(&key_path)?;
            files::publish_or_keep(&path, sign_authority(&key)?.as_bytes(), files::PUBLIC)?;
        }
        Self::load(dir)
    }

    pub(crate) fn load(dir: &Path) -> Result<Self, IdentityError> {
        let (key_path, path) = (dir.join(AUTHORITY_KEY), dir.join(AUTHORITY_CERTIFICATE));
        let key = files::read_key(&key_path)?;
        let village = village_name(&key.subject_public_key_info())?;
        let found = super::village_at(&path)?;
        if found != village {
            return Err(IdentityError::KeyMismatch {
                key: key_path,
                certificate: path,
            });
        }
        let pem = String::from_utf8(files::read(&path)?).map_err(|_| IdentityError::Malformed {
            path,
            why: "it is not a text".to_owned(),
        })?;
        Ok(Self { key, pem, village })
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    pub(crate) fn village(&self) -> &str {
        &self.village
    }

    /// A certificate for the node called `name` with this key, as PEM.
    pub(crate) fn sign_node(
        &self,
        key: &KeyPair,
        name: &str,
        validity: Validity,
    ) -> Result<String, IdentityError> {
        let mut params =
            CertificateParams::new([format!("{name}{SUFFIX}")]).map_err(IdentityError::crypto)?;
        params.distinguished_name = distinguished_name(&format!("thorp node {name}"));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // Every node calls and is called.
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        validity.put_into(&mut params);
        let issuer = Issuer::new(authority_params(&self.village), &self.key);
        Ok(params
            .signed_by(key, &issuer)
            .map_err(IdentityError::crypto)?
            .pem())
    }
}

fn sign_authority(key: &KeyPair) -> Result<String, IdentityError> {
    let village = village_name(&key.subject_public_key_info())?;
    Ok(authority_params(&village)
        .self_signed(key)
        .map_err(IdentityError::crypto)?
        .pem())
}

/// Everything in an authority's certificate but its time follows from its key: so it can be made again from the key alone, and
/// two villages never carry the same name.
fn authority_params(village: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished_name(&format!("thorp village {village}"));
    // No intermediate authorities.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Validity::from_now().put_into(&mut params);
    params
}

fn distinguished_name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// The village whose authority has this certificate.
pub(crate) fn village_of(authority: &CertificateDer<'_>) -> Result<String, rustls::Error> {
    let parsed = ParsedCertificate::try_from(authority)?;
    village_name(&parsed.subject_public_key_info())
        .map_err(|error| rustls::Error::General(error.to_string()))
}

fn village_name(public_key: &[u8]) -> Result<String, IdentityError> {
    let digest =
        tls::digest(public_key).ok_or_else(|| IdentityError::crypto("no digest is available"))?;
    Ok(digest
        .iter()
        .take(VILLAGE_BYTES)
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// The node names in a certificate, without their suffix.
pub(crate) fn node_names(certificate: &CertificateDer<'_>) -> Result<Vec<String>, rustls::Error> {
    let parsed = webpki::EndEntityCert::try_from(certificate)
        .map_err(|error| rustls::Error::General(format!("not a certificate: {error}")))?;
    Ok(parsed
        .valid_dns_names()
        .filter_map(|name| name.strip_suffix(SUFFIX))
        .map(str::to_owned)
        .collect())
}

/// Checks a node's name and puts it into lower case.
pub(crate) fn check_name(name: &str) -> Result<String, IdentityError> {
    let lower = name.to_ascii_lowercase();
    if lower.len() > NAME_BYTES_MAX || !lower.split('.').all(is_label) {
        return Err(IdentityError::BadName {
            name: name.to_owned(),
        });
    }
    Ok(lower)
}

fn is_label(label: &str) -> bool {
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}
