//! Signatures of members and sites under texts (rules R2 and C7).
//!
//! The state machines sign and check nothing themselves: a driver hands a [`Signer`] to a member and a [`Verifier`]
//! to a home.

use crate::blob::Blob;
use crate::ids::{Millis, NameId};
use crate::rights::Principal;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;
use serde::{Deserialize, Serialize};

/// What somebody signs.
pub trait SignedText {
    /// The name that has to have signed it.
    fn by(&self) -> NameId;

    /// The bytes that are signed in a village. They begin with words that no other signature of Thorp or TLS begins with.
    fn signed_bytes(&self, village: &str) -> Vec<u8>;
}

/// A signature, and the certificate whose key made it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Proof {
    /// How it is signed, as TLS numbers signature schemes.
    pub scheme: u16,
    /// The certificate of whoever has signed.
    pub certificate: Blob,
    /// The signature of [`SignedText::signed_bytes`].
    pub signature: Blob,
}

/// Signs in the name of a member.
pub trait Signer: Debug + Send + Sync {
    /// The proof that a text is this member's.
    fn sign(&self, text: &dyn SignedText) -> Proof;
}

/// Checks who has signed.
pub trait Verifier: Debug + Send + Sync {
    /// Who has signed a text, by a certificate that is good at a time of the wall clock. None: nobody whom this node believes.
    fn verify(&self, text: &dyn SignedText, proof: &Proof, wall: Millis) -> Option<Certified>;
}

/// Who has signed, by its certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certified {
    /// The name in the certificate.
    pub name: String,
    /// Whose rights count.
    pub who: Principal,
}

/// A signer without a key: homes take its statements only on the member's own edge.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSigner;

/// A verifier that knows no certificate: members have to come by edges of their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoVerifier;

impl Proof {
    /// A proof of nothing.
    pub fn none() -> Self {
        let nothing = Blob::from(Vec::new());
        Proof {
            scheme: 0,
            certificate: nothing.clone(),
            signature: nothing,
        }
    }

    /// Its bytes, for limits.
    pub fn bytes(&self) -> usize {
        self.certificate.bytes().len() + self.signature.bytes().len()
    }
}

impl Signer for NoSigner {
    fn sign(&self, _: &dyn SignedText) -> Proof {
        Proof::none()
    }
}

impl Verifier for NoVerifier {
    fn verify(&self, _: &dyn SignedText, _: &Proof, _: Millis) -> Option<Certified> {
        None
    }
}

/// What is signed of a text: what it is for, the village, and its encoding.
pub(crate) fn bytes_of(signed_for: &[u8], village: &str, text: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::from(signed_for);
    bytes.extend(village.as_bytes());
    bytes.push(0);
    // Encoding into memory fails for no text of Thorp.
    bytes.extend(postcard::to_allocvec(text).unwrap_or_default());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl SignedText for Nothing {
        fn by(&self) -> NameId {
            NameId(0)
        }

        fn signed_bytes(&self, village: &str) -> Vec<u8> {
            bytes_of(b"nothing\0", village, &())
        }
    }

    #[test]
    fn without_a_key_nothing_is_proven() {
        let proof = NoSigner.sign(&Nothing);
        assert_eq!(proof.bytes(), 0);
        assert_eq!(NoVerifier.verify(&Nothing, &proof, Millis(0)), None);
    }
}
