//! What a member signs so that sites may carry its requests (rule R2).

use crate::ids::{DelegationNo, HomeId, MemberId, Millis, NameId};
use crate::signing::{self, Proof, SignedText};
use alloc::vec::Vec;
use core::fmt;
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

impl SignedText for DelegationText {
    fn by(&self) -> NameId {
        self.member.name()
    }

    fn signed_bytes(&self, village: &str) -> Vec<u8> {
        signing::bytes_of(b"thorp delegation\0", village, self)
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
}
