//! TLS 1.3 for clients, from PEM files.

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// The name of HTTP/2 in a handshake.
pub(super) const HTTP_2: &[u8] = b"h2";

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Why there is no TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// There is no certificate in PEM.
    Certificate(String),
    /// There is no private key in PEM.
    Key(String),
    /// They do not fit together, or are of a kind that nobody knows here.
    Pair(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Certificate(why) => write!(f, "the certificate: {why}"),
            TlsError::Key(why) => write!(f, "the private key: {why}"),
            TlsError::Pair(why) => write!(f, "the certificate and its key: {why}"),
        }
    }
}

impl std::error::Error for TlsError {}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key stays here.
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and its key.
    ///
    /// # Errors
    ///
    /// One of them is no PEM, or they do not fit together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = CertificateDer::pem_slice_iter(certificates).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| TlsError::Certificate(error.to_string()))?;
        if chain.is_empty() {
            return Err(TlsError::Certificate(String::from(
                "the file has none in PEM",
            )));
        }
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|error| TlsError::Key(error.to_string()))?;
        let pair = |error: rustls::Error| TlsError::Pair(error.to_string());
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(pair)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(pair)?;
        config.alpn_protocols = vec![HTTP_2.to_vec(), b"http/1.1".to_vec()];
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }

    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_or_no_key_is_named() {
        let pair = || rcgen::generate_simple_self_signed([String::from("a")]).expect("a pair");
        let (one, other) = (pair(), pair());
        let (certificate, key) = (one.cert.pem(), one.signing_key.serialize_pem());
        assert!(Tls::from_pem(certificate.as_bytes(), key.as_bytes()).is_ok());
        let other = other.signing_key.serialize_pem();
        for (certificate, key, part) in [
            ("", key.as_str(), "the certificate:"),
            (certificate.as_str(), "", "the private key:"),
            (
                certificate.as_str(),
                other.as_str(),
                "the certificate and its key:",
            ),
        ] {
            let error = Tls::from_pem(certificate.as_bytes(), key.as_bytes());
            let error = error.expect_err(part).to_string();
            assert!(error.starts_with(part), "{error}");
        }
    }
}
