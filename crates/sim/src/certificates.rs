//! Stand-ins for certificates and signatures, the same for the same seed (rule R2).

use std::sync::Arc;
use thorp_model::{
    Blob, Certified, Millis, NameId, Principal, Proof, SignedText, Signer, Verifier,
};

/// The authority of a simulated village. It makes the signers of its nodes, and nobody signs without
/// one. A node that keeps no rules gets none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Authority {
    key: [u8; 32],
}

/// Signs as one node.
#[derive(Debug)]
struct NodeSigner {
    authority: Authority,
    certificate: Blob,
}

impl Authority {
    /// The signer of a member with this name.
    pub fn signer(self, name: &str, who: Principal) -> Arc<dyn Signer> {
        let mut certificate = Vec::from([u8::from(who.is_operator)]);
        certificate.extend(who.name.0.to_be_bytes());
        certificate.extend(name.as_bytes());
        Arc::new(NodeSigner {
            authority: self,
            certificate: certificate.into(),
        })
    }

    /// The verifier of its homes.
    pub fn verifier(self) -> Arc<dyn Verifier> {
        Arc::new(self)
    }

    fn signature(self, certificate: &[u8], text: &dyn SignedText) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(certificate.len() as u64).to_be_bytes());
        hasher.update(certificate);
        hasher.update(&text.signed_bytes("simulated"));
        *hasher.finalize().as_bytes()
    }
}

impl Signer for NodeSigner {
    fn sign(&self, text: &dyn SignedText) -> Proof {
        let signature = self.authority.signature(self.certificate.bytes(), text);
        Proof {
            scheme: 0,
            certificate: self.certificate.clone(),
            signature: Blob::from(signature.as_slice()),
        }
    }
}

impl Verifier for Authority {
    fn verify(&self, text: &dyn SignedText, proof: &Proof, _: Millis) -> Option<Certified> {
        let signature = self.signature(proof.certificate.bytes(), text);
        let is_signed = proof.signature.bytes() == signature.as_slice();
        is_signed.then(|| read(proof.certificate.bytes())).flatten()
    }
}

fn read(certificate: &[u8]) -> Option<Certified> {
    let (role, rest) = certificate.split_first()?;
    let (id, name) = rest.split_first_chunk()?;
    Some(Certified {
        name: String::from_utf8(name.to_vec()).ok()?,
        who: Principal {
            name: NameId(u64::from_be_bytes(*id)),
            is_operator: *role == 1,
        },
    })
}
