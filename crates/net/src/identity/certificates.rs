//! Making certificates, and reading names out of them.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;

use super::certified::NameFault;
use super::files::{self, AUTHORITY_CERTIFICATE, AUTHORITY_KEY};
use super::register::Entry;
use super::{CertifiedName, IdentityError};
use crate::tls;

/// Bytes of the digest that names a village, or a key in the register.
const DIGEST_BYTES: usize = 8;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Clocks of a village may differ by this much on the day a node is let in.
const BACKDATED: Duration = DAY;
/// Of certificates whose life nobody said.
pub(crate) const DAYS: u32 = 3653;

/// The time in which a certificate is good, from the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validity {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
}

/// A certificate that is signed and not yet published, and its line for the register.
pub(crate) struct Issued {
    pub(crate) pem: String,
    pub(crate) entry: Entry,
}

/// What lets nodes into a village.
pub(crate) struct Authority {
    key: KeyPair,
    pem: String,
    village: String,
}

impl Validity {
    /// So many days from now on.
    pub(crate) fn of_days(days: u32) -> Self {
        // A clock before 1970 makes a certificate that is refused as expired, which is clear enough.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            from: now.saturating_sub(BACKDATED),
            to: now + DAY * days,
        }
    }

    fn days(self) -> u32 {
        let time = self.to.saturating_sub(self.from + BACKDATED);
        u32::try_from(time.as_secs() / DAY.as_secs()).unwrap_or(u32::MAX)
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

    /// A certificate for a node with this key, and its line for the register.
    pub(crate) fn sign_node(
        &self,
        key: &KeyPair,
        (subject, is_of_carrier): (&CertifiedName, bool),
        validity: Validity,
    ) -> Result<Issued, IdentityError> {
        let uri = subject.to_uri().try_into();
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI(uri.map_err(IdentityError::crypto)?)];
        params.distinguished_name = distinguished_name(&format!("thorp {subject}"));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // Every node calls and is called.
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        validity.put_into(&mut params);
        let serial = fresh_serial()?;
        params.serial_number = Some(serial.to_vec().into());
        let issuer = Issuer::new(authority_params(&self.village), &self.key);
        let signed = params.signed_by(key, &issuer);
        Ok(Issued {
            pem: signed.map_err(IdentityError::crypto)?.pem(),
            entry: Entry {
                subject: subject.clone(),
                serial: hexadecimal(&serial),
                not_after: Duration::from_secs(validity.to.as_secs()),
                is_of_carrier,
                key: Some(key_digest(key)?),
                days: Some(validity.days()),
            },
        })
    }
}

#[cfg(test)]
impl Authority {
    /// As before roles: a DNS name, and nothing else.
    pub(crate) fn sign_without_role(&self, key: &KeyPair, name: &str) -> String {
        let params = CertificateParams::new([format!("{name}.thorp")]).unwrap();
        self.sign(params, key)
    }

    /// As before homes had their ids in their certificates.
    pub(crate) fn sign_without_home(&self, key: &KeyPair, name: &str) -> String {
        let mut params = CertificateParams::default();
        let uri = format!("thorp:home/{name}");
        params.subject_alt_names = vec![SanType::URI(uri.try_into().unwrap())];
        self.sign(params, key)
    }

    fn sign(&self, mut params: CertificateParams, key: &KeyPair) -> String {
        Validity::of_days(DAYS).put_into(&mut params);
        let issuer = Issuer::new(authority_params(&self.village), &self.key);
        params.signed_by(key, &issuer).unwrap().pem()
    }
}

/// By what the register knows a node's key.
pub(crate) fn key_digest(key: &impl PublicKeyData) -> Result<String, IdentityError> {
    short_digest(&key.subject_public_key_info())
}

/// A serial number that no other certificate has.
fn fresh_serial() -> Result<[u8; SERIAL_BYTES], IdentityError> {
    let mut serial = [0; SERIAL_BYTES];
    tls::random(&mut serial).map_err(IdentityError::crypto)?;
    // Positive, and without leading zeros: the certificate has the same digits as the register.
    serial[0] = serial[0] & 0x3f | 0x40;
    Ok(serial)
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
    Validity::of_days(DAYS).put_into(&mut params);
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

/// A village has the name of its authority's key.
fn village_name(public_key: &[u8]) -> Result<String, IdentityError> {
    short_digest(public_key)
}

fn short_digest(bytes: &[u8]) -> Result<String, IdentityError> {
    let digest =
        tls::digest(bytes).ok_or_else(|| IdentityError::crypto("no digest is available"))?;
    Ok(hexadecimal(&digest[..digest.len().min(DIGEST_BYTES)]))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The role and the name in a certificate, or why it names no node.
pub(crate) fn certified_name(
    certificate: &CertificateDer<'_>,
) -> Result<Result<CertifiedName, NameFault>, rustls::Error> {
    let parsed = webpki::EndEntityCert::try_from(certificate)
        .map_err(|error| rustls::Error::General(format!("not a certificate: {error}")))?;
    let mut claimed = parsed
        .valid_uri_names()
        .filter(|uri| CertifiedName::is_claimed_by(uri));
    Ok(match (claimed.next(), claimed.next()) {
        (Some(uri), None) => CertifiedName::from_uri(uri),
        _ => Err(NameFault::NoRole),
    })
}

/// Bytes of a serial number: 126 of its bits are random.
const SERIAL_BYTES: usize = 16;
