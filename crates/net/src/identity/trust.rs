//! What a node accepts of a certificate (rule R1).

use std::time::Duration;

use rustls::RootCertStore;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ParsedCertificate;

use super::certified::{CertifiedName, NameFault, hexadecimal};
use super::validity::{self, Validity};
use crate::{Error, Side};

/// The authorities that a node trusts.
///
/// TLS asks at a new handshake only whether one of them has signed the certificate. Everything else is checked after
/// every handshake, also where TLS resumes a session and asks nothing: whether the certificate is good now, and which
/// node it names. So the words of a refusal can name both times, and the peer hears them.
#[derive(Debug)]
pub(crate) struct Trust {
    authorities: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
}

/// What a certificate says that is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) certified: CertifiedName,
    /// In hexadecimal digits.
    pub(crate) serial: String,
    pub(crate) validity: Validity,
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
            roots,
        })
    }

    /// Whether one of the authorities has signed the certificate, whenever it is good.
    pub(crate) fn check_signed(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
    ) -> Result<Validity, rustls::Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        let validity = Validity::of(certificate)?;
        verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &self.roots,
            intermediates,
            UnixTime::since_unix_epoch(validity.until),
            ring::default_provider()
                .signature_verification_algorithms
                .all,
        )?;
        Ok(validity)
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

    /// Whether the certificate that a peer has shown is good, and what it says.
    pub(crate) fn check(
        &self,
        shown: Option<&[CertificateDer<'static>]>,
    ) -> Result<Standing, Error> {
        let whose = Side::Theirs;
        let certificate = shown
            .and_then(<[_]>::first)
            .ok_or(Error::NoCertificate { whose })?;
        let signed = self.check_signed(certificate, &[]);
        let validity = signed.map_err(Error::from_rustls)?;
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
        let parsed = webpki::EndEntityCert::try_from(certificate)
            .map_err(|error| rustls::Error::General(format!("not a certificate: {error}")))?;
        Ok(Self {
            certified,
            serial: hexadecimal(parsed.serial()),
            validity,
        })
    }
}
