//! What a member signs so that sites may carry its requests (rule R2).
//!
//! The state machines sign and check nothing themselves: a driver hands a [`Signer`] to a member and a [`Verifier`]
//! to a home.

use crate::blob::Blob;
use crate::ids::{DelegationNo, HomeId, MemberId, Millis, NameId};
use crate::rights::Principal;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Debug};
use serde::{Deserialize, Serialize};

/// The form of [`DelegationText`]. A later form also has the incarnation of the home (rule R9).
pub const DELEGATION_VERSION: u8 = 1;

/// What a member states when it registers at a home.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DelegationText {
    /// Its form, [`DELEGATION_VERSION`].
    pub version: u8,
    /// The home that it is for.
    pub home: HomeId,
    /// The member that states it.
    pub member: MemberId,
    /// Rises with each statement of the member.
    pub number: DelegationNo,
    /// When it ends, by the wall clock.
    pub ends: Millis,
    /// The names of the sites that may carry requests of the member: those on the way to the home, at most
    /// [`SITES_ON_WAY_MAX`](crate::limits::SITES_ON_WAY_MAX).
    pub sites: Vec<NameId>,
}

/// A statement with the proof that it is the member's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Delegation {
    /// What the member states.
    pub text: DelegationText,
    /// The proof of it.
    pub proof: Proof,
}

/// A signature, and the certificate whose key made it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Proof {
    /// How it is signed, as TLS numbers signature schemes.
    pub scheme: u16,
    /// The member's certificate.
    pub certificate: Blob,
    /// The signature of [`DelegationText::signed_bytes`].
    pub signature: Blob,
}

/// Signs in the name of a member.
pub trait Signer: Debug + Send + Sync {
    /// The proof that a text is this member's.
    fn sign(&self, text: &DelegationText) -> Proof;
}

/// Checks who has signed.
pub trait Verifier: Debug + Send + Sync {
    /// Who has signed a delegation, by a certificate that is good at a time of the wall clock.
    ///
    /// # Errors
    ///
    /// [`NotDelegated::NotProven`].
    fn verify(&self, delegation: &Delegation, wall: Millis) -> Result<Certified, NotDelegated>;
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

/// Why a home takes no request of a member by a site (rule R2). The id of a commit stays usable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum NotDelegated {
    /// The home has no valid delegation of the member.
    Missing,
    /// The delegation does not name the site.
    OtherSite,
    /// The delegation has ended.
    Ended,
    /// The home has a delegation with this number or a higher one.
    Old,
    /// The delegation ends in the past or too far ahead, by the clock of the home.
    Times,
    /// The delegation is not for this home, member or version, or names too many sites.
    Malformed,
    /// The signature or the certificate is not good.
    NotProven,
}

impl DelegationText {
    /// The bytes that a member of a village signs. They begin with words that no other signature of Thorp or TLS
    /// begins with.
    pub fn signed_bytes(&self, village: &str) -> Vec<u8> {
        let mut bytes = Vec::from(SIGNED_FOR);
        bytes.extend(village.as_bytes());
        bytes.push(0);
        // Encoding into memory fails for no value of this type.
        bytes.extend(postcard::to_allocvec(self).unwrap_or_default());
        bytes
    }
}

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
    fn sign(&self, _: &DelegationText) -> Proof {
        Proof::none()
    }
}

impl Verifier for NoVerifier {
    fn verify(&self, _: &Delegation, _: Millis) -> Result<Certified, NotDelegated> {
        Err(NotDelegated::NotProven)
    }
}

impl fmt::Display for NotDelegated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotDelegated::Missing => {
                "the home has no valid signature of this member: it signs anew, try again"
            }
            NotDelegated::OtherSite => {
                "this member has not signed that this site may carry its requests: it signs anew, try again"
            }
            NotDelegated::Ended => {
                "the signature of this member has ended: it signs anew, try again"
            }
            NotDelegated::Old => {
                "the home has a newer signature of this member: it signs anew, try again"
            }
            NotDelegated::Times => {
                "the signature of this member has ended, or ends too late: set the clocks of this computer and of the home"
            }
            NotDelegated::Malformed => {
                "the signature of this member is for something else: use a program of the same version of Thorp"
            }
            NotDelegated::NotProven => {
                "the home does not accept the signature of this member: renew its certificate"
            }
        })
    }
}

/// What every signed text begins with.
const SIGNED_FOR: &[u8] = b"thorp delegation\0";

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> DelegationText {
        DelegationText {
            version: DELEGATION_VERSION,
            home: HomeId(1),
            member: MemberId::new(NameId::of("anna"), 7),
            number: DelegationNo(3),
            ends: Millis(5_000),
            sites: Vec::from([NameId::of("office")]),
        }
    }

    #[test]
    fn what_is_signed_differs_with_each_part() {
        let signed = text().signed_bytes("0123");
        let others = [
            DelegationText {
                home: HomeId(2),
                ..text()
            },
            DelegationText {
                member: MemberId(7),
                ..text()
            },
            DelegationText {
                number: DelegationNo(4),
                ..text()
            },
            DelegationText {
                ends: Millis(5_001),
                ..text()
            },
            DelegationText {
                sites: Vec::new(),
                ..text()
            },
            DelegationText {
                version: 2,
                ..text()
            },
        ];
        for other in others {
            assert_ne!(other.signed_bytes("0123"), signed, "{other:?}");
        }
        assert_ne!(text().signed_bytes("0124"), signed);
    }

    #[test]
    fn without_a_key_nothing_is_proven() {
        let proof = NoSigner.sign(&text());
        assert_eq!(proof.bytes(), 0);
        let delegation = Delegation {
            text: text(),
            proof,
        };
        let verified = NoVerifier.verify(&delegation, Millis(0));
        assert_eq!(verified, Err(NotDelegated::NotProven));
    }
}
