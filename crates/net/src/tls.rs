//! TLS 1.3 with certificates on both ends, both checked against the authority of the village.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, ServerName, SignatureVerificationAlgorithm, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
};

use crate::identity::Trust;

/// How a node calls.
pub(crate) fn client_config(
    trust: Arc<Trust>,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ClientConfig>, Error> {
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(VillageVerifier { trust, algorithms }))
        .with_client_auth_cert(vec![certificate], key)?;
    // A node has one certificate: it need not be told which one is wanted, nor the network who is called.
    config.enable_sni = false;
    Ok(Arc::new(config))
}

/// How a node is called.
pub(crate) fn server_config(
    trust: Arc<Trust>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, Error> {
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let callers = Arc::new(VillageVerifier { trust, algorithms });
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(callers)
        .with_single_cert(chain, key)?;
    // What is needed to resume travels in the ticket, so it costs a home nothing to remember many members.
    config.ticketer = ring::Ticketer::new()?;
    // One is enough: a member comes back on one connection.
    config.send_tls13_tickets = 1;
    Ok(Arc::new(config))
}

/// The schemes in which nodes sign other things than a handshake, the preferred first.
pub(crate) const SIGNATURE_SCHEMES: [SignatureScheme; 5] = [
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ED25519,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
];

/// Checks a signature by the key of a certificate. Says nothing about the certificate. None: it is not good.
pub(crate) fn verify_signature(
    certificate: &CertificateDer<'_>,
    scheme: SignatureScheme,
    message: &[u8],
    signature: &[u8],
) -> Option<()> {
    if !SIGNATURE_SCHEMES.contains(&scheme) {
        return None;
    }
    let mapping = ring::default_provider()
        .signature_verification_algorithms
        .mapping;
    let (_, algorithms) = mapping.iter().find(|(known, _)| *known == scheme)?;
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    let fits = |algorithm: &&&dyn SignatureVerificationAlgorithm| {
        let checked = certificate.verify_signature(**algorithm, message, signature);
        checked.is_ok()
    };
    algorithms.iter().find(fits).map(|_| ())
}

/// The short key first: its strength is beyond attack, and a page costs less to encrypt.
fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![
        TLS13_AES_128_GCM_SHA256,
        TLS13_AES_256_GCM_SHA384,
        TLS13_CHACHA20_POLY1305_SHA256,
    ];
    Arc::new(CryptoProvider {
        cipher_suites,
        ..ring::default_provider()
    })
}

/// Accepts every certificate of the village. Which node it names, and whether it is good now, is checked after each
/// handshake and before the first byte of ours ([`Trust`]): then the error can name both the wanted and the found.
#[derive(Debug)]
struct VillageVerifier {
    trust: Arc<Trust>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for VillageVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let signed = self.trust.check_signed(certificate, intermediates);
        signed.map_err(|error| self.trust.name_villages(certificate, error))?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // Never negotiated.
        Err(Error::PeerIncompatible(
            rustls::PeerIncompatible::Tls12NotOffered,
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for VillageVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // A node has one certificate: it need not choose.
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.trust.check_signed(certificate, intermediates)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls13_signature(self, message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
