//! What a node accepts of a certificate (rule R1).

use std::sync::Arc;
use std::time::Duration;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{OtherError, RootCertStore};

use super::certificates::{village_claimed, village_of};
use super::certified::{CertifiedName, NameFault, hexadecimal};
use super::validity::{self, Validity};
use crate::error::VillageShown;
use crate::{Error, Side, crypto};

/// The authorities that a node trusts.
///
/// TLS asks at a new handshake only whether one of them has signed the certificate. Everything else is checked after
/// every handshake, also where TLS resumes a session and asks nothing: whether the certificate is good now, and which
/// node it names. So the words of a refusal can name both times, and the peer hears them.
#[derive(Debug)]
pub(crate) struct Trust {
    authorities: Vec<CertificateDer<'static>>,
    signers: Signers,
}

/// Whose signature on a certificate counts.
#[derive(Debug)]
enum Signers {
    /// One of the authorities.
    Authorities(RootCertStore),
    /// An authority of which only the fingerprint is known. The peer shows its certificate, too.
    Pinned(String),
    /// Anybody's, also the node's own: the authority's process hears nodes that have no certificate yet. Those of the
    /// village are told from them.
    Anybody(RootCertStore),
}

/// What a certificate says that is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) certified: CertifiedName,
    /// In hexadecimal digits.
    pub(crate) serial: String,
    pub(crate) validity: Validity,
    /// As in the certificate.
    pub(crate) public_key: Vec<u8>,
}

impl Trust {
    /// Of these authorities.
    pub(crate) fn new(authorities: &[CertificateDer<'static>]) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority.clone())?;
        }
        Ok(Self {
            authorities: authorities.to_vec(),
            signers: Signers::Authorities(roots),
        })
    }

    /// Of the authority with this fingerprint.
    pub(crate) fn pinned(fingerprint: String) -> Self {
        Self {
            authorities: Vec::new(),
            signers: Signers::Pinned(fingerprint),
        }
    }

    /// Of these authorities, and of nobody: that one is [a stranger](CertifiedName::stranger).
    pub(crate) fn and_strangers(self) -> Self {
        let signers = match self.signers {
            Signers::Authorities(roots) => Signers::Anybody(roots),
            other => other,
        };
        Self { signers, ..self }
    }

    /// Whether one of the authorities has signed the certificate, whenever it is good.
    pub(crate) fn check_signed(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
    ) -> Result<Validity, rustls::Error> {
        match &self.signers {
            Signers::Authorities(roots) => check_chain(certificate, intermediates, roots),
            Signers::Anybody(_) => Validity::of(certificate),
            Signers::Pinned(fingerprint) => {
                let shown = intermediates
                    .iter()
                    .find(|shown| fingerprint_of(shown).is_ok_and(|found| found == *fingerprint));
                let unknown = rustls::CertificateError::UnknownIssuer;
                let authority = shown.ok_or(rustls::Error::InvalidCertificate(unknown))?;
                let mut roots = RootCertStore::empty();
                roots.add(authority.clone().into_owned())?;
                check_chain(certificate, &[], &roots)
            }
        }
    }

    /// The same error, with both villages if it is that the certificate is of another one.
    pub(crate) fn name_villages(
        &self,
        certificate: &CertificateDer<'_>,
        error: rustls::Error,
    ) -> rustls::Error {
        use rustls::CertificateError as C;
        let rustls::Error::InvalidCertificate(C::UnknownIssuer | C::BadSignature) = &error else {
            return error;
        };
        let ours = self.authorities.first().map(village_of);
        let villages = ours.and_then(Result::ok).zip(village_claimed(certificate));
        match villages {
            Some((ours, theirs)) if ours != theirs => {
                let shown = Arc::new(VillageShown { ours, theirs });
                rustls::Error::InvalidCertificate(C::Other(OtherError(shown)))
            }
            _ => error,
        }
    }

    /// Whether a caller that anybody may be is of the village.
    fn is_stranger(&self, certificate: &CertificateDer<'_>) -> bool {
        match &self.signers {
            Signers::Anybody(roots) => check_chain(certificate, &[], roots).is_err(),
            Signers::Authorities(_) | Signers::Pinned(_) => false,
        }
    }

    /// What a certificate says, if one of the authorities has signed it and it is good at a time.
    pub(crate) fn standing_at(
        &self,
        certificate: &CertificateDer<'static>,
        now: Duration,
    ) -> Option<Standing> {
        let validity = self.check_signed(certificate, &[]).ok()?;
        validity.check(now).ok()?;
        let certified = CertifiedName::of(certificate).ok()?.ok()?;
        Standing::new(certificate, certified, validity).ok()
    }

    /// Whose certificate a peer has shown, if one of the authorities has signed it, also if it is over or revoked.
    pub(crate) fn name_shown(&self, shown: Option<&[CertificateDer<'static>]>) -> Option<String> {
        let (certificate, beside) = shown?.split_first()?;
        self.check_signed(certificate, beside).ok()?;
        if self.is_stranger(certificate) {
            return None;
        }
        let certified = CertifiedName::of(certificate).ok()?.ok()?;
        Some(certified.name().to_owned())
    }

    /// Whether the certificate that a peer has shown is good, and what it says.
    pub(crate) fn check(
        &self,
        shown: Option<&[CertificateDer<'static>]>,
    ) -> Result<Standing, Error> {
        let whose = Side::Theirs;
        let certificate = shown
            .and_then(<[_]>::first)
            .ok_or(Error::NoCertificate { whose })?;
        let beside = shown.and_then(|shown| shown.get(1..)).unwrap_or_default();
        let signed = self.check_signed(certificate, beside);
        let validity = signed.map_err(Error::from_rustls)?;
        if self.is_stranger(certificate) {
            let stranger = CertifiedName::stranger();
            return Standing::new(certificate, stranger, validity).map_err(Error::Tls);
        }
        let certified = CertifiedName::of(certificate).map_err(Error::Tls)?;
        let certified = certified.map_err(|fault| match fault {
            NameFault::NoRole => Error::NoRole,
            NameFault::NoHomeId => Error::NoHomeId,
        })?;
        let checked = validity.check(validity::now());
        checked.map_err(|times| match times.is_over() {
            true => Error::Expired {
                whose,
                times: Some(times),
            },
            false => Error::NotYetValid { whose, times },
        })?;
        Standing::new(certificate, certified, validity).map_err(Error::Tls)
    }
}

impl PartialEq for Trust {
    fn eq(&self, other: &Self) -> bool {
        self.authorities == other.authorities
    }
}

impl Standing {
    /// Whether less than a third of the certificate's life is left.
    pub(crate) fn is_aging(&self) -> bool {
        self.validity.is_aging(validity::now())
    }

    pub(crate) fn new(
        certificate: &CertificateDer<'_>,
        certified: CertifiedName,
        validity: Validity,
    ) -> Result<Self, rustls::Error> {
        let parsed = parsed(certificate)?;
        Ok(Self {
            certified,
            serial: hexadecimal(parsed.serial()),
            validity,
            public_key: parsed.subject_public_key_info().to_vec(),
        })
    }
}

/// The serial number of a certificate, in hexadecimal digits.
pub(crate) fn serial_of(certificate: &CertificateDer<'_>) -> Result<String, rustls::Error> {
    Ok(hexadecimal(parsed(certificate)?.serial()))
}

fn parsed<'a>(
    certificate: &'a CertificateDer<'_>,
) -> Result<webpki::EndEntityCert<'a>, rustls::Error> {
    let parsed = webpki::EndEntityCert::try_from(certificate);
    parsed.map_err(|error| rustls::Error::General(format!("not a certificate: {error}")))
}

/// Whether one of these authorities has signed the certificate, whenever it is good.
fn check_chain(
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    roots: &RootCertStore,
) -> Result<Validity, rustls::Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    let validity = Validity::of(certificate)?;
    verify_server_cert_signed_by_trust_anchor(
        &parsed,
        roots,
        intermediates,
        UnixTime::since_unix_epoch(validity.until),
        ring::default_provider()
            .signature_verification_algorithms
            .all,
    )?;
    Ok(validity)
}

/// SHA-256 of a certificate's public key, in hexadecimal digits.
pub(crate) fn fingerprint_of(certificate: &CertificateDer<'_>) -> Result<String, rustls::Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    let digest = crypto::digest(&parsed.subject_public_key_info());
    let digest =
        digest.ok_or_else(|| rustls::Error::General("no digest is available".to_owned()))?;
    Ok(hexadecimal(&digest))
}
