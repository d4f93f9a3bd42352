//! Making certificates, and reading names out of them.

use std::path::Path;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SignatureAlgorithm,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::ParsedCertificate;

use super::certified::hexadecimal;
use super::files::{self, AUTHORITY_CERTIFICATE, AUTHORITY_KEY};
use super::register::Entry;
use super::validity::{DAY, Validity};
use super::{CertifiedName, IdentityError};
use crate::crypto;

/// Bytes of the digest that names a village, or a key in the register.
const DIGEST_BYTES: usize = 8;

/// A certificate that is signed and not yet published, and its line for the register.
pub(crate) struct Issued {
    pub(crate) pem: String,
    pub(crate) entry: Entry,
}

/// What lets nodes into a village.
pub(crate) struct Authority {
    key: KeyPair,
    certificate: CertificateDer<'static>,
    pem: String,
    village: String,
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

    /// The authority whose key is in `dir`. Its certificate is one of those that nodes are to trust.
    pub(crate) fn load(dir: &Path) -> Result<Self, IdentityError> {
        let (key_path, path) = (dir.join(AUTHORITY_KEY), dir.join(AUTHORITY_CERTIFICATE));
        let key = files::read_key(&key_path)?;
        let all = files::read_certificates(&path)?;
        let malformed = |why: String| IdentityError::Malformed {
            path: path.clone(),
            why,
        };
        let village = village_in(&all).map_err(|error| malformed(error.to_string()))?;
        let public_key = key.subject_public_key_info();
        let is_own = |certificate: &&CertificateDer<'static>| {
            let parsed = ParsedCertificate::try_from(*certificate);
            parsed.is_ok_and(|parsed| *parsed.subject_public_key_info() == *public_key)
        };
        let Some(certificate) = all.iter().find(is_own).cloned() else {
            return Err(IdentityError::KeyMismatch {
                key: key_path,
                certificate: path,
            });
        };
        let pem = String::from_utf8(files::read(&path)?);
        let pem = pem.map_err(|_| malformed("it is not a text".to_owned()))?;
        Ok(Self {
            key,
            certificate,
            pem,
            village,
        })
    }

    /// Its own certificate.
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }

    /// Its own certificate, as files have it.
    pub(crate) fn own_pem(&self) -> String {
        let is_own = |block: &&String| {
            let read = CertificateDer::from_pem_slice(block.as_bytes());
            read.is_ok_and(|read| read == self.certificate)
        };
        let blocks = blocks_of(&self.pem);
        blocks.iter().find(is_own).cloned().unwrap_or_default()
    }

    /// All that nodes are to trust, as files have them.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    pub(crate) fn village(&self) -> &str {
        &self.village
    }

    /// A certificate for a node with this key, and its line for the register.
    pub(crate) fn sign_node(
        &self,
        key: &impl PublicKeyData,
        (subject, is_of_carrier): (&CertifiedName, bool),
        validity: Validity,
    ) -> Result<Issued, IdentityError> {
        let subject = subject.clone().with_carried(is_of_carrier);
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
                subject,
                serial: hexadecimal(&serial),
                not_after: Duration::from_secs(validity.until.as_secs()),
                is_of_carrier,
                key: Some(key_digest(key)?),
                days: Some(days_of(validity.life())),
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
        Validity::of_life(AUTHORITY_LIFE).put_into(&mut params);
        let issuer = Issuer::new(authority_params(&self.village), &self.key);
        params.signed_by(key, &issuer).unwrap().pem()
    }
}

/// The key in a node's own certificate. All nodes have keys of one kind.
pub(crate) struct NodeKey(Vec<u8>);

impl NodeKey {
    /// Of the public key as a certificate has it.
    pub(crate) fn new(public_key: &[u8]) -> Result<Self, IdentityError> {
        match public_key.strip_prefix(P256) {
            Some(point) if point.len() == POINT_BYTES => Ok(Self(point.to_vec())),
            _ => Err(IdentityError::crypto(
                "a node's key has to be one of the curve P-256: let `thorp join` make it",
            )),
        }
    }
}

impl PublicKeyData for NodeKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

/// The village of the authorities in a file: the first one names it.
pub(crate) fn village_in(authorities: &[CertificateDer<'_>]) -> Result<String, rustls::Error> {
    let none = || rustls::Error::General("there is no authority".to_owned());
    village_of(authorities.first().ok_or_else(none)?)
}

/// What stands before the point in a public key of the curve P-256.
const P256: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const POINT_BYTES: usize = 65;

fn days_of(life: Duration) -> u32 {
    u32::try_from(life.as_secs() / DAY.as_secs()).unwrap_or(u32::MAX)
}

/// By what the register knows a node's key.
pub(crate) fn key_digest(key: &impl PublicKeyData) -> Result<String, IdentityError> {
    short_digest(&key.subject_public_key_info())
}

/// A serial number that no other certificate has.
fn fresh_serial() -> Result<[u8; SERIAL_BYTES], IdentityError> {
    let mut serial = [0; SERIAL_BYTES];
    crypto::random(&mut serial).map_err(IdentityError::crypto)?;
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

/// The certificate of an authority that comes after another one. It names the village, which its key does not.
pub(crate) fn sign_next_authority(key: &KeyPair, village: &str) -> Result<String, IdentityError> {
    let mut params = authority_params(village);
    let uri = format!("{VILLAGE}{village}").try_into();
    params.subject_alt_names = vec![SanType::URI(uri.map_err(IdentityError::crypto)?)];
    let signed = params.self_signed(key);
    Ok(signed.map_err(IdentityError::crypto)?.pem())
}

/// The certificates in a text, each as it stands there.
pub(crate) fn blocks_of(pem: &str) -> Vec<String> {
    let blocks = pem.split_inclusive(PEM_END);
    let blocks = blocks.map(|block| format!("{}\n", block.trim()));
    blocks.filter(|block| block.contains(PEM_END)).collect()
}

/// Everything in a first authority's certificate but its time follows from its key: so it can be made again from the key alone, and
/// two villages never carry the same name.
fn authority_params(village: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished_name(&format!("{VILLAGE_NAME}{village}"));
    // No intermediate authorities.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Validity::of_life(AUTHORITY_LIFE).put_into(&mut params);
    params
}

/// The village that a certificate names as that of its issuer. Nobody vouches for it: it is for people only.
pub(crate) fn village_claimed(certificate: &CertificateDer<'_>) -> Option<String> {
    const DIGITS: usize = 16;
    let mut ends = certificate
        .windows(VILLAGE_NAME.len() + DIGITS)
        .filter_map(|window| window.strip_prefix(VILLAGE_NAME.as_bytes()));
    let digits = ends.find(|end| end.iter().all(u8::is_ascii_hexdigit))?;
    String::from_utf8(digits.to_vec()).ok()
}

/// In the name of an authority, before that of its village.
const VILLAGE_NAME: &str = "thorp village ";

fn distinguished_name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// The village whose authority has this certificate: it is named there, or else has the name of the key.
pub(crate) fn village_of(authority: &CertificateDer<'_>) -> Result<String, rustls::Error> {
    let parsed = webpki::EndEntityCert::try_from(authority)
        .map_err(|error| rustls::Error::General(format!("not a certificate: {error}")))?;
    let named = parsed
        .valid_uri_names()
        .find_map(|uri| uri.strip_prefix(VILLAGE));
    if let Some(village) = named {
        return Ok(village.to_owned());
    }
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
        crypto::digest(bytes).ok_or_else(|| IdentityError::crypto("no digest is available"))?;
    Ok(hexadecimal(&digest[..digest.len().min(DIGEST_BYTES)]))
}

/// Begins the URI name of a village in the certificate of an authority that is not its first.
const VILLAGE: &str = "thorp:village/";
const PEM_END: &str = "-----END CERTIFICATE-----";
/// Of the authority: whoever trusts it has its certificate as a file, and no time is looked at there.
const AUTHORITY_LIFE: Duration = Duration::from_secs(3653 * 24 * 60 * 60);
/// Bytes of a serial number: 126 of its bits are random.
const SERIAL_BYTES: usize = 16;
