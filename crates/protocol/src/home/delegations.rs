//! By which sites a member's requests may come (rule R2).

use alloc::vec::Vec;
use thorp_model::limits::{DELEGATION_MS_MAX, PROOF_BYTES_MAX, SITES_ON_WAY_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    Certified, DELEGATION_VERSION, Delegation, DelegationNo, HomeId, MemberId, Millis, NameId,
    NotDelegated, Principal, Verifier, planted,
};

/// What the home keeps of the newest delegation of a registered member.
///
/// Invariant: `number` only rises. `sites` is empty until a delegation is taken in this life of the
/// home, and whenever the last one names nobody.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::home) struct Delegated {
    number: DelegationNo,
    /// Whose rights count for what these sites bring.
    who: Principal,
    ends: Millis,
    sites: Vec<NameId>,
}

/// How a delegation comes to a home.
#[derive(Clone, Copy, Debug)]
pub(in crate::home) struct Arrival {
    pub(in crate::home) home: HomeId,
    /// In whose name it comes.
    pub(in crate::home) member: MemberId,
    /// The site that brings it; none: it comes on the member's own edge.
    pub(in crate::home) site: Option<NameId>,
    /// The time by the clock of the home.
    pub(in crate::home) wall: Millis,
}

impl Delegated {
    /// A member that has named no site, after a delegation with this number.
    pub(in crate::home) fn to_nobody(member: MemberId, number: DelegationNo) -> Self {
        Delegated {
            number,
            who: Principal {
                name: member.name(),
                is_operator: false,
            },
            ends: Millis(0),
            sites: Vec::new(),
        }
    }

    /// The number of the last delegation.
    pub(in crate::home) fn number(&self) -> DelegationNo {
        self.number
    }

    /// Whose rights count for a request that a site brings.
    pub(in crate::home) fn judge(
        &self,
        site: NameId,
        wall: Millis,
    ) -> Result<Principal, NotDelegated> {
        if self.sites.is_empty() {
            return Err(NotDelegated::Missing);
        }
        if !self.sites.contains(&site) {
            return Err(NotDelegated::OtherSite);
        }
        if wall >= self.ends {
            return Err(NotDelegated::Ended);
        }
        Ok(self.who)
    }
}

impl Arrival {
    /// Takes a delegation if it is newer than the last one. Returns also who has signed, if that had
    /// to be checked: on its own edge the certificate of the connection proves who the member is.
    pub(in crate::home) fn take(
        self,
        delegation: &Delegation,
        last: DelegationNo,
        verifier: &dyn Verifier,
    ) -> Result<(Delegated, Option<Certified>), NotDelegated> {
        let text = &delegation.text;
        let is_well_formed = text.version == DELEGATION_VERSION
            && (text.home, text.member) == (self.home, self.member)
            && text.sites.len() <= SITES_ON_WAY_MAX
            && delegation.proof.bytes() <= PROOF_BYTES_MAX;
        if !is_well_formed {
            return Err(NotDelegated::Malformed);
        }
        // A site may send an old one again (trap R35).
        if text.number <= last && !planted::is(Bug::OldDelegationTaken) {
            return Err(NotDelegated::Old);
        }
        let taken = Delegated {
            number: text.number.max(last),
            ends: text.ends,
            sites: text.sites.clone(),
            ..Delegated::to_nobody(self.member, text.number)
        };
        let Some(site) = self.site else {
            return Ok((taken, None));
        };
        if !text.sites.contains(&site) {
            return Err(NotDelegated::OtherSite);
        }
        if text.ends <= self.wall || text.ends > self.wall.plus(DELEGATION_MS_MAX) {
            return Err(NotDelegated::Times);
        }
        let certified = verifier.verify(text, &delegation.proof, self.wall);
        let certified = certified.ok_or(NotDelegated::NotProven)?;
        let who = certified.who;
        if who.name != self.member.name() {
            return Err(NotDelegated::NotProven);
        }
        Ok((Delegated { who, ..taken }, Some(certified)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use thorp_model::{DelegationText, Proof, SignedText};

    const OFFICE: NameId = NameId(8);
    const OTHER: NameId = NameId(9);
    const HOME: HomeId = HomeId(1);
    const WALL: Millis = Millis(1_000_000);

    /// Takes the first byte of a signature for the proof.
    #[derive(Debug)]
    struct Seals;

    impl Verifier for Seals {
        fn verify(&self, _: &dyn SignedText, proof: &Proof, _: Millis) -> Option<Certified> {
            let name = match proof.signature.bytes() {
                [b'a'] => "anna",
                [b'b'] => "ben",
                _ => return None,
            };
            Some(Certified {
                name: String::from(name),
                who: Principal {
                    name: NameId::of(name),
                    is_operator: true,
                },
            })
        }
    }

    fn anna() -> MemberId {
        MemberId::new(NameId::of("anna"), 7)
    }

    fn arrival(site: Option<NameId>) -> Arrival {
        Arrival {
            home: HOME,
            member: anna(),
            site,
            wall: WALL,
        }
    }

    fn delegation(number: u64, seal: u8) -> Delegation {
        Delegation {
            text: DelegationText {
                version: DELEGATION_VERSION,
                home: HOME,
                member: anna(),
                number: DelegationNo(number),
                ends: WALL.plus(1_000),
                sites: Vec::from([OFFICE]),
            },
            proof: Proof {
                signature: Vec::from([seal]).into(),
                ..Proof::none()
            },
        }
    }

    fn taken(site: Option<NameId>, given: &Delegation) -> Result<Delegated, NotDelegated> {
        let taken = arrival(site).take(given, DelegationNo(4), &Seals);
        taken.map(|(taken, _)| taken)
    }

    #[test]
    fn a_site_speaks_for_whoever_has_signed_so_until_it_ends() {
        let of_anna = taken(Some(OFFICE), &delegation(5, b'a')).unwrap();
        let who = of_anna.judge(OFFICE, WALL).unwrap();
        assert!(who.is_operator && who.name == anna().name());
        assert_eq!(of_anna.judge(OTHER, WALL), Err(NotDelegated::OtherSite));
        let end = of_anna.judge(OFFICE, WALL.plus(1_000));
        assert_eq!(end, Err(NotDelegated::Ended));
    }

    #[test]
    fn nobody_signs_for_another_name() {
        let by = |seal| taken(Some(OFFICE), &delegation(5, seal)).unwrap_err();
        assert_eq!([by(b'b'), by(b'x')], [NotDelegated::NotProven; 2]);
    }

    #[test]
    fn what_is_old_or_for_another_site_or_home_is_not_taken() {
        let why = |site, change: fn(&mut Delegation)| {
            let mut given = delegation(5, b'a');
            change(&mut given);
            taken(Some(site), &given).unwrap_err()
        };
        let number = |given: &mut Delegation| given.text.number = DelegationNo(4);
        assert_eq!(why(OFFICE, number), NotDelegated::Old);
        assert_eq!(why(OTHER, |_| {}), NotDelegated::OtherSite);
        for malformed in [
            (|given| given.text.home = HomeId(2)) as fn(&mut Delegation),
            |given| given.text.member = MemberId(2),
            |given| given.text.version += 1,
            |given| given.text.sites = Vec::from([OFFICE; SITES_ON_WAY_MAX + 1]),
            |given| given.proof.certificate = alloc::vec![0; PROOF_BYTES_MAX].into(),
        ] {
            assert_eq!(why(OFFICE, malformed), NotDelegated::Malformed);
        }
        for ends in [
            (|given| given.text.ends = WALL) as fn(&mut Delegation),
            |given| given.text.ends = WALL.plus(DELEGATION_MS_MAX + 1),
        ] {
            assert_eq!(why(OFFICE, ends), NotDelegated::Times);
        }
    }

    #[test]
    fn on_its_own_edge_a_member_needs_no_signature_and_no_clock() {
        let mut given = delegation(5, b'x');
        given.text.ends = Millis(0);
        given.text.sites.clear();
        let taken = taken(None, &given).unwrap();
        assert_eq!(taken.number(), DelegationNo(5));
        assert_eq!(taken.judge(OFFICE, WALL), Err(NotDelegated::Missing));
    }
}
