//! Digests and randomness, from the library that TLS uses.

use rustls::crypto::ring;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::{Error, SupportedCipherSuite};

/// SHA-256.
pub(crate) fn digest(bytes: &[u8]) -> Option<Vec<u8>> {
    match TLS13_AES_128_GCM_SHA256 {
        SupportedCipherSuite::Tls13(suite) => {
            Some(suite.common.hash_provider.hash(bytes).as_ref().to_vec())
        }
        #[allow(
            unreachable_patterns,
            reason = "TLS 1.2's variant exists if any crate in the build asks for it"
        )]
        _ => None,
    }
}

/// Fills the bytes with randomness for keys and numbers.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), Error> {
    let filled = ring::default_provider().secure_random.fill(bytes);
    filled.map_err(Error::from)
}
