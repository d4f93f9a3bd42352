//! Signing in the name of a node, and checking who has signed (rules R2 and C7).

use std::fmt;
use std::time::Duration;

use rustls::SignatureScheme;
use rustls::pki_types::CertificateDer;
use thorp_model::{
    Blob, Certified, Millis, NameId, Principal, Proof, SignedText, Signer, Verifier,
};

use super::{Identity, NodeRole};
use crate::tls;

/// Signs with the key of a node's certificate, as the node shows it then.
pub(super) struct KeySigner(Identity);

/// Checks signatures against the authorities that a node trusts, and against what it knows to be revoked.
pub(super) struct AuthorityVerifier(Identity);

impl KeySigner {
    /// A signer with the key that a node calls with.
    pub(super) fn of(identity: &Identity) -> Self {
        Self(identity.clone())
    }

    fn try_sign(&self, text: &dyn SignedText) -> Option<Proof> {
        let shown = self.0.credentials();
        let resolver = &shown.client.client_auth_cert_resolver;
        let key = resolver.resolve(&[], &tls::SIGNATURE_SCHEMES)?;
        let signer = key.key.choose_scheme(&tls::SIGNATURE_SCHEMES)?;
        let signature = signer.sign(&text.signed_bytes(self.0.village())).ok()?;
        Some(Proof {
            scheme: u16::from(signer.scheme()),
            certificate: Blob::from(key.cert.first()?.as_ref()),
            signature: Blob::from(signature),
        })
    }
}

impl Signer for KeySigner {
    /// A key that does not sign gives a proof of nothing: homes refuse it, and say so.
    fn sign(&self, text: &dyn SignedText) -> Proof {
        self.try_sign(text).unwrap_or_else(Proof::none)
    }
}

impl AuthorityVerifier {
    /// A verifier that accepts what a node accepts.
    pub(super) fn of(identity: &Identity) -> Self {
        Self(identity.clone())
    }

    fn try_verify(&self, text: &dyn SignedText, proof: &Proof, wall: Millis) -> Option<Certified> {
        let certificate = CertificateDer::from(proof.certificate.bytes()).into_owned();
        let now = Duration::from_millis(wall.0);
        let certified = self.0.standing_at(&certificate, now)?.certified;
        let signed = text.signed_bytes(self.0.village());
        let scheme = SignatureScheme::from(proof.scheme);
        tls::verify_signature(&certificate, scheme, &signed, proof.signature.bytes())?;
        let is_operator = match certified.role() {
            NodeRole::Member => false,
            NodeRole::Operator => true,
            NodeRole::Home | NodeRole::Site | NodeRole::Authority => return None,
        };
        Some(Certified {
            name: certified.name().to_owned(),
            who: Principal {
                name: NameId::of(certified.name()),
                is_operator,
            },
        })
    }
}

impl Verifier for AuthorityVerifier {
    fn verify(&self, text: &dyn SignedText, proof: &Proof, wall: Millis) -> Option<Certified> {
        self.try_verify(text, proof, wall)
    }
}

impl fmt::Debug for KeySigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySigner").finish_non_exhaustive()
    }
}

impl fmt::Debug for AuthorityVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorityVerifier").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::issue;
    use thorp_model::{
        DELEGATION_VERSION, Delegation, DelegationNo, DelegationText, HomeId, MemberId,
    };

    fn text() -> DelegationText {
        DelegationText {
            version: DELEGATION_VERSION,
            home: HomeId(1),
            member: MemberId::new(NameId::of("anna"), 7),
            number: DelegationNo(1),
            ends: Millis(5_000),
            sites: vec![NameId::of("office")],
        }
    }

    /// A home, its members and a site, in a directory of this name.
    fn village(name: &str) -> (std::path::PathBuf, Identity) {
        let dir = format!("thorp-net-delegation-{}-{name}", std::process::id());
        let dir = std::env::temp_dir().join(dir);
        let _ = std::fs::remove_dir_all(&dir);
        let home =
            Identity::open_or_create(dir.join("home"), dir.join("home"), ("alps", HomeId(7)))
                .unwrap();
        (dir, home)
    }

    fn signed(of: &Identity) -> Delegation {
        let proof = of.signer().sign(&text());
        Delegation {
            text: text(),
            proof,
        }
    }

    fn now() -> Millis {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        Millis(u64::try_from(since.as_millis()).unwrap())
    }

    #[test]
    fn a_home_learns_the_name_and_the_role_from_the_certificate() {
        let (dir, home) = village("roles");
        let of = |role, name| issue(dir.join("home"), dir.join(name), role, name).unwrap();
        let verified = |of: &Identity| {
            let Delegation { text, proof } = signed(of);
            home.verifier().verify(&text, &proof, now())
        };
        for (role, name) in [(NodeRole::Member, "anna"), (NodeRole::Operator, "ann")] {
            let certified = verified(&of(role, name)).unwrap();
            let is_operator = role == NodeRole::Operator;
            let who = Principal {
                name: NameId::of(name),
                is_operator,
            };
            assert_eq!((&*certified.name, certified.who), (name, who));
        }
        // Only members sign for themselves.
        let office = of(NodeRole::Site, "office");
        assert_eq!(verified(&office), None);
        assert_eq!(verified(&home), None);
        let _ = std::fs::remove_dir_all(dir);
    }

    #[test]
    fn what_was_changed_or_is_of_another_village_or_time_is_not_proven() {
        let (dir, home) = village("changed");
        let anna = issue(dir.join("home"), dir.join("anna"), NodeRole::Member, "anna").unwrap();
        let verify = |of: &Delegation, wall| home.verifier().verify(&of.text, &of.proof, wall);
        let good = signed(&anna);
        assert!(verify(&good, now()).is_some());
        let mut other = good.clone();
        other.text.sites.push(NameId::of("evil"));
        assert_eq!(verify(&other, now()), None);
        let mut other = good.clone();
        other.proof.signature = Blob::from(vec![7; 70]);
        assert_eq!(verify(&other, now()), None);
        let mut other = good.clone();
        other.proof.scheme = u16::from(SignatureScheme::RSA_PKCS1_SHA1);
        assert_eq!(verify(&other, now()), None);
        let mut other = good.clone();
        other.proof.certificate = Blob::from(vec![1, 2, 3]);
        assert_eq!(verify(&other, now()), None);
        // Certificates begin a day before they are made, and end after years.
        for wall in [Millis(0), now().plus(100 * 365 * 86_400_000)] {
            assert_eq!(verify(&good, wall), None);
        }
        let (strange_dir, strange) = village("strange");
        assert_eq!(
            strange.verifier().verify(&good.text, &good.proof, now()),
            None
        );
        let _ = std::fs::remove_dir_all(dir);
        let _ = std::fs::remove_dir_all(strange_dir);
    }
}
